"""Where a run's devices are and its work is done: this machine, or a fleet, with the same functions of the stages."""

from __future__ import annotations

import math
import statistics
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import MappingProxyType

from harness.cache import cache_root
from harness.compare.comparison import Plan
from harness.compare.remeasure import RowPlace, ThisMachine
from harness.compile import BuildCache
from harness.compile.request import CompileRequest, cache_key
from harness.errors import HarnessError
from harness.measure.alone import only_one_measures
from harness.models.materialize import ModelArtifact
from harness.progress import Progress, WithTimeLeft, time_left
from harness.records.run import Build, Check, Failure
from harness.stages.build import compile_stage, requests_of, require_cache
from harness.stages.check import lay_out_stage, reference_stage, verify_stage
from harness.stages.context import COMPILE, IR, MEASURE, REFERENCE, VERIFY, Context
from harness.stages.count import ir_stage, kept_counts, peak_stage, work_stage
from harness.stages.measure import call_again_stage, measure_stage
from harness.stages.prepare import DevicePlace
from harness.store.folders import folder_names
from harness.store.run_directory import load_run
from harness.store.work_directory import ComparisonDirectory
from harness.text import plural

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
    context: Context, requests: Sequence[CompileRequest], models: Collection[str], step_s: Mapping[str, float]
) -> tuple[str, dict[str, float | None]]:
    """What a run that begins or goes on has to do, with these models: in a sentence, and the seconds of each stage."""
    options, done, prepared = context.options, context.done, context.prepared
    records: list[Build | Check] = [*done.builds.values(), *done.checks.values()]
    given_up = {record.case for record in records if record.failure is not None} | done.lost
    cases = [case for case in prepared.cases if case.skip is None and case.model in models]
    cases = [case for case in cases if case.name not in given_up]
    own = [case.name for case in cases if case.peer is None]
    by_key: dict[str, list[str]] = {}
    for request in requests:
        by_key.setdefault(cache_key(request), []).append(request.case.name)
    cache = BuildCache(cache_root())
    compiles = {key: names for key, names in by_key.items() if cache.find(key, names[0]) is None}
    sharing, cached = sum(map(len, compiles.values())), len(by_key) - len(compiles)
    uncounted = [key for key in by_key if not kept_counts(key).is_file()] if prepared.suite.ir else []
    checks = set(own if not options.measure else [case.name for case in cases]) - done.checks.keys()
    asked = set(own if context.with_reference else ()) - done.references.keys()
    steps = {
        COMPILE: math.ceil(len(compiles) / options.compilers),
        IR: math.ceil(len(uncounted) / options.compilers),
        VERIFY: len(checks),
        REFERENCE: len(asked),
    }
    if COMPILE in step_s:
        step_s = {**step_s, IR: step_s[COMPILE]}  # which is another compile
    planned_s = {
        stage: number * step_s[stage] if stage in step_s else None for stage, number in steps.items() if number
    }
    timed_s = _timed_s(context, {case.group for case in cases}) if options.measure else 0.0
    planned_s[MEASURE] = timed_s

    remarks = [f"for {sharing:,} cases"] if sharing != len(compiles) else []
    remarks += [f"{cached:,} more {'is' if cached == 1 else 'are'} in the cache"] if cached else []
    parts = [plural(len(compiles), "compile") + (f" ({', '.join(remarks)})" if remarks else "")]
    parts = parts if compiles or remarks else []
    parts += [plural(len(checks), "check")] if checks else []
    parts += [f"{timed_s:.0f} s of timed rounds"] if timed_s else []
    unknown = [f"the {noun}" for stage, noun in _NOUNS.items() if steps[stage] and stage not in step_s]
    why = f"no earlier run here says how long {' and '.join(unknown)} take" if unknown else ""
    left = ", and ".join(filter(None, (time_left(planned_s.values()), why)))
    todo = f"To do: {', '.join(parts) or 'nothing more'}"
    return (f"{todo}; {left}" if left else todo), planned_s


def _timed_s(context: Context, groups: Collection[str]) -> float:
    settings = context.directory.header.settings
    generations = int(settings["generations"])
    share_s = float(settings["budget_s"]) / (generations * max(1, len(groups) + context.prepared.groups_elsewhere))
    had_s = [context.done.generations.get((group, n), (0.0, 0))[0] for group in groups for n in range(generations)]
    return sum(max(share_s - seconds, 0.0) for seconds in had_s)


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
        options, directory = context.options, context.directory
        made = {name: item.sha256 for name, item in artifacts.items() if isinstance(item, ModelArtifact)}
        requests = requests_of(context, artifacts)
        earlier = earlier_steps(options.results, made.values(), directory.path)
        sentence, planned_s = foresee(context, requests, made, earlier)
        context.progress.note(sentence)
        context = replace(context, progress=WithTimeLeft(context.progress, planned_s))
        builds = compile_stage(context, artifacts, requests)
        directory.before_failure = partial(require_cache, directory.path, artifacts, builds)
        ir_stage(context, artifacts, builds)
        if options.measure:
            work_stage(context, artifacts)
        runnable = lay_out_stage(context.prepared, artifacts, builds, scratch, peers=options.measure)
        right = verify_stage(context, runnable, scratch)
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


LOCAL = Executor()
