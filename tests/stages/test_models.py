"""Models before anything is compiled: what is wrong with one fails its own cases, and is said at once."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.errors import CaseError, SuiteError
from harness.models.inputs import Argument
from harness.models.materialize import ModelArtifact
from harness.models.model import Model
from harness.process import Limits
from harness.records.run import Failure
from harness.stages import models as room
from harness.stages.models import check_entry, materialize_models
from harness.toolchain import Toolchain
from tests.builders import Notes, a_model, a_suite, make_artifact, make_case
from tests.stages.conftest import UnderWay


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (SuiteError("[models.bad] inputs are missing"), "suite.toml: [models.bad] inputs are missing"),
        (CaseError("model", "no weights"), "no weights"),
    ],
)
def test_one_model_that_cannot_be_made_does_not_stop_the_others(
    under_way: UnderWay, monkeypatch: pytest.MonkeyPatch, error: Exception, message: str
) -> None:
    def materialize(model: Model, **_: object) -> ModelArtifact:
        if model.name == "bad":
            raise error
        return under_way.artifact

    monkeypatch.setattr(room, "materialize", materialize)
    monkeypatch.setattr(room, "check_entry", lambda *_, **__: None)
    cases = [make_case(variant, model=model) for model in ("bad", "good") for variant in ("stock", "fast")]
    skipped = replace(make_case(model="elsewhere"), skip="not here")
    suite, notes = a_suite(models=tuple(map(a_model, ("bad", "good", "elsewhere")))), Notes()
    artifacts = materialize_models(under_way.prepared([*cases, skipped], suite), Limits(), notes)
    assert artifacts == {"bad": Failure(stage="model", message=message), "good": under_way.artifact}
    assert notes.lines == [f"Failed (model): bad: {message}; 2 cases fail with it"]


# ------------------------------------------------------------------------------------------------------ entry function


PROGRAM = """
func.func @main(%a: tensor<4x?xf32>, %b: tensor<2xf64>, %c: tensor<i64>, %d: i32) -> tensor<4x?xf32> {
  return %a : tensor<4x?xf32>
}
func.func private @helper() { return }
func.func @main_of_torch(%a: !torch.vtensor<[2],f16>) { return }
func.func @fenced(%a: !hal.fence) { return }
"""
BY_VALUE = " by value"
RIGHT = ("4x7xf32", "2xf32", "i64", f"i32{BY_VALUE}")

Check = Callable[..., None]


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def check(cache: Path, monkeypatch: pytest.MonkeyPatch, real_toolchain: Toolchain) -> Check:
    """Check a model of that program with arguments of these types."""
    monkeypatch.setenv("HARNESS_CACHE", str(cache))
    mlir = cache / "models" / ("0" * 64) / "model.mlir"
    mlir.parent.mkdir(parents=True, exist_ok=True)
    mlir.write_text(PROGRAM)

    def check(function: str, *arguments: str, flags: tuple[str, ...] = (), **model: Any) -> None:
        given = []
        for text in arguments:
            *sizes, dtype = text.removesuffix(BY_VALUE).split("x")
            shape, scalar = tuple(map(int, sizes)), text.endswith(BY_VALUE)
            given.append(Argument(file=Path("input.npy"), flag="", shape=shape, dtype=dtype, scalar=scalar))
        artifact = make_artifact(mlir, arguments=given, function=function)
        check_entry(a_model(**model), artifact, flags, toolchain=real_toolchain, limits=Limits(seconds=60))

    return check


@pytest.mark.parametrize(
    ("function", "arguments", "flags"),
    [
        ("main", RIGHT, ()),
        ("main$async", RIGHT, ()),
        ("main", ("4x7xf32", "2xf64", "i32", RIGHT[3]), ("--iree-input-demote-i64-to-i32",)),
        ("main", (*RIGHT[:3], f"i16{BY_VALUE}"), ("--iree-input-demote-i32-to-i16",)),
        ("main_of_torch", ("2xf32",), ("--iree-input-promote-f16-to-f32",)),
        ("fenced", (), ()),
    ],
)
def test_an_entry_function_as_the_suite_says(
    check: Check, function: str, arguments: tuple[str, ...], flags: tuple[str, ...]
) -> None:
    check(function, *arguments, flags=flags)


TORCH = "main_of_torch"


@pytest.mark.parametrize(
    ("function", "arguments", "words"),
    [
        ("mian", (), "function: net.mlir has no public function 'mian'; did you mean \"main\"?"),
        ("helper", (), "function: net.mlir has no public function 'helper'"),
        ("main", RIGHT[:1], "inputs: main takes 4 arguments (4x?xf32, 2xf64, i64, a number of i32), not 1; correct "),
        ("main", ("5x7xf32", *RIGHT[1:]), "inputs[0]: main takes 4x?xf32, and 5x7xf32 is given; correct it"),
        ("main", ("4xf32", *RIGHT[1:]), "inputs[0]: main takes 4x?xf32, and 4xf32 is given; correct it"),
        ("main", (*RIGHT[:3], "1xi32"), "inputs[3]: main takes a number of i32, and 1xi32 is given; correct it"),
        ("main", (*RIGHT[:3], f"f32{BY_VALUE}"), "takes a number of i32, and a number of f32 is given"),
        (TORCH, (f"f16{BY_VALUE}",), "inputs[0]: main_of_torch takes 2xf16, and a number of f16 is given; correct it"),
        (TORCH, ("2xf32",), "inputs[0]: main_of_torch takes 2xf16, and 2xf32 is given; correct it"),
    ],
)
def test_an_entry_function_otherwise_than_the_suite_says(
    check: Check, function: str, arguments: tuple[str, ...], words: str
) -> None:
    with pytest.raises(SuiteError) as caught:
        check(function, *arguments)
    assert str(caught.value).startswith("[models.net] ") and words in str(caught.value)


def test_expected_files_are_whole_and_as_many_as_there_are_results(check: Check, tmp_path: Path) -> None:
    whole, cut = tmp_path / "whole.npy", tmp_path / "cut.npy"
    np.save(whole, np.zeros((4, 7), np.float32))
    cut.write_bytes(whole.read_bytes()[:60])
    check("main", *RIGHT, expected=(whole,))
    with pytest.raises(SuiteError, match=r"expected: main gives 1 result, not 2; name a file for each"):
        check("main", *RIGHT, expected=(whole, whole))
    with pytest.raises(SuiteError, match=r"expected: .*cut.npy is no whole .npy file .*; write it again"):
        check("main", *RIGHT, expected=(cut,))


def test_a_program_that_the_bindings_cannot_read_is_left_to_the_compiler(
    check: Check, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path))
    monkeypatch.setattr("harness.stages.models.ask", lambda *_, **__: (_ for _ in ()).throw(CaseError("ir", "no")))
    check("gone")
