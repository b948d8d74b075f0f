"""Points of a series and its changes -> what a timeline shows; plain values, so that it can be built from anything."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from harness.history.verdicts import Cause
from harness.metrics import metric_named
from harness.report.comparison.words import figure_title
from harness.report.forest import Tone
from harness.report.names import tidy
from harness.report.units import Unit, byte_unit, count_unit, percent, time_unit

if TYPE_CHECKING:
    import pandas as pd

    from harness.stats.change_points import ChangePoint

_RATIO = Unit(name="", size=1.0, decimals=4)
# A lone value further from the middle half of them than this many times what that spans is drawn at the edge.
_OUTLYING = 8.0
# So many changes are told in words.
_MOST_TOLD = 6


@dataclass(frozen=True, kw_only=True)
class Moment:
    """One run's figure, in the timeline's unit; `low` and `high` are `value` where it has no interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, kw_only=True)
class Shift:
    """A step or a drift.

    Attributes:
        at: The first run of the new level, counted from 0.
        earliest: First of the runs that may be it (95 % range).
        latest: Last of them.
        end: Last run of a drift; `at` for a step.
        before: Level before it.
        text: By how much: `+5.1 %`.
        cause: Whose it is; "" where nobody asked.
    """

    drift: bool
    at: int
    earliest: int
    latest: int
    end: int
    before: float
    after: float
    tone: Tone
    text: str
    cause: Cause | Literal[""]


@dataclass(frozen=True, kw_only=True)
class Timeline:
    """One series, run by run.

    Attributes:
        days: When each run was started.
        moments: Of each run.
        reference: What a fixed toolchain took in the same runs; None where it has no figure.
        toolchains: Where another toolchain, or another build of it, begins: the run and its name.
        limits: Of the axis of values.
        band: What lies between low and high; "" where no run has both.
        story: The changes in words, one a line.
    """

    title: str
    verdict: str
    method: str
    axis: str
    days: tuple[str, ...]
    moments: tuple[Moment, ...]
    reference: tuple[float | None, ...]
    shifts: tuple[Shift, ...]
    toolchains: tuple[tuple[int, str], ...]
    limits: tuple[float, float]
    band: str
    story: tuple[str, ...]


def timeline_of(
    points: pd.DataFrame,
    changes: Sequence[ChangePoint],
    reference: pd.DataFrame | None = None,
    causes: Sequence[Cause] = (),
) -> Timeline:
    """What to draw of a series.

    Args:
        points: In time order, at least one; the columns of harness.history.values.Point.
        changes: As harness.stats.change_points found them in these points.
        reference: Points of the same case under a fixed toolchain; those of other runs are left out.
        causes: Whose each of the changes is; () where nobody asked.
    """
    rows: list[dict[str, Any]] = points.to_dict("records")  # type: ignore[assignment]  # its keys are column names
    unit = _unit(str(rows[0]["unit"]), [float(row["value"]) for row in rows])
    moments = tuple(_moment(row, unit.size) for row in rows)
    known = {} if reference is None else dict(zip(reference["run"], reference["value"], strict=True))
    beside = tuple(_known(known.get(row["run"]), unit.size) for row in rows)
    metric = str(rows[0]["metric"])
    shifts = tuple(
        _shift(change, unit.size, metric, cause or "") for change, cause in itertools.zip_longest(changes, causes)
    )
    first, last = str(rows[0]["started"])[:10], str(rows[-1]["started"])[:10]
    period = f"on {first}" if first == last else f"from {first} to {last}"
    number = f"{len(rows):,} run{'' if len(rows) == 1 else 's'}"
    return Timeline(
        title=f"{tidy(str(rows[-1]['case']))}: {tidy(figure_title(metric)).lower()}",
        verdict=_verdict(shifts, number),
        method=tidy(f"{rows[-1]['suite']}, {number} {period}, {rows[-1]['machine_class']}"),
        axis=f"{tidy(figure_title(metric)).lower()}{f', {unit.name}' if unit.name else ''}",
        days=tuple(tidy(str(row["started"]))[:16].replace("T", " ") for row in rows),
        moments=moments,
        reference=beside,
        shifts=shifts,
        toolchains=_toolchains(rows),
        limits=_limits(moments, beside, shifts),
        band=_band(str(rows[0]["unit"])) if any(moment.low < moment.high for moment in moments) else "",
        story=_story(shifts, rows, unit),
    )


