"""Report -> what the memory plot shows: what each variant takes in time and memory, and which of them none beats."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from harness.report.names import tidy
from harness.report.units import Unit, byte_unit, time_unit
from harness.report.values import Report, Row, Section

USUAL_PANELS = 8


@dataclass(frozen=True, kw_only=True)
class MemoryPoint:
    """One variant.

    Attributes:
        latency_ns: Median over generations.
        on_front: Whether no other is as good in both and better in one.
    """

    label: str
    memory_bytes: float
    latency_ns: float
    baseline: bool
    on_front: bool = False


@dataclass(frozen=True, kw_only=True)
class MemoryPanel:
    """One model on one device.

    Attributes:
        memory: Which memory it is, in words.
        rest: Variants without a point, in words; "" where every one has.
    """

    title: str
    memory: str
    memory_unit: Unit
    time_unit: Unit
    points: tuple[MemoryPoint, ...]
    rest: str


def memory_panels(report: Report, *, keep: Callable[[str], bool] = lambda _: True) -> list[MemoryPanel]:
    """What to draw, in the report's order; models whose variants all take the same memory are left out.

    Memory is what the program's schedule takes beside its arguments and results, as iree-compile states it; where
    that is not known of all variants, the peak of the device's allocator in one process of iree-benchmark-module.

    Args:
        keep: Of a case's name, whether the user wants to see it.
    """
    found = (_panel(section, [row for row in section.rows if keep(row.case)]) for section in report.sections)
    return [panel for panel in found if panel is not None]


def _panel(section: Section, rows: Sequence[Row]) -> MemoryPanel | None:
    measured = [row for row in rows if row.status == "measured" and row.latency_ns is not None and row.peer is None]
    stated = all(row.transient_bytes is not None for row in measured)
    points = [
        MemoryPoint(
            label=tidy(section.label(row)),
            memory_bytes=float(memory),
            latency_ns=row.latency_ns,
            baseline=row.baseline,
        )
        for row in measured
        if (memory := row.transient_bytes if stated else row.device_peak_bytes) is not None
        and row.latency_ns is not None
    ]
    if len({point.memory_bytes for point in points}) < 2:
        return None
    others = len(rows) - len(points)
    return MemoryPanel(
        title=f"{tidy(section.model)} @ {tidy(section.device)}",
        memory="transient memory" if stated else "peak device memory",
        memory_unit=byte_unit([point.memory_bytes for point in points]),
        time_unit=time_unit([point.latency_ns for point in points]),
        points=tuple(with_front(points)),
        rest=f"{others} without a point" if others else "",
    )


def with_front(points: Sequence[MemoryPoint]) -> list[MemoryPoint]:
    """The points, with those marked that make the Pareto front: less of one costs more of the other."""
    return [replace(point, on_front=not any(_beats(other, point) for other in points)) for point in points]


def _beats(one: MemoryPoint, other: MemoryPoint) -> bool:
    ones, others = (one.memory_bytes, one.latency_ns), (other.memory_bytes, other.latency_ns)
    return ones != others and ones[0] <= others[0] and ones[1] <= others[1]
