"""Where a run's devices are and its work is done: this machine, or a fleet, with the same functions of the stages."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import MappingProxyType

from harness.cache import cache_root
from harness.compare.comparison import Plan
from harness.compare.remeasure import RowPlace, ThisMachine
from harness.compile import BuildCache
from harness.compile.request import cache_key
from harness.errors import HarnessError
from harness.machine.identity import processor_identity
from harness.measure.alone import only_one_measures
from harness.models.materialize import ModelArtifact
from harness.progress import Progress, Remaining, WithTimeLeft
from harness.records.case import Case
from harness.records.run import Build, Check, Failure
from harness.stages.build import compile_stage, request_for, require_cache
from harness.stages.check import distinct, lay_out_stage, reference_stage, verify_stage
from harness.stages.context import COMPILE, IR, MEASURE, REFERENCE, VERIFY, Context
from harness.stages.count import ir_stage, kept_counts, peak_stage, work_stage
from harness.stages.measure import call_again_stage, measure_stage
from harness.stages.prepare import DevicePlace
from harness.store.folders import folder_names
from harness.store.run_directory import load_run
from harness.store.sides_directory import ComparisonDirectory
from harness.text import plural
from harness.verify import AnyRunnable

# So many of the newest runs are looked at.
_MOST_RUNS = 20
_NOUNS = {COMPILE: "compiles", VERIFY: "checks"}


def earlier_steps(results: Path, models: Iterable[str], but: Path) -> dict[str, float]:
    """Mean seconds of a compile, a check and a reference in the newest runs of a results folder with these models."""
    wanted = set(models)
    ns: dict[str, list[int | None]] = {COMPILE: [], VERIFY: [], REFERENCE: []}
    for name in list(reversed(folder_names(results, "run")))[:_MOST_RUNS]:
        try:
            run = load_run(results / name, rounds=False)
        except HarnessError:  # a damaged run says nothing
            continue
        if name != but.name and wanted & {model.mlir_sha256 for model in run.header.models}:
            ns[COMPILE] += [build.compile_ns for build in run.builds]
            ns[VERIFY] += [check.wall_ns for check in run.checks]
            ns[REFERENCE] += [reference.wall_ns for reference in run.references]
    known = {stage: [one for one in every if one is not None] for stage, every in ns.items()}
    return {stage: statistics.fmean(every) / 1e9 for stage, every in known.items() if every}


def foresee(
    context: Context, artifacts: Mapping[str, ModelArtifact | Failure], step_s: Mapping[str, float]
) -> tuple[str, Remaining]:
    """What a run that begins or goes on has to do: in a sentence, and step by step."""
    options, done = context.options, context.done
    made = {name: artifact for name, artifact in artifacts.items() if isinstance(artifact, ModelArtifact)}
    records: list[Build | Check] = [*done.builds.values(), *done.checks.values()]
    given_up = {record.case for record in records if record.failure is not None} | done.lost
    cases = [
        case
        for case in context.prepared.cases
        if case.skip is None and case.model in made and case.name not in given_up
    ]
    own = [case for case in cases if case.peer is None]
    steps, sharing, cached = _compiles(context, own, made)
    steps[VERIFY] = [case.name for case in (cases if options.measure else own) if case.name not in done.checks]
    if context.with_reference:
        steps[REFERENCE] = [case.name for case in own if case.name not in done.references]
    timed_s = 0.0
    if options.measure:
        share_s, left_s = _generations(context, cases)
        steps[MEASURE], timed_s = [group for group, _ in left_s], sum(left_s.values())
        step_s = {**step_s, MEASURE: share_s}
    if COMPILE in step_s:
        step_s = {**step_s, IR: step_s[COMPILE]}  # which is another compile
    remaining = Remaining(steps, step_s, {COMPILE: options.compilers, IR: options.compilers})

    compiles = len(steps[COMPILE])
    remarks = [f"for {sharing:,} cases"] if sharing != compiles else []
    remarks += [f"{cached:,} more {'is' if cached == 1 else 'are'} in the cache"] if cached else []
    parts = [plural(compiles, "compile") + (f" ({', '.join(remarks)})" if remarks else "")]
    parts = parts if compiles or remarks else []
    parts += [plural(len(steps[VERIFY]), "check")] if steps[VERIFY] else []
    parts += [f"{timed_s:.0f} s of timed rounds"] if timed_s else []
    unknown = [f"the {noun}" for stage, noun in _NOUNS.items() if steps[stage] and stage not in step_s]
    why = f"no earlier run here says how long {' and '.join(unknown)} take" if unknown else ""
    left = ", and ".join(filter(None, (remaining.left().words, why)))
    todo = f"To do: {', '.join(parts) or 'nothing more'}"
    return (f"{todo}; {left}" if left else todo), remaining


def _compiles(
    context: Context, cases: Sequence[Case], made: Mapping[str, ModelArtifact]
) -> tuple[dict[str, list[str]], int, int]:
    """Compiles and countings of IR; how many cases the compiles are for, and how many more are in the cache."""
    cache, limits = BuildCache(cache_root()), context.options.compile_limits
    host_cpu = processor_identity(context.directory.header.environment)
    steps: dict[str, list[str]] = {COMPILE: [], IR: []}
    seen: set[str] = set()
    sharing = cached = 0
    for case in cases:
        key = cache_key(request_for(context.prepared, case, made[case.model], host_cpu, limits))
        is_cached = cache.find(key, case.name) is not None
        sharing += not is_cached
        if key in seen:
            continue
        seen.add(key)
        cached += is_cached and case.name not in context.done.builds
        steps[COMPILE] += [] if is_cached else [case.name]
        if context.prepared.suite.ir and case.name not in context.done.ir and not kept_counts(key).is_file():
            steps[IR].append(case.name)
    return steps, sharing, cached


def _generations(context: Context, cases: Sequence[Case]) -> tuple[float, dict[tuple[str, int], float]]:
    """Seconds of timed rounds of a generation of a group, and those that are left of each."""
    settings = context.directory.header.settings
    generations, groups = int(settings["generations"]), dict.fromkeys(case.group for case in cases)
    share_s = float(settings["budget_s"]) / (generations * max(1, len(groups) + context.prepared.groups_elsewhere))
    left_s = {
        (group, number): share_s - context.done.generations.get((group, number), (0.0, 0))[0]
        for number in range(generations)
        for group in groups
    }
    return share_s, {key: seconds for key, seconds in left_s.items() if seconds > 0}


class Executor(DevicePlace):
    """Where a run's cases are compiled, checked and measured: this machine, of which a fleet is another kind."""

    hosts: Mapping[str, str] = MappingProxyType({})  # That a suite is planned for, with the class of each

    @property
    def address(self) -> str:
        """What `--fleet` says of it; "": this machine."""
        return ""

    def following(self, runs: Sequence[Path]) -> Executor:  # noqa: ARG002 (a fleet needs it)
        """The same place, for a run that goes on or is compared with these runs, which may be begun only."""
        return self

    def rows(self, plan: Plan, directory: ComparisonDirectory, progress: Progress, noise: float) -> RowPlace:  # noqa: ARG002
        """Where the rows of a comparison are measured."""
        return ThisMachine(progress=progress, noise=noise)

    def run(self, context: Context, artifacts: Mapping[str, ModelArtifact | Failure], scratch: Path) -> None:
        """Do all of a run that is not done yet; each result is on disk before the next one begins."""
        directory = context.directory
        programs = [artifact.sha256 for artifact in artifacts.values() if isinstance(artifact, ModelArtifact)]
        sentence, remaining = foresee(
            context, artifacts, earlier_steps(context.options.results, programs, directory.path)
        )
        context.progress.note(sentence)
        context = replace(context, remaining=remaining, progress=WithTimeLeft(context.progress, remaining))
        builds = compile_stage(context, artifacts)
        directory.before_failure = partial(require_cache, directory.path, artifacts, builds)
        _check_and_measure(context, artifacts, builds, scratch)


LOCAL = Executor()


def _check_and_measure(
    context: Context, artifacts: Mapping[str, ModelArtifact | Failure], builds: Mapping[str, Build], scratch: Path
) -> None:
    options = context.options
    ir_stage(context, artifacts, builds)
    if options.measure:
        work_stage(context, artifacts)
    runnable = lay_out_stage(context.prepared, artifacts, builds, scratch, peers=options.measure)
    _forget_all_but(runnable, context)
    right = verify_stage(context, runnable, scratch)
    _forget_all_but(distinct(right), context)
    if not options.measure:
        right = call_again_stage(context, right)
        if not context.with_reference:
            return
    with only_one_measures(context.progress.note, wait=options.wait):
        if context.with_reference:
            reference_stage(context, right)
        if options.measure:
            peak_stage(context, right)
            measure_stage(context, right)


def _forget_all_but(runnable: Sequence[AnyRunnable], context: Context) -> None:
    """Foresee nothing more of other cases than these, and of groups that have none of them."""
    alive = {name for item in runnable for name in (item.case.name, item.case.group)}
    context.remaining.forget({name for case in context.prepared.cases for name in (case.name, case.group)} - alive)