def _unit(kind: str, values: Sequence[float]) -> Unit:
    choose = {"ns": time_unit, "bytes": byte_unit, "instructions": count_unit, "count": count_unit}.get(kind)
    return _RATIO if choose is None else choose(values)


def _band(kind: str) -> str:
    return "the 95 % interval" if kind == "ratio" else "from each run's lowest generation to its highest"


def _moment(row: dict[str, Any], size: float) -> Moment:
    value = float(row["value"]) / size
    low, high = _known(row.get("low"), size), _known(row.get("high"), size)
    return Moment(value=value, low=value if low is None else low, high=value if high is None else high)


def _known(value: Any, size: float) -> float | None:
    """A figure that may be None or NaN, as a table has it."""
    found = math.nan if value is None else float(value)
    return found / size if math.isfinite(found) else None


def _shift(change: ChangePoint, size: float, metric: str, cause: Cause | Literal[""]) -> Shift:
    """Smaller is better in all metrics."""
    exact = (known := metric_named(metric)) is not None and known.exact
    text = percent(change.ratio, decimals=1) if math.isfinite(change.ratio) else "from nothing"
    return Shift(
        drift=change.kind == "drift",
        at=change.index,
        earliest=change.low,
        latest=change.high,
        end=change.end,
        before=change.before / size,
        after=change.after / size,
        tone="worse" if change.after > change.before else "better",
        text=f"{text} ({(change.after - change.before) / size:+,.6g})" if exact else text,
        cause=cause,
    )


def _toolchains(rows: Sequence[dict[str, Any]]) -> tuple[tuple[int, str], ...]:
    """Every run whose toolchain is not the one before's; the revision is named where the release stays the same."""
    found: list[tuple[int, str]] = []
    before = ("", "")
    for number, row in enumerate(rows):
        now = tidy(str(row.get("toolchain") or "")), tidy(str(row.get("revision") or ""))
        if now != before and now[0]:
            found.append((number, now[0] if now[0] != before[0] else now[1][:8] or now[0]))
        before = now
    return tuple(found)


def _limits(
    moments: Sequence[Moment], reference: Sequence[float | None], shifts: Sequence[Shift]
) -> tuple[float, float]:
    """Room for all values but lone ones far from the others, and for every level."""
    values = [moment.value for moment in moments] + [value for value in reference if value is not None]
    first, middle, third = (float(value) for value in np.percentile(values, [25, 50, 75]))
    reach = _OUTLYING * max(third - first, 0.01 * abs(middle), 1e-9)
    bottom = max(min([*values, *(moment.low for moment in moments)]), first - reach)
    top = min(max([*values, *(moment.high for moment in moments)]), third + reach)
    levels = [level for shift in shifts for level in (shift.before, shift.after)]
    bottom, top = min([bottom, *levels]), max([top, *levels])
    room = 0.08 * max(top - bottom, 0.02 * abs(top), 1e-9)
    return bottom - room, top + room


def _verdict(shifts: Sequence[Shift], number: str) -> str:
    if not shifts:
        return f"No step or drift in {number}."
    kinds = [("step", sum(not shift.drift for shift in shifts)), ("drift", sum(shift.drift for shift in shifts))]
    counts = [f"{count} {kind}{'' if count == 1 else 's'}" for kind, count in kinds if count]
    return f"{' and '.join(counts)} in {number}."


def _story(shifts: Sequence[Shift], rows: Sequence[dict[str, Any]], unit: Unit) -> tuple[str, ...]:
    """The latest changes first."""

    def day(number: int) -> str:
        return tidy(str(rows[min(max(number, 0), len(rows) - 1)]["started"]))[:10]

    lines = []
    for shift in list(reversed(shifts))[:_MOST_TOLD]:
        name = f" {unit.name}" if unit.name else ""
        levels = f"{unit.text(shift.before * unit.size)} to {unit.text(shift.after * unit.size)}{name}"
        when = f"drifting from {day(shift.at)} to {day(shift.end)}" if shift.drift else f"from {day(shift.at)} on"
        run = tidy(str(rows[min(shift.at, len(rows) - 1)]["run"]))
        ends = f"{day(shift.earliest)} to {day(shift.latest)}"
        mark = "▲" if shift.tone == "worse" else "▼"
        whose = f"; cause: {shift.cause}" if shift.cause else ""
        lines.append(f"{mark} {shift.text}, {levels}, {when} (first in run {run}; 95 % range {ends}){whose}.")
    if len(shifts) > _MOST_TOLD:
        lines.append(f"And {len(shifts) - _MOST_TOLD} more before.")
    return tuple(lines)
