"""Rounds -> arrays: what one call of each case took, and how two cases compare within the same round.

Two cases are compared only inside a round, where their turns follow each other within milliseconds: whatever slows the
machine for longer than that (a neighbour, a change of frequency) slows both, and drops out of their ratio. Taking the
median of such ratios is two to three times tighter than the ratio of two medians.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from harness.results.records import Round

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, eq=False)
class GroupTimes:
    """Every turn of one group of cases.

    Attributes:
        columns: Each case's column in the arrays.
        generations: By number of the generation, in ascending order: nanoseconds per call, of shape (rounds, cases);
            NaN where a case had no turn in a round, or one that cannot be divided.
        unusable: By case: turns left out because their time or their number of calls was not above zero.
    """

    columns: Mapping[str, int]
    generations: Mapping[int, FloatArray]
    unusable: Mapping[str, int]

    def ns_per_call(self, case: str) -> tuple[FloatArray, ...]:
        """What one call took in each round, for each generation that measured the case."""
        if case not in self.columns:
            return ()
        return _finite(times[:, self.columns[case]] for times in self.generations.values())

    def log_ratios(self, case: str, baseline: str) -> tuple[FloatArray, ...]:
        """log(case / baseline) in each round that has both, for each generation that has such a round."""
        if case not in self.columns or baseline not in self.columns:
            return ()
        above, below = self.columns[case], self.columns[baseline]
        return _finite(np.log(times[:, above]) - np.log(times[:, below]) for times in self.generations.values())


def tabulate_rounds(rounds: Iterable[Round]) -> GroupTimes:
    """Put the rounds of one group into arrays; a case with two turns in one round counts with their mean."""
    ordered = sorted(rounds, key=lambda one: (one.generation, one.round))
    names = dict.fromkeys(turn.case for one in ordered for turn in one.turns)
    columns = {name: column for column, name in enumerate(names)}
    unusable = Counter(turn.case for one in ordered for turn in one.turns if turn.calls <= 0 or turn.wall_ns <= 0)
    return GroupTimes(
        columns=columns,
        generations={
            generation: _ns_per_call(list(members), columns)
            for generation, members in groupby(ordered, key=lambda one: one.generation)
        },
        unusable=dict(unusable),
    )


def counter_per_call(rounds: Iterable[Round], counter: str) -> dict[str, float]:
    """Median over a case's turns of one hardware event's count per call, for the cases that have it."""
    counts: dict[str, list[float]] = {}
    for one in rounds:
        for turn in one.turns:
            if counter in turn.counters and turn.calls > 0:
                counts.setdefault(turn.case, []).append(turn.counters[counter] / turn.calls)
    return {case: float(np.median(values)) for case, values in counts.items()}


def _ns_per_call(rounds: Sequence[Round], columns: Mapping[str, int]) -> FloatArray:
    wall_ns = np.zeros((len(rounds), len(columns)))
    calls = np.zeros_like(wall_ns)
    for row, one in enumerate(rounds):
        for turn in one.turns:
            if turn.calls > 0 and turn.wall_ns > 0:
                wall_ns[row, columns[turn.case]] += turn.wall_ns
                calls[row, columns[turn.case]] += turn.calls
    return np.divide(wall_ns, calls, out=np.full_like(wall_ns, np.nan), where=calls > 0)


def _finite(generations: Iterable[FloatArray]) -> tuple[FloatArray, ...]:
    kept = (values[np.isfinite(values)] for values in generations)
    return tuple(values for values in kept if values.size)
