"""[Build] -> [Round]."""

from __future__ import annotations

from collections.abc import Sequence

from harness.measure import Group, Loadable, LoadableModule, Settings, measure_generation
from harness.measure.generation import load_order
from harness.models.bench_folder import MODULE_FILE
from harness.records.run import Lost, Round
from harness.stages.check import distinct
from harness.stages.context import Context
from harness.verify import AnyRunnable, RunnablePeer

# A generation's rounds take nearly all of its seconds; one with less was cut short, and goes on in fresh workers.
_COMPLETE = 0.5


def measure_stage(context: Context, runnable: Sequence[AnyRunnable], *, groups_elsewhere: int = 0) -> None:
    """Generation by generation, so that each group's generations are spread over the whole stage.

    Args:
        groups_elsewhere: How many more groups the run's budget has to serve, before or after.
    """
    directory, done, progress = context.directory, context.done, context.progress
    settings = directory.header.settings
    generations = int(settings["generations"])
    alive = [one for one in distinct(runnable) if one.case.name not in done.lost]
    groups = list(dict.fromkeys(one.case.group for one in alive))
    if not groups:
        return
    progress.stage("Measure", generations * len(groups))
    seconds = float(settings["budget_s"]) / (generations * (len(groups) + groups_elsewhere))
    for generation in range(generations):
        for name in groups:
            earlier_s, earlier_rounds = done.generations.get((name, generation), (0.0, 0))
            if earlier_rounds and earlier_s > _COMPLETE * seconds:
                progress.step(name)
                continue
            members = [one for one in alive if one.case.group == name]
            if not members:
                progress.step(name)
                continue
            loading = load_order([one.case.name for one in members], f"{settings['seed']}/{name}/{generation}")
            group = _group(name, sorted(members, key=lambda one: loading.index(one.case.name)))
            limits = Settings(
                seconds=max(seconds - earlier_s, 0.0),
                seed=int(settings["seed"]),
                call_limit_s=context.options.call_timeout_s,
            )
            for item in measure_generation(group, generation, limits, first_round=earlier_rounds):
                directory.append(item)
                if isinstance(item, Lost):
                    alive = [one for one in alive if one.case.name != item.case]
                    progress.note(f"{item.case}: {item.failure.message}")
                else:
                    progress.step(_where(item, generations), advance=0)
            progress.step(name)


def _where(item: Round, generations: int) -> str:
    return f"{item.group} generation {item.generation + 1}/{generations}, round {item.round + 1}"


def _group(name: str, members: Sequence[AnyRunnable]) -> Group:
    return Group(
        name=name,
        uri=members[0].case.uri,
        more_uris=members[0].case.more_uris,
        environment=members[0].case.environment,
        cpus=members[0].cpus,
        cases=tuple(_loadable(one) for one in members),
    )


def _loadable(one: AnyRunnable) -> Loadable:
    if isinstance(one, RunnablePeer):
        return one.loadable
    return LoadableModule(
        name=one.case.name,
        module=one.bench.folder / MODULE_FILE,
        function=one.artifact.function,
        arguments=tuple(argument.for_worker() for argument in one.artifact.arguments),
        parameters=one.artifact.parameters,
        run_flags=one.case.run_flags,
        toolchain=one.toolchain,
    )
