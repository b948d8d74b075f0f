"""The line of `harness compare`: two sides -> a plan -> rows, measured or recorded -> a comparison in its directory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timezone
from functools import partial
from pathlib import Path

from harness.cache import cache_root
from harness.compare.comparison import Plan, conclude, plan_comparison, recorded
from harness.compare.engine import STOPPED
from harness.compare.options import CompareOptions
from harness.compare.pairs import Side
from harness.compare.remeasure import Bench as RowBench
from harness.compare.remeasure import StoppedWithRows, remeasure
from harness.compare.samplers import MeasurementPolicy
from harness.errors import HarnessError, Interrupted, RunError
from harness.metrics import LATENCY
from harness.process import Limits
from harness.progress import Progress
from harness.records.comparison import Comparison, Explained, Row
from harness.report import render
from harness.report.comparison import json_document
from harness.report.explanation_words import short_form
from harness.report.verdicts import largest_first, of_metric, of_verdict, real_rows
from harness.stages.explaining import explain_pair, keep
from harness.stages.options import compile_limits
from harness.stages.side_runs import SidesUnderway, begun_options
from harness.store.files import adapter
from harness.store.sides_directory import ComparisonDirectory
from harness.text import plural
from harness.toolchain import Toolchain

# Options of a comparison that goes on; all others are those that it was begun with.
_ANEW = ("resume", "results", "wait", "fleet", "certificates", "trust_network", "quiet", "verbose")


def going_on(folder: ComparisonDirectory, options: CompareOptions) -> CompareOptions:
    """The options of a comparison that goes on."""
    begun = begun_options(folder, options, _ANEW)
    if options.fleet is not None and begun.fleet is None:
        raise RunError(f"{folder.path}: one machine measured it; go on there, without --fleet")
    return replace(
        begun,
        wait=options.wait,
        fleet=options.fleet or begun.fleet,  # its scheduler may be elsewhere now
        certificates=options.certificates or begun.certificates,
        trust_network=options.trust_network or begun.trust_network,
        quiet=options.quiet,
        verbose=options.verbose,
        results=folder.path.parent,
    )


class InterruptedComparison(Interrupted):
    """The user stopped a comparison; `comparison` says what there is of it."""

    def __init__(self, message: str, comparison: Comparison) -> None:
        super().__init__(message)
        self.comparison = comparison


class Underway(SidesUnderway[ComparisonDirectory]):
    """A comparison from its first side to its last row; its folder is made as soon as there is something to keep."""

    def _new_folder(self, suite: str) -> ComparisonDirectory:
        options = replace(self.options, sides=self._sides, toolchains=()) if self._sides else self.options
        begun = self._begun(adapter(CompareOptions).dump_python(options, mode="json"))
        kept = begun if self.options.remeasure else None
        return ComparisonDirectory.create(self.options.results, suite, self.created, kept)


def compare_sides(
    base: Side,
    head: Side,
    toolchains: Mapping[str, Toolchain],
    underway: Underway,
    progress: Progress,
) -> tuple[Comparison, Path]:
    """Compare two sides, and keep the comparison; within a run, both sides are that run."""
    options = underway.options
    limits = compile_limits(options.compile_timeout_s)
    if underway.bench.address:  # each host has a limit of its own, of its own memory
        limits = replace(limits, memory_bytes=None)
    plan = plan_comparison(base, head, options)
    concluded = partial(
        conclude,
        plan,
        environment=underway.environment,
        created=underway.created.isoformat(timespec="seconds"),
        command=underway.command,
    )
    directory = underway.folder(head.run.header.suite_name)
    if options.remeasure:
        place = underway.bench.rows(plan, directory, progress, underway.noise)
        bench = RowBench(
            place=place,
            toolchains=toolchains,
            cache=cache_root(),
            directory=directory,
            progress=progress,
            memory_bytes=limits.memory_bytes,
        )
        try:
            rows = remeasure(plan, bench)
        except StoppedWithRows as stopped:
            raise _interrupted(concluded(stopped.rows, hosts=place.hosts), underway.how_to_go_on) from None
        concluded = partial(concluded, hosts=place.hosts)
    else:
        rows = recorded(plan)
    comparison = concluded(rows, name=directory.path.name)
    if options.explain:
        comparison = _with_explanations(comparison, plan, toolchains, underway, progress, limits)
    directory.finish(json_document(comparison), render(comparison, "markdown", full=True), comparison)
    return comparison, directory.path


def _with_explanations(
    comparison: Comparison,
    plan: Plan,
    toolchains: Mapping[str, Toolchain],
    underway: Underway,
    progress: Progress,
    limits: Limits,
) -> Comparison:
    options = underway.options
    policy = MeasurementPolicy(
        rule=plan.rules[LATENCY.name],
        budget_s=options.explain_budget,
        cap_s=options.row_cap,
        seed=options.seed,
        call_limit_s=options.call_timeout_s,
        limits=limits,
        noise=underway.noise,
        wait=options.wait,
    )
    try:
        explained, notes = explain_regressions(comparison, plan, toolchains, policy, options.results, progress)
    except KeyboardInterrupt:
        note = "Interrupted before every regression was explained"
        unexplained = replace(comparison, id="", notes=(note, *comparison.notes))
        raise InterruptedComparison(underway.how_to_go_on, unexplained) from None
    return replace(comparison, explained=explained, notes=(*comparison.notes, *notes))


def _interrupted(comparison: Comparison, message: str) -> InterruptedComparison:
    number = sum(row.reason.startswith(STOPPED) for row in comparison.rows)
    note = f"Interrupted: {plural(number, 'row is', 'rows are')} not decided yet"
    return InterruptedComparison(message, replace(comparison, notes=(note, *comparison.notes)))


# --- Regressed rows of a comparison -> what each is made of, as far as a comment has room for it ---


# Explaining takes minutes a row, and where many regress one change is behind them.
MOST_ROWS = 5


def explain_regressions(
    comparison: Comparison,
    plan: Plan,
    toolchains: Mapping[str, Toolchain],
    policy: MeasurementPolicy,
    results: Path,
    progress: Progress,
) -> tuple[tuple[Explained, ...], tuple[str, ...]]:
    """Explain the largest regressions of latencies, and keep each explanation beside the comparison."""
    regressed = largest_first(of_verdict(of_metric(real_rows(comparison), LATENCY.name), "regressed"))
    rows = regressed[:MOST_ROWS]
    explained = tuple(_explained(row, plan, toolchains, policy, results, progress) for row in rows)
    left = len(regressed) - len(rows)
    if not left:
        return explained, ()
    more = plural(left, "regression less large", "regressions less large")
    return explained, (f"{more} {'is' if left == 1 else 'are'} not explained; `harness explain` does that",)


def _explained(
    row: Row,
    plan: Plan,
    toolchains: Mapping[str, Toolchain],
    policy: MeasurementPolicy,
    results: Path,
    progress: Progress,
) -> Explained:
    pair = next(pair for pair in plan.pairs if pair.name == row.case)
    progress.note(f"Explaining the regression of {row.case}")
    try:
        found = explain_pair(
            pair,
            plan.base,
            plan.head,
            toolchains,
            policy,
            progress,
            within=plan.within,
            created=datetime.now(timezone.utc),
        )
        if found.is_stopped:
            raise KeyboardInterrupt
        explanation, _ = keep(found.explanation, results, plan.head.run.header.suite_name)
    except Interrupted:
        raise
    except HarnessError as error:
        progress.note(f"{row.case} cannot be explained: {error}")
        return Explained(case=row.case, explanation="", sentence=f"It cannot be explained: {error}.")
    return short_form(explanation)
