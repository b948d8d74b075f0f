"""Compiles: what is wrong with a model fails its own cases, and long compiles block nothing that is ready."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from harness.cache import cache_root
from harness.compile import CompileRequest, Underway
from harness.errors import RunError
from harness.models.materialize import ModelArtifact
from harness.records.case import Case
from harness.records.run import Build, Failure
from harness.stages import build as room
from harness.stages.build import Batch, compile_stage, require_cache
from harness.stages.context import Done, FailureNotes
from harness.suite.shards import Shard, part_of
from harness.verify.kept import trim_outputs
from tests.builders import Notes, a_model, a_suite, make_case
from tests.stages.conftest import UnderWay

QUICK = [make_case(variant, model="quick") for variant in ("stock", "fast")]
SLOW = [make_case(variant, model="slow") for variant in ("stock", "fast")]
QUICK_PEER, SLOW_PEER = (replace(make_case("peer", model=model), peer="onnxruntime") for model in ("quick", "slow"))
BROKEN = Failure(stage="model", message="no weights")


def names(cases: Iterable[Case]) -> list[str]:
    return [case.name for case in cases]


class Compiling:
    """The compile stage with a script: cases by name as they end, `...` for a long wait."""

    def __init__(self, under_way: UnderWay, monkeypatch: pytest.MonkeyPatch) -> None:
        self.asked: list[str] = []
        self._under_way = under_way
        self._script: Iterable[object] = ()
        monkeypatch.setattr(room, "compile_cases", self._compile)
        monkeypatch.setattr(room, "_PATIENCE_S", -1.0)
        monkeypatch.setattr(room, "request_for", lambda _, case, *__: SimpleNamespace(case=case))

    def _compile(self, requests: Iterable[CompileRequest], *_: object) -> Iterator[tuple[Build, str] | Underway]:
        self.asked = [request.case.name for request in requests]
        for item in self._script:
            if item is ...:
                yield Underway(cases=("slow/stock@cpu",))
            else:
                yield Build(case=str(item), command=(), cache_key=str(item)), ""

    def run(
        self, cases: Iterable[Case], script: Iterable[object], *, done: Iterable[Build] = (), slow: object = None
    ) -> list[Batch]:
        """All batches, after a look that each build is on disk."""
        self._script = script
        artifacts: dict[str, Any] = {
            "quick": self._under_way.sized(10),
            "slow": slow or self._under_way.sized(1000),
        }
        before = {build.case: build for build in done}
        batches = list(compile_stage(self._under_way.context(cases, done=Done(builds=before)), artifacts))
        written = [build.case for build in self._under_way.run.builds]
        assert sorted(written) == sorted({name for batch in batches for name in batch.builds} - set(before))
        return batches


def contents(batches: Iterable[Batch]) -> list[tuple[set[str], set[str], int]]:
    return [(set(batch.models), set(batch.builds), batch.groups_elsewhere) for batch in batches]


@pytest.fixture
def compiling(under_way: UnderWay, monkeypatch: pytest.MonkeyPatch) -> Compiling:
    return Compiling(under_way, monkeypatch)


ALL, QUICK_NAMES, SLOW_NAMES = names([*QUICK, *SLOW]), names(QUICK), names(SLOW)


def test_all_is_one_batch_where_nothing_takes_long_and_small_models_are_compiled_first(compiling: Compiling) -> None:
    batches = compiling.run([*SLOW, *QUICK], ALL)
    assert contents(batches) == [({"quick", "slow"}, set(ALL), 0)]
    assert compiling.asked == ALL


@pytest.mark.parametrize(
    "script",
    [[*QUICK_NAMES, ..., ..., *SLOW_NAMES], [QUICK_NAMES[0], ..., QUICK_NAMES[1], ..., *SLOW_NAMES]],
    ids=["ready", "ready only with all of its cases"],
)
def test_what_is_ready_does_not_wait_for_a_long_compile(compiling: Compiling, script: list[object]) -> None:
    batches = compiling.run([*SLOW, *QUICK, QUICK_PEER], script)
    assert contents(batches) == [({"quick"}, set(QUICK_NAMES), 1), ({"slow"}, set(SLOW_NAMES), 1)]
    assert QUICK_PEER.name not in compiling.asked


def test_a_model_that_could_not_be_made_fails_all_of_its_cases(compiling: Compiling) -> None:
    (batch,) = compiling.run([*SLOW, SLOW_PEER, *QUICK], QUICK_NAMES, slow=BROKEN)
    failed = {name for name, build in batch.builds.items() if build.failure == BROKEN}
    assert failed == {*SLOW_NAMES, SLOW_PEER.name}


def test_what_an_interrupted_run_had_compiled_is_measured_at_once(compiling: Compiling) -> None:
    refused = Failure(stage="compile", message="no")
    done = [Build(case=name, command=(), cache_key="", failure=refused) for name in QUICK_NAMES]
    first, second = compiling.run([*SLOW, *QUICK], [..., *SLOW_NAMES], done=done)
    assert compiling.asked == SLOW_NAMES
    assert (set(first.models), set(second.models)) == ({"quick"}, {"slow"})


def test_a_cache_that_was_deleted_meanwhile_is_no_failure_of_a_case(under_way: UnderWay) -> None:
    artifacts: dict[str, ModelArtifact | Failure] = {"net": under_way.artifact, "broken": BROKEN}
    failed = Build(case="net/stock@cpu", command=(), cache_key="never kept", failure=BROKEN)
    gone = Build(case="net/fast@cpu", command=(), cache_key="deleted")
    peer = Build(case="net/peer@cpu", command=(), cache_key="")
    under_way.artifact.mlir.touch()
    require_cache(Path("run"), artifacts, {build.case: build for build in (failed, peer)})
    words = "net/fast@cpu is no longer in the cache, .* go on with `harness run --resume run`, which makes it again"
    with pytest.raises(RunError, match=words):
        require_cache(Path("run"), artifacts, {gone.case: gone})
    under_way.artifact.mlir.unlink()
    with pytest.raises(RunError, match="what was made of net is no longer in the cache"):
        require_cache(Path("run"), artifacts, {})


def test_a_compile_that_timed_out_takes_the_other_variants_along(
    under_way: UnderWay, monkeypatch: pytest.MonkeyPatch
) -> None:
    def compile_cases(
        requests: Iterable[CompileRequest],
        _: object,
        __: object,
        refusal: Callable[[Case], Failure | None],
        ___: object,
    ) -> Iterator[tuple[Build, str]]:
        for request in requests:
            late = Failure(stage="compile", message="iree-compile ran past its limit of 1 s")
            failure = refusal(request.case) or (late if request.case.name == SLOW_NAMES[0] else None)
            yield Build(case=request.case.name, command=(), cache_key="", failure=failure), ""

    monkeypatch.setattr(room, "compile_cases", compile_cases)
    monkeypatch.setattr(room, "request_for", lambda _, case, *__: SimpleNamespace(case=case))
    notes = Notes()
    suite = a_suite(models=(a_model("quick"), a_model("slow")))
    context = replace(under_way.context([*QUICK, *SLOW], suite), failures=FailureNotes(notes))
    artifacts: dict[str, Any] = {"quick": under_way.sized(10), "slow": under_way.sized(1000)}
    (batch,) = compile_stage(context, artifacts)
    failed = {name: build.failure.message for name, build in batch.builds.items() if build.failure is not None}
    assert list(failed) == SLOW_NAMES
    assert failed[SLOW_NAMES[1]].startswith(f"not tried, since {SLOW_NAMES[0]} timed out; ")
    assert notes.lines == [
        f"Failed (compile): {SLOW_NAMES[0]}: iree-compile ran past its limit of 1 s; 1 case fails with it"
    ]


def test_a_shard_gives_its_groups_the_seconds_that_they_have_in_the_whole_run(under_way: UnderWay) -> None:
    models = (a_model("net"), a_model("other"), a_model("third"))
    part = part_of([make_case(model=model.name) for model in models], models, Shard(number=1, count=3))
    context = under_way.context(part.cases, a_suite(models=models))
    context = replace(context, prepared=replace(context.prepared, part=part))
    (batch,) = compile_stage(context, {model.name: BROKEN for model in models})
    assert (len(batch.builds), batch.groups_elsewhere) == (1, 2)


def test_what_killed_harnesses_left_in_the_cache_and_outputs_beyond_its_limit_go_as_a_run_begins(
    under_way: UnderWay, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = [cache_root() / name for name in ("models/.writing-dead", "scratch/dead", f"outputs/{'a' * 32}.npy")]
    for file in left:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(b"x")
        os.utime(file, (1e9, 1e9))
    monkeypatch.setattr("harness.stages.build.trim_outputs", partial(trim_outputs, limit_bytes=0))
    list(compile_stage(under_way.context([], a_suite()), {}))
    assert [file.exists() for file in left] == [False] * 3
