"""Report -> what a roofline plot shows: a panel for each device, a point for each case that was measured."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from harness.errors import RunError
from harness.records.run import Peak
from harness.report.values import Report
from harness.text import one_line


@dataclass(frozen=True, kw_only=True)
class Point:
    """One measured case.

    Attributes:
        label: Its variant, and its toolchain where there are several; of a peer, the peer's.
        intensity: Operations for each byte of compulsory traffic.
    """

    model: str
    label: str
    peer: bool
    intensity: float
    operations_per_s: float


@dataclass(frozen=True, kw_only=True)
class Roof:
    """What the machine reaches with as many threads as the device has, and which programs reached it."""

    threads: int
    operations_per_s: float
    operations_by: str
    bytes_per_s: float
    bytes_by: str


@dataclass(frozen=True, kw_only=True)
class Panel:
    """One device; `roof` is None where its peak was not measured."""

    device: str
    points: tuple[Point, ...]
    roof: Roof | None


def panels_of(report: Report, where: str, *, keep: Callable[[str], bool] = lambda _: True) -> list[Panel]:
    """What to draw, devices and cases in the plan's order.

    Cases with the module of another one are left out: that one's point is theirs.

    Args:
        where: The run, for error messages.
        keep: Of a case's name, whether the user wants to see it.

    Raises:
        RunError: The run measured nothing, or it counted no work.
    """
    rows = [row for row in report.rows() if row.status == "measured"]
    if not rows:
        raise RunError(f"{where}: nothing was measured, so there is nothing to draw; see harness report {where}")
    if not any(row.attained for row in rows):
        reasons = {section.work.failure.message for section in report.sections if section.work and section.work.failure}
        why = f" ({one_line(min(reasons))})" if reasons else ""
        raise RunError(
            f"{where}: no arithmetic was counted{why}; run its suite again with this harness, or draw its latencies "
            "with --kind variants"
        )
    panels: dict[str, tuple[list[Point], Roof | None]] = {}
    for section in report.sections:
        points, _ = panels.setdefault(section.device, ([], _roof(section.peak)))
        points += [
            Point(
                model=row.model,
                label=section.label(row),
                peer=row.peer is not None,
                intensity=row.attained.intensity,
                operations_per_s=row.attained.operations_per_s,
            )
            for row in section.rows
            if row.status == "measured" and row.attained is not None and keep(row.case)
        ]
    return [
        Panel(device=device, points=tuple(points), roof=roof) for device, (points, roof) in panels.items() if points
    ]


def _roof(peak: Peak | None) -> Roof | None:
    if peak is None or not peak.operations_per_s or not peak.bytes_per_s:
        return None
    return Roof(
        threads=peak.threads,
        operations_per_s=peak.operations_per_s,
        operations_by=peak.operations_by,
        bytes_per_s=peak.bytes_per_s,
        bytes_by=peak.bytes_by,
    )
