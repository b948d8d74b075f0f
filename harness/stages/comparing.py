"""The line of `harness compare`: two sides -> a plan -> rows, measured or recorded -> a comparison in its directory."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

from harness.compare.comparison import Plan, conclude, plan_comparison, recorded
from harness.compare.engine import STOPPED
from harness.compare.options import CompareOptions
from harness.compare.pairs import Side
from harness.compare.remeasure import RowBench, remeasure
from harness.compare.sides import remarks_on
from harness.errors import HarnessError, Interrupted, RunError
from harness.metrics import LATENCY
from harness.records.comparison import Comparison, Explained, Row
from harness.records.run import ToolchainRecord
from harness.report import render
from harness.report.comparison import real_rows
from harness.report.data import document_of
from harness.report.explanation_page import short_form
from harness.stages.explaining import AskedPair, explain_and_keep
from harness.stages.options import compile_limits
from harness.stages.session import SidesSession, going_on, policy_of
from harness.store.work_directory import ComparisonDirectory
from harness.text import plural
from harness.toolchain import Toolchain

_ON_FLEET = ("fleet", "certificates", "trust_network")  # The fleet's scheduler may be elsewhere now


class InterruptedComparison(Interrupted):
    """The user stopped a comparison; `comparison` says what there is of it."""

    def __init__(self, message: str, comparison: Comparison) -> None:
        super().__init__(message)
        self.comparison = comparison


class ComparisonSession(SidesSession[CompareOptions, ComparisonDirectory]):
    """A comparison from its first side to its last row."""

    directory = ComparisonDirectory


def begun_comparison(options: CompareOptions) -> tuple[CompareOptions, ComparisonDirectory | None]:
    """The options of a comparison that goes on with --resume, and its folder; None: it begins."""
    going, folder = going_on(ComparisonDirectory, options, if_given=_ON_FLEET)
    if folder is not None and options.fleet is not None and not folder.begun.options.get("fleet"):
        raise RunError(f"{folder.path}: one machine measured it; go on there, without --fleet")
    return going, folder


def compare_sides(
    base: Side, head: Side, toolchains: Mapping[ToolchainRecord, Toolchain], session: ComparisonSession
) -> tuple[Comparison, Path]:
    """Compare two sides, and keep the comparison; within a run, both sides are that run."""
    options, progress = session.options, session.progress
    limits = compile_limits(options.compile_timeout_s)
    if session.executor.address:  # each host has a limit of its own, of its own memory
        limits = replace(limits, memory_bytes=None)
    plan = plan_comparison(base, head, options)
    concluded = partial(
        conclude,
        plan,
        environment=session.environment,
        created=session.created.isoformat(timespec="seconds"),
        command=session.command,
        remarks=remarks_on((base, head), toolchains),
    )
    directory = session.folder(head.run.header.suite_name)
    if options.remeasure:
        place = session.executor.rows(plan, directory, progress, session.noise)
        bench = RowBench(place=place, toolchains=toolchains, directory=directory, progress=progress, limits=limits)
        rows, is_stopped = remeasure(plan, bench)
        concluded = partial(concluded, hosts=place.hosts)
        if is_stopped:
            number = sum(row.reason.startswith(STOPPED) for row in rows)
            note = f"Interrupted: {plural(number, 'row is', 'rows are')} not decided yet"
            raise _interrupted(session, concluded(rows), note)
    else:
        rows = recorded(plan)
    comparison = concluded(rows, name=directory.path.name)
    if options.explain:
        try:
            explained, notes = explain_regressions(comparison, plan, toolchains, session)
        except KeyboardInterrupt:
            note = "Interrupted before every regression was explained"
            raise _interrupted(session, replace(comparison, id=""), note) from None
        comparison = replace(comparison, explained=explained, notes=(*comparison.notes, *notes))
    directory.finish(document_of(comparison), render(comparison, "markdown", full=True), comparison)
    return comparison, directory.path


def _interrupted(session: ComparisonSession, comparison: Comparison, note: str) -> InterruptedComparison:
    return InterruptedComparison(session.how_to_go_on, replace(comparison, notes=(note, *comparison.notes)))


# --- Regressed rows of a comparison -> what each is made of, as far as a comment has room for it ---


# Explaining takes minutes a row, and where many regress one change is behind them.
MOST_ROWS = 5


def explain_regressions(
    comparison: Comparison, plan: Plan, toolchains: Mapping[ToolchainRecord, Toolchain], session: ComparisonSession
) -> tuple[tuple[Explained, ...], tuple[str, ...]]:
    """Explain the largest regressions of latencies, and keep each explanation beside the comparison; and notes."""
    regressed = real_rows(comparison).metric(LATENCY.name).of("regressed").largest_first()
    explained = tuple(_explained(row, plan, toolchains, session) for row in regressed[:MOST_ROWS])
    left = len(regressed) - len(explained)
    if not left:
        return explained, ()
    more = plural(left, "regression less large is", "regressions less large are")
    return explained, (f"{more} not explained; `harness explain` does that",)


def _explained(
    row: Row, plan: Plan, toolchains: Mapping[ToolchainRecord, Toolchain], session: ComparisonSession
) -> Explained:
    pair = next(pair for pair in plan.pairs if pair.name == row.case)
    options, rule = session.options, plan.rules[LATENCY.name]
    session.progress.note(f"Explaining the regression of {row.case}")
    try:
        policy = policy_of(options, rule, budget_s=options.explain_budget, cap_s=options.row_cap, noise=session.noise)
        asked = AskedPair(pair=pair, base=plan.base, head=plan.head, within=plan.within)
        explanation, _ = explain_and_keep(asked, toolchains, policy, session.progress, options.results)
    except Interrupted:
        raise
    except HarnessError as error:
        session.progress.note(f"{row.case} cannot be explained: {error}")
        return Explained(case=row.case, explanation="", sentence=f"It cannot be explained: {error}.")
    return short_form(explanation)
