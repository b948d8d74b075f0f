"""Everything a user can get wrong, at the command line: one sentence, the right exit status, nothing half-written."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pytest

from tests.end_to_end.conftest import Harness

Change = Callable[..., Harness]


def _assert_refused(harness: Harness, finished: subprocess.CompletedProcess[str], sentence: str) -> None:
    """One sentence on stderr, status 2, and no run begun."""
    assert finished.stderr.strip().splitlines()[-1] == f"harness: {sentence}"
    assert "Traceback" not in finished.stderr
    assert finished.stdout == ""
    assert finished.returncode == 2
    assert not list(harness.folder.glob("results/*"))


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        (
            "height = 4",
            "hieght = 4",
            "small.toml: [models.tiny] params.hieght is not a parameter of builder 'residual-dense-block'; "
            'did you mean "height"?',
        ),
        (
            "budget_s = 0.3",
            "budget_seconds = 1",
            'small.toml: [measure] budget_seconds is not a known key; did you mean "budget_s"?',
        ),
        (
            "generations = 3",
            'generations = "3"',
            "small.toml: [measure] generations: '3' must be an integer",
        ),
        (
            'baseline = "stock"',
            'baseline = "stok"',
            "small.toml: baseline: there is no variant 'stok'; did you mean \"stock\"?",
        ),
        (
            'builder = "residual-dense-block"',
            'builder = "residual-block"',
            "small.toml: [models.tiny] builder: there is no builder 'residual-block'; "
            'did you mean "residual-dense-block"?',
        ),
        (
            "[variants.stock]",
            '[variants.stock]\nflagsets = ["im2col"]',
            "small.toml: [variants.stock] flagsets: there is no flag set 'im2col'; no flagset_files are given",
        ),
        (
            "[variants.stock]",
            '[variants.stock]\nplugins = ["share-concats"]',
            "small.toml: [variants.stock] plugins: there is no plugin 'share-concats'; did you mean \"share-concat\"?",
        ),
        (
            "[variants.stock]",
            '[variants.stock]\nflags = ["--iree-opt-data-tilin"]',
            f"small.toml: [variants.stock] flags: iree-compile {version('iree-base-compiler')} knows no flag "
            "--iree-opt-data-tilin; "
            'did you mean "iree-opt-data-tiling"?',
        ),
        (
            "[variants.stock]",
            '[variants.stock]\nflags = ["--iree-opt-data-tiling", "--iree-global-opt-data-tiling"]',
            "small.toml: [variants.stock] on device cpu: --iree-opt-data-tiling and --iree-global-opt-data-tiling "
            "cancel each other, so that nothing is data-tiled and no message says so; keep one of the two",
        ),
        (
            "[measure]",
            '[matrix]\nexclude = ["tiny/*@gpu"]\n[measure]',
            "small.toml: [matrix] exclude: 'tiny/*@gpu' matches no case; "
            "patterns are matched with model/variant@device, such as tiny/stock@cpu",
        ),
    ],
)
def test_a_wrong_suite(suite_with: Change, old: str, new: str, sentence: str) -> None:
    harness = suite_with((old, new))
    _assert_refused(harness, harness("run", "small.toml"), sentence)


def test_a_name_that_is_given_twice(suite_with: Change) -> None:
    harness = suite_with(append="[variants.stock]\n")
    finished = harness("run", "small.toml")
    assert finished.returncode == 2
    assert "small.toml: [variants.stock] is defined twice, the second time in line " in finished.stderr


def test_a_suite_that_is_not_there(harness: Harness) -> None:
    finished = harness("run", "nope.toml")
    _assert_refused(harness, finished, "nope.toml: there is no such file; check the path")


def test_a_model_file_that_is_not_there(suite_with: Change) -> None:
    harness = suite_with(('builder = "residual-dense-block"', 'onnx = "model.onnx"'), (_PARAMS, ""))
    sentence = "small.toml: [models.tiny] onnx: there is no file model.onnx beside the suite; check the path"
    _assert_refused(harness, harness("run", "small.toml"), sentence)


_PARAMS = "params = { height = 4, width = 4, channels = 8, growth = 4 }\n"
_DOUBLE = """
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = arith.addf %x, %x : tensor<4xf32>
  return %y : tensor<4xf32>
}
"""


def _mlir_suite(suite_with: Change, text: str, inputs: str) -> Harness:
    harness = suite_with(
        ('builder = "residual-dense-block"', f'mlir = "model.mlir"\nfunction = "main"\ninputs = [{inputs}]'),
        (_PARAMS, ""),
    )
    (harness.folder / "model.mlir").write_text(text)
    return harness


def test_an_mlir_file_works_as_it_should_before_it_is_broken(suite_with: Change) -> None:
    harness = _mlir_suite(suite_with, _DOUBLE, "{ shape = [4] }")
    assert harness("run", "small.toml").returncode == 0


@pytest.mark.parametrize(
    ("text", "inputs", "words"),
    [
        pytest.param(_DOUBLE[:40], "{ shape = [4] }", "failed at model", id="a model file that was cut short"),
        pytest.param(
            _DOUBLE, "{ shape = [5] }", "expected 4 but have 5", id="an input shape that the function refuses"
        ),
        pytest.param(
            _DOUBLE.replace("@main", "@other"),
            "{ shape = [4] }",
            "[models.tiny] function: model.mlir has no function 'main'; correct the name",
            id="an entry function that is not there",
        ),
    ],
)
def test_a_model_that_fails_is_a_failed_case(suite_with: Change, text: str, inputs: str, words: str) -> None:
    harness = _mlir_suite(suite_with, text, inputs)
    finished = harness("run", "small.toml", "--format", "csv")
    assert finished.returncode == 3
    assert words in finished.stdout
    assert "Traceback" not in finished.stderr


def test_an_onnx_file_that_was_cut_short_is_a_failed_case(suite_with: Change) -> None:
    harness = suite_with(
        ('builder = "residual-dense-block"', 'onnx = "model.onnx"\ninputs = [{ shape = [4] }]'), (_PARAMS, "")
    )
    (harness.folder / "model.onnx").write_bytes(b"\x08\x07\x12\x04test")
    finished = harness("run", "small.toml", "--format", "csv")
    assert finished.returncode == 3
    assert "model.onnx" in finished.stdout
    assert "Traceback" not in finished.stderr


def test_an_npy_input_of_another_type_than_the_suite_says(suite_with: Change) -> None:
    harness = _mlir_suite(suite_with, _DOUBLE, '{ npy = "x.npy", dtype = "f32" }')
    np.save(harness.folder / "x.npy", np.zeros(4, np.int32))
    finished = harness("run", "small.toml")
    assert finished.returncode == 3  # that model's cases fail; those of others would go on
    said = " ".join(finished.stdout.split())
    assert "small.toml: [models.tiny] inputs[0] npy: " in said
    assert "holds int32 where f32 needs float32" in said


def test_a_results_folder_that_cannot_be_written(harness: Harness) -> None:
    (harness.folder / "file").touch()
    finished = harness("run", "small.toml", "--results", "file/results")
    sentence = "file/results: cannot be written (Not a directory); choose another folder with --results"
    _assert_refused(harness, finished, sentence)


def test_a_cache_that_cannot_be_written(harness: Harness) -> None:
    (harness.folder / "file").touch()
    finished = subprocess.run(
        harness.command("run", "small.toml"),
        cwd=harness.folder,
        capture_output=True,
        text=True,
        env={**os.environ, "HARNESS_CACHE": "file/cache"},
        timeout=120,
    )
    assert finished.returncode == 2
    assert (
        "file/cache: the cache cannot be written (Not a directory); make room or set HARNESS_CACHE" in finished.stderr
    )
    assert "Traceback" not in finished.stderr


def _with_packages(folder: Path, code: str) -> dict[str, str]:
    """An environment in which importlib.metadata sees other packages than are installed."""
    (folder / "sitecustomize.py").write_text(
        "import importlib.metadata as metadata\nreal = metadata.distribution\n"
        f"def distribution(name):\n{code}\n    return real(name)\nmetadata.distribution = distribution\n"
    )
    return {**os.environ, "PYTHONPATH": str(folder)}


def test_no_iree_installed(harness: Harness) -> None:
    code = "    if name.startswith('iree-base'):\n        raise metadata.PackageNotFoundError(name)"
    environment = _with_packages(harness.folder, code)
    finished = subprocess.run(
        harness.command("run", "small.toml"), cwd=harness.folder, capture_output=True, text=True, env=environment
    )
    sentence = "iree-base-compiler is not installed; run pip install 'iree-base-compiler[onnx]' iree-base-runtime"
    _assert_refused(harness, finished, sentence)


def test_a_compiler_and_a_runtime_of_different_versions(harness: Harness) -> None:
    code = "    if name == 'iree-base-runtime':\n        class Old:\n            version = '0.0.1'\n        return Old"
    environment = _with_packages(harness.folder, code)
    finished = subprocess.run(
        harness.command("run", "small.toml"), cwd=harness.folder, capture_output=True, text=True, env=environment
    )
    assert finished.returncode == 2
    assert f"iree-base-compiler is {version('iree-base-compiler')} and iree-base-runtime is 0.0.1" in finished.stderr
    assert "install a pair: pip install" in finished.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("run",), "give either a suite, as in `harness run suites/esrgan.toml`, or --resume with a run directory"),
        (("run", "small.toml", "--budget", "-1"), "--budget"),
        (("run", "small.toml", "--generations", "0"), "--generations"),
        (("run", "small.toml", "--generations", "many"), "--generations"),
        (("run", "small.toml", "--bogus"), "--bogus"),
        (("run", "small.toml", "--filter", "nothing*"), "--filter nothing* matches no case"),
        (("run", "small.toml", "--toolchain", "latest"), "--toolchain latest: is no version; write the release"),
        (("list", "small.toml", "--toolchain", "iree>=3"), "--toolchain iree>=3: is no version; write the release"),
        (("run", "nope.toml", "--toolchain", "3.12.0"), "nope.toml: there is no such file"),
        (("run", "--resume", "nowhere", "--toolchain", "3.12.0"), "own settings; leave out toolchains"),
        (("run", "--resume", "nowhere"), "nowhere: is not a run directory"),
        (("report", "nowhere"), "nowhere: is not a run directory"),
        (("export", "small.toml", "large"), "there is no model 'large'"),
        (("frobnicate",), "frobnicate"),
    ],
)
def test_a_wrong_command_line(harness: Harness, arguments: tuple[str, ...], words: str) -> None:
    finished = harness(*arguments)
    assert finished.returncode == 2
    assert words in finished.stderr
    assert "Traceback" not in finished.stderr
    assert finished.stderr.startswith("harness: ")
    assert not list(harness.folder.glob("results/*"))


def test_another_build_of_the_same_release_does_not_go_on_with_a_run(harness: Harness) -> None:
    harness("run", "small.toml")
    (path,) = harness.runs()
    (path / "finished.json").unlink()
    header = json.loads((path / "run.json").read_text())
    header["toolchains"][0]["compiler_sha256"] = "0" * 64
    (path / "run.json").write_text(json.dumps(header))
    finished = harness("run", "--resume", str(path))
    assert finished.returncode == 2
    version = header["toolchains"][0]["version"]
    assert f"{path}: this run began with another build of IREE {version} than the one here" in finished.stderr


def test_a_suite_that_changed_since_a_run_began_does_not_go_on_with_it(suite_with: Change) -> None:
    harness = suite_with()
    harness("run", "small.toml")
    (path,) = harness.runs()
    finished = harness("run", "--resume", str(path))
    assert finished.returncode == 2
    assert "this run is finished and is not written again; start a new one" in finished.stderr
    (path / "finished.json").unlink()
    suite_with(("generations = 3", "generations = 3"), ("width = 4", "width = 5"))
    finished = harness("run", "--resume", str(path))
    assert finished.returncode == 2
    assert "its cases are no longer those of small.toml with this toolchain; start a new run" in finished.stderr
    suite_with(("budget_s = 0.3", "budget_s = 0.4"))
    finished = harness("run", "--resume", str(path))
    assert finished.returncode == 2
    assert f"{path}: small.toml has changed since this run began; start a new run" in finished.stderr
