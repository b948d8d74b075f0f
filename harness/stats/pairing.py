"""Rounds -> arrays: what one call of each case took, and how two cases compare within the same round.

Two cases are compared only inside a round, where their turns follow each other within milliseconds: whatever slows the
machine for longer than that (a neighbour, a change of frequency) slows both, and drops out of their ratio. Taking the
median of such ratios is two to three times tighter than the ratio of two medians.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from harness.records.run import Round, Turn
from harness.stats.own_time import own_ns, taken_share

FloatArray = NDArray[np.float64]
_TOO_LARGE = 1 << 63


@dataclass(frozen=True, kw_only=True, eq=False)
class Ratios:
    """How two cases compare in the rounds of one generation.

    Attributes:
        logs: log(case / baseline) of each round: of own time where both turns have one, else of wall time.
        by_own_time: How many of the rounds are compared by own time.
        case_first: Whether the case had its turn before the baseline in that round.
    """

    logs: FloatArray
    case_first: NDArray[np.bool_]
    by_own_time: int = 0

    @property
    def centre(self) -> float:
        """The generation's one sample: the mean of two medians, one over rounds of either order.

        Whoever comes second finds caches and branch predictors as the other left them, which moves short calls by some
        tenths of a per cent: the ratios of the two orders are two heaps, and a median over both would jump from one to
        the other. docs/statistics.md compares it with other estimators: some are narrower on one workload and wider on
        another, and verdicts hardly depend on the choice.
        """
        orders = [self.logs[self.case_first], self.logs[~self.case_first]]
        return float(np.mean([np.median(logs) for logs in orders if logs.size]))


@dataclass(frozen=True, kw_only=True, eq=False)
class GroupTimes:
    """Every turn of one group of cases.

    Attributes:
        columns: Each case's column in the arrays.
        generations: By number of the generation, in ascending order: nanoseconds per call, of shape (rounds, cases);
            NaN where a case had no turn in a round, or one that cannot be divided.
        own: Likewise: own time per call (see harness.stats.own_time); NaN where it is not known.
        taken: By case: the share of its turns' time that other processes took; only cases of which it is known.
        places: Likewise: the place of each case's first turn in its round, from 0.
        unusable: By case: turns left out because their time or their number of calls was not above zero.
    """

    columns: Mapping[str, int]
    generations: Mapping[int, FloatArray]
    own: Mapping[int, FloatArray]
    taken: Mapping[str, float]
    places: Mapping[int, NDArray[np.int64]]
    unusable: Mapping[str, int]

    def ns_per_call(self, case: str) -> tuple[FloatArray, ...]:
        """What one call took in each round, for each generation that measured the case."""
        if case not in self.columns:
            return ()
        return _finite(times[:, self.columns[case]] for times in self.generations.values())

    def own_ns_per_call(self, case: str) -> tuple[FloatArray, ...]:
        """The same of own time; () of a case that has none."""
        if case not in self.columns:
            return ()
        return _finite(own[:, self.columns[case]] for own in self.own.values())

    def medians(self, case: str) -> FloatArray:
        """The median over rounds of what one call took; shape (generations that measured the case,)."""
        return np.array([np.median(ns) for ns in self.ns_per_call(case)], dtype=np.float64)

    def rounds(self, case: str) -> int:
        """In how many rounds, over all generations, the case was measured."""
        return sum(ns.size for ns in self.ns_per_call(case))

    def log_ratios(self, case: str, baseline: str) -> tuple[Ratios, ...]:
        """log(case / baseline) in each round that has both, for each generation that has such a round."""
        if case not in self.columns or baseline not in self.columns:
            return ()
        above, below = self.columns[case], self.columns[baseline]
        found = []
        for generation, times in self.generations.items():
            values, own = (np.log(array[:, above]) - np.log(array[:, below]) for array in (times, self.own[generation]))
            has_own = np.isfinite(own)
            logs = np.where(has_own, own, values)
            places = self.places[generation]
            usable = np.isfinite(values)
            if usable.any():
                found.append(
                    Ratios(
                        logs=logs[usable],
                        case_first=(places[:, above] < places[:, below])[usable],
                        by_own_time=int(has_own[usable].sum()),
                    )
                )
        return tuple(found)


def tabulate_rounds(rounds: Iterable[Round]) -> GroupTimes:
    """Put the rounds of one group into arrays; a case with two turns in one round counts with their mean."""
    ordered = sorted(rounds, key=lambda measured: (measured.generation, measured.round))
    names = dict.fromkeys(turn.case for measured in ordered for turn in measured.turns)
    columns = {name: column for column, name in enumerate(names)}
    unusable: Counter[str] = Counter()
    generations, own, places = {}, {}, {}
    for number, members in groupby(ordered, key=lambda measured: measured.generation):
        tabulated = [_tabulate(measured, columns, unusable) for measured in members]
        generations[number] = np.array([row.wall for row in tabulated])
        own[number] = np.array([row.own for row in tabulated])
        places[number] = np.array([row.places for row in tabulated], dtype=np.int64)
    return GroupTimes(
        columns=columns,
        generations=generations,
        own=own,
        places=places,
        taken=_taken(ordered),
        unusable=dict(unusable),
    )


class _Tabulated(NamedTuple):
    """One round, by column: nanoseconds per call of either clock, and the place of each case's first turn."""

    wall: list[float]
    own: list[float]
    places: list[int]


def _tabulate(measured: Round, columns: Mapping[str, int], unusable: Counter[str]) -> _Tabulated:
    wall_ns, calls = [0] * len(columns), [0] * len(columns)
    own = [0.0] * len(columns)
    places = [0] * len(columns)
    for place in range(len(measured.turns) - 1, -1, -1):
        turn = measured.turns[place]
        column = columns[turn.case]
        places[column] = place
        if usable(turn):
            wall_ns[column] += turn.wall_ns
            own[column] += own_ns(turn)
            calls[column] += turn.calls
        else:
            unusable[turn.case] += 1
    return _Tabulated(
        wall=[wall / number if number else math.nan for wall, number in zip(wall_ns, calls, strict=True)],
        own=[ns / number if number else math.nan for ns, number in zip(own, calls, strict=True)],
        places=places,
    )


def _taken(rounds: Iterable[Round]) -> dict[str, float]:
    shares: dict[str, list[float]] = {}
    for measured in rounds:
        for turn in measured.turns:
            if usable(turn) and (share := taken_share(turn)) is not None:
                shares.setdefault(turn.case, []).append(share)
    return {case: float(np.mean(values)) for case, values in shares.items()}


def counter_per_call(rounds: Iterable[Round], counter: str) -> dict[str, float]:
    """Median over a case's turns of one hardware event's count per call, for the cases that have it."""
    counts: dict[str, list[float]] = {}
    for measured in rounds:
        for turn in measured.turns:
            if counter in turn.counters and turn.calls > 0:
                counts.setdefault(turn.case, []).append(turn.counters[counter] / turn.calls)
    return {case: float(np.median(values)) for case, values in counts.items()}


def usable(turn: Turn) -> bool:
    """Whether a turn can be divided; what took centuries was not timed but damaged."""
    return 0 < turn.calls < _TOO_LARGE and 0 < turn.wall_ns < _TOO_LARGE


def _finite(generations: Iterable[FloatArray]) -> tuple[FloatArray, ...]:
    kept = (values[np.isfinite(values)] for values in generations)
    return tuple(values for values in kept if values.size)
