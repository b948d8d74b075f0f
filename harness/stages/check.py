"""[Build] -> folders they run in -> [Check], and what iree-benchmark-module says of the builds that are right."""

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from harness.cache import cache_root
from harness.compile import BuildCache
from harness.machine.processor import usable_cores
from harness.measure import last_core
from harness.models.inputs import write_arguments
from harness.models.materialize import ModelArtifact, lay_out
from harness.models.model import Model
from harness.peers.peer import AppliedPeer
from harness.peers.worker import LoadablePeer
from harness.process import Limits
from harness.records.case import Case
from harness.records.run import Build, Check, Failure, Reference
from harness.stages.context import REFERENCE, VERIFY, Context, GivenUp, unchecked
from harness.stages.models import peer_model
from harness.stages.prepare import Prepared
from harness.toolchain import Toolchain
from harness.toolchain.tools import flag_name
from harness.verify import AnyRunnable, References, Runnable, RunnablePeer, check_cases
from harness.verify.benchmark_module import run_benchmark_module
from harness.verify.reference import has_text


def lay_out_stage(
    prepared: Prepared,
    artifacts: Mapping[str, ModelArtifact | Failure],
    builds: Mapping[str, Build],
    scratch: Path,
    *,
    peers: bool,
) -> list[AnyRunnable]:
    """Make every case ready that compiled, in the plan's order."""
    models, ready = {model.name: model for model in prepared.suite.models}, list[AnyRunnable]()
    for number, case in enumerate(prepared.cases):
        build, artifact = builds.get(case.name), artifacts.get(case.model)
        if case.skip is not None or not isinstance(artifact, ModelArtifact):
            continue
        if case.peer is not None and peers:
            ready.append(runnable_peer(case, prepared.peers[case.variant], models[case.model], artifact))
        elif case.peer is None and build is not None and build.failure is None:
            toolchain, folder = prepared.toolchain_of(case), scratch / str(number)
            ready.append(runnable_module(case, build, artifact, toolchain, folder))
    return ready


def runnable_module(case: Case, build: Build, artifact: ModelArtifact, toolchain: Toolchain, folder: Path) -> Runnable:
    """A case whose build is in this machine's cache, ready to run."""
    cache = BuildCache(cache_root())
    artifact, note = _as_demoted(artifact, case)
    return Runnable(
        case=case,
        build=build,
        artifact=artifact,
        note=note,
        bench=lay_out(folder, cache.module(build), artifact, cache.files(build)),
        toolchain=toolchain,
        cpus=last_core() if case.pin else None,
    )


# iree-compile makes f32 of all f64 unless it is told not to, and the program then takes f32.
_DEMOTE_F64 = "iree-input-demote-f64-to-f32"
_KEEP_F64 = f"--{_DEMOTE_F64}=false"


def _as_demoted(artifact: ModelArtifact, case: Case) -> tuple[ModelArtifact, str]:
    """The model as a case is called with it, and what a reader should know of that."""
    said = [flag.partition("=")[2] for flag in case.compile_flags if flag_name(flag) == _DEMOTE_F64]
    if said and said[-1].lower() in ("false", "0"):
        return artifact, ""
    f64 = [value.dtype == "f64" for value in artifact.inputs]
    if not any(f64):
        note = f"IREE demotes its f64 to f32, and so does its reference; {_KEEP_F64} keeps f64"
        return artifact, note if has_text(artifact.mlir, b"xf64>", b": f64") else ""
    inputs = tuple(
        replace(value, dtype="f32", demoted=True) if is_f64 else value
        for value, is_f64 in zip(artifact.inputs, f64, strict=True)
    )
    arguments = write_arguments(inputs, artifact.mlir.parent)
    note = f"IREE demotes its f64 to f32: called and checked with f32 values; {_KEEP_F64} keeps f64"
    return replace(artifact, inputs=inputs, arguments=arguments), note


def runnable_peer(case: Case, peer: AppliedPeer, model: Model, artifact: ModelArtifact) -> RunnablePeer:
    """A case of a peer, ready to run on this machine."""
    loadable = LoadablePeer(
        name=case.name,
        peer=peer,
        model=peer_model(model, artifact),
        arguments=tuple(argument.for_worker() for argument in artifact.arguments),
        threads=case.threads or usable_cores(),
        cache=cache_root() / "peers" / case.variant,
    )
    return RunnablePeer(case=case, artifact=artifact, loadable=loadable, cpus=last_core() if case.pin else None)


