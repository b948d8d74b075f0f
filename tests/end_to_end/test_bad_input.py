"""What a user can get wrong: one sentence that names it, the right exit status, nothing half-written.

The sentences themselves are held where they are made; here is what a terminal gets of them.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pytest

from tests.end_to_end.command import Harness, edit, refused
from tests.end_to_end.suites import BUILDER, DOUBLE, PARAMS

Change = Callable[..., Harness]
ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("old", "new", "where"),
    [
        ("height = 4", "hieght = 4", "[models.tiny] params.hieght"),
        ("budget_s = 0.3", "budget_seconds = 1", "[measure] budget_seconds"),
        (BUILDER, 'builder = "residual-block"', "[models.tiny] builder"),
        ("[variants.stock]", '[variants.stock]\nplugins = ["share-concats"]', "[variants.stock] plugins"),
        ("[variants.stock]", '[variants.stock]\nflags = ["--iree-opt-data-tilin"]', "[variants.stock] flags"),
        (
            "[variants.stock]",
            '[variants.stock]\nflags = ["--iree-opt-data-tiling", "--iree-global-opt-data-tiling"]',
            "[variants.stock] on device cpu: --iree-opt-data-tiling and --iree-global-opt-data-tiling cancel",
        ),
        ("[measure]", "[variants.stock]\n[measure]", "[variants.stock] is defined twice"),
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
        (("run", "small.toml", "--generations", "many"), "--generations"),
        (("run", "small.toml", "--bogus"), "--bogus"),
        (("run", "small.toml", "--filter", "nothing*"), "--filter nothing* matches no case"),
        (("list", "small.toml", "--toolchain", "iree>=3"), "--toolchain iree>=3: is no version; write the release"),
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


@pytest.mark.parametrize(
    ("mlir", "inputs", "words"),
    [
        pytest.param(DOUBLE[:40], "{ shape = [4] }", "failed at model", id="a file that was cut short"),
        pytest.param(
            DOUBLE, "{ shape = [5] }", "main takes 4xf32, and 5xf32 is given", id="a shape that the function refuses"
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


OLD_RUNTIME = """\
import importlib.metadata as metadata
real = metadata.distribution
class Old:
    version = '0.0.1'
def distribution(name):
    return Old if name == 'iree-base-runtime' else real(name)
metadata.distribution = distribution
"""


def test_the_installed_packages_are_no_pair(harness: Harness) -> None:
    """As a fresh process sees it whose importlib.metadata finds another runtime than is installed."""
    (harness.folder / "sitecustomize.py").write_text(OLD_RUNTIME)
    ended = harness.ended("run", "small.toml", PYTHONPATH=os.pathsep.join([str(harness.folder), str(ROOT)]))
    assert (ended.returncode, ended.stdout) == (2, "")
    assert f"iree-base-compiler is {version('iree-base-compiler')} and iree-base-runtime is 0.0.1, " in ended.stderr


# --- Comparisons ---

BASE, HEAD = "results/base", "results/head"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((), "give two sides, as in `harness compare results/base results/head`"),
        ((BASE, "nowhere"), "nowhere: there is no such run in results, and git finds no repository here"),
        ((BASE, HEAD, "--filter", "nothing*"), "--filter nothing* matches no case of the comparison, such as product/"),
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
    ],
)
def test_a_wrong_comparison(runs: Harness, arguments: tuple[str, ...], sentence: str) -> None:
    refused(runs, runs("compare", *arguments), sentence)


def test_a_run_that_cannot_be_read(runs: Harness) -> None:
    edit(runs.folder / HEAD / "run.json", lambda run: run.update(schema_version=99))
    refused(runs, runs("compare", BASE, HEAD), f"{HEAD}/run.json: has schema 99, and this harness reads 1; upgrade it")
