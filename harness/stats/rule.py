"""The rule that turns generations into a verdict, as pure functions; docs/statistics.md tells it in words.

A row is looked at a few times that are planned before its first look. Every look spends an equal share of the error
that the whole row may make (Bonferroni over looks: valid whatever the looks have in common), so looking often cannot
find what is not there. The same sharing makes the interval hold for all looks at once, and so at whichever one the row
stops.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Literal

import numpy as np

from harness.stats.intervals import Location, locate
from harness.stats.pairing import FloatArray

Standing = Literal["higher", "lower", "equal", "open"]

# How often a confirmation may be looked at: once, and once more after as many generations again.
CONFIRMING_LOOKS = 2
# Of the error that a row's intervals may make together, the share of those before any confirmation.
_LOOKING = 0.8


@dataclass(frozen=True, kw_only=True)
class Rule:
    """What has to be so for a row to be called changed or unchanged."""

    floor: float = 0.01  # Relative change below which nothing is called changed; symmetric in the logarithm
    # Of the first finding, over all rows and looks together: the false discovery rate, and the chance that a comparison
    # of nothing but equal rows has one
    alpha: float = 0.05
    plain_alpha: float = 0.0  # The same, where it is more, of a row whose generations lie together, far from zero
    # One-sided, of the confirmation in fresh processes, over both looks at it. A false alarm needs both, so at most
    # alpha * confirm_alpha = 0.05 % of comparisons of equal rows have one by these figures.
    confirm_alpha: float = 0.01
    confidence: float = 0.95  # Of the reported interval, over all looks together
    # Generations at the first look. All eight on one side have p = 0.8 %, so that a plain change can be seen at once;
    # each further look has twice as many.
    first_look: int = 8


def plan_looks(most: int, rule: Rule) -> tuple[int, ...]:
    """Numbers of generations at which to look: 8, 16, 32, ..., and at last all that there is room for."""
    looks = []
    size = rule.first_look
    while 1.5 * size <= most:
        looks.append(size)
        size *= 2
    return (*looks, max(most, 1))


def generations_needed(rows: int, rule: Rule, *, looks: int | None = None) -> int:
    """Generations with which one of so many rows can be called changed; `looks` are those that are planned already."""
    sizes = count(rule.first_look)  # of samples that all have one sign, which have the smallest p-value
    return next(
        size for size in sizes if 2.0 ** (1 - size) * (looks or len(plan_looks(size, rule))) * rows <= rule.alpha
    )


def take_look(samples: FloatArray, *, looks: int, rule: Rule, confirming: bool = False) -> Location:
    """Where the samples lie, at one look of a plan of `looks`; p is times their number, and not corrected for rows."""
    # All intervals that a row could end with share the error: those of looks, and of a confirmation after each of them.
    error = 1 - rule.confidence
    share = (1 - _LOOKING) * error / (looks * CONFIRMING_LOOKS) if confirming else _LOOKING * error / looks
    where = locate(samples, confidence=1 - share)
    return replace(where, p=min(1.0, where.p * looks))


def standing(look: Location, *, differs: bool, floor: float) -> Standing:
    """What a look says of the row; `differs`: its p-value, corrected for everything, is small enough.

    `equal`: the whole interval lies within the floor, whether or not it holds zero. `higher` or `lower`: it differs
    from zero, and the estimate lies beyond the floor. `open`: neither is known.
    """
    edge = math.log1p(floor)
    if -edge <= look.low and look.high <= edge:
        return "equal"
    if differs and abs(look.centre) > edge:
        return "higher" if look.centre > 0 else "lower"
    return "open"


def adjust_p(p_values: Sequence[float]) -> FloatArray:
    """Benjamini and Hochberg's adjusted p-values (1995), in the order given; none falls where another one rises."""
    p = np.asarray(p_values, dtype=np.float64)
    if not p.size:
        return p
    order = np.argsort(-p, kind="stable")
    steps = p[order] * p.size / np.arange(p.size, 0, -1)
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(np.minimum.accumulate(steps), 1.0)
    return adjusted


def confirmation_size(found: int, rule: Rule) -> int:
    """Fresh generations that confirm what `found` of them showed: as many again, and enough to show anything."""
    return max(found, rule.first_look)


def confirmation_p(fresh: FloatArray, direction: Literal["higher", "lower"], rule: Rule) -> float:
    """One-sided p-value of the same direction in samples from fresh processes, times the number of looks at them."""
    if not fresh.size:
        return 1.0
    where = locate(fresh, confidence=rule.confidence)
    return min(1.0, CONFIRMING_LOOKS * (where.p_above if direction == "higher" else where.p_below))


def combine_p(finding: float, confirmation: float) -> float:
    """One p-value of a finding and its confirmation, which are independent (Fisher 1932)."""
    product = finding * confirmation  # that of two uniform numbers is at most x with probability x (1 - log x)
    return product * (1 - math.log(product)) if product > 0 else 0.0


def detectable_change(noise: FloatArray, *, generations: int, rule: Rule) -> float | None:
    """The smallest relative change that so many generations find in nine of ten rows; None: not even twice the time.

    A change of x moves every log ratio by log(1 + x), so the log ratios of a module against itself (`noise`, at least
    four), resampled and moved, are what would be seen. It has to pass the first finding (at the last planned look) and
    the confirmation. At most 64 generations count: more find what is smaller, and take minutes to simulate.
    """
    if noise.size < 4 or generations < 1:
        return None
    generations = min(generations, _MOST_SIMULATED)
    looks = plan_looks(generations, rule)
    generator = np.random.default_rng(0)
    centred = noise - np.median(noise)

    def resample(size: int) -> FloatArray:
        signs = generator.choice((-1.0, 1.0), size=(_RESAMPLES, size))  # equal modules: either may be the base
        drawn: FloatArray = generator.choice(centred, size=(_RESAMPLES, size)) * signs
        return drawn

    first = resample(generations)
    second = resample(CONFIRMING_LOOKS * confirmation_size(generations, rule))

    def confirmed(samples: FloatArray) -> bool:
        part = samples.size // CONFIRMING_LOOKS
        ends = (part * look for look in range(1, CONFIRMING_LOOKS + 1))
        return any(confirmation_p(samples[:end], "higher", rule) <= rule.confirm_alpha for end in ends)

    def found(shift: float) -> bool:
        hits = 0
        for finding, fresh in zip(first, second, strict=True):
            look = take_look(finding + shift, looks=len(looks), rule=rule)
            there = standing(look, differs=look.p <= rule.alpha, floor=rule.floor) == "higher"
            hits += there and confirmed(fresh + shift)
        return hits >= _POWER * _RESAMPLES

    low, high = 0.0, math.log(2)
    if not found(high):
        return None
    while high - low > 1e-4:
        middle = (low + high) / 2
        low, high = (low, middle) if found(middle) else (middle, high)
    return math.expm1(high)


_POWER = 0.9
_RESAMPLES = 200
_MOST_SIMULATED = 64
