"""The line on top of a comment, and what to do about it."""

from __future__ import annotations

from harness.errors import ExitCode
from harness.metrics import COMPILE_TIME, LATENCY, TIMED
from harness.records.comparison import Comparison, Row
from harness.report.comparison.markdown_parts import shortened_step
from harness.report.comparison.selection import (
    CHANGED,
    largest_first,
    of_metric,
    of_verdict,
    real_rows,
    violated,
)
from harness.report.comparison.steps import NOTHING_TO_DO, next_steps
from harness.report.comparison.words import count, headline
from harness.report.markdown_text import escape, what_next
from harness.report.outcome import comparison_exit_code
from harness.report.words import Step
from harness.text import one_line


def verdict_line(comparison: Comparison) -> str:
    """The verdict in one line; the mark in front only repeats what the words say."""
    rows = real_rows(comparison)
    said = headline(comparison)
    outcome = comparison_exit_code(comparison, strict=False)
    if outcome is not ExitCode.OK:
        mark = "🚩" if outcome is ExitCode.REGRESSION else "🚨"
        return f"**{mark} Needs attention: {escape(said[0].lower() + said[1:])}**"
    timed = [row for row in rows if row.metric in TIMED]
    if of_verdict(timed, "improved"):
        mark = "🎉"
    elif of_verdict(of_metric(rows, LATENCY.name), "inconclusive"):
        mark = "❔"
    else:
        mark = "ℹ️" if of_verdict(rows, *CHANGED) else "🏖️"  # noqa: RUF001 (the sign that GitHub shows as a mark)
    return f"**{mark} {escape(said)}**"


def advice(comparison: Comparison) -> str:
    """What whoever opened the pull request has to do, one step a line."""
    steps = [*_decisions(comparison), *(step for step in next_steps(comparison) if step.text != NOTHING_TO_DO)]
    steps += _repeat_compile(comparison)
    if not steps:
        if comparison_exit_code(comparison, strict=False) is ExitCode.OK:
            return "No action needed."
        steps = [Step(text="find out why nothing was compared; the notes and lists here have the reasons")]
    return what_next([shortened_step(step) for step in steps])


def _decisions(comparison: Comparison) -> list[Step]:
    """What only people can decide."""
    steps = []
    if any(_is_regression(row) for row in real_rows(comparison)):
        steps.append(Step(text="mend what regressed, or say here why it is worth it"))
    if gates := violated(comparison):
        rows = count(len(gates), "row")
        suite = one_line(comparison.head.suite)
        steps.append(Step(text=f"bring {rows} back within the gates, or move these in {suite}"))
    return steps


def _is_regression(row: Row) -> bool:
    return row.verdict == "regressed" and row.metric in TIMED and row.gate is None


def _repeat_compile(comparison: Comparison) -> list[Step]:
    """The command for the largest regression of compile time, where no latency regressed."""
    rows = [row for row in real_rows(comparison) if row.verdict == "regressed" and row.repro]
    compiles = largest_first(of_metric(rows, COMPILE_TIME.name))
    if not compiles or of_metric(rows, LATENCY.name):
        return []
    worst = compiles[0]
    text = f"repeat the largest regression of a compilation time, {one_line(worst.case)}"
    return [Step(text=text, command=one_line(worst.repro[0]))]
