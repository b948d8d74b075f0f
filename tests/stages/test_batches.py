"""Long compiles never block measuring what is ready: models come in batches, the quick ones first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from harness.compile import CompileRequest, Underway
from harness.models.materialize import ModelArtifact
from harness.records.case import Case
from harness.records.run import Build, Failure
from harness.stages import build as room
from harness.stages.build import Batch, compile_stage
from harness.stages.context import Done
from harness.store.run_directory import RunDirectory, load_run
from harness.toolchain import Toolchain
from tests.builders import make_artifact, make_case, make_header
from tests.fakes.fake_toolchain import make_fake_toolchain
from tests.stages.made import a_context, a_prepared

QUICK = [make_case(variant, model="quick") for variant in ("stock", "fast")]
SLOW = [make_case(variant, model="slow") for variant in ("stock", "fast")]
_TICK = Underway(cases=("slow/stock@cpu",))


@pytest.fixture(autouse=True)
def _empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def toolchain(tmp_path: Path) -> Toolchain:
    return make_fake_toolchain(tmp_path / "tools")


class Compiling:
    """compile_cases with a script: cases by name as they end, `...` for a long wait; remembers what it was asked."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, script: Iterable[object]) -> None:
        self.asked: list[str] = []
        self._script = script
        monkeypatch.setattr(room, "compile_cases", self._compile)
        monkeypatch.setattr(room, "_PATIENCE_S", -1.0)
        monkeypatch.setattr(room, "request_for", lambda _, case, *__: _Request(case))

    def _compile(self, requests: Iterable[CompileRequest], *_: object) -> Iterator[tuple[Build, str] | Underway]:
        self.asked = [request.case.name for request in requests]
        for one in self._script:
            yield _TICK if one is ... else (Build(case=str(one), command=(), cache_key=str(one)), "")


class _Request:
    def __init__(self, case: Case) -> None:
        self.case = case


def _batches(
    tmp_path: Path,
    toolchain: Toolchain,
    cases: Iterable[Case],
    artifacts: dict[str, ModelArtifact | Failure] | None = None,
    done: Iterable[Build] = (),
) -> list[Batch]:
    directory = RunDirectory.create(tmp_path, make_header())
    artifact = make_artifact(tmp_path / "net.mlir", arguments=())
    sized: dict[str, ModelArtifact | Failure] = {
        "quick": replace(artifact, mlir_bytes=10),
        "slow": replace(artifact, mlir_bytes=1000),
    }
    context = a_context(a_prepared(toolchain, tuple(cases)), directory, Done(builds={one.case: one for one in done}))
    found = list(compile_stage(context, artifacts or sized))
    written = [build.case for build in load_run(directory.path).builds]
    assert sorted(written) == sorted({name for batch in found for name in batch.builds} - {one.case for one in done})
    return found


def _names(cases: Iterable[Case]) -> list[str]:
    return [case.name for case in cases]


def test_all_is_one_batch_where_nothing_takes_long(
    tmp_path: Path, toolchain: Toolchain, monkeypatch: pytest.MonkeyPatch
) -> None:
    Compiling(monkeypatch, [*_names(QUICK), *_names(SLOW)])
    (batch,) = _batches(tmp_path, toolchain, [*SLOW, *QUICK])
    assert batch.models == {"quick", "slow"}
    assert sorted(batch.builds) == sorted(_names([*QUICK, *SLOW]))
    assert batch.groups_elsewhere == 0


def test_a_small_model_is_compiled_before_a_large_one_wherever_it_stands_in_the_suite(
    tmp_path: Path, toolchain: Toolchain, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiling = Compiling(monkeypatch, [*_names(QUICK), *_names(SLOW)])
    _batches(tmp_path, toolchain, [*SLOW, *QUICK])
    assert compiling.asked == _names([*QUICK, *SLOW])


def test_what_is_ready_does_not_wait_for_a_long_compile(
    tmp_path: Path, toolchain: Toolchain, monkeypatch: pytest.MonkeyPatch
) -> None:
    Compiling(monkeypatch, [*_names(QUICK), ..., ..., *_names(SLOW)])
    first, second = _batches(tmp_path, toolchain, [*SLOW, *QUICK])
    assert (first.models, sorted(first.builds)) == (frozenset({"quick"}), sorted(_names(QUICK)))
    assert (second.models, sorted(second.builds)) == (frozenset({"slow"}), sorted(_names(SLOW)))
    assert (first.groups_elsewhere, second.groups_elsewhere) == (1, 1)


def test_a_model_is_ready_only_with_all_of_its_cases(
    tmp_path: Path, toolchain: Toolchain, monkeypatch: pytest.MonkeyPatch
) -> None:
    Compiling(monkeypatch, [QUICK[0].name, ..., QUICK[1].name, ..., *_names(SLOW)])
    first, second = _batches(tmp_path, toolchain, [*SLOW, *QUICK])
    assert sorted(first.builds) == sorted(_names(QUICK))
    assert sorted(second.builds) == sorted(_names(SLOW))


def test_peers_need_no_compile_and_come_with_their_model(
    tmp_path: Path, toolchain: Toolchain, monkeypatch: pytest.MonkeyPatch
) -> None:
    peer = replace(make_case("onnxruntime", model="quick"), peer="onnxruntime")
    compiling = Compiling(monkeypatch, [*_names(QUICK), ..., *_names(SLOW)])
    first, _ = _batches(tmp_path, toolchain, [*SLOW, *QUICK, peer])
    assert peer.name not in compiling.asked
    assert first.models == {"quick"}


def test_a_model_that_could_not_be_made_fails_all_of_its_cases(
    tmp_path: Path, toolchain: Toolchain, monkeypatch: pytest.MonkeyPatch
) -> None:
    Compiling(monkeypatch, _names(QUICK))
    broken = Failure(stage="model", message="no weights")
    artifacts: dict[str, ModelArtifact | Failure] = {
        "quick": make_artifact(tmp_path / "net.mlir", arguments=()),
        "slow": broken,
    }
    peer = replace(make_case("onnxruntime", model="slow"), peer="onnxruntime")
    (batch,) = _batches(tmp_path, toolchain, [*SLOW, peer, *QUICK], artifacts)
    failed = {name for name, build in batch.builds.items() if build.failure == broken}
    assert failed == {*_names(SLOW), peer.name}


def test_what_an_interrupted_run_had_compiled_is_measured_at_once(
    tmp_path: Path, toolchain: Toolchain, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed = [
        Build(case=case.name, command=(), cache_key="", failure=Failure(stage="compile", message="no"))
        for case in QUICK
    ]
    compiling = Compiling(monkeypatch, [..., *_names(SLOW)])
    first, second = _batches(tmp_path, toolchain, [*SLOW, *QUICK], done=failed)
    assert compiling.asked == _names(SLOW)
    assert (set(first.models), set(second.models)) == ({"quick"}, {"slow"})
