"""[Build] -> how many of the ops that the suite names each case's IR has."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from harness.cache import cache_root, read_memo, write_memo
from harness.compile import BuildCache
from harness.errors import CaseError
from harness.ir.dump import entry_phase
from harness.ir.op_counts import OpCounts, count_ops, select_counts
from harness.metrics import ENCODINGS, PHASES
from harness.models.materialize import ModelArtifact
from harness.process import Limits
from harness.records.run import Build, Failure, IrCounts, Storage
from harness.stages.context import Context
from harness.stages.storage import storage_of
from harness.toolchain import Toolchain

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

    pool = ThreadPoolExecutor(max_workers=context.options.jobs, thread_name_prefix="ir")
    try:
        for alike, found in zip(todo.values(), pool.map(look, todo.values()), strict=True):
            for build, _, _ in alike:
                context.directory.append(_record(build.case, found, suite.ir))
                progress.step(build.case)
    finally:
        pool.shutdown(wait=False, cancel_futures=True)  # an interrupted run does not wait for a compiler


def _shapes(artifact: ModelArtifact) -> tuple[tuple[int, ...], ...]:
    return tuple(one.shape for one in artifact.arguments)


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
    known = _kept(memo)
    if missing := [phase for phase in phases if phase not in known]:
        try:
            found = count_build(build, model, missing, toolchain=toolchain, limits=limits)
        except CaseError as error:
            return Failure(stage="ir", message=str(error), stderr=error.stderr)
        known = {**known, **found}
        write_memo(memo, _COUNTS.dump_python(known))
    return {phase: known[phase] for phase in phases}


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
