"""The rule keeps its promises on noise of many shapes; benchmarks/verdicts/noise_shapes.py simulates more of each.

The last part asks for the verdict on single series, of the shapes that LLVM LNT names in its tests
(tests/server/reporting/analysis.py), written anew as pairs.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest

from benchmarks.verdicts.noise_shapes import RULE, SHAPES, count_errors, gaussian, judge
from harness.stats.pairing import FloatArray
from harness.stats.rule import Standing

TRIALS = 200


def at_most(rate: float, trials: int = TRIALS) -> float:
    """What a count of something that happens at this rate exceeds once in a thousand times."""
    return trials * rate + 3 * math.sqrt(trials * rate * (1 - rate))


@pytest.mark.parametrize("shape", SHAPES)
def test_errors_are_as_seldom_as_promised(shape: str) -> None:
    errors = count_errors(shape, TRIALS)
    assert errors.differing <= at_most(RULE.alpha)
    assert max(errors.missed, *errors.missed_at_stop, errors.called_equal) <= at_most(1 - RULE.confidence)
    assert errors.flagged <= 2  # 0.1 are expected at most
    # One generation of eight that is far off can hide a change from a confirmation by eight; the row is left open.
    assert errors.found >= TRIALS * (0.85 if shape == "disturbed" else 0.95)
    assert errors.wrong == 0


def test_these_counts_would_catch_a_rule_that_looks_without_paying_for_it() -> None:
    base, head = gaussian(np.random.default_rng(1), 1000)
    free = [judge(samples, pay_for_looks=False) for samples in np.log(head) - np.log(base)]
    assert sum(any(look.p <= RULE.alpha for look in row.looks) for row in free) > at_most(RULE.alpha, 1000)


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
