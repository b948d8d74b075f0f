"""Which changes to try together next, so that a few dozen tries find what a full matrix would.

Changes come in groups of alternatives: two values of one flag exclude each other. What is known of the sets that were
tried is fitted by a linear model of the log ratio: an effect of each change, and one of each two changes together
(BOCS: Baptista and Poloczek, ICML 2018),

    log(time of a set / time of the start) = sum of a_i + sum of b_ij + noise

with normal priors around zero. Each change is tried alone first, so the effects are known well and the sum of those
that help is the first guess. An interaction is expected to be as large as the smaller of the two effects allows: two
changes that do the same work add up to the better one, and two that do nothing rarely do much together.
Ridge regression gives the posterior in closed form; what is asked next has the largest expected improvement (Mockus
1978) on the best set so far, among the sets that differ in one or two groups from one of the best known or from what
the model thinks best. A set that failed is not tried again with more added.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import combinations

import numpy as np

from harness.stats.pairing import FloatArray

Set = frozenset[str]

# Deviation of a told log ratio, and of the effect of a change about which nothing is known.
_NOISE = 0.012
_EFFECT = 0.2
# Deviation of an interaction: this, and a share of the smaller of the two effects.
_INTERACTION = 0.015
_OVERLAP = 0.5
# What two changes that both help are expected to lose together, as a share of the smaller effect.
_LOSS = 0.25
# Chance that two changes fail together, where neither this nor the opposite was seen.
_BROKEN = 0.02
# How many of the best known sets the next one may lie close to.
_CENTRES = 3


class Sampler:
    """Asks for sets of changes, most promising first, and never for the same one twice.

    What it asks for depends on nothing but what it was told, in order, so that a search can be played back.
    """

    def __init__(self, groups: Sequence[Sequence[str]]) -> None:
        self._groups = [tuple(group) for group in groups]
        self._names = [name for group in self._groups for name in group]
        self._index = {name: index for index, name in enumerate(self._names)}
        self._pairs = [
            (self._index[one], self._index[other])
            for first, second in combinations(self._groups, 2)
            for one in first
            for other in second
        ]
        self._told: dict[Set, list[float]] = {frozenset(): [0.0]}
        self._failed: set[Set] = set()
        self._asked: set[Set] = set()

    def tell(self, changes: Iterable[str], log_ratio: float | None) -> None:
        """What a set came to; None: it failed, or is wrong. A set that was not asked for may be told too."""
        chosen = frozenset(changes)
        if log_ratio is None:
            self._failed.add(chosen)
        else:
            self._told.setdefault(chosen, []).append(log_ratio)

    def ask(self) -> Set | None:
        """The set to try next, of two changes or more; None: there is none left near what is known to be good."""
        mean, spread = self._fit()
        seen = sorted(self._told, key=lambda one: (float(np.dot(self._row(one), mean)), len(one), sorted(one)))
        best = float(np.dot(self._row(seen[0]), mean))
        centres = [*seen[:_CENTRES], self._climb(seen[0], mean)]
        candidates = {one for centre in centres for one in self._near(centre)} | set(centres)
        fresh = sorted((one for one in candidates if self._is_fresh(one)), key=lambda one: (len(one), sorted(one)))
        if not fresh:
            return None
        rows = np.array([self._row(one) for one in fresh])
        expected = rows @ mean
        deviation = np.sqrt(np.maximum(np.einsum("ij,jk,ik->i", rows, spread, rows), 1e-12))
        works = np.array([self._chance_to_work(one) for one in fresh])
        chosen = fresh[int(np.argmax(_improvement(best - expected, deviation) * works))]
        self._asked.add(chosen)
        return chosen

    def _is_fresh(self, chosen: Set) -> bool:
        known = chosen in self._told or chosen in self._asked
        return len(chosen) > 1 and not known and not any(failed <= chosen for failed in self._failed)

    def _chance_to_work(self, chosen: Set) -> float:
        """Where a set failed, two of its changes that never worked together are to blame, any two equally likely."""
        chance = 1.0
        for pair in map(frozenset, combinations(sorted(chosen), 2)):
            if not self._works(pair):
                blamed = [
                    1 / max(1, sum(not self._works(frozenset(two)) for two in combinations(failed, 2)))
                    for failed in self._failed
                    if pair <= failed
                ]
                chance *= 1 - max([_BROKEN, *blamed])
        return chance

    def _works(self, pair: Set) -> bool:
        return any(pair <= told for told in self._told)

    def _steps(self, chosen: Set) -> list[Set]:
        """All sets that differ in one group."""
        found = []
        for group in self._groups:
            without = chosen.difference(group)
            found += [one for one in (without, *(without | {name} for name in group)) if one != chosen]
        return found

    def _near(self, chosen: Set) -> set[Set]:
        one_step = self._steps(chosen)
        return {further for step in one_step for further in self._steps(step)} | set(one_step)

    def _climb(self, chosen: Set, mean: FloatArray) -> Set:
        """What the model thinks best, from a set on in single steps."""
        value = float(np.dot(self._row(chosen), mean))
        while True:
            steps = [one for one in self._steps(chosen) if not any(failed <= one for failed in self._failed)]
            values = [float(np.dot(self._row(one), mean)) for one in steps]
            if not values or min(values) >= value - 1e-9:
                return chosen
            value = min(values)
            chosen = steps[values.index(value)]

    def _row(self, chosen: Set) -> FloatArray:
        alone = np.zeros(len(self._names))
        alone[[self._index[name] for name in chosen]] = 1
        pairs = np.array(self._pairs, dtype=int).reshape(-1, 2)
        return np.concatenate([alone, alone[pairs[:, 0]] * alone[pairs[:, 1]]])

    def _fit(self) -> tuple[FloatArray, FloatArray]:
        """Mean and covariance of the effects and interactions."""
        rows = np.array([self._row(one) for one, values in self._told.items() for _ in values])
        values = np.array([value for several in self._told.values() for value in several])
        size = len(self._names)
        effects = np.array([np.mean(self._told.get(frozenset({name}), [0.0])) for name in self._names])
        smaller = np.array([min(abs(effects[one]), abs(effects[other])) for one, other in self._pairs])
        prior = np.concatenate([np.full(size, _EFFECT), _INTERACTION + _OVERLAP * smaller]) ** 2
        both = np.array([min(-effects[one], -effects[other], key=float) > 0 for one, other in self._pairs], dtype=bool)
        expected = np.concatenate([np.zeros(size), np.where(both, _LOSS * smaller, 0.0)])
        gain = (rows * prior).T @ np.linalg.inv((rows * prior) @ rows.T + _NOISE**2 * np.eye(len(rows)))
        covariance: FloatArray = np.diag(prior) - gain @ (rows * prior)
        mean: FloatArray = expected + gain @ (values - rows @ expected)
        return mean, covariance


def _improvement(gain: FloatArray, deviation: FloatArray) -> FloatArray:
    """Expected improvement where the improvement is normal."""
    from scipy.special import ndtr  # scipy.stats takes a second to import

    score = gain / deviation
    density = np.exp(-(score**2) / 2) / math.sqrt(2 * math.pi)
    improvement: FloatArray = gain * ndtr(score) + deviation * density
    return improvement
