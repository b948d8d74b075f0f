"""How often the rule errs on noise of many shapes: equal modules, simulated with fixed seeds.

Nothing that a machine does to two equal modules alike may make the rule find a difference more often than it promises:
no heavy tail, no second mode, no drift. So every shape is simulated a thousand times, and what is counted may exceed
the promise by three standard deviations of a count and no more. The last part asks for the verdict on single series, of
the shapes that LLVM LNT names in its tests (tests/server/reporting/analysis.py), written anew as pairs.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Literal

import numpy as np
import pytest

from harness.stats.pairing import FloatArray
from harness.stats.rule import (
    CONFIRMING_LOOKS,
    Look,
    Rule,
    Standing,
    confirmation_p,
    confirmation_size,
    plan_looks,
    standing,
    take_look,
)

RULE = Rule()
TRIALS = 1000
BUDGET = 32  # generations: looks at 8, 16 and 32
LONGEST = BUDGET + CONFIRMING_LOOKS * confirmation_size(BUDGET, RULE)

Shape = Callable[[np.random.Generator], tuple[FloatArray, FloatArray]]


# --- Noise of equal modules: (base, head) generation times, each of shape (trials, generations) ---


def around(logs: FloatArray) -> FloatArray:
    """Times around a millisecond."""
    return 1e6 * np.exp(logs)


def both(rng: np.random.Generator, spread: float) -> tuple[FloatArray, FloatArray]:
    return rng.normal(0, spread, (TRIALS, LONGEST)), rng.normal(0, spread, (TRIALS, LONGEST))


def gaussian(rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    base, head = both(rng, 0.04)
    return around(base), around(head)


def heavy_tailed(rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """Student's t with two degrees of freedom has no variance."""
    return around(0.02 * rng.standard_t(2, (TRIALS, LONGEST))), around(0.02 * rng.standard_t(2, (TRIALS, LONGEST)))


