"""What a forest plot shows, as values: ratios with their intervals, row by row; drawn by pictures and by plain text."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar

from harness.report.comparison.words import share
from harness.report.names import tidy
from harness.report.ratio_axis import Extent, RatioAxis, ratio_axis

# What a row says, whatever it is called there: how it is marked and coloured.
Tone = Literal["worse", "better", "same", "open", "lost"]
TONES: tuple[Tone, ...] = ("worse", "better", "same", "open", "lost")

# Rows that a reader takes in at one sight, and that a picture in a comment has room for.
USUAL_ROWS = 30
# Of rows without a ratio: lists of failures are elsewhere, and should not push out what can be drawn.
_MOST_LOST = 5

_T = TypeVar("_T")


@dataclass(frozen=True, kw_only=True)
class ForestRow:
    """One ratio.

    Attributes:
        word: What it is called: a comparison's verdict, or `faster` and its like.
        ratio: None where it has none; `beyond` then says at which end it would lie.
        low: Lower end of its interval; None: no interval, as of figures that are counted.
        exact: Whether it is counted, and needs no interval.
        floor: Relative change below which it is not called changed.
        remark: What else is to be known of it, in two words; "" mostly.
        peer: Whether another engine's time is divided by IREE's.
        beyond: Nothing became something or the other way round: no ratio on the axis is large or small enough.
        figure: The ratio in digits, or why there is none.
        values: Both values in the block's unit.
    """

    label: str
    word: str
    tone: Tone
    ratio: float | None
    low: float | None
    high: float | None
    floor: float
    figure: str
    values: str
    remark: str = ""
    peer: bool = False
    exact: bool = False
    beyond: Literal["left", "right"] | None = None


@dataclass(frozen=True, kw_only=True)
class ForestGroup:
    """Rows of one model on one device; `title` is "" where a row's label says it all."""

    title: str
    rows: tuple[ForestRow, ...]


@dataclass(frozen=True, kw_only=True)
class ForestBlock:
    """Rows of one metric, which share an axis.

    Attributes:
        interval: What the brackets hold: `95 % interval`; "" where no row has any.
        values: What the two values are, with their unit: `base → head, ms`; "" where no row has any.
        ends: What it means to lie to the left of 1, and to the right.
    """

    title: str
    interval: str
    values: str
    ends: tuple[str, str]
    groups: tuple[ForestGroup, ...]

    @property
    def rows(self) -> tuple[ForestRow, ...]:
        """Of all groups."""
        return tuple(row for group in self.groups for row in group.rows)

    @property
    def floors(self) -> tuple[float, ...]:
        """The different floors of its rows, the smallest first."""
        return tuple(sorted({row.floor for row in self.rows if row.ratio is not None}))

    def axis(self, most_ticks: int = 7) -> RatioAxis:
        """One that serves most of its rows."""
        extents = [Extent(ratio=row.ratio, low=row.low, high=row.high) for row in self.rows if row.ratio is not None]
        return ratio_axis(extents, max(self.floors, default=0.0), most_ticks=most_ticks)


@dataclass(frozen=True, kw_only=True)
class Forest:
    """All of it.

    Attributes:
        title: What is compared with what.
        verdict: The outcome in one sentence.
        method: How it was measured.
        rest: What is not drawn, in words; "" where everything is.
    """

    title: str
    verdict: str
    method: str
    blocks: tuple[ForestBlock, ...]
    rest: str

    def rows(self) -> Iterator[ForestRow]:
        """Of all blocks."""
        return (row for block in self.blocks for row in block.rows)

    @property
    def has_ratios(self) -> bool:
        """Whether there is anything to draw."""
        return any(row.ratio is not None or row.beyond is not None for row in self.rows())


def rest_text(counts: dict[str, int]) -> str:
    """`Not drawn: 12 unchanged, 6 identical.`; "" where every row is."""
    parts = [f"{number:,} {word}" for word, number in counts.items() if number]
    return f"Not drawn: {', '.join(parts)}." if parts else ""


def floors_text(floors: Sequence[float]) -> str:
    """`1 %`, `1 % or 5 %`, and of many the smallest and the largest; "" where none is above 0."""
    found = sorted({floor for floor in floors if floor > 0})
    if len(found) > 2:
        return f"{share(found[0])} to {share(found[-1])}"
    return " or ".join(share(floor) for floor in found)


def without_most_lost(rows: Sequence[_T], is_lost: Callable[[_T], bool]) -> list[_T]:
    """The rows in their order, with the first few of those that failed or are missing."""
    left_out = set([index for index, row in enumerate(rows) if is_lost(row)][_MOST_LOST:])
    return [row for index, row in enumerate(rows) if index not in left_out]


def grouped(rows: Sequence[_T], place: Callable[[_T], tuple[str, str]]) -> list[tuple[str, list[_T]]]:
    """Rows by model and device, each under its title; all under none where most would stand alone.

    Args:
        place: Of a row, its model and its device.
    """
    groups: dict[tuple[str, str], list[_T]] = {}
    for row in rows:
        groups.setdefault(place(row), []).append(row)
    if len(rows) < 2 * len(groups):
        return [("", list(rows))]
    return [(f"{tidy(model)} @ {tidy(device)}", group) for (model, device), group in groups.items()]
