"""How a comparison came about, in sentences."""

from __future__ import annotations

import math

from harness.metrics import COMPILE_TIME, LATENCY, METRICS
from harness.records.comparison import Comparison, SideFacts
from harness.report.comparison.selection import metrics_of, of_metric, real_rows
from harness.report.comparison.words import share
from harness.text import one_line


def warning(comparison: Comparison) -> str:
    """What keeps recorded numbers from being trusted as far as measured ones; "" where nothing does."""
    if comparison.mode != "recorded" or comparison.within:
        return ""
    hosts = "" if comparison.base.machine == comparison.head.machine else " and on different machines"
    return (
        f"These are recorded numbers, taken at different times{hosts}: whatever else differed between them is in the "
        "ratios too, and nothing was confirmed by measuring again."
    )


def sides_line(comparison: Comparison) -> str:
    """What is compared with what, and how, in one line."""
    toolchains = [_toolchains(side) for side in (comparison.base, comparison.head)]
    versions = toolchains[1] if toolchains[0] == toolchains[1] else f"{toolchains[1]} vs. {toolchains[0]}"
    how = {
        "remeasured": f"both measured side by side on {comparison.machine.description}",
        "recorded": "as the run recorded it" if comparison.within else "as their runs recorded them",
    }[comparison.mode]
    run = f"of run {comparison.head.run}" if comparison.within else ""
    return ", ".join(one_line(part) for part in (run, versions, how) if part)


def reading(comparison: Comparison) -> str:
    """How the two percentages of a row go together."""
    text = "Percentages compare the two medians shown; the ratio decides"
    if comparison.mode == "remeasured" or comparison.within:
        return f"{text}, and is taken between turns that ran side by side."
    return f"{text}, and is that of the generations of two runs."


def rule_line(comparison: Comparison) -> str:
    """When a row counts as changed."""
    if comparison.rule == "upstream":
        return (
            "Rule: upstream. The thresholds of IREE's own old comments, held against one figure a side; no interval "
            "and no p-value decides."
        )
    alpha = comparison.settings.get("alpha")
    level = f", p is at most {alpha:g} after correction for looks and for the number of rows" if _is(alpha) else ""
    again = comparison.settings.get("confirm_alpha")
    confirmed = ", and fresh processes show it again"
    if _is(again):
        confirmed += f" (one-sided p at most {again:g})"
    floors = _floors(comparison)
    beyond = f"the change is larger than the floor ({floors})" if floors else "the change is larger than the floor"
    last = confirmed if comparison.mode == "remeasured" else ""
    return f"Rule: generations. A timed row is changed where {beyond}{level}{last}. Counted figures need no statistics."


def _floors(comparison: Comparison) -> str:
    """`latency 1 %, compile-time 5 %`, by the rows, since a suite may have floors of its own."""
    timed = (LATENCY.name, COMPILE_TIME.name)
    rows = [row for row in real_rows(comparison) if row.floor > 0 and row.metric in timed]
    found = []
    for metric in metrics_of(rows):
        floors = sorted({row.floor for row in of_metric(rows, metric)})
        found.append(f"{METRICS[metric].title.lower()} {' or '.join(share(floor) for floor in floors)}")
    return ", ".join(found)


def _toolchains(side: SideFacts) -> str:
    return f"IREE {' and '.join(side.toolchains)}" if side.toolchains else ""


def _is(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < math.inf
