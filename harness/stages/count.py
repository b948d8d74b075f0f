"""What is counted of a run: each case's operations and encoded tensors, each model's work, this machine's peaks."""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from packaging.version import Version
from pydantic import TypeAdapter, ValidationError

from harness.cache import cache_root, read_memo, write_memo
from harness.errors import CaseError
from harness.ir.counts import OpCounts, count_files, read_storage, select_counts
from harness.ir.dump import LacksPhase
from harness.ir.roofline import count_work, measure_peak, peak_threads
from harness.machine.environment import processor_identity
from harness.metrics import ENCODINGS
from harness.models.materialize import ModelArtifact
from harness.records.run import Failure, IrCounts, Peak, Storage, Work
from harness.stages.ir import Compiled
from harness.stages.prepare import Context
from harness.toolchain import find_toolchain
from harness.verify import AnyRunnable

_COUNTS = TypeAdapter(dict[str, OpCounts])
_STORAGE = TypeAdapter(Storage)
_T = TypeVar("_T")


def ir_stage(context: Context) -> None:
    """Count the ops of every case that compiled, where the suite's [ir] names any, and size its encoded tensors."""
    suite, models = context.prepared.suite, context.made
    if not suite.ir and not suite.storage:
        return
    todo: dict[object, list[Compiled]] = {}  # those of one list have the same IR
    for case in context.prepared.cases:
        build, artifact = context.done.builds.get(case.name), models.get(case.model)
        if build is None or build.failure is not None or case.name in context.done.ir:
            continue
        if artifact is not None:
            toolchain, limits = context.prepared.toolchain_of(case), context.options.compile_limits
            compiled = Compiled.of(build, artifact, artifact.mlir, toolchain, limits)
            # What inputs decide differs between models of equal programs.
            key = (build.cache_key, str(compiled.shapes) if suite.storage else None)
            todo.setdefault(key, []).append(compiled)
    context.progress.stage("IR", sum(map(len, todo.values())))

    def look(alike: Sequence[Compiled]) -> IrCounts:
        return _counts(alike[0], suite.ir, storage=suite.storage)

    with _pool(context) as pool:
        for alike, found in zip(todo.values(), pool.map(look, todo.values()), strict=True):
            for compiled in alike:
                context.directory.append(replace(found, case=compiled.build.case))
                context.progress.step(compiled.build.case)


@contextmanager
def _pool(context: Context) -> Iterator[ThreadPoolExecutor]:
    """Threads that each wait for a compiler; an interrupted run does not wait for them."""
    pool = ThreadPoolExecutor(max_workers=context.options.compilers, thread_name_prefix="count")
    try:
        yield pool
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _counts(compiled: Compiled, wanted: Mapping[str, tuple[str, ...]], *, storage: bool) -> IrCounts:
    """The ops of a build that are wanted, by phase, and the size of its encoded tensors."""
    sized = storage_of(compiled) if storage and compiled.reached([ENCODINGS]) else None
    record = IrCounts(
        case=compiled.build.case,
        storage=sized if isinstance(sized, Storage) else None,
        storage_failure=sized if isinstance(sized, Failure) else None,
    )
    # Of a phase all ops are kept, since most suites ask for the same ones again.
    phases, memo = compiled.reached(wanted), cache_root() / "ir" / f"{compiled.build.cache_key}.json"
    counts = _kept(memo, _COUNTS) or {}
    lacking: list[str] = []  # that the release does not have
    while missing := [phase for phase in phases if phase not in counts and phase not in lacking]:
        try:
            counts |= count_build(compiled, missing)
        except LacksPhase as error:
            if error.phase not in missing:
                return replace(record, failure=Failure.of(error))
            lacking.append(error.phase)
        except CaseError as error:
            return replace(record, failure=Failure.of(error))
        else:
            write_memo(memo, _COUNTS.dump_python(counts))
    reached = {phase: ops for phase, ops in wanted.items() if phase in phases and phase in counts}
    return replace(record, counts=select_counts(counts, reached), lacking=tuple(lacking))


def count_build(compiled: Compiled, phases: list[str]) -> dict[str, OpCounts]:
    """All ops of a build's IR at these phases."""
    with compiled.ir(phases) as files:
        return count_files(files, toolchain=compiled.toolchain, limits=compiled.limits)


def storage_of(compiled: Compiled) -> Storage | Failure:
    """The encoded tensors of a build, kept in the cache."""
    shapes = hashlib.sha256(json.dumps(compiled.shapes).encode()).hexdigest()[:16]
    memo = cache_root() / "ir" / f"{compiled.build.cache_key}-storage-{shapes}.json"
    if kept := _kept(memo, _STORAGE):
        return kept
    try:
        with compiled.ir([ENCODINGS]) as files:
            found = read_storage(
                files[ENCODINGS], compiled.shapes, toolchain=compiled.toolchain, limits=compiled.limits
            )
    except CaseError as error:
        return Failure.of(error)
    write_memo(memo, _STORAGE.dump_python(found, mode="json"))
    return found


def _kept(memo: Path, adapter: TypeAdapter[_T]) -> _T | None:
    try:
        return adapter.validate_python(read_memo(memo))
    except ValidationError:  # there is none, or it is damaged
        return None


def work_stage(context: Context) -> None:
    """Count the arithmetic and the bytes of each model, under the newest toolchain that can: it knows most IR."""
    flags = {case.model: case.compile_flags for case in context.prepared.cases if case.baseline and case.skip is None}
    todo = [
        (artifact, flags[name])
        for name, artifact in context.made.items()
        if name in flags and name not in context.done.work
    ]
    context.progress.stage("Count", len(todo))

    def count(baseline: tuple[ModelArtifact, tuple[str, ...]]) -> Work:
        artifact, compile_flags = baseline
        failure = None
        # Older releases' Python cannot read maps; that beside the harness may.
        order = sorted(context.prepared.toolchains, key=lambda toolchain: Version(toolchain.version), reverse=True)
        for toolchain in (*order, find_toolchain()):
            try:
                return count_work(
                    artifact.name,
                    artifact.mlir,
                    artifact.function,
                    [argument.shape for argument in artifact.inputs],
                    sha256=artifact.sha256,
                    flags=compile_flags,
                    toolchain=toolchain,
                    limits=context.options.compile_limits,
                    memos=cache_root() / "work",
                )
            except CaseError as error:
                failure = failure or Failure.of(error)
        return Work(model=artifact.name, failure=failure)

    with _pool(context) as pool:
        for work in pool.map(count, todo):
            context.directory.append(work)
            context.progress.step(work.model)


def peak_stage(context: Context, runnable: Sequence[AnyRunnable]) -> None:
    """Measure the peaks that these cases are held against: once a run for each number of threads."""
    devices = {item.case.device: peak_threads(item.case) for item in runnable}
    todo = {device: threads for device, threads in devices.items() if threads is not None}
    if not todo:
        return
    context.progress.stage("Peaks", len(todo))
    host_cpu = processor_identity(context.directory.header.environment)
    measured: dict[int, Peak] = {}
    for device, threads in todo.items():
        if threads not in measured:
            toolchain, cache = context.prepared.toolchain, cache_root() / "peaks"
            measured[threads] = measure_peak(device, threads, toolchain, host_cpu=host_cpu, cache=cache)
        context.directory.append(replace(measured[threads], device=device))
        context.progress.step(device)
