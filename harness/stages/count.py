"""What is counted of a run: each case's operations and encoded tensors, each model's work, this machine's peaks."""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from harness.cache import cache_root, read_memo, write_memo
from harness.compile import BuildCache
from harness.errors import CaseError
from harness.ir.dump import dump_phases, entry_phase
from harness.ir.op_counts import OpCounts, count_ops, select_counts
from harness.ir.roofline import measure_peak, peak_threads
from harness.ir.storage import read_storage
from harness.ir.work import count_work
from harness.metrics import ENCODINGS, PHASES
from harness.models.materialize import ModelArtifact
from harness.process import Limits
from harness.records.run import Build, Failure, IrCounts, Storage, Work
from harness.stages.build import host_cpu_of
from harness.stages.context import Context
from harness.toolchain import Toolchain
from harness.verify import AnyRunnable

_COUNTS = TypeAdapter(dict[str, OpCounts])

_Found = tuple[dict[str, OpCounts] | Failure, Storage | Failure | None]


def ir_stage(context: Context, artifacts: Mapping[str, ModelArtifact | Failure], builds: Mapping[str, Build]) -> None:
    """Count the ops of every case that compiled, where the suite's [ir] names any, and size its encoded tensors.

    Raises:
        RunError: The run's directory cannot be written.
    """
    suite, limits = context.prepared.suite, context.options.compile_limits
    if not suite.ir and not suite.storage:
        return
    todo: dict[object, list[tuple[Build, ModelArtifact, Toolchain]]] = {}
    for case in context.prepared.cases:
        build, artifact = builds.get(case.name), artifacts.get(case.model)
        if build is None or build.failure is not None or case.name in context.done.ir:
            continue
        if isinstance(artifact, ModelArtifact):
            # What inputs decide differs between models of equal programs.
            key = (build.cache_key, _shapes(artifact) if suite.storage else None)
            todo.setdefault(key, []).append((build, artifact, context.prepared.toolchain_of(case)))
    progress = context.progress
    progress.stage("IR", sum(len(alike) for alike in todo.values()))

    def look(alike: list[tuple[Build, ModelArtifact, Toolchain]]) -> _Found:
        build, artifact, toolchain = alike[0]
        counts = _counts(build, artifact.mlir, toolchain, reached_phases(build, suite.ir), limits)
        if not suite.storage or not reached_phases(build, [ENCODINGS]):
            return counts, None
        flags, shapes = ir_flags(build), _shapes(artifact)
        return counts, storage_of(build, artifact.mlir, shapes, flags, toolchain=toolchain, limits=limits)

    with _pool(context) as pool:
        for alike, found in zip(todo.values(), pool.map(look, todo.values()), strict=True):
            for build, _, _ in alike:
                context.directory.append(_record(build.case, found, suite.ir))
                progress.step(build.case)


@contextmanager
def _pool(context: Context) -> Iterator[ThreadPoolExecutor]:
    """Threads that each wait for a compiler; an interrupted run does not wait for them."""
    pool = ThreadPoolExecutor(max_workers=context.options.compilers, thread_name_prefix="count")
    try:
        yield pool
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _shapes(artifact: ModelArtifact) -> tuple[tuple[int, ...], ...]:
    return tuple(argument.shape for argument in artifact.arguments)


def _record(case: str, found: _Found, wanted: Mapping[str, tuple[str, ...]]) -> IrCounts:
    counts, storage = found
    record = IrCounts(
        case=case,
        storage=storage if isinstance(storage, Storage) else None,
        storage_failure=storage if isinstance(storage, Failure) else None,
    )
    if isinstance(counts, Failure):
        return replace(record, failure=counts)
    reached = {phase: ops for phase, ops in wanted.items() if phase in counts}
    return replace(record, counts=select_counts(counts, reached))


def _counts(
    build: Build, model: Path, toolchain: Toolchain, phases: tuple[str, ...], limits: Limits
) -> dict[str, OpCounts] | Failure:
    """All ops of a build's IR at these phases; kept in the cache, since most suites ask for the same ones again."""
    memo = cache_root() / "ir" / f"{build.cache_key}.json"
    counts = _kept(memo)
    if missing := [phase for phase in phases if phase not in counts]:
        try:
            counts |= count_build(build, model, missing, toolchain=toolchain, limits=limits)
        except CaseError as error:
            return Failure.of(error)
        write_memo(memo, _COUNTS.dump_python(counts))
    return {phase: counts[phase] for phase in phases}


def _kept(memo: Path) -> dict[str, OpCounts]:
    try:
        return _COUNTS.validate_python(read_memo(memo))
    except ValidationError:  # there is none, or it is damaged
        return {}


