"""Where right outputs come from, why there are none, and that nothing is asked for in vain again."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from harness.cache import cache_root
from harness.models.inputs import write_arguments
from harness.models.materialize import BenchFolder, ModelArtifact
from harness.models.model import Input
from harness.process import Limits
from harness.records.run import Build
from harness.toolchain import Toolchain
from harness.verify import References, Runnable
from harness.verify.difference import Right
from harness.verify.reference import Judges, evaluated, kept_reference
from tests.builders import make_artifact, make_case, make_model
from tests.fakes.fake_toolchain import calls, make_fake_toolchain
from tests.verify.conftest import MATMUL

STOCK = make_case()
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


class Asking:
    """The interpreter's opinion on a program that the evaluator does not read; its compiler does what it is told."""

    def __init__(self, artifact: ModelArtifact, folder: Path) -> None:
        self._artifact, self._folder = artifact, folder
        self.compiled = 0

    def judges(self, *flags: str, seconds: float = 60.0) -> Judges:
        """What there is; the compiler has these flags."""
        toolchain = make_fake_toolchain(self._folder / "tools", always={"iree-compile": flags})
        runnable = Runnable(
            case=STOCK,
            build=Build(case=STOCK.name, command=(), cache_key="", module_sha256="aa"),
            artifact=self._artifact,
            bench=BenchFolder(folder=self._folder, inputs=(), parameters=()),
            toolchain=toolchain,
            cpus=None,
        )
        limits = Limits(seconds=seconds)
        models = {"net": make_model()}
        references = References(models=models, scratch=self._folder, compile_limits=limits, call_limits=limits)
        before = len(calls(toolchain))
        found = references.judges(runnable)
        self.compiled = sum(call.tool == "iree-compile" for call in calls(toolchain)[before:])
        assert found.rights == ()
        return found


@pytest.fixture
def asking(make_program: MakeArtifact, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Asking:
    monkeypatch.setattr("harness.verify.reference.evaluated", lambda *_: "it is no program")
    return Asking(make_program("module {}"), tmp_path)


def test_a_compile_for_the_interpreter_that_failed_is_not_tried_again(asking: Asking) -> None:
    why = asking.judges("--fake-exit=3").why_none
    assert why == "it is no program; IREE's interpreter VMVX: iree-compile exited with status 3"
    assert asking.compiled == 1
    assert (asking.judges("--fake-exit=3").why_none, asking.compiled) == (why, 0)


def test_one_that_ran_out_of_time_is_tried_with_more_of_it_and_one_that_was_killed_as_it_was(asking: Asking) -> None:
    asking.judges("--fake-signal=KILL")
    assert not (cache_root() / "opinions").exists()
    why = asking.judges("--fake-sleep=60", seconds=0.5).why_none
    assert "iree-compile ran past its limit of 0.5 s" in why
    assert (asking.judges("--fake-exit=3", seconds=0.4).why_none, asking.compiled) == (why, 0)
    asking.judges("--fake-exit=3", seconds=0.6)
    assert asking.compiled == 1