# iree-benchmark-module makes about this many calls where each is long: one to estimate and some for each repetition.
_BENCHMARK_CALLS = 10


def verify_stage(context: Context, runnable: Sequence[AnyRunnable], scratch: Path) -> list[AnyRunnable]:
    """Check outputs; the cases that may be timed. Baselines run again on resuming: others need their outputs."""
    prepared, progress, checks = context.prepared, context.progress, context.checks
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
    references = References(
        models=models, scratch=scratch, compile_limits=context.options.compile_limits, call_limits=limits
    )
    started = context.given_up, lambda case: progress.step(case, 0)
    for check in run_checks(wanted, frozenset(checks), references, *started):
        if check.case not in checks:
            item = next(item for item in wanted if item.case.name == check.case)
            left = [other.case for other in wanted if other.case.name not in checks and other is not item]
            keep_check(context, check, item.case, left)
        progress.step(check.case)
    return [item for item in runnable if checks[item.case.name].failure is None]


def run_checks(
    wanted: Sequence[AnyRunnable],
    done: Collection[str],
    references: References,
    given_up: GivenUp,
    on_start: Callable[[str], object] = lambda _: None,
) -> Iterator[Check]:
    """Check cases on this machine, one after the other."""
    refused: list[Check] = []
    started = time.monotonic_ns()

    def begin(case: str) -> None:
        nonlocal started
        on_start(case)
        started = time.monotonic_ns()

    def tried() -> Iterator[AnyRunnable]:
        for item in wanted:
            failure = None if item.case.name in done else given_up.refusal(item.case, "verify")
            if failure is None:
                yield item
            else:
                refused.append(unchecked(item.case, failure))

    cases = {item.case.name: item.case for item in wanted}
    for check in check_cases(tried(), references, references.call_limits, begin, cache_root()):
        yield from refused
        refused.clear()
        if check.case not in done:
            given_up.note(cases[check.case], check.failure)
        yield replace(check, wall_ns=time.monotonic_ns() - started)
    yield from refused


def keep_check(context: Context, check: Check, case: Case, left: Sequence[Case]) -> None:
    """Write down how a case was checked, and say what is wrong."""
    context.directory.append(check)
    context.checks[check.case] = check
    if check.failure is not None:
        context.failed(case, check.failure, left)


def reference_stage(context: Context, runnable: Sequence[AnyRunnable]) -> None:
    """Ask iree-benchmark-module once for each distinct case that is IREE's."""
    directory, progress = context.directory, context.progress
    compiled = [item for item in distinct(runnable) if isinstance(item, Runnable)]
    wanted = [item for item in compiled if item.case.name not in context.done.references]
    progress.stage(REFERENCE, len(wanted))
    for item in wanted:
        progress.step(item.case.name, advance=0)
        directory.append(run_reference(item, context.options.call_timeout_s))
        progress.step(item.case.name)


def run_reference(item: Runnable, call_timeout_s: float) -> Reference:
    """What iree-benchmark-module says of a case on this machine."""
    started = time.monotonic_ns()
    reference = run_benchmark_module(item.case.name, item.call, Limits(seconds=_BENCHMARK_CALLS * call_timeout_s))
    return replace(reference, wall_ns=time.monotonic_ns() - started)


def distinct(runnable: Sequence[AnyRunnable]) -> list[AnyRunnable]:
    """The cases that differ in module, run flags or toolchain from all before them in their group, and all of peers.

    Only those are timed. The same bytes in another release's runtime are another thing to measure.
    """
    builds = {item.case.name: item.build for item in runnable if isinstance(item, Runnable)}
    names = {case.name for case in distinct_cases([item.case for item in runnable], builds)}
    return [item for item in runnable if item.case.name in names]


def distinct_cases(cases: Sequence[Case], builds: Mapping[str, Build]) -> list[Case]:
    """As `distinct`, of cases whose builds are known by name."""
    seen = set()
    distinct: list[Case] = []
    for case in cases:
        if case.peer is not None:
            distinct.append(case)
            continue
        key = (case.group, builds[case.name].module_sha256, case.run_flags, case.toolchain)
        if key not in seen:
            seen.add(key)
            distinct.append(case)
    return distinct
