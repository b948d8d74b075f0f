"""What to do about what a comparison says."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence

from harness.metrics import LATENCY
from harness.records.comparison import Comparison, Row
from harness.report.comparison.selection import (
    CHANGED,
    controls,
    largest_first,
    of_metric,
    of_verdict,
    real_rows,
    violated,
)
from harness.report.comparison.words import budget_s, count
from harness.report.words import Step
from harness.text import one_line

NOTHING_TO_DO = "nothing needs doing"
_BUDGET = "--row-budget"
# As rows say it that had no room for enough generations.
_TAKES = re.compile(r"they take (\d{1,9}) s\b")


def next_steps(comparison: Comparison) -> list[Step]:
    """One step each for regressions, failures and open rows; one that says so where nothing has to be done."""
    rows = real_rows(comparison)
    steps = []
    regressed = largest_first(of_verdict(of_metric(rows, LATENCY.name), "regressed"))
    regressed.sort(key=lambda row: row.gate == "passed")  # what a gate allows is nobody's first concern
    if regressed:
        worst = regressed[0]
        if worst.repro:  # the first line repeats the row; those after it say what was compiled
            text = f"repeat the largest regression, {one_line(worst.case)}"
            steps.append(Step(text=text, command=one_line(worst.repro[0])))
    if of_verdict(rows, "failed"):
        steps.append(Step(text="see what the tools said of the failed rows"))
    if of_verdict(rows, "missing"):
        steps.append(Step(text="find out why rows are missing: what the base has, the head should have too"))
    if of_verdict(of_metric(rows, LATENCY.name), "inconclusive"):
        steps.append(_more_time(comparison))
    if of_verdict(controls(comparison), *CHANGED):
        suite = shlex.quote(one_line(comparison.head.suite))
        steps.append(Step(text="find out how often this machine is wrong", command=f"harness selfcheck {suite}"))
    changed = of_verdict(rows, *CHANGED) or violated(comparison)
    if not steps and not changed and of_verdict(rows, "unchanged", "identical"):
        steps.append(Step(text=NOTHING_TO_DO))
    return steps


def full_report(comparison: Comparison, left_out: Sequence[str]) -> Step:
    """Where everything is that a comment has no room for."""
    text = f"what this comment leaves out ({', '.join(left_out)})"
    return Step(text=text, command=full_report_command(comparison))


def full_report_command(comparison: Comparison) -> str:
    """Prints every row; a comparison that was not kept is made again, from what was recorded."""
    if comparison.id:
        path = shlex.quote(f"results/{one_line(comparison.id)}")
        return f"harness report {path} --format markdown --full"
    command = shlex.join(one_line(word) for word in comparison.command)
    return f"{command} --format markdown --full" if command else ""


def _more_time(comparison: Comparison) -> Step:
    rows = of_verdict(of_metric(real_rows(comparison), LATENCY.name), "inconclusive")
    command = [one_line(word) for word in comparison.command]
    what = f"decide {count(len(rows), 'inconclusive row')}"
    if comparison.mode == "recorded":
        measured = [word for word in command if word != "--no-remeasure"]
        return Step(text=f"{what} by measuring both sides again, side by side", command=shlex.join(measured))
    doubled_s = 2 * budget_s(comparison)
    needed_s = max((_needed_s(row) for row in rows), default=0.0)
    time = "twice the time" if needed_s <= doubled_s else "the time that they need"
    longer = shlex.join([*_without_budget(command), _BUDGET, f"{max(doubled_s, needed_s):.10g}"]) if command else ""
    return Step(text=f"{what} with {time}", command=longer)


def _needed_s(row: Row) -> float:
    """What the row says that it takes; 0 where it says nothing."""
    told = _TAKES.search(row.reason)
    return float(told[1]) if told else 0.0


def _without_budget(command: list[str]) -> list[str]:
    kept = [word for word in command if not word.startswith(f"{_BUDGET}=")]
    while _BUDGET in kept:
        at = kept.index(_BUDGET)
        del kept[at : at + 2]
    return kept
