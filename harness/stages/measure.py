"""[Build] -> folders they run in -> [Check], what iree-benchmark-module says of those that are right -> [Round]."""

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from statistics import median

from harness.cache import cache_root
from harness.compare.samplers import group_of
from harness.compile import BuildCache
from harness.machine.processor import usable_cores
from harness.measure import Calibration, Group, Loadable, LoadableModule, Settings, last_core, measure_generation
from harness.measure.generation import CheckOutputs, load_order
from harness.models.inputs import write_arguments
from harness.models.materialize import MODULE_FILE, ModelArtifact, lay_out
from harness.models.model import Model
from harness.peers.peer import AppliedPeer
from harness.peers.worker import LoadablePeer
from harness.process import Limits
from harness.records.case import Case
from harness.records.run import Build, Check, Lost, Reference, Round, Turn
from harness.stages.models import peer_model
from harness.stages.prepare import Context, GivenUp, unchecked
from harness.toolchain import Toolchain
from harness.toolchain.tools import flag_name
from harness.verify import AnyRunnable, References, Runnable, RunnablePeer, check_cases
from harness.verify.cases import later_problem
from harness.verify.outputs import run_benchmark_module
from harness.verify.reference import has_text


def lay_out_stage(context: Context, scratch: Path) -> list[AnyRunnable]:
    """Make every case ready that compiled, in the plan's order; peers are only timed."""
    prepared, builds, made = context.prepared, context.done.builds, context.made
    models, ready = {model.name: model for model in prepared.suite.models}, list[AnyRunnable]()
    for number, case in enumerate(prepared.cases):
        build, artifact = builds.get(case.name), made.get(case.model)
        if case.skip is not None or artifact is None:
            continue
        if case.peer is not None and context.options.measure:
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
        folder=lay_out(folder, cache.module(build), artifact, cache.files(build)),
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
        arguments=artifact.arguments,
        threads=case.threads or usable_cores(),
        cache=cache_root() / "peers" / case.variant,
    )
    return RunnablePeer(case=case, artifact=artifact, loadable=loadable, cpus=last_core() if case.pin else None)


# iree-benchmark-module makes about this many calls where each is long: one to estimate and some for each repetition.
_BENCHMARK_CALLS = 10


def verify_stage(context: Context, runnable: Sequence[AnyRunnable]) -> list[AnyRunnable]:
    """Check outputs; the cases that may be timed. Baselines run again on resuming: others need their outputs."""
    prepared, progress, checks = context.prepared, context.progress, context.done.checks
    cases = [item.case for item in runnable]
    open_groups = {case.group for case in cases if case.name not in checks}
    open_models = {case.model for case in cases if case.group in open_groups}
    wanted = [
        item
        for item in runnable
        if item.case.name not in checks
        or (item.case.baseline and item.case.model in open_models and checks[item.case.name].failure is None)
    ]
    progress.stage("Verify", len(wanted))
    models = {model.name: model for model in prepared.suite.models}
    limits = Limits(seconds=context.options.call_timeout_s)
    references = References(models=models, compile_limits=context.options.compile_limits, call_limits=limits)
    on_start = partial(progress.step, advance=0)
    for check in run_checks(wanted, frozenset(checks), references, context.given_up, on_start):
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
    on_start: Callable[[str], None] = lambda _: None,
) -> Iterator[Check]:
    """Check cases on this machine, one after the other."""
    refused: list[Check] = []

    def tried() -> Iterator[AnyRunnable]:
        for item in wanted:
            failure = None if item.case.name in done else given_up.refusal(item.case, "verify")
            if failure is None:
                yield item
            else:
                refused.append(unchecked(item.case, failure))

    cases, started = {item.case.name: item.case for item in wanted}, time.monotonic_ns()
    for check in check_cases(tried(), references, references.call_limits, on_start, cache_root()):
        yield from refused
        refused.clear()
        if check.case not in done:
            given_up.note(cases[check.case], check.failure)
        yield replace(check, wall_ns=time.monotonic_ns() - started)
        started = time.monotonic_ns()
    yield from refused


def keep_check(context: Context, check: Check, case: Case, left: Sequence[Case]) -> None:
    """Write down how a case was checked, and say what is wrong."""
    context.directory.append(check)
    context.done.checks[check.case] = check
    if check.failure is not None:
        context.failed(case, check.failure, left)


def reference_stage(context: Context, runnable: Sequence[AnyRunnable]) -> None:
    """Ask iree-benchmark-module once for each distinct case that is IREE's."""
    directory, progress = context.directory, context.progress
    compiled = [item for item in distinct(runnable) if isinstance(item, Runnable)]
    wanted = [item for item in compiled if item.case.name not in context.done.references]
    progress.stage("iree-benchmark-module", len(wanted))
    for item in wanted:
        progress.step(item.case.name, advance=0)
        limit_s, timed = context.options.call_timeout_s, context.options.measure
        directory.append(run_reference(item, limit_s, for_memory=not timed))
        progress.step(item.case.name)


