"""[Build] -> folders they run in -> [Check], and what iree-benchmark-module says of the builds that are right."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from harness.cache import cache_root
from harness.compile import BuildCache
from harness.machine.processor import usable_cores
from harness.measure import last_core
from harness.models.bench_folder import lay_out
from harness.models.materialize import ModelArtifact
from harness.peers.worker import LoadablePeer
from harness.process import Limits
from harness.records.case import Case
from harness.records.run import Check, Failure
from harness.stages.build import Batch
from harness.stages.context import REFERENCE, VERIFY, Context
from harness.stages.failures import dependent_cases, unchecked
from harness.stages.models import peer_model
from harness.stages.prepare import Prepared
from harness.stages.second_opinion import SecondPath
from harness.verify import AnyRunnable, Runnable, RunnablePeer, check_cases
from harness.verify.benchmark_module import run_benchmark_module


def lay_out_stage(
    prepared: Prepared,
    artifacts: Mapping[str, ModelArtifact | Failure],
    batch: Batch,
    scratch: Path,
    *,
    peers: bool,
) -> list[AnyRunnable]:
    """Make every case of a batch ready that compiled, in the plan's order.

    Args:
        peers: Whether those of peers are wanted too.
    """
    ready = _ready(prepared, artifacts, batch, scratch)
    return [runnable for runnable in ready if peers or isinstance(runnable, Runnable)]


def _ready(
    prepared: Prepared, artifacts: Mapping[str, ModelArtifact | Failure], batch: Batch, scratch: Path
) -> Iterator[AnyRunnable]:
    cache = BuildCache(cache_root())
    pinned = last_core()
    for number, case in enumerate(prepared.cases):
        build, artifact = batch.builds.get(case.name), artifacts.get(case.model)
        cpus = pinned if case.pin else None
        if case.model not in batch.models or case.skip is not None or not isinstance(artifact, ModelArtifact):
            continue
        if case.peer is not None:
            yield RunnablePeer(case=case, artifact=artifact, loadable=_peer(prepared, case, artifact), cpus=cpus)
        elif build is not None and build.failure is None:
            yield Runnable(
                case=case,
                build=build,
                artifact=artifact,
                bench=lay_out(scratch / str(number), cache.module(build), artifact, cache.files(build)),
                toolchain=prepared.toolchain_of(case),
                cpus=cpus,
            )


def _peer(prepared: Prepared, case: Case, artifact: ModelArtifact) -> LoadablePeer:
    model = next(model for model in prepared.suite.models if model.name == case.model)
    return LoadablePeer(
        name=case.name,
        peer=prepared.peers[case.variant],
        model=peer_model(model, artifact),
        arguments=tuple(argument.for_worker() for argument in artifact.arguments),
        threads=case.threads or usable_cores(),
        cache=cache_root() / "peers" / case.variant,
    )


# iree-benchmark-module makes about this many calls where each is long: one to estimate and some for each repetition.
_BENCHMARK_CALLS = 10


def verify_stage(context: Context, runnable: Sequence[AnyRunnable], scratch: Path) -> list[AnyRunnable]:
    """Check outputs; the cases that may be timed. Baselines run again on resuming: others need their outputs.

    Args:
        scratch: A folder for programs that baselines are held against.
    """
    prepared, directory, progress = context.prepared, context.directory, context.progress
    checks = context.checks
    checks.update(context.done.checks)
    cases = [item.case for item in runnable]
    open_groups = {case.group for case in cases if case.name not in checks}
    open_models = {case.model for case in cases if case.group in open_groups}
    wanted = [
        item
        for item in runnable
        if item.case.name not in checks
        or (item.case.baseline and item.case.model in open_models and checks[item.case.name].failure is None)
    ]
    progress.stage(VERIFY, len(wanted))
    models = {model.name: model for model in prepared.suite.models}
    limits = Limits(seconds=context.options.call_timeout_s)
    second = SecondPath(
        models=models, scratch=scratch, compile_limits=context.options.compile_limits, call_limits=limits
    )

    started = time.monotonic_ns()

    def begin(case: str) -> None:
        nonlocal started
        progress.step(case, advance=0)
        started = time.monotonic_ns()

    def keep(check: Check) -> None:
        directory.append(check)
        checks[check.case] = check

    def tried() -> Iterator[AnyRunnable]:
        for item in wanted:
            failure = None if item.case.name in checks else context.given_up.refusal(item.case, "verify")
            if failure is None:
                yield item
            else:
                keep(unchecked(item.case, failure))
                progress.step(item.case.name)

    for check in check_cases(tried(), models, limits, begin, cache_root(), second):
        if check.case not in checks:
            alone = second.why_none.get(check.case, "") if check.max_relative is None and check.failure is None else ""
            keep(replace(check, wall_ns=time.monotonic_ns() - started, no_second_opinion=alone))
            item = next(item for item in wanted if item.case.name == check.case)
            others = dependent_cases(prepared, item.case, item.artifact)
            if context.given_up.note(item.case, check.failure):
                alike = (item.case.group, item.case.toolchain)
                left = [other.case for other in wanted if other.case.name not in checks]
                others = max(others, sum((case.group, case.toolchain) == alike for case in left))
            if check.failure is not None:
                context.failures.check(item.case, check.failure, others)
        progress.step(check.case)
    return [item for item in runnable if checks[item.case.name].failure is None]


def reference_stage(context: Context, runnable: Sequence[AnyRunnable]) -> None:
    """Ask iree-benchmark-module once for each distinct case that is IREE's."""
    directory, progress = context.directory, context.progress
    compiled = [item for item in distinct(runnable) if isinstance(item, Runnable)]
    wanted = [item for item in compiled if item.case.name not in context.done.references]
    progress.stage(REFERENCE, len(wanted))
    limits = Limits(seconds=_BENCHMARK_CALLS * context.options.call_timeout_s)
    for item in wanted:
        progress.step(item.case.name, advance=0)
        started = time.monotonic_ns()
        reference = run_benchmark_module(item.case.name, item.call, limits)
        directory.append(replace(reference, wall_ns=time.monotonic_ns() - started))
        progress.step(item.case.name)


def distinct(runnable: Sequence[AnyRunnable]) -> list[AnyRunnable]:
    """The cases that differ in module, run flags or toolchain from all before them in their group, and all of peers.

    Only those are timed. The same bytes in another release's runtime are another thing to measure.
    """
    seen = set()
    distinct: list[AnyRunnable] = []
    for item in runnable:
        if isinstance(item, RunnablePeer):
            distinct.append(item)
            continue
        key = (item.case.group, item.build.module_sha256, item.case.run_flags, item.case.toolchain)
        if key not in seen:
            seen.add(key)
            distinct.append(item)
    return distinct
