"""The wording that the terminal and Markdown share: marks, figures, and the sentences around the tables."""

from __future__ import annotations

import math
from collections.abc import Sequence

from harness.metrics import COMPILE_TIME, INSTRUCTIONS, LATENCY, metric_named
from harness.records.comparison import Comparison, Row, Verdict
from harness.report.comparison.selection import (
    CHANGED,
    LOST,
    MEASURED,
    cases,
    of_metric,
    of_verdict,
    other_figures,
    real_rows,
    violated,
)
from harness.report.titles import UPSTREAM_TITLES
from harness.report.units import NOTHING, PLAIN, Unit, count_unit, ratio_text, time_unit
from harness.stats import CONFIDENCE
from harness.text import one_line

# A mark beside each verdict, so that colour never carries the meaning alone.
MARKS: dict[Verdict, str] = {
    "regressed": "▲",
    "improved": "▼",
    "unchanged": "=",
    "inconclusive": "?",
    "identical": "≡",
    "failed": "✗",
    "missing": "−",  # noqa: RUF001 (a minus sign is as wide as the other marks)
    "new": "+",
}


def marked(verdict: Verdict) -> str:
    """`▲ regressed`."""
    return f"{MARKS[verdict]} {verdict}"


def list_title(metric: str) -> str:
    """What a list of rows of a metric is headed with: `Latencies`."""
    return UPSTREAM_TITLES[metric] if metric in UPSTREAM_TITLES else _title(metric)


def figure_title(metric: str) -> str:
    """What one value of a metric is called: `Median Latency`."""
    if metric == LATENCY.name:
        return "Median Latency"
    return _title(metric)


def _title(metric: str) -> str:
    known = metric_named(metric)
    return one_line(known.title if known is not None else metric)


def unit_of(rows: list[Row]) -> Unit:
    """One unit for both sides of rows of one metric; bytes stay bytes, as in IREE's comments."""
    values = [value for row in rows for value in (row.base_value, row.head_value)]
    kind = rows[0].unit if rows else ""
    if kind == "ns":
        return time_unit(values)
    if kind == "instructions":
        return count_unit(values)
    return Unit(name="bytes", size=1.0, decimals=0) if kind == "bytes" else PLAIN


def quotient(row: Row) -> float | None:
    """Head's value by the base's, as a reader of both would take it; None where there is none."""
    if row.base_value is None or row.head_value is None or row.base_value <= 0:
        return None
    found = row.head_value / row.base_value
    return found if math.isfinite(found) else None


def ratio_with_interval(row: Row) -> str:
    """`1.100 [1.092, 1.109]`; the ratio alone where it has no interval."""
    if row.ratio is None:
        return NOTHING
    if row.ci_low is None or row.ci_high is None:
        return ratio_text(row.ratio)
    return f"{ratio_text(row.ratio)} [{ratio_text(row.ci_low)}, {ratio_text(row.ci_high)}]"


def p_text(p: float | None) -> str:
    """`0.03`, and `2e-4` below a hundredth."""
    if p is None:
        return NOTHING
    if p >= 0.01:
        return f"{p:.2g}"
    if p <= 0:
        return "0"
    digits, exponent = f"{p:.0e}".split("e")
    return f"{digits}e{int(exponent)}"


def interval_title(comparison: Comparison, metric: str) -> str:
    """What the brackets beside a ratio hold: instructions are counted, so theirs span what was counted."""
    if metric == INSTRUCTIONS.name:
        return "all generations"
    return f"{share(_setting(comparison, 'confidence', CONFIDENCE))} interval"


def share(value: float) -> str:
    """`0.05 %`, without digits that are not there."""
    return f"{value * 100:.6g} %"


def budget_s(comparison: Comparison) -> float:
    """Seconds that a row could take; where that is not kept, what the longest open one took."""
    longest = max((row.seconds for row in of_verdict(real_rows(comparison), "inconclusive")), default=0.0)
    return _setting(comparison, "row_budget_s", max(math.ceil(longest), 1))


def headline(comparison: Comparison) -> str:
    """The whole comparison in one sentence: violated gates, then latencies, then everything else."""
    rows = real_rows(comparison)
    parts = [_gates(len(violated(comparison))), _latencies(rows)]
    compiles = _changes(of_metric(rows, COMPILE_TIME.name))
    if compiles:
        parts.append(f"compilation times: {', '.join(compiles)}")
    others = len(of_verdict(other_figures(rows), *CHANGED))
    if others:
        parts.append(f"{count(others, 'other figure')} changed")
    text = "; ".join(part for part in parts if part)
    return f"{text[0].upper()}{text[1:]}."


def _gates(number: int) -> str:
    """Rows are counted, and many may violate one gate."""
    if number > 1:
        return f"gates violated in {number:,} rows"
    return "1 gate violated" if number else ""


def _latencies(rows: Sequence[Row]) -> str:
    timed = of_metric(rows, LATENCY.name)
    lost = [_counted(len(cases(of_verdict(rows, verdict))), verdict) for verdict in LOST]
    rest = [_counted(len(of_verdict(timed, verdict)), verdict) for verdict in ("unchanged", "identical", "new")]
    unsure = [_counted(len(of_verdict(timed, "inconclusive")), "inconclusive")]
    if not of_verdict(timed, *MEASURED, "identical"):
        changes = ["no latency was compared"]
    else:
        changes = _changes(timed) or ["no regression or improvement"]
    return ", ".join(part for part in (*changes, *lost, *unsure, *rest) if part)


def _changes(rows: Sequence[Row]) -> list[str]:
    """`2 regressions (1 within its gate), 1 improvement`, as far as there are any."""
    regressed = of_verdict(rows, "regressed")
    allowed = sum(row.gate == "passed" for row in regressed)
    excuse = f" ({allowed} within {'its gate' if allowed == 1 else 'their gates'})" if allowed else ""
    parts = [f"{count(len(regressed), 'regression')}{excuse}"] if regressed else []
    improved = of_verdict(rows, "improved")
    return [*parts, *([count(len(improved), "improvement")] if improved else [])]


def count(number: int, noun: str) -> str:
    """`1 row`, `2,000 rows`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _counted(number: int, what: str) -> str:
    return f"{number:,} {what}" if number else ""


def _setting(comparison: Comparison, key: str, otherwise: float) -> float:
    value = comparison.settings.get(key)
    known = isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < 1e300
    return float(value) if known else otherwise  # type: ignore[arg-type]
