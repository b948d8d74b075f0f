"""Counting the ops of a run's cases: each distinct compile once, and none that an interrupted run would wait for."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from harness.errors import CaseError
from harness.ir.op_counts import OpCounts
from harness.models.materialize import ModelArtifact
from harness.process import Limits
from harness.records.case import Case
from harness.records.run import Build, EncodedTensor, Failure, IrCounts, Storage
from harness.stages import count as room
from harness.stages import count as storage_room
from harness.stages.context import Done
from harness.stages.count import ir_flags, ir_stage, reached_phases, storage_of
from harness.store.run_directory import RunDirectory, load_run
from harness.toolchain import Toolchain
from tests.builders import a_suite, make_artifact, make_case, make_header
from tests.fakes.fake_toolchain import make_fake_toolchain
from tests.stages.made import a_context, a_prepared

WANTED = {"input": ("linalg.*",), "flow": ("flow.dispatch", "tensor.empty")}
FOUND = {
    "input": OpCounts(host={"linalg.fill": 2, "linalg.matmul": 1}, executables={}),
    "flow": OpCounts(host={"flow.dispatch": 3}, executables={"tensor.empty": 4}),
}
STOCK, FAST, SLOW = (make_case(variant) for variant in ("stock", "fast", "slow"))


@pytest.fixture(autouse=True)
def _empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path / "cache"))


def a_build(case: Case, key: str = "", *flags: str, **fields: Any) -> Build:
    command = ("iree-compile", "model.mlir", "-o", "module.vmfb", *flags)
    return Build(case=case.name, command=command, cache_key=key or case.variant, **fields)


class Stage:
    """The stage on hand-made builds."""

    def __init__(self, folder: Path, toolchain: Toolchain) -> None:
        self.directory = RunDirectory.create(folder, make_header())
        self.toolchain = toolchain
        self.artifact = make_artifact(folder / "net.mlir", arguments=())

    def run(
        self,
        builds: Iterable[Build],
        *,
        wanted: dict[str, tuple[str, ...]] = WANTED,
        done: Iterable[IrCounts] = (),
        storage: bool = False,
    ) -> dict[str, IrCounts]:
        """Count; all records of the run."""
        suite = a_suite(ir=wanted, storage=storage)
        prepared = a_prepared(self.toolchain, (STOCK, FAST, SLOW), suite)
        context = a_context(prepared, self.directory, Done(ir={one.case: one for one in done}))
        artifacts: dict[str, ModelArtifact | Failure] = {"net": self.artifact}
        ir_stage(context, artifacts, {build.case: build for build in builds})
        return {one.case: one for one in load_run(self.directory.path).ir}


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path, make_fake_toolchain(tmp_path / "tools"))


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, list[str]]]:
    """What the compiler is asked for: which build at which phases."""
    found: list[tuple[str, list[str]]] = []

    def count(build: Build, _: Path, phases: list[str], **__: object) -> dict[str, OpCounts]:
        found.append((build.cache_key, phases))
        return {phase: FOUND[phase] for phase in phases}

    monkeypatch.setattr(room, "count_build", count)
    return found


COUNTS = {"input/linalg.*": 3, "flow/flow.dispatch": 3, "flow/tensor.empty": 4}


def test_builds_that_are_one_compile_are_counted_once(stage: Stage, asked: list[tuple[str, list[str]]]) -> None:
    found = stage.run([a_build(STOCK, "one"), a_build(FAST, "two"), a_build(SLOW, "one")])
    assert found == {case.name: IrCounts(case=case.name, counts=COUNTS) for case in (STOCK, FAST, SLOW)}
    assert sorted(asked) == [("one", ["input", "flow"]), ("two", ["input", "flow"])]


def test_what_is_in_the_cache_is_not_asked_for_again(stage: Stage, asked: list[tuple[str, list[str]]]) -> None:
    stage.run([a_build(STOCK, "one")], wanted={"flow": ("flow.*",)})
    stage.run([a_build(FAST, "one")])
    stage.run([a_build(SLOW, "one")])
    assert asked == [("one", ["flow"]), ("one", ["input"])]


def test_cases_without_a_module_and_those_that_were_counted_before_are_left_out(
    stage: Stage, asked: list[tuple[str, list[str]]]
) -> None:
    failed = a_build(FAST, failure=Failure(stage="compile", message="no"))
    assert stage.run([a_build(STOCK), failed], done=[IrCounts(case=STOCK.name)]) == {}
    assert asked == []


def test_a_suite_that_names_no_ops_asks_for_nothing(stage: Stage, asked: list[tuple[str, list[str]]]) -> None:
    assert stage.run([a_build(STOCK)], wanted={}) == {}
    assert not (stage.directory.path / "ir.jsonl").exists()
    assert asked == []


def test_a_case_that_cannot_be_counted_does_not_keep_others_from_it(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    def count(build: Build, *_: object, **__: object) -> dict[str, OpCounts]:
        if build.cache_key == "fast":
            raise CaseError("ir", "iree-compile was ended by SIGSEGV", "PLEASE submit a bug report")
        return FOUND

    monkeypatch.setattr(room, "count_build", count)
    found = stage.run([a_build(STOCK), a_build(FAST), a_build(SLOW)])
    failure = Failure(stage="ir", message="iree-compile was ended by SIGSEGV", stderr="PLEASE submit a bug report")
    assert found[FAST.name] == IrCounts(case=FAST.name, failure=failure)
    assert found[SLOW.name].counts == found[STOCK.name].counts == COUNTS


def test_an_interrupted_run_does_not_wait_for_what_is_being_counted(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The compiler of the second case goes on until somebody stops it, which happens after this stage."""
    stopped, ended = threading.Event(), list[str]()

    def count(build: Build, *_: object, **__: object) -> dict[str, OpCounts]:
        if build.cache_key == "fast":
            stopped.wait(60)
            ended.append(build.cache_key)
        return FOUND

    def interrupt(_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(room, "count_build", count)
    monkeypatch.setattr(stage.directory, "append", interrupt)
    try:
        with pytest.raises(KeyboardInterrupt):
            stage.run([a_build(STOCK), a_build(FAST), a_build(SLOW)])
        assert ended == []
    finally:
        stopped.set()


# ------------------------------------------------------------------------------------------------- phases and flags


@pytest.mark.parametrize(
    ("flags", "reached"),
    [
        ((), ("start", "input", "flow", "vm")),
        (("--compile-from=input",), ("input", "flow", "vm")),
        (("--compile-from=flow",), ("flow", "vm")),
        (("--compile-from=stream",), ("vm",)),
    ],
)
def test_a_program_that_was_rewritten_begins_at_its_phase(flags: tuple[str, ...], reached: tuple[str, ...]) -> None:
    assert reached_phases(a_build(STOCK, "", *flags), ("start", "input", "flow", "vm")) == reached


def test_phases_that_a_program_does_not_go_through_are_not_asked_for(
    stage: Stage, asked: list[tuple[str, list[str]]]
) -> None:
    found = stage.run([a_build(STOCK, "one", "--compile-from=flow")])
    assert asked == [("one", ["flow"])]
    assert found[STOCK.name].counts == {"flow/flow.dispatch": 3, "flow/tensor.empty": 4}


def test_the_flags_are_those_of_the_build_but_for_its_outputs() -> None:
    build = a_build(
        STOCK,
        "",
        "--iree-opt-level=O3",
        "--iree-scheduling-dump-statistics-format=json",
        "--iree-scheduling-dump-statistics-file=statistics.json",
        "--compile-from=flow",
    )
    assert ir_flags(build) == ("--iree-opt-level=O3", "--compile-from=flow")


# ---------------------------------------------------------------------------------------------------------- storage

COST = Storage(tensors=(EncodedTensor(name="t", encoded_bytes=64, unpadded_bytes=4, worst_ratio=16.0),))


def test_encoded_tensors_are_sized_where_the_suite_asks(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once for each compile, and whatever becomes of the counts."""
    asked = list[str]()

    def cost(build: Build, *_: object, **__: object) -> Storage | Failure:
        asked.append(build.cache_key)
        return COST if build.cache_key == "one" else Failure(stage="ir", message="cannot be told")

    monkeypatch.setattr(room, "storage_of", cost)
    monkeypatch.setattr(room, "count_build", lambda *_, **__: FOUND)
    found = stage.run([a_build(STOCK, "one"), a_build(FAST, "two"), a_build(SLOW, "one")], storage=True)
    assert sorted(asked) == ["one", "two"]
    assert found[STOCK.name].storage == found[SLOW.name].storage == COST
    assert found[FAST.name].storage_failure == Failure(stage="ir", message="cannot be told")
    assert {one.case: one.counts for one in found.values()} == dict.fromkeys(found, COUNTS)


def test_without_ops_to_count_encoded_tensors_are_sized_all_the_same(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(room, "storage_of", lambda *_, **__: COST)
    assert stage.run([a_build(STOCK)], wanted={}, storage=True) == {
        STOCK.name: IrCounts(case=STOCK.name, storage=COST),
    }


def test_a_program_that_begins_after_layouts_are_chosen_has_none(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "storage_of", lambda *_, **__: pytest.fail("there is no IR to ask"))
    build = a_build(STOCK, "one", "--compile-from=stream")
    assert stage.run([build], wanted={}, storage=True) == {STOCK.name: IrCounts(case=STOCK.name)}


def test_what_encodings_cost_is_kept_for_these_inputs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read = list[tuple[tuple[int, ...], ...]]()

    def answer(_: Path, inputs: tuple[tuple[int, ...], ...], **__: object) -> Storage:
        read.append(inputs)
        return COST

    monkeypatch.setattr(storage_room, "dump_phases", lambda *_, **__: {"encodings": tmp_path})
    monkeypatch.setattr(storage_room, "read_storage", answer)
    toolchain = make_fake_toolchain(tmp_path / "tools")

    def ask(*shapes: tuple[int, ...]) -> Storage | Failure:
        return storage_of(a_build(STOCK), tmp_path, shapes, (), toolchain=toolchain, limits=Limits())

    assert ask((1, 8)) == ask((1, 8)) == ask((2, 8)) == COST
    assert read == [((1, 8),), ((2, 8),)]