def run_reference(item: Runnable, call_timeout_s: float, *, for_memory: bool = False) -> Reference:
    """What iree-benchmark-module says of a case on this machine."""
    limits = Limits(seconds=_BENCHMARK_CALLS * call_timeout_s)
    return run_benchmark_module(item.case.name, item.call, limits, for_memory=for_memory)


def distinct(runnable: Sequence[AnyRunnable]) -> list[AnyRunnable]:
    """Those to be timed, which differ in module, run flags or toolchain from all before them in their group."""
    builds = {item.case.name: item.build for item in runnable if isinstance(item, Runnable)}
    names = {case.name for case in distinct_cases([item.case for item in runnable], builds)}
    return [item for item in runnable if item.case.name in names]


def distinct_cases(cases: Sequence[Case], builds: Mapping[str, Build]) -> list[Case]:
    """As `distinct`, of cases whose builds are known by name; of peers, which have none, all."""
    first: dict[object, Case] = {}
    for case in cases:
        sha256 = builds[case.name].module_sha256 if case.peer is None else case.name
        first.setdefault((case.group, sha256, case.run_flags, case.toolchain), case)
    return list(first.values())


# --- [Check] -> [Round] ---


# A generation's rounds take nearly all of its seconds; one with less was cut short, and goes on in fresh workers.
_COMPLETE = 0.5
# A generation without rounds: each case is loaded and called once before the call whose outputs are looked at.
_ONE_CALL = Settings(seconds=0.0, target_turn_ns=1, least_rounds=0)


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """One generation of one group, as whoever measures it needs to know it beside the cases themselves."""

    group: str
    generation: int
    seconds: float  # Of timed rounds that it has left
    seed: int  # The run's
    call_limit_s: float
    first_round: int  # Above 0 where an interrupted generation goes on
    checked: bool  # Whether a later call of each case is held against its first
    timed: frozenset[str]  # Cases that had a turn before


# A case that is lost, and those that are not tried since it timed out.
Losses = tuple[Lost, ...]


def run_generation(
    wanted: Wanted,
    members: Sequence[AnyRunnable],
    checks: Mapping[str, Check],
    given_up: GivenUp,
    known: Mapping[str, Calibration] | None = None,
) -> Iterator[Round | Losses]:
    """Measure one generation of a group on this machine; nothing is timed while the caller holds what it got.

    `known` is what an earlier generation told of the cases, so that this one need not find it out.
    """
    loading = load_order([item.case.name for item in members], f"{wanted.seed}/{wanted.group}/{wanted.generation}")
    group = _group(wanted.group, sorted(members, key=lambda item: loading.index(item.case.name)))
    limits = Settings(
        seconds=wanted.seconds, seed=wanted.seed, call_limit_s=wanted.call_limit_s, long_round_s=wanted.seconds
    )
    check = _check_of(checks) if wanted.checked else None
    alive, timed = {item.case.name: item.case for item in members}, set(wanted.timed)
    results = measure_generation(
        group, wanted.generation, limits, first_round=wanted.first_round, check=check, known=known
    )
    for result in results:
        if isinstance(result, Round):
            timed.update(turn.case for turn in result.turns)
            yield result
            continue
        others = _taken_along(alive.pop(result.case), result, alive.values(), timed, given_up)
        yield (result, *others)
        if others:  # some of them are loaded here already; the next generation begins without them
            return


def measure_stage(context: Context, runnable: Sequence[AnyRunnable]) -> None:
    """Measure generation by generation, so that each group's generations are spread over the whole stage."""
    done, progress = context.done, context.progress
    generations = int(context.directory.header.settings["generations"])
    alive = [item for item in distinct(runnable) if item.case.name not in done.lost]
    groups = list(dict.fromkeys(item.case.group for item in alive))
    if not groups:
        return
    shares = len(groups) + context.prepared.groups_elsewhere
    timed = {item.case.name for item in alive if any(group == item.case.group for group, _ in done.generations)}
    rows = [(generation, name) for generation in range(generations) for name in groups]
    rows = [row for row in rows if wanted_generation(context, row[1], row[0], timed, groups=shares) is not None]
    progress.stage("Measure", len(rows))
    known: dict[str, dict[str, Calibration]] = {}  # By group, as its first generation here found it
    for generation, name in rows:
        wanted = wanted_generation(context, name, generation, timed, groups=shares)
        members, told = [item for item in alive if item.case.group == name], list[Turn]()
        if wanted is None or not members:
            progress.step(name)
            continue
        for result in run_generation(wanted, members, done.checks, context.given_up, known.get(name)):
            keep_measured(context, result, [item.case for item in members])
            if isinstance(result, Round):
                told += result.turns
                timed.update(turn.case for turn in result.turns)
                where = f"{name} generation {generation + 1}/{generations}, round {result.round + 1}"
                progress.step(where, advance=0)
            else:
                gone = {lost.case for lost in result}
                alive = [item for item in alive if item.case.name not in gone]
        known.setdefault(name, _calibrations(told))
        progress.step(name)


