"""What a user can get wrong: one sentence that names it, the right exit status, nothing half-written.

The sentences themselves are held where they are made; here is what a terminal gets of them.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import version

import numpy as np
import pytest

from tests.end_to_end.command import Harness, document, edit, refused
from tests.end_to_end.suites import BUILDER, DOUBLE, PARAMS

Change = Callable[..., Harness]


@pytest.mark.parametrize(
    ("old", "new", "where"),
    [
        ("height = 4", "hieght = 4", "[models.tiny] params.hieght"),
        ("budget_s = 0.3", "budget_seconds = 1", "[measure] budget_seconds"),
        ('baseline = "stock"', 'baseline = "stok"', "baseline"),
        (BUILDER, 'builder = "residual-block"', "[models.tiny] builder"),
        ("[variants.stock]", '[variants.stock]\nflagsets = ["im2col"]', "[variants.stock] flagsets"),
        ("[variants.stock]", '[variants.stock]\nplugins = ["share-concats"]', "[variants.stock] plugins"),
        ("[variants.stock]", '[variants.stock]\nflags = ["--iree-opt-data-tilin"]', "[variants.stock] flags"),
        (
            "[variants.stock]",
            '[variants.stock]\nflags = ["--iree-opt-data-tiling", "--iree-global-opt-data-tiling"]',
            "[variants.stock] on device cpu: --iree-opt-data-tiling and --iree-global-opt-data-tiling cancel",
        ),
        ("[measure]", '[matrix]\nexclude = ["tiny/*@gpu"]\n[measure]', "[matrix] exclude"),
        ("[measure]", "[variants.stock]\n[measure]", "[variants.stock] is defined twice"),
        (f"{BUILDER}\n{PARAMS}", 'onnx = "model.onnx"', "[models.tiny] onnx"),
    ],
)
def test_a_wrong_suite(suite_with: Change, old: str, new: str, where: str) -> None:
    harness = suite_with((old, new))
    refused(harness, harness("run", "small.toml"), f"small.toml: {where}")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("run",), "give either a suite, as in `harness run suites/esrgan.toml`, or --resume with a run directory"),
        (("run", "nope.toml"), "nope.toml: there is no such file; check the path"),
        (("run", "small.toml", "--budget", "-1"), "--budget"),
        (("run", "small.toml", "--generations", "0"), "--generations"),
        (("run", "small.toml", "--generations", "many"), "--generations"),
        (("run", "small.toml", "--bogus"), "--bogus"),
        (("run", "small.toml", "--filter", "nothing*"), "--filter nothing* matches no case"),
        (("run", "small.toml", "--toolchain", "latest"), "--toolchain latest: is no version; write the release"),
        (("list", "small.toml", "--toolchain", "iree>=3"), "--toolchain iree>=3: is no version; write the release"),
        (("run", "nope.toml", "--toolchain", "3.12.0"), "nope.toml: there is no such file"),
        (("run", "--resume", "nowhere", "--toolchain", "3.12.0"), "own settings; leave out toolchains"),
        (("run", "--resume", "nowhere"), "nowhere: there is no such folder"),
        (("run", "small.toml", "--results", "small.toml/x"), "small.toml/x: cannot be written (Not a directory)"),
        (("report", "nowhere"), "nowhere: there is no such folder"),
        (("export", "small.toml", "large"), "there is no model 'large'"),
        (("frobnicate",), "frobnicate"),
    ],
)
def test_a_wrong_command_line(harness: Harness, arguments: tuple[str, ...], words: str) -> None:
    ended = harness(*arguments)
    refused(harness, ended, "")
    assert words in ended.stderr


def test_a_cache_that_cannot_be_written(harness: Harness) -> None:
    ended = harness("run", "small.toml", HARNESS_CACHE="small.toml/cache")
    assert ended.returncode == 2
    assert "small.toml/cache: the cache cannot be written (Not a directory)" in ended.stderr


@pytest.mark.parametrize(
    ("mlir", "inputs", "words"),
    [
        pytest.param(DOUBLE[:40], "{ shape = [4] }", "failed at model", id="a file that was cut short"),
        pytest.param(
            DOUBLE, "{ shape = [5] }", "main takes 4xf32, and 5xf32 is given", id="a shape that the function refuses"
        ),
        pytest.param(
            DOUBLE.replace("@main", "@other"),
            "{ shape = [4] }",
            "[models.tiny] function: model.mlir has no function 'main'",
            id="no such function",
        ),
        pytest.param(
            DOUBLE,
            '{ npy = "x.npy", dtype = "f32" }',
            "holds int32 where f32 needs float32",
            id="an input of another type",
        ),
    ],
)
def test_a_model_that_fails_is_a_failed_case(suite_with: Change, mlir: str, inputs: str, words: str) -> None:
    harness = suite_with((f"{BUILDER}\n{PARAMS}", f'mlir = "model.mlir"\nfunction = "main"\ninputs = [{inputs}]\n'))
    (harness.folder / "model.mlir").write_text(mlir)
    np.save(harness.folder / "x.npy", np.zeros(4, np.int32))
    ended = harness("run", "small.toml", "--format", "csv")
    assert ended.returncode == 3
    assert words in ended.stdout


def test_an_onnx_file_that_was_cut_short_is_a_failed_case(suite_with: Change) -> None:
    harness = suite_with((f"{BUILDER}\n{PARAMS}", 'onnx = "model.onnx"\ninputs = [{ shape = [4] }]\n'))
    (harness.folder / "model.onnx").write_bytes(b"\x08\x07\x12\x04test")
    ended = harness("run", "small.toml", "--format", "csv")
    assert ended.returncode == 3
    assert "model.onnx" in ended.stdout


NO_COMPILER = "    if name.startswith('iree-base'):\n        raise metadata.PackageNotFoundError(name)"
OLD_RUNTIME = (
    "    if name == 'iree-base-runtime':\n        class Old:\n            version = '0.0.1'\n        return Old"
)


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (NO_COMPILER, "iree-base-compiler is not installed; run pip install 'iree-base-compiler[onnx]'"),
        (
            OLD_RUNTIME,
            f"iree-base-compiler is {version('iree-base-compiler')} and iree-base-runtime is 0.0.1, ",
        ),
    ],
    ids=["no compiler", "another runtime"],
)
def test_the_installed_packages_are_no_pair(harness: Harness, code: str, words: str) -> None:
    """As a fresh process sees it whose importlib.metadata finds other packages than are installed."""
    (harness.folder / "sitecustomize.py").write_text(
        "import importlib.metadata as metadata\nreal = metadata.distribution\n"
        f"def distribution(name):\n{code}\n    return real(name)\nmetadata.distribution = distribution\n"
    )
    ended = harness.ended("run", "small.toml", PYTHONPATH=str(harness.folder))
    assert (ended.returncode, ended.stdout) == (2, "")
    assert words in ended.stderr
    assert "pip install" in ended.stderr


# --- Comparisons ---

BASE, HEAD = "results/base", "results/head"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((), "give two sides, as in `harness compare results/base results/head`"),
        ((BASE, "nowhere"), "nowhere: there is no such run in results, and git finds no repository here"),
        ((BASE, HEAD, "--filter", "nothing*"), "--filter nothing* matches no case of the comparison, such as product/"),
        ((BASE, "iree==nonsense"), "--toolchain iree==nonsense: is no version; write the release"),
        ((BASE, HEAD, "--row-budget", "0"), "Invalid value"),
        ((BASE, HEAD, "--spread"), "--spread spreads rows over hosts of a fleet; give --fleet, or leave it out"),
        (
            (BASE, HEAD, "--fleet", "tls://x:1", "--no-remeasure"),
            "--fleet measures on hosts, and --no-remeasure measures",
        ),
        (
            (BASE, HEAD, "--fleet", "tls://x:1", "--explain"),
            "--explain measures on this machine, and --fleet on others",
        ),
        ((BASE, HEAD, "--results", "small.toml/x"), "small.toml/x: cannot be written (Not a directory)"),
    ],
)
def test_a_wrong_comparison(runs: Harness, arguments: tuple[str, ...], sentence: str) -> None:
    refused(runs, runs("compare", *arguments), sentence)


def test_a_run_that_cannot_be_read(runs: Harness) -> None:
    edit(runs.folder / HEAD / "run.json", lambda run: run.update(schema_version=99))
    refused(runs, runs("compare", BASE, HEAD), f"{HEAD}/run.json: has schema 99, and this harness reads 1; upgrade it")


def test_a_comparison_that_was_damaged_is_not_printed_again(runs: Harness) -> None:
    assert document(runs("compare", BASE, HEAD, "--format", "json"))
    (path,) = runs.comparisons()
    kept = path / "comparison.json"
    for text in (kept.read_text()[:300], "[]"):
        kept.write_text(text)
        ended = runs("report", str(path))
        assert (ended.returncode, ended.stdout) == (2, "")
        assert ended.stderr.startswith(
            (f"harness: {kept}: is ", f"harness: {kept}: has schema 2, and this harness reads 1")
        )
