"""Regressed rows of a comparison -> what each is made of, as far as a comment has room for it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timezone
from pathlib import Path

from harness.compare.comparison import Plan
from harness.errors import HarnessError, Interrupted
from harness.metrics import LATENCY
from harness.progress import Progress
from harness.records.comparison import Comparison, Explained, Row
from harness.report.explanation_words import short_form
from harness.report.verdicts import largest_first, of_metric, of_verdict, real_rows
from harness.stages.explaining import Terms, explain_pair, keep
from harness.text import plural
from harness.toolchain import Toolchain

# Explaining takes minutes a row, and where many regress one change is behind them.
MOST_ROWS = 5


def explain_regressions(
    comparison: Comparison,
    plan: Plan,
    toolchains: Mapping[str, Toolchain],
    terms: Terms,
    results: Path,
    progress: Progress,
) -> tuple[tuple[Explained, ...], tuple[str, ...]]:
    """Explain the largest regressions of latencies, and keep each explanation beside the comparison."""
    regressed = largest_first(of_verdict(of_metric(real_rows(comparison), LATENCY.name), "regressed"))
    rows = regressed[:MOST_ROWS]
    explained = tuple(_explained(row, plan, toolchains, terms, results, progress) for row in rows)
    left = len(regressed) - len(rows)
    if not left:
        return explained, ()
    more = plural(left, "regression less large", "regressions less large")
    return explained, (f"{more} {'is' if left == 1 else 'are'} not explained; `harness explain` does that",)


def _explained(
    row: Row, plan: Plan, toolchains: Mapping[str, Toolchain], terms: Terms, results: Path, progress: Progress
) -> Explained:
    pair = next(pair for pair in plan.pairs if pair.name == row.case)
    progress.note(f"Explaining the regression of {row.case}")
    try:
        found = explain_pair(
            pair,
            plan.base,
            plan.head,
            toolchains,
            terms,
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
