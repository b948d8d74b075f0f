"""[Build] -> [Round]."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from harness.cache import cache_root
from harness.measure import Group, Loadable, LoadableModule, Settings, measure_generation
from harness.measure.generation import CheckOutputs, load_order
from harness.models.bench_folder import MODULE_FILE
from harness.records.case import Case
from harness.records.run import Lost, Round
from harness.stages.check import distinct
from harness.stages.context import MEASURE, Context
from harness.verify import AnyRunnable, RunnablePeer
from harness.verify.kept import later_problem

# A generation's rounds take nearly all of its seconds; one with less was cut short, and goes on in fresh workers.
_COMPLETE = 0.5
# A generation without rounds: each case is loaded and called once before the call whose outputs are looked at.
_ONE_CALL = Settings(seconds=0.0, target_turn_ns=1, least_rounds=0)


def measure_stage(context: Context, runnable: Sequence[AnyRunnable], *, groups_elsewhere: int = 0) -> None:
    """Measure generation by generation, so that each group's generations are spread over the whole stage.

    Args:
        groups_elsewhere: How many more groups the run's budget has to serve, before or after.
    """
    directory, done, progress = context.directory, context.done, context.progress
    settings = directory.header.settings
    generations = int(settings["generations"])
    alive = [item for item in distinct(runnable) if item.case.name not in done.lost]
    groups = list(dict.fromkeys(item.case.group for item in alive))
    if not groups:
        return
    progress.stage(MEASURE, generations * len(groups))
    timed = {item.case.name for item in alive if any(group == item.case.group for group, _ in done.generations)}

    seconds = float(settings["budget_s"]) / (generations * (len(groups) + groups_elsewhere))
    for generation in range(generations):
        for name in groups:
            earlier_s, earlier_rounds = done.generations.get((name, generation), (0.0, 0))
            if earlier_rounds and earlier_s > _COMPLETE * seconds:
                progress.step(name)
                continue
            members = [item for item in alive if item.case.group == name]
            if not members:
                context.remaining.forget([name])
                progress.step(name)
                continue
            loading = load_order([item.case.name for item in members], f"{settings['seed']}/{name}/{generation}")
            group = _group(name, sorted(members, key=lambda item: loading.index(item.case.name)))
            limits = Settings(
                seconds=max(seconds - earlier_s, 0.0),
                seed=int(settings["seed"]),
                call_limit_s=context.options.call_timeout_s,
            )
            first = generation == 0 and not earlier_rounds
            results = measure_generation(
                group, generation, limits, first_round=earlier_rounds, check=_check_of(context) if first else None
            )
            for result in results:
                directory.append(result)
                if isinstance(result, Round):
                    timed.update(turn.case for turn in result.turns)
                    progress.step(_where(result, generations), advance=0)
                    continue
                case = next(item.case for item in members if item.case.name == result.case)
                others = _taken_along(context, case, result, [item.case for item in alive], timed)
                context.failures.case(case, result.failure, len(others))
                for other in others:
                    directory.append(other)
                gone = {result.case, *(other.case for other in others)}
                alive = [item for item in alive if item.case.name not in gone]
                if others:  # some of them are loaded here already; the next generation begins without them
                    break
            progress.step(name)


def _taken_along(context: Context, case: Case, lost: Lost, alive: Sequence[Case], timed: Collection[str]) -> list[Lost]:
    """The cases that a timeout takes along: variants of its model, device and toolchain that had no turn yet."""
    if not context.given_up.note(case, lost.failure):
        return []
    untimed = [other for other in alive if other.name not in timed and other.name != case.name]
    refused = [(other.name, context.given_up.refusal(other, "measure")) for other in untimed]
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
    limits = replace(_ONE_CALL, call_limit_s=context.options.call_timeout_s)
    lost = set(context.done.lost)
    for name, items in members.items():
        context.progress.step(name, advance=0)
        for result in measure_generation(_group(name, items), 0, limits, check=_check_of(context)):
            if isinstance(result, Lost):
                context.directory.append(result)
                failed = next(item.case for item in items if item.case.name == result.case)
                context.failures.case(failed, result.failure)
                lost.add(result.case)
        context.progress.step(name)
    return [item for item in runnable if item.case.name not in lost]


def _check_of(context: Context) -> CheckOutputs:
    return lambda case, files: later_problem(context.checks[case], files, cache_root())


def _where(timed: Round, generations: int) -> str:
    return f"{timed.group} generation {timed.generation + 1}/{generations}, round {timed.round + 1}"


def _group(name: str, members: Sequence[AnyRunnable]) -> Group:
    case = members[0].case
    return Group(
        name=name,
        uri=case.uri,
        more_uris=case.more_uris,
        environment=case.environment,
        cpus=members[0].cpus,
        cases=tuple(_loadable(runnable) for runnable in members),
    )


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