def count_build(
    build: Build, model: Path, phases: list[str], *, toolchain: Toolchain, limits: Limits
) -> dict[str, OpCounts]:
    """All ops of a build's IR at these phases.

    Args:
        model: The model's own program, for builds that plugins did not rewrite.

    Raises:
        CaseError: The IR cannot be had (stage `ir`).
    """
    cache = BuildCache(cache_root())
    return count_ops(
        ir_flags(build),
        cache.program(build) or model,
        phases,
        toolchain=toolchain,
        limits=limits,
        files=cache.files(build),
    )


def reached_phases(build: Build, phases: Iterable[str]) -> tuple[str, ...]:
    """Those of the phases that a build went through: a program that was rewritten at a phase begins there."""
    entry = PHASES.index(entry_phase(build.command))
    return tuple(phase for phase in phases if PHASES.index(phase) >= entry)


def ir_flags(build: Build) -> tuple[str, ...]:
    """The flags with which a build was compiled, without those that name its output."""
    position = build.command.index("-o")
    flags = (*build.command[2:position], *build.command[position + 2 :])
    return tuple(flag for flag in flags if not flag.startswith("--iree-scheduling-dump-statistics"))


_STORAGE = TypeAdapter(Storage)


def storage_of(
    build: Build,
    model: Path,
    inputs: Sequence[Sequence[int]],
    flags: Sequence[str],
    *,
    toolchain: Toolchain,
    limits: Limits,
) -> Storage | Failure:
    """The encoded tensors of a build, kept in the cache.

    Args:
        model: The model's own program, for builds that plugins did not rewrite.
        inputs: Shapes of the case's arguments.
        flags: The flags of its compile, without those that name outputs.
    """
    shapes = hashlib.sha256(json.dumps([list(shape) for shape in inputs]).encode()).hexdigest()[:16]
    memo = cache_root() / "ir" / f"{build.cache_key}-storage-{shapes}.json"
    try:
        return _STORAGE.validate_python(read_memo(memo))
    except ValidationError:  # there is none, or it is damaged
        pass
    cache = BuildCache(cache_root())
    try:
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            files = dump_phases(
                flags,
                cache.program(build) or model,
                [ENCODINGS],
                toolchain=toolchain,
                folder=Path(folder),
                limits=limits,
                files=cache.files(build),
            )
            found = read_storage(files[ENCODINGS], inputs, toolchain=toolchain, limits=limits)
    except CaseError as error:
        return Failure.of(error)
    write_memo(memo, _STORAGE.dump_python(found, mode="json"))
    return found


def work_stage(context: Context, artifacts: Mapping[str, ModelArtifact | Failure], models: Collection[str]) -> None:
    """Count the arithmetic and the bytes of these models, under the first toolchain, which made them.

    Raises:
        RunError: The run's directory cannot be written.
    """
    flags = {case.model: case.compile_flags for case in context.prepared.cases if case.baseline and case.skip is None}
    todo = [
        (artifact, flags[name])
        for name, artifact in artifacts.items()
        if name in models and name in flags and name not in context.done.work and isinstance(artifact, ModelArtifact)
    ]
    context.progress.stage("Count", len(todo))

    def count(baseline: tuple[ModelArtifact, tuple[str, ...]]) -> Work:
        artifact, compile_flags = baseline
        try:
            return count_work(
                artifact.name,
                artifact.mlir,
                artifact.function,
                [argument.shape for argument in artifact.inputs],
                sha256=artifact.sha256,
                flags=compile_flags,
                toolchain=context.prepared.toolchain,
                limits=context.options.compile_limits,
                memos=cache_root() / "work",
            )
        except CaseError as error:
            return Work(model=artifact.name, failure=Failure.of(error))

    with _pool(context) as pool:
        for work in pool.map(count, todo):
            context.directory.append(work)
            context.progress.step(work.model)


def peak_stage(context: Context, runnable: Sequence[AnyRunnable]) -> None:
    """Measure the peaks that these cases are held against: once a run for each number of threads.

    Raises:
        RunError: The run's directory cannot be written.
    """
    cases = [item.case for item in runnable if item.case.device not in context.peaks]
    devices = {case.device: peak_threads(case) for case in cases}
    todo = {device: threads for device, threads in devices.items() if threads is not None}
    if not todo:
        return
    context.progress.stage("Peaks", len(todo))
    host_cpu = host_cpu_of(context.directory.header.environment)
    for device, threads in todo.items():
        peak = next((peak for peak in context.peaks.values() if peak.threads == threads), None)
        if peak is None:
            toolchain, cache = context.prepared.toolchain, cache_root() / "peaks"
            peak = measure_peak(device, threads, toolchain, host_cpu=host_cpu, cache=cache)
        context.peaks[device] = replace(peak, device=device)
        context.directory.append(context.peaks[device])
        context.progress.step(device)
