"""An axis of ratios: how far it reaches, and where its ticks are. Equal steps on it are equal factors."""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

# The axis reaches so many times as far as the ratio that a quarter of the rows lie beyond: one ratio of 50 should not
# press all others into a line. What lies outside is drawn as an arrow at the edge, with its figure beside it.
_REACH = 4.0
_SMALLEST_REACH, _LARGEST_REACH = math.log(1.0001), math.log(1e12)
# Even where nothing moved the axis has some width: three floors, or what shows a counted figure's change.
_FLOORS = 3.0
_LEAST_REACH = math.log(1.05)
_MARGIN = 0.06
# Of the axis, on either side of 1: there is to be seen that nothing lies there.
_LEAST_SIDE = 0.2
_MOST_TICKS = 7
# Ratios below this factor apart have evenly spaced ticks.
_LINEAR_SPAN = 2.2
# Digits that ticks have in every power of ten, from many to few.
_LADDERS: tuple[tuple[float, ...], ...] = (
    (1, 1.2, 1.5, 2, 3, 4, 5, 6, 8),
    (1, 1.5, 2, 3, 5, 7),
    (1, 2, 5),
    (1, 3),
    (1,),
)


# The ratio of a row and, where it has one, its interval.
Extent: TypeAlias = tuple[float, float | None, float | None]


@dataclass(frozen=True, kw_only=True)
class RatioAxis:
    """From `low` to `high`, both ratios; 1 lies between them."""

    low: float
    high: float
    ticks: tuple[tuple[float, str], ...]  # Ratios, and what is written there

    def share(self, ratio: float) -> float:
        """Where a ratio lies, from 0 at the left end to 1 at the right one; beyond them outside of 0 to 1."""
        return (math.log(ratio) - math.log(self.low)) / (math.log(self.high) - math.log(self.low))


def ratio_axis(extents: Iterable[Extent], floor: float, *, most_ticks: int = _MOST_TICKS) -> RatioAxis:
    """An axis that shows 1, the floor, and as much of the rows as serves most of them."""
    logs = [_logs(extent) for extent in extents]
    least = _LEAST_REACH
    if floor > 0:
        least = min(max(_FLOORS * math.log1p(floor), _SMALLEST_REACH), _LARGEST_REACH)
    sizes = sorted(abs(centre) for centre, _, _ in logs)
    usual = sizes[int(0.75 * len(sizes))] if sizes else 0.0
    reach = max(least, min(_REACH * usual, _LARGEST_REACH))
    low = min([-least, *(max(-reach, bottom) for _, bottom, _ in logs)])
    high = max([least, *(min(reach, top) for _, _, top in logs)])
    side = _LEAST_SIDE / (1 - _LEAST_SIDE)
    low, high = min(low, -side * high), max(high, -side * low)
    room = _MARGIN * (high - low)
    left, right = math.exp(low - room), math.exp(high + room)
    places = (_even_steps if right / left < _LINEAR_SPAN else round_figures)(left, right, most_ticks)
    return RatioAxis(low=left, high=right, ticks=tuple(places))


def _logs(extent: Extent) -> tuple[float, float, float]:
    logs = [math.log(value) for value in extent if value is not None and value > 0]
    return logs[0], min(logs), max(logs)


def _even_steps(low: float, high: float, most: int) -> list[tuple[float, str]]:
    for exponent in range(-9, 1):
        for digit in (1, 2, 5):
            step = digit * 10.0**exponent
            numbers = range(math.ceil((low - 1) / step), math.floor((high - 1) / step) + 1)
            if len(numbers) <= most:
                decimals = max(-exponent, 0)
                return [(1 + number * step, f"{1 + number * step:.{decimals}f}") for number in numbers]
    return [(1.0, "1")]


def round_figures(low: float, high: float, most: int) -> list[tuple[float, str]]:
    """Places of a logarithmic axis for ticks, at most `most`, and their texts; powers of ten come before all others."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    for ladder in _ladders(first, last):
        places = [ratio for ratio in ladder if low <= ratio <= high]
        if len(places) <= most:
            return [(ratio, _short(ratio)) for ratio in places]
    return [(1.0, "1")]


def _ladders(first: int, last: int) -> Iterator[list[float]]:
    for digits in _LADDERS:
        yield [digit * 10.0**power for power in range(first, last + 1) for digit in digits]
    for stride in range(2, last - first + 2):
        yield [10.0**power for power in range(first, last + 1) if power % stride == 0]


def _short(ratio: float) -> str:
    return f"{ratio:.3g}".replace("e+0", "e").replace("e-0", "e-").replace("e+", "e")