def disturbed(rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """A neighbour makes one generation in twenty of either side slower, by anything."""
    base, head = both(rng, 0.02)
    for side in (base, head):
        side += np.where(rng.random(side.shape) < 0.05, np.minimum(np.abs(rng.standard_cauchy(side.shape)), 5), 0)
    return around(base), around(head)


def bimodal(rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """The layout of each process makes it 3 % faster or slower."""
    base, head = both(rng, 0.003)
    return around(base + rng.choice((-0.03, 0.03), base.shape)), around(head + rng.choice((-0.03, 0.03), head.shape))


def drifting(rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """The machine gets warm: half as long again at the end."""
    base, head = both(rng, 0.03)
    ramp = np.linspace(0, math.log(1.5), LONGEST)
    return around(base + ramp), around(head + ramp)


def autocorrelated(rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """The machine's speed wanders, and both sides with it."""
    base, head = both(rng, 0.03)
    speed = np.zeros((TRIALS, LONGEST))
    for place in range(1, LONGEST):
        speed[:, place] = 0.9 * speed[:, place - 1] + rng.normal(0, 0.05, TRIALS)
    return around(base + speed), around(head + speed)


def alternating(rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """Who is loaded first is 2 % slower, and that changes with every generation."""
    base, head = both(rng, 0.02)
    first = np.where(np.arange(LONGEST) % 2 == 0, 0.01, -0.01)
    return around(base + first), around(head - first)


def coarse(rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """A clock that knows only steps of 4 %: ties, and many ratios of exactly one."""
    base, head = both(rng, 0.04)
    return around(0.04 * np.round(base / 0.04)), around(0.04 * np.round(head / 0.04))


SHAPES: dict[str, Shape] = {
    shape.__name__: shape
    for shape in (gaussian, heavy_tailed, disturbed, bimodal, drifting, autocorrelated, alternating, coarse)
}


# --- The rule on one series, as the engine applies it to a row that is alone ---


@dataclass(frozen=True, kw_only=True)
class Judged:
    """What became of one series.

    Attributes:
        looks: Every planned look, also those after the one at which it stopped.
        stopped: Place of the look at which it stopped.
        first: Where it stood then.
        final: Where it stands after the confirmation; as `first` where there was none.
    """

    looks: tuple[Look, ...]
    stopped: int
    first: Standing
    final: Standing


def judge(samples: FloatArray, *, most: int = BUDGET, pay_for_looks: bool = True) -> Judged:
    sizes = plan_looks(most, RULE)
    planned = len(sizes) if pay_for_looks else 1
    looks = tuple(take_look(samples[:size], looks=planned, rule=RULE) for size in sizes)
    stands = [standing(look, differs=look.p <= RULE.alpha, floor=RULE.floor) for look in looks]
    stopped = next((place for place, stand in enumerate(stands) if stand != "open"), len(stands) - 1)
    first = final = stands[stopped]
    if first in ("higher", "lower"):
        found = sizes[stopped]
        size, confirmed, end = confirmation_size(found, RULE), False, found
        for _ in range(CONFIRMING_LOOKS):
            end += size
            direction: Literal["higher", "lower"] = "higher" if first == "higher" else "lower"
            confirmed = confirmation_p(samples[found:end], direction, RULE) <= RULE.confirm_alpha
            if confirmed:
                break
        everything = take_look(samples[:end], looks=planned, rule=RULE, confirming=True)
        final = standing(everything, differs=confirmed, floor=RULE.floor)
    return Judged(looks=looks, stopped=stopped, first=first, final=final)


@cache
def judged(shape: str, change: float = 0.0) -> tuple[Judged, ...]:
    """A thousand series of one shape, the head made slower by a share."""
    base, head = SHAPES[shape](np.random.default_rng([20261121, list(SHAPES).index(shape)]))
    return tuple(judge(samples) for samples in np.log(head * (1 + change)) - np.log(base))


def holds(look: Look, truth: float) -> bool:
    """Whether the interval does; where noise has steps, its ends are the truth itself but for rounding."""
    return look.low - 1e-9 <= truth <= look.high + 1e-9


def at_most(rate: float) -> float:
    """What a count of something that happens at this rate exceeds once in a thousand times."""
    return TRIALS * rate + 3 * math.sqrt(TRIALS * rate * (1 - rate))


# --- What is promised ---


@pytest.mark.parametrize("shape", SHAPES)
def test_equal_modules_are_seldom_found_to_differ_at_any_look(shape: str) -> None:
    """Whatever the floor: it only makes findings rarer, and a metric may have a small one."""
    differing = sum(any(look.p <= RULE.alpha for look in one.looks) for one in judged(shape))
    assert differing <= at_most(RULE.alpha)


@pytest.mark.parametrize("shape", SHAPES)
def test_the_interval_holds_the_truth_at_all_looks_at_once(shape: str) -> None:
    missed = sum(not all(holds(look, 0.0) for look in one.looks) for one in judged(shape))
    assert missed <= at_most(1 - RULE.confidence)


@pytest.mark.parametrize("change", [0.0, 0.008, 0.02])
@pytest.mark.parametrize("shape", SHAPES)
def test_the_interval_of_the_look_at_which_a_row_stops_holds_the_truth(shape: str, change: float) -> None:
    """Stopping when the samples look clear is what makes other intervals too narrow; this one has paid for it."""
    truth = math.log1p(change)
    looks = [one.looks[one.stopped] for one in judged(shape, change)]
    assert sum(not holds(look, truth) for look in looks) <= at_most(1 - RULE.confidence)


@pytest.mark.parametrize("shape", SHAPES)
def test_hardly_any_equal_module_is_flagged_after_confirmation(shape: str) -> None:
    flagged = sum(one.final in ("higher", "lower") for one in judged(shape))
    assert flagged <= 5  # 0.5 are expected at most; 6 or more happen once in 70,000 times


@pytest.mark.parametrize("shape", SHAPES)
def test_a_change_beyond_the_floor_is_seldom_called_equal(shape: str) -> None:
    wrong = sum(one.final == "equal" for one in judged(shape, 0.02))
    assert wrong <= at_most(1 - RULE.confidence)


@pytest.mark.parametrize("shape", SHAPES)
def test_a_clear_change_is_found_in_all_of_this_noise(shape: str) -> None:
    """One generation of eight that is far off can hide it from a confirmation by eight; the row is then left open."""
    finals = [one.final for one in judged(shape, 0.15)]
    assert set(finals) <= {"higher", "open"}
    assert finals.count("higher") >= TRIALS * (0.88 if shape == "disturbed" else 0.97)


def test_these_counts_would_catch_a_rule_that_looks_without_paying_for_it() -> None:
    base, head = gaussian(np.random.default_rng(1))
    free = [judge(samples, pay_for_looks=False) for samples in np.log(head) - np.log(base)]
    assert sum(any(look.p <= RULE.alpha for look in one.looks) for one in free) > at_most(RULE.alpha)


# --- Single series of LNT's shapes, in pairs: what the sides share drops out, and what they do not is noise ---

SERIES_BUDGET = 64
SEEDS = range(20)
Pair = tuple[FloatArray, FloatArray]


def series_of(*levels: float) -> FloatArray:
    """The levels, over and over."""
    return np.resize(np.array(levels, dtype=np.float64), 3 * SERIES_BUDGET)


def shuffled(rng: np.random.Generator, *levels: float) -> FloatArray:
    return np.array(levels, dtype=np.float64)[rng.integers(len(levels), size=3 * SERIES_BUDGET)]


def rough(rng: np.random.Generator, level: FloatArray) -> FloatArray:
    """LNT's noise: evenly anything up to 4 % on top."""
    on_top = rng.uniform(1.0, 1.04, level.size)
    return np.multiply(level, on_top)


def spiked(level: FloatArray) -> FloatArray:
    spikes: FloatArray = level.copy()
    spikes[[5, 11, 40]] *= (2, 15, 2)
    return spikes


FLAT = series_of(1.0)
RAMP = np.linspace(1.0, 3.3, 3 * SERIES_BUDGET)


@dataclass(frozen=True)
class Series:
    """A shape and what is to be said of it.

    Attributes:
        verdict: The only one that it may have, beside `open`.
        at_least: In how many of the 20 series.
    """

    draw: Callable[[np.random.Generator], Pair]
    verdict: Standing
    at_least: int = len(SEEDS)


LNT_SHAPES: dict[str, Series] = {
    "flat line": Series(lambda _: (FLAT, FLAT), "equal"),
    "flat noise": Series(lambda rng: (rough(rng, FLAT), rough(rng, FLAT)), "equal", 18),
    "simple regression": Series(lambda _: (FLAT, 2 * FLAT), "higher"),
    "regression in noise": Series(lambda rng: (rough(rng, FLAT), rough(rng, 1.09 * FLAT)), "higher"),
    "improvement": Series(lambda _: (3 * FLAT, 2 * FLAT), "lower"),
    "improvement in noise": Series(lambda rng: (rough(rng, FLAT), rough(rng, FLAT / 1.08)), "lower"),
    # Two modes: the middle between the two heaps of ratios is known well where both have their share, and that is what
    # the estimate looks at. Left to chance, ratios are 1/2, 1 and 2, and hardly any number of them says enough.
    "bimodal, sides alike": Series(lambda _: (series_of(1, 2), series_of(1, 2)), "equal"),
    "bimodal, sides opposite": Series(lambda _: (series_of(1, 2), series_of(2, 1)), "equal"),
    "bimodal, by chance": Series(lambda rng: (shuffled(rng, 1, 2), shuffled(rng, 1, 2)), "equal", 0),
    "bimodal alternating": Series(lambda _: (series_of(1, 2, 2, 1), series_of(1, 1, 2, 2)), "equal"),
    "bimodal alternating in noise": Series(
        lambda rng: (rough(rng, series_of(1, 2, 2, 1)), rough(rng, series_of(1, 2, 2, 1))), "equal", 18
    ),
    "bimodal regression": Series(lambda rng: (shuffled(rng, 1, 2), shuffled(rng, 2, 3)), "higher", 18),
    "bimodal regression, overlapping": Series(lambda rng: (shuffled(rng, 1, 2), shuffled(rng, 1.5, 2.5)), "higher", 16),
    "spike": Series(lambda _: (FLAT, spiked(FLAT)), "equal"),
    "spike in noise": Series(lambda rng: (rough(rng, FLAT), spiked(rough(rng, FLAT))), "equal", 13),
    "slow regression of the machine": Series(lambda _: (RAMP, RAMP), "equal"),
    "slow regression of the machine, in noise": Series(lambda rng: (rough(rng, RAMP), rough(rng, RAMP)), "equal", 18),
    "slow improvement of the machine": Series(lambda _: (RAMP[::-1], RAMP[::-1]), "equal"),
    "regression while the machine slows down": Series(
        lambda rng: (rough(rng, RAMP), rough(rng, 1.05 * RAMP)), "higher"
    ),
}


@pytest.mark.parametrize("shape", LNT_SHAPES)
def test_the_verdict_on_lnts_shapes(shape: str) -> None:
    series = LNT_SHAPES[shape]
    pairs = [series.draw(np.random.default_rng(seed)) for seed in SEEDS]
    verdicts = [judge(np.log(head) - np.log(base), most=SERIES_BUDGET).final for base, head in pairs]
    assert set(verdicts) <= {series.verdict, "open"}
    assert verdicts.count(series.verdict) >= series.at_least
