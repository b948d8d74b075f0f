"""What a change in a series is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, kw_only=True)
class ChangePoint:
    """A lasting change in a series.

    Attributes:
        kind: A step is there from one point to the next, a drift goes on over ten points or more.
        index: The first point of the new level; of a drift, the first that has left the old one.
        low: First of the points that may be `index` (95 % range).
        high: Last of them.
        end: Last point of a drift; `index` for a step.
        before: Level before it, in the series' unit: the median of up to 30 points since the change before.
        after: Level after it, likewise up to the next change; of a drift, at its end.
        p: How often noise alone would show as much anywhere in a series of this length; 0 for exact values.
    """

    kind: Literal["step", "drift"]
    index: int
    low: int
    high: int
    end: int
    before: float
    after: float
    p: float

    @property
    def ratio(self) -> float:
        """The level after it, divided by that before it; infinite where that was 0."""
        return self.after / self.before if self.before else float("inf")
