"""What is counted of a run: each distinct compile, model and number of threads once, and failures are kept."""

import threading
from collections.abc import Iterable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest

from harness.errors import CaseError
from harness.ir import roofline
from harness.ir.counts import OpCounts
from harness.ir.dump import LacksPhase
from harness.records.case import Case
from harness.records.run import Build, EncodedTensor, Failure, IrCounts, Peak, Storage, Work
from harness.report.run_rows import counting_remarks
from harness.stages import count as room
from harness.stages.count import ir_stage, peak_stage, work_stage
from harness.stages.ir import Compiled
from harness.toolchain import Toolchain
from tests.builders import a_suite, make_case
from tests.stages.conftest import UnderWay

WANTED = {"input": ("linalg.*",), "flow": ("flow.dispatch", "tensor.empty")}
FOUND = {
    "input": OpCounts(host={"linalg.fill": 2, "linalg.matmul": 1}, executables={}),
    "flow": OpCounts(host={"flow.dispatch": 3}, executables={"tensor.empty": 4}),
}
COUNTS = {"input/linalg.*": 3, "flow/flow.dispatch": 3, "flow/tensor.empty": 4}
STOCK, FAST, SLOW = (make_case(variant) for variant in ("stock", "fast", "slow"))


def a_build(case: Case, key: str = "", *flags: str, **fields: Any) -> Build:
    command = ("iree-compile", "model.mlir", "-o", "module.vmfb", *flags)
    return Build(case=case.name, command=command, cache_key=key or case.variant, **fields)


# --- ops and encoded tensors ---

COST = Storage(tensors=(EncodedTensor(name="t", encoded_bytes=64, unpadded_bytes=4, worst_ratio=16.0),))
UNKNOWN = Failure(stage="ir", message="cannot be told")
Asked = list[tuple[str, list[str]]]


def counted(
    under_way: UnderWay,
    *builds: Build,
    wanted: dict[str, tuple[str, ...]] = WANTED,
    done: Iterable[IrCounts] = (),
    storage: bool = False,
) -> dict[str, IrCounts]:
    """The stage on these builds; all records of the run so far."""
    suite = a_suite(ir=wanted, storage=storage)
    context = under_way.context([STOCK, FAST, SLOW], suite, replace(under_way.begun, ir=tuple(done), builds=builds))
    ir_stage(context)
    return {counts.case: counts for counts in under_way.run.ir}


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Asked:
    """What the compiler is asked for: which build at which phases; two builds are trouble."""
    questions: Asked = []

    def count(compiled: Compiled, phases: list[str]) -> dict[str, OpCounts]:
        key = compiled.build.cache_key
        questions.append((key, phases))
        if key == "crashes":
            raise CaseError("ir", "iree-compile was ended by SIGSEGV", "PLEASE submit a bug report")
        if key == "old" and "input" in phases:
            raise LacksPhase("input", compiled.toolchain)
        return {phase: FOUND[phase] for phase in phases}

    monkeypatch.setattr(room, "count_build", count)
    return questions


def test_builds_that_are_one_compile_are_counted_once_and_what_is_in_the_cache_is_not_asked_for_again(
    under_way: UnderWay, asked: Asked
) -> None:
    found = counted(under_way, a_build(STOCK, "one"), a_build(FAST, "two"), a_build(SLOW, "one"))
    assert found == {case.name: IrCounts(case=case.name, counts=COUNTS) for case in (STOCK, FAST, SLOW)}
    assert sorted(asked) == [("one", ["input", "flow"]), ("two", ["input", "flow"])]
    asked.clear()
    counted(under_way, a_build(STOCK, "three"), wanted={"flow": ("flow.*",)})
    for _ in range(2):
        counted(under_way, a_build(STOCK, "three"))
    assert asked == [("three", ["flow"]), ("three", ["input"])]


def test_what_cannot_be_or_need_not_be_counted_is_not_asked_for(under_way: UnderWay, asked: Asked) -> None:
    failed = a_build(FAST, failure=Failure(stage="compile", message="no"))
    assert counted(under_way, a_build(STOCK), failed, done=[IrCounts(case=STOCK.name)]) == {}
    assert counted(under_way, a_build(STOCK), wanted={}) == {}
    assert asked == []
    found = counted(under_way, a_build(STOCK, "one", "--compile-from=flow"))
    assert asked == [("one", ["flow"])], "the program does not go through the others"
    assert found[STOCK.name].counts == {"flow/flow.dispatch": 3, "flow/tensor.empty": 4}


