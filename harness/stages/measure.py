"""[Build] -> [Round]."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from harness.cache import cache_root
from harness.compare.samplers import group_of
from harness.measure import Group, Loadable, LoadableModule, Settings, measure_generation
from harness.measure.generation import CheckOutputs, load_order
from harness.models.materialize import MODULE_FILE
from harness.records.case import Case
from harness.records.run import Check, Lost, Round
from harness.stages.check import distinct
from harness.stages.context import MEASURE, Context, GivenUp
from harness.verify import AnyRunnable, RunnablePeer
from harness.verify.kept import later_problem

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
    wanted: Wanted, members: Sequence[AnyRunnable], checks: Mapping[str, Check], given_up: GivenUp
) -> Iterator[Round | Losses]:
    """Measure one generation of a group on this machine; nothing is timed while the caller holds what it got."""
    loading = load_order([item.case.name for item in members], f"{wanted.seed}/{wanted.group}/{wanted.generation}")
    group = _group(wanted.group, sorted(members, key=lambda item: loading.index(item.case.name)))
    limits = Settings(seconds=wanted.seconds, seed=wanted.seed, call_limit_s=wanted.call_limit_s)
    check = _check_of(checks) if wanted.checked else None
    alive, timed = {item.case.name: item.case for item in members}, set(wanted.timed)
    results = measure_generation(group, wanted.generation, limits, first_round=wanted.first_round, check=check)
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
    progress.stage(MEASURE, len(rows))
    for generation, name in rows:
        wanted = wanted_generation(context, name, generation, timed, groups=shares)
        members = [item for item in alive if item.case.group == name]
        for result in run_generation(wanted, members, context.checks, context.given_up) if wanted and members else ():
            keep_measured(context, result, [item.case for item in members])
            if isinstance(result, Round):
                timed.update(turn.case for turn in result.turns)
                where = f"{name} generation {generation + 1}/{generations}, round {result.round + 1}"
                progress.step(where, advance=0)
            else:
                gone = {lost.case for lost in result}
                alive = [item for item in alive if item.case.name not in gone]
        progress.step(name)


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
    distinct_cases = [item for item in distinct(runnable) if item.case.name not in context.done.lost]
    members: dict[str, list[AnyRunnable]] = {}
    for item in distinct_cases:
        members.setdefault(item.case.group, []).append(item)
    context.progress.stage("Call again", len(members))
    lost = set(context.done.lost)
    for name, items in members.items():
        context.progress.step(name, advance=0)
        for result in call_group_again(name, items, context.checks, context.options.call_timeout_s):
            context.directory.append(result)
            failed = next(item.case for item in items if item.case.name == result.case)
            context.failures.case(failed, result.failure)
            lost.add(result.case)
        context.progress.step(name)
    return [item for item in runnable if item.case.name not in lost]


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
        module=runnable.bench.folder / MODULE_FILE,
        function=runnable.artifact.function,
        arguments=tuple(argument.for_worker() for argument in runnable.artifact.arguments),
        parameters=runnable.artifact.parameters,
        run_flags=runnable.case.run_flags,
        toolchain=runnable.toolchain,
    )
