"""How a section's cases stand to the machine's peaks: the words above its table, and a table of their own."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from harness.ir.roofline import Attained
from harness.records.run import Peak, Work
from harness.report.columns import Column
from harness.report.units import NOTHING
from harness.report.values import Section
from harness.text import one_line


def roofline_line(section: Section) -> str:
    """A call's work and the machine's peaks, in words; "" where neither is known."""
    return "; ".join(part for part in (_work_text(section.work), _peak_text(section.peak)) if part)


def roofline_columns(section: Section) -> list[Column]:
    """Variant and what each reaches; [] where nobody has a figure."""
    found = [row.attained for row in section.rows]
    if not any(found):
        return []
    columns = [
        Column(title="variant", cells=tuple(one_line(section.label(row)) for row in section.rows), number=False),
        _column("arithmetic", "GFLOP/s", found, lambda one: one.operations_per_s / 1e9),
        _column("of the peak", "%", found, lambda one: _percent(one.peak_share)),
        _column("memory", "GB/s", found, lambda one: one.bytes_per_s / 1e9),
        _column("intensity", "FLOP/byte", found, lambda one: one.intensity),
        _column("of the roof", "%", found, lambda one: _percent(one.roof_share)),
    ]
    return [column for column in columns if column is not None]


def _work_text(work: Work | None) -> str:
    if work is None:
        return ""
    if work.failure is not None:
        return f"its arithmetic is not counted: {one_line(work.failure.message)}"
    text = f"{_three_digits(work.operations)}FLOP a call on at least {_three_digits(work.compulsory_bytes)}B"
    if work.uncounted:
        names = (f"{one_line(name)} ({count})" for name, count in work.uncounted.items())
        text += f", without {', '.join(names)}"
    return text


def _peak_text(peak: Peak | None) -> str:
    if peak is None:
        return ""
    where = "one core" if peak.threads == 1 else f"{peak.threads} cores"
    if peak.failure is not None:
        return f"the peaks of {where} are not known: {one_line(peak.failure.message)}"
    if peak.operations_per_s is None or peak.bytes_per_s is None:
        return ""
    return (
        f"{where} of this machine: {_three_digits(peak.operations_per_s)}FLOP/s in f32 "
        f"({one_line(peak.operations_by)}), {_three_digits(peak.bytes_per_s)}B/s ({one_line(peak.bytes_by)})"
    )


def _column(
    title: str, unit: str, found: Sequence[Attained | None], figure: Callable[[Attained], float | None]
) -> Column | None:
    values = [None if one is None else figure(one) for one in found]
    if all(value is None for value in values):
        return None
    return Column(title=title, unit=unit, cells=tuple(NOTHING if one is None else _figure(one) for one in values))


def _percent(share: float | None) -> float | None:
    return None if share is None else 100 * share


def _figure(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _three_digits(value: float) -> str:
    """`2.67 G`: with the prefix of a unit that follows."""
    for size, prefix in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:.3g} {prefix}"
    return f"{value:.3g} "