def _calibrations(turns: Sequence[Turn]) -> dict[str, Calibration]:
    """What turns tell of each case for the next generation."""
    by_case: dict[str, list[Turn]] = {}
    for turn in turns:
        by_case.setdefault(turn.case, []).append(turn)
    return {
        case: Calibration(calls=own[0].calls, per_call_ns=median(turn.wall_ns / turn.calls for turn in own))
        for case, own in by_case.items()
    }


def wanted_generation(
    context: Context, group: str, generation: int, timed: Collection[str], *, groups: int
) -> Wanted | None:
    """What a run still wants of a generation of a group; None where an interrupted run has had it."""
    settings = context.directory.header.settings
    seconds = float(settings["budget_s"]) / (int(settings["generations"]) * groups)
    earlier_s, earlier_rounds = context.done.generations.get((group, generation), (0.0, 0))
    if earlier_rounds and earlier_s > _COMPLETE * seconds:
        return None
    return Wanted(
        group=group,
        generation=generation,
        seconds=max(seconds - earlier_s, 0.0),
        seed=int(settings["seed"]),
        call_limit_s=context.options.call_timeout_s,
        first_round=earlier_rounds,
        checked=generation == 0 and not earlier_rounds,
        timed=frozenset(timed),
    )


def keep_measured(context: Context, result: Round | Losses, members: Sequence[Case]) -> None:
    """Write down what came of a generation, and say what was lost."""
    if isinstance(result, Round):
        context.directory.append(result)
        return
    for lost in result:
        context.directory.append(lost)
    first, *others = result
    case = next(case for case in members if case.name == first.case)
    context.given_up.note(case, first.failure)
    context.failures.case(case, first.failure, len(others))


def _taken_along(
    case: Case, lost: Lost, alive: Collection[Case], timed: Collection[str], given_up: GivenUp
) -> list[Lost]:
    """The cases that a timeout takes along: variants of its model, device and toolchain that had no turn yet."""
    if not given_up.note(case, lost.failure):
        return []
    refused = [(other.name, given_up.refusal(other, "measure")) for other in alive if other.name not in timed]
    return [
        Lost(case=name, generation=lost.generation, failure=failure) for name, failure in refused if failure is not None
    ]


def call_again_stage(context: Context, runnable: Sequence[AnyRunnable]) -> list[AnyRunnable]:
    """Hold a later call of each case against its first, in a run that times nothing; the cases that agree."""
    members = [item for item in distinct(runnable) if item.case.name not in context.done.lost]
    context.progress.stage("Call again", len(members))
    lost = set(context.done.lost)
    for items in _together(members):
        context.progress.step(items[0].case.name, advance=0)
        for result in call_group_again(items[0].case.group, items, context.done.checks, context.options.call_timeout_s):
            context.directory.append(result)
            failed = next(item.case for item in items if item.case.name == result.case)
            context.failures.case(failed, result.failure)
            lost.add(result.case)
        context.progress.step(items[-1].case.name, len(items))
    return [item for item in runnable if item.case.name not in lost]


# Small programs of one device are called in one worker, which takes longer to start than they do.
_MOST_TOGETHER = 40
_MOST_TOGETHER_BYTES = 16 * 2**20


def _together(runnable: Sequence[AnyRunnable]) -> Iterator[list[AnyRunnable]]:
    """Cases in lists that one worker holds at once: those of a group, and of small programs those of a device."""
    batch: list[AnyRunnable] = []
    held = 0
    for item in runnable:
        files = [item.artifact.mlir, *(argument.file for argument in item.artifact.arguments)]
        size = sum(file.stat().st_size for file in (*files, *item.artifact.parameters.values()))
        fits = len(batch) < _MOST_TOGETHER and held + size <= _MOST_TOGETHER_BYTES
        if batch and not (
            item.case.group == batch[-1].case.group or (fits and item.case.device == batch[0].case.device)
        ):
            yield batch
            batch, held = [], 0
        batch.append(item)
        held += size
    if batch:
        yield batch


def call_group_again(
    group: str, members: Sequence[AnyRunnable], checks: Mapping[str, Check], call_limit_s: float
) -> Iterator[Lost]:
    """Call each case of a group once more on this machine; those whose outputs are not those of their first call."""
    limits = replace(_ONE_CALL, call_limit_s=call_limit_s)
    for result in measure_generation(_group(group, members), 0, limits, check=_check_of(checks)):
        if isinstance(result, Lost):
            yield result


def _check_of(checks: Mapping[str, Check]) -> CheckOutputs:
    return lambda case, files: later_problem(checks[case], files, cache_root())


def _group(name: str, members: Sequence[AnyRunnable]) -> Group:
    return group_of(name, members[0].case, map(_loadable, members))


def _loadable(runnable: AnyRunnable) -> Loadable:
    if isinstance(runnable, RunnablePeer):
        return runnable.loadable
    return LoadableModule(
        name=runnable.case.name,
        module=runnable.folder / MODULE_FILE,
        function=runnable.artifact.function,
        arguments=tuple(argument.for_worker() for argument in runnable.artifact.arguments),
        parameters=runnable.artifact.parameters,
        run_flags=runnable.case.run_flags,
        toolchain=runnable.toolchain,
    )
