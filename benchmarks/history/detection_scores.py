"""What a detector says of a series, held against what was put into it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields

from benchmarks.history.detection_kinds import NEAR, Kind, Truth


@dataclass(frozen=True, kw_only=True)
class Said:
    """One change that a detector reports.

    Attributes:
        end: Last point of a drift; `index` of a step.
        low: First of the points where it may be; `index` where a detector gives no range.
        high: Last of them.
        drift: Whether it is called a drift.
    """

    index: int
    end: int
    low: int
    high: int
    up: bool
    drift: bool = False


@dataclass(frozen=True, kw_only=True)
class Score:
    """Counts over the series of one kind.

    Attributes:
        flagged: Series with any change reported.
        found: Series with every change that is there reported, in the right direction and at most five points off (a
            drift: anywhere along it).
        exact: Changes found whose place is the true one.
        covered: Changes found whose range holds the true place.
        width: Points in the ranges of the changes found, together.
        matched: Changes found.
        drifts: Drifts found that are called drifts.
        more: Series with a change reported where there is none.
    """

    series: int = 0
    flagged: int = 0
    found: int = 0
    exact: int = 0
    covered: int = 0
    width: int = 0
    matched: int = 0
    drifts: int = 0
    more: int = 0

    def __add__(self, other: Score) -> Score:
        return Score(**{one.name: getattr(self, one.name) + getattr(other, one.name) for one in fields(self)})

    def as_counts(self) -> dict[str, int]:
        """For a record."""
        return asdict(self)


def score(kind: Kind, said: Sequence[Said]) -> Score:
    """The score of one series."""
    left = list(said)
    matches: list[tuple[Truth, Said]] = []
    for truth in sorted(kind.truths, key=lambda one: one.last - one.first):  # steps before drifts, which have more room
        near = [one for one in left if _touches(truth, one)]
        if near:
            best = min(near, key=lambda one: abs(one.index - truth.first))
            matches.append((truth, best))
            left.remove(best)
    # A detector of steps shows a drift as several, which is right as far as it can be.
    more = [one for one in left if not any(truth.last > truth.first and _touches(truth, one) for truth in kind.truths)]
    return Score(
        series=1,
        flagged=int(bool(said)),
        found=int(bool(kind.truths) and len(matches) == len(kind.truths)),
        exact=sum(one.index == truth.first for truth, one in matches),
        covered=sum(one.low <= truth.first <= one.high for truth, one in matches),
        width=sum(one.high - one.low + 1 for _, one in matches),
        matched=len(matches),
        drifts=sum(one.drift for truth, one in matches if truth.last > truth.first),
        more=int(bool(more)),
    )


def _touches(truth: Truth, said: Said) -> bool:
    return truth.up == said.up and said.index <= truth.last + NEAR and said.end >= truth.first - NEAR
