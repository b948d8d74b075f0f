"""Which changes to try together next, so that a few dozen tries find what a full matrix would.

Changes come in groups of alternatives: two values of one flag exclude each other. A linear model of the log ratio, with
an effect of each change and one of each two together, is fitted to the sets that were tried (after BOCS: Baptista and
Poloczek, ICML 2018):

    log(time of a set / time of the start) = sum of a_i + sum of b_ij + noise

The prior of each is normal around zero, so the posterior has a closed form (ridge regression). Each change is tried
alone first and told, so the effects are known well, and the first guess is the sum of those that help. The prior of an
interaction is as wide as half the smaller of the two effects: two changes that do the same work add up to the better
one, and two that do nothing rarely do much together.

What is asked for has the largest expected improvement (Mockus 1978) on what the model thinks of the best set so far,
times the chance that it works at all (Schonlau 1997), among the sets that differ in at most two groups from one of the
best known or from what the model thinks best. A set that failed is not tried again with more added.

Optuna's multivariate TPE, told the same, is further from the best set than hill climbing is after 5 to 40 tries, since
it learns which sets are among the best and not by how much; `python -m benchmarks.tune.sampler` compares.
"""

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
# What a change has to gain to be worth having.
PRICE = 0.01
# Expected improvement below which nothing is asked for.
_WORTH = 0.0002
# Chance that two changes fail together, where neither this nor the opposite was seen.
_BROKEN = 0.02
# How many of the best known sets the next one may lie close to.
_CENTRES = 3


class Sampler:
    """Asks for sets of changes, most promising first, and never for the same one twice.

    What it asks for depends on nothing but the calls before, so a search that was killed can be played back.
    """

    def __init__(self, groups: Sequence[Sequence[str]]) -> None:
        self._groups = [tuple(group) for group in groups]
        self._names = [name for group in self._groups for name in group]
        self._index = {name: index for index, name in enumerate(self._names)}
        pairs = [
            (self._index[name], self._index[other])
            for first, second in combinations(self._groups, 2)
            for name in first
            for other in second
        ]
        self._pairs = np.array(pairs, dtype=int).reshape(-1, 2)
        self._told: dict[Set, list[float]] = {frozenset(): [0.0]}
        self._failed: set[Set] = set()
        self._asked: set[Set] = set()

    def tell(self, changes: Iterable[str], log_ratio: float | None) -> None:
        """Take in what a set came to, whether or not it was asked for."""
        chosen = frozenset(changes)
        if log_ratio is None:
            self._failed.add(chosen)
        else:
            self._told.setdefault(chosen, []).append(log_ratio)

    def ask(self) -> Set | None:
        """The set to try next, of two changes or more; None: no other is expected to be worth its time."""
        mean, spread = self._fit()
        seen = sorted(self._told, key=lambda told: (float(np.dot(self._row(told), mean)), len(told), sorted(told)))
        best = float(np.dot(self._row(seen[0]), mean))
        centres = [*seen[:_CENTRES], self._climb(seen[0], mean)]
        one_step = {step for centre in centres for step in (centre, *self._steps(centre))}
        candidates = one_step.union(*map(self._steps, one_step))
        candidates -= self._told.keys() | self._asked
        possible = (each for each in candidates if len(each) > 1 and not any(failed <= each for failed in self._failed))
        fresh = sorted(possible, key=lambda chosen: (len(chosen), sorted(chosen)))
        if not fresh:
            return None
        rows = np.array([self._row(each) for each in fresh])
        expected = rows @ mean
        deviation = np.sqrt(np.maximum(((rows @ spread) * rows).sum(axis=1), 1e-12))
        fails = self._chances_to_fail()
        works = [
            math.prod(1 - fails.get(frozenset(two), _BROKEN) for two in combinations(sorted(each), 2)) for each in fresh
        ]
        worth = _improvement(best - expected, deviation) * np.array(works)
        chosen = fresh[int(np.argmax(worth))]
        if worth.max() < _WORTH:
            return None
        self._asked.add(chosen)
        return chosen

    def _chances_to_fail(self) -> dict[Set, float]:
        """Of each two changes together: none where they worked in a set, else little, or more where a set failed."""
        worked = {frozenset(two) for told in self._told for two in combinations(told, 2)}
        chances = dict.fromkeys(worked, 0.0)
        for failed in self._failed:
            suspects = {frozenset(two) for two in combinations(failed, 2)} - worked
            for two in suspects:
                chances[two] = max(chances.get(two, _BROKEN), 1 / len(suspects))
        return chances

    def _steps(self, chosen: Set) -> list[Set]:
        found = []
        for group in self._groups:
            without = chosen.difference(group)
            found += [step for step in (without, *(without | {name} for name in group)) if step != chosen]
        return found

    def _climb(self, chosen: Set, mean: FloatArray) -> Set:
        """What the model thinks best, from a set on in single steps."""
        value = float(np.dot(self._row(chosen), mean))
        while True:
            steps = [step for step in self._steps(chosen) if not any(failed <= step for failed in self._failed)]
            values = [float(np.dot(self._row(step), mean)) for step in steps]
            if not values or min(values) >= value - 1e-9:
                return chosen
            value = min(values)
            chosen = steps[values.index(value)]

    def _row(self, chosen: Set) -> FloatArray:
        alone = np.zeros(len(self._names))
        alone[[self._index[name] for name in chosen]] = 1
        return np.concatenate([alone, alone[self._pairs[:, 0]] * alone[self._pairs[:, 1]]])

    def _fit(self) -> tuple[FloatArray, FloatArray]:
        """Mean, with the price of each change, and covariance of the effects and interactions."""
        rows = np.array([self._row(told) for told, values in self._told.items() for _ in values])
        values = np.array([value for several in self._told.values() for value in several])
        size = len(self._names)
        effects = np.array([np.mean(self._told.get(frozenset({name}), [0.0])) for name in self._names])
        smaller = np.abs(effects[self._pairs]).min(axis=1)
        prior = np.concatenate([np.full(size, _EFFECT), _INTERACTION + _OVERLAP * smaller]) ** 2
        gain = (rows * prior).T @ np.linalg.inv((rows * prior) @ rows.T + _NOISE**2 * np.eye(len(rows)))
        covariance: FloatArray = np.diag(prior) - gain @ (rows * prior)
        mean: FloatArray = gain @ values
        mean[:size] += PRICE
        return mean, covariance


def _improvement(gain: FloatArray, deviation: FloatArray) -> FloatArray:
    """Expected improvement where the improvement is normal."""
    from scipy.special import ndtr  # scipy.stats takes a second to import

    score = gain / deviation
    density = np.exp(-(score**2) / 2) / math.sqrt(2 * math.pi)
    improvement: FloatArray = gain * ndtr(score) + deviation * density
    return improvement