def test_what_cannot_be_counted_costs_that_case_or_that_phase_only(under_way: UnderWay, asked: Asked) -> None:
    found = counted(under_way, a_build(STOCK), a_build(FAST, "crashes"), a_build(SLOW, "old"))
    failure = Failure(stage="ir", message="iree-compile was ended by SIGSEGV", stderr="PLEASE submit a bug report")
    at_flow = {key: count for key, count in COUNTS.items() if key.startswith("flow/")}
    assert found == {
        STOCK.name: IrCounts(case=STOCK.name, counts=COUNTS),
        FAST.name: IrCounts(case=FAST.name, failure=failure),
        SLOW.name: IrCounts(case=SLOW.name, counts=at_flow, lacking=("input",)),
    }
    assert list(counting_remarks(found[SLOW.name])) == ["its release of IREE does not have the phase input"]


def test_an_interrupted_run_does_not_wait_for_what_is_being_counted(
    under_way: UnderWay, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The compiler of the second case goes on until somebody stops it, which happens after this stage."""
    stopped, ended = threading.Event(), list[str]()

    def count(compiled: Compiled, _: list[str]) -> dict[str, OpCounts]:
        if compiled.build.cache_key == "fast":
            stopped.wait(60)
            ended.append("fast")
        return FOUND

    monkeypatch.setattr(room, "count_build", count)
    monkeypatch.setattr(under_way.directory, "append", Mock(side_effect=KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        counted(under_way, a_build(STOCK), a_build(FAST), a_build(SLOW))
    assert ended == []
    stopped.set()


def test_encoded_tensors_are_sized_once_for_each_compile_that_chooses_layouts(
    under_way: UnderWay, monkeypatch: pytest.MonkeyPatch
) -> None:
    sized = Mock(side_effect=lambda compiled: COST if compiled.build.cache_key == "one" else UNKNOWN)
    monkeypatch.setattr(room, "storage_of", sized)
    builds = a_build(STOCK, "one"), a_build(FAST, "two"), a_build(SLOW, "one")
    found = counted(under_way, *builds, wanted={}, storage=True)
    sizes = [(found[case.name].storage, found[case.name].storage_failure) for case in (STOCK, FAST, SLOW)]
    assert (sizes, sized.call_count) == ([(COST, None), (None, UNKNOWN), (COST, None)], 2)
    late = counted(under_way, a_build(STOCK, "three", "--compile-from=stream"), wanted={}, storage=True)
    assert (late[STOCK.name].storage, sized.call_count) == (None, 2)


# --- work and peaks ---

WORK = Work(model="net", operations=10, compulsory_bytes=5)


ORDER = ["3.13.0", "3.9.0", "beside"]  # the last is beside the harness


@pytest.mark.parametrize(
    ("broken", "asked"),
    [((), ["3.13.0"]), (("3.13.0",), ["3.13.0", "3.9.0"]), (("3.13.0", "3.9.0"), ORDER), (tuple(ORDER), ORDER)],
)
def test_the_newest_release_that_can_counts_a_models_work_once_for_all_cases(
    under_way: UnderWay, monkeypatch: pytest.MonkeyPatch, broken: tuple[str, ...], asked: list[str]
) -> None:
    seen = []

    def count(*_: object, toolchain: Toolchain, **__: object) -> Work:
        seen.append(toolchain.version)
        if toolchain.version in broken:
            raise CaseError("ir", "no", "its last words")
        return WORK

    monkeypatch.setattr(room, "count_work", count)
    monkeypatch.setattr(room, "find_toolchain", lambda: replace(under_way.toolchain, version="beside"))
    context = under_way.context([STOCK, FAST])
    releases = tuple(replace(under_way.toolchain, version=release) for release in ("3.9.0", "3.13.0"))
    several = replace(context, prepared=replace(context.prepared, toolchains=releases))
    work_stage(several)
    failed = Work(model="net", failure=Failure(stage="ir", message="no", stderr="its last words"))
    assert (under_way.run.work, seen) == ((failed if len(broken) == 3 else WORK,), asked)
    work_stage(under_way.context([STOCK], done=replace(under_way.begun, work=(WORK,))))
    work_stage(replace(several, artifacts={"net": Failure(stage="model", message="never made")}))
    assert seen == asked


def test_each_number_of_threads_is_measured_once_and_each_device_has_its_peak(
    under_way: UnderWay, monkeypatch: pytest.MonkeyPatch
) -> None:
    def peak(device: str, threads: int, *_: object, **__: object) -> Peak:
        return Peak(device=device, threads=threads, operations_per_s=1e9, bytes_per_s=1e9)

    measure = Mock(side_effect=peak)
    monkeypatch.setattr(room, "measure_peak", measure)
    monkeypatch.setattr(roofline, "usable_cores", lambda: 4)
    cases = (
        replace(STOCK, device="one"),
        replace(STOCK, device="pinned", uri="local-task", pin=True),
        replace(STOCK, device="both", uri="local-task", threads=2),
        replace(STOCK, device="gpu", uri="cuda"),
    )
    runnable: Any = [SimpleNamespace(case=case) for case in cases]
    peak_stage(under_way.context([]), runnable)
    assert measure.call_count == 2
    assert {peak.device: peak.threads for peak in under_way.run.peaks} == {"one": 1, "pinned": 1, "both": 2}
