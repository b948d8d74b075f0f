"""Where right outputs come from, why there are none, and that nothing is asked for in vain again."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from harness.models.inputs import write_arguments
from harness.models.materialize import ModelArtifact
from harness.models.model import Input
from harness.process import Limits
from harness.records.run import Build
from harness.toolchain import Toolchain
from harness.verify import References, Runnable
from harness.verify.difference import Right
from harness.verify.reference import evaluated, kept_reference
from tests.builders import a_model, make_artifact, make_case
from tests.verify.conftest import MATMUL

LIMITS = Limits(seconds=60)
MakeArtifact = Callable[..., ModelArtifact]


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def make_program(tmp_path: Path) -> MakeArtifact:
    """A model of one program with its inputs written."""

    def make(text: str, *inputs: Input) -> ModelArtifact:
        mlir = tmp_path / "model.mlir"
        mlir.write_text(text)
        return make_artifact(mlir, inputs=inputs, arguments=write_arguments(inputs, tmp_path))

    return make


def test_the_evaluator_says_what_is_right_and_is_asked_once(
    real_toolchain: Toolchain, make_program: MakeArtifact, monkeypatch: pytest.MonkeyPatch
) -> None:
    artifact = make_program(MATMUL, Input(shape=(4, 8)), Input(shape=(8, 4), seed=1))
    right = evaluated(artifact, (), 20.0, LIMITS)
    assert isinstance(right, Right)
    a, b = (np.load(argument.file).astype(np.float64) for argument in artifact.arguments)
    np.testing.assert_allclose(np.asarray(right.outputs[0], np.float64), a @ b, rtol=1e-12)
    assert right.allowed is not None
    assert 0 < right.allowed[0].min() < right.allowed[0].max() < 1e-4
    monkeypatch.setattr("harness.verify.reference._evaluate", lambda *_: pytest.fail("it is in the cache"))
    again = evaluated(artifact, (), 20.0, LIMITS)
    assert isinstance(again, Right)
    assert again.key == right.key
    assert kept_reference("0" * 32) is None


def test_why_there_is_nothing_is_said_and_what_takes_too_long_is_asked_again_with_more_time(
    real_toolchain: Toolchain, make_program: MakeArtifact
) -> None:
    found = evaluated(make_program("no MLIR"), (), 20.0, LIMITS)
    assert isinstance(found, str) and found.startswith("iree-compile does not turn it into linalg: ")
    artifact = make_program(MATMUL, Input(shape=(4, 8)), Input(shape=(8, 4), seed=1))
    found = evaluated(artifact, (), 1e-6, LIMITS)
    assert isinstance(found, str) and found.startswith("the reference would take longer than 1e-06 s")
    assert evaluated(artifact, (), 1e-6, LIMITS) == found
    assert isinstance(evaluated(artifact, (), 20.0, LIMITS), Right)


def test_the_interpreter_is_asked_where_the_evaluator_says_nothing(
    real_toolchain: Toolchain, make_program: MakeArtifact, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harness.verify.reference.evaluated", lambda *_: "it has an FFT")
    artifact = make_program(MATMUL, Input(shape=(4, 8)), Input(shape=(8, 4), seed=1))
    case = make_case()
    runnable = Runnable(
        case=case,
        build=Build(case=case.name, command=(), cache_key="", module_sha256="aa", outputs=1),
        artifact=artifact,
        folder=tmp_path,
        toolchain=real_toolchain,
        cpus=None,
    )
    references = References(models={"net": a_model()}, compile_limits=LIMITS, call_limits=LIMITS)
    (right,) = references.judges(runnable).rights
    assert right.source == "IREE's interpreter VMVX, since it has an FFT"
    a, b = (np.load(argument.file) for argument in artifact.arguments)
    np.testing.assert_allclose(np.asarray(right.outputs[0], np.float32), a @ b, rtol=1e-4, atol=1e-5)
