"""What models have to do and what the machine could do: each counted or measured once, and failures kept."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.errors import CaseError
from harness.ir import roofline
from harness.models.materialize import ModelArtifact
from harness.records.case import Case
from harness.records.run import Failure, Peak, Work
from harness.stages import count as room
from harness.stages.context import Context, Done
from harness.stages.count import peak_stage, work_stage
from harness.store.run_directory import RunDirectory, load_run
from harness.toolchain import Toolchain
from harness.verify import AnyRunnable, Runnable
from tests.builders import make_artifact, make_case, make_header
from tests.fakes.fake_toolchain import make_fake_toolchain
from tests.stages import made
from tests.stages.made import a_prepared

WORK = Work(model="net", operations=10, compulsory_bytes=5)


def a_context(tmp_path: Path, *cases: Case, done: Done | None = None) -> Context:
    toolchain = make_fake_toolchain(tmp_path / "tools")
    return made.a_context(a_prepared(toolchain, cases), RunDirectory.create(tmp_path, make_header()), done)


def counted(
    context: Context, artifact: ModelArtifact | Failure, monkeypatch: pytest.MonkeyPatch, *, fails: str = ""
) -> tuple[Work, ...]:
    """What the stage writes, of a model named net."""

    def count(*_: object, **__: object) -> Work:
        if fails:
            raise CaseError("ir", fails, "its last words")
        return WORK

    monkeypatch.setattr(room, "count_work", count)
    work_stage(context, {"net": artifact}, {"net"})
    return load_run(context.directory.path).work


def test_a_models_work_is_counted_once_for_all_of_its_cases(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    context = a_context(tmp_path, make_case("stock"), make_case("fast"))
    assert counted(context, make_artifact(tmp_path / "net.mlir", arguments=()), monkeypatch) == (WORK,)


def test_why_it_cannot_be_counted_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    artifact = make_artifact(tmp_path / "net.mlir", arguments=())
    (work,) = counted(a_context(tmp_path, make_case("stock")), artifact, monkeypatch, fails="a size is not known")
    assert work.failure == Failure(stage="ir", message="a size is not known", stderr="its last words")


@pytest.mark.parametrize("done", [Done(work=frozenset({"net"})), Done()])
def test_what_is_done_and_what_was_never_made_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, done: Done
) -> None:
    artifact = make_artifact(tmp_path / "net.mlir", arguments=()) if done.work else Failure(stage="model", message="no")
    assert counted(a_context(tmp_path, make_case("stock"), done=done), artifact, monkeypatch) == ()


def test_each_number_of_threads_is_measured_once_and_each_device_has_its_peak(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def measure(device: str, threads: int, _: Toolchain, **__: object) -> Peak:
        asked.append(threads)
        return Peak(device=device, threads=threads, operations_per_s=1e9 * threads, bytes_per_s=1e9)

    monkeypatch.setattr(room, "measure_peak", measure)
    monkeypatch.setattr(roofline, "usable_cores", lambda: 4)
    context = a_context(tmp_path)
    runnable = [
        a_runnable(tmp_path, device="one", uri="local-sync"),
        a_runnable(tmp_path, device="pinned", uri="local-task", pin=True),
        a_runnable(tmp_path, device="both", uri="local-task", pin=False, threads=2),
        a_runnable(tmp_path, device="gpu", uri="cuda", pin=False),
    ]
    peak_stage(context, runnable[:1])
    peak_stage(context, runnable)
    assert asked == [1, 2]
    peaks = {peak.device: peak.threads for peak in load_run(context.directory.path).peaks}
    assert peaks == {"one": 1, "pinned": 1, "both": 2}


def a_runnable(tmp_path: Path, **case: Any) -> AnyRunnable:
    fields: dict[str, Any] = dict.fromkeys(("build", "bench", "toolchain", "cpus"))
    return Runnable(
        case=replace(make_case("stock"), **case), artifact=make_artifact(tmp_path / "net.mlir", arguments=()), **fields
    )
