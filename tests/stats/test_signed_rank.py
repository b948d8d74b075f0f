"""Wilcoxon's signed-rank test and what goes with it: exact by hand and against scipy, symmetric, conservative."""

import math
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.stats.intervals import RankLocation, locate, lower_tail
from harness.stats.pairing import FloatArray


def at(*samples: float, confidence: float = 0.95) -> RankLocation:
    return locate(np.array(samples, dtype=np.float64), confidence=confidence)


# Whole numbers: sums and halves of them are exact, so that a test may ask for equality of counts.
WHOLE = st.lists(st.integers(min_value=-1000, max_value=1000), min_size=1, max_size=40).map(
    lambda values: np.array(values, dtype=np.float64)
)
CONFIDENCES = st.sampled_from([0.5, 0.8, 0.9, 0.95, 0.975, 0.99, 0.999])


@given(st.sets(st.integers(min_value=1, max_value=10_000), min_size=1, max_size=40), st.randoms())
def test_p_values_are_scipys_exact_ones(sizes: set[int], random: Random) -> None:
    """Of distinct absolute values, none of them zero, which textbooks' tables are made for."""
    import scipy.stats  # takes a second

    samples = np.array([size * random.choice((-1, 1)) for size in sizes], dtype=np.float64)
    found = locate(samples, confidence=0.95)
    expected = [
        scipy.stats.wilcoxon(samples, method="exact", alternative=alternative).pvalue
        for alternative in ("two-sided", "greater", "less")
    ]
    assert [found.p, found.p_above, found.p_below] == pytest.approx(expected, rel=1e-9)


def test_zeros_count_against_every_claim() -> None:
    nothing = at(*[0.0] * 30)
    assert (nothing.centre, nothing.low, nothing.high) == (0, 0, 0)
    assert (nothing.p, nothing.p_above, nothing.p_below) == (1, 1, 1)
    # Where textbooks would drop the zeros and call the other eight samples significant, the zeros stay.
    assert at(*range(1, 9)).p < 0.01
    assert at(*range(1, 9), *[0] * 8).p > at(*range(1, 9)).p


@given(WHOLE, CONFIDENCES, st.integers(min_value=-1000, max_value=1000))
def test_everything_mirrors_and_moves_with_the_samples(samples: FloatArray, confidence: float, shift: int) -> None:
    here, back, there = (locate(some, confidence=confidence) for some in (samples, -samples, samples + shift))
    assert (back.centre, back.low, back.high) == (-here.centre, -here.high, -here.low)
    assert (back.p, back.p_above, back.p_below) == (here.p, here.p_below, here.p_above)
    assert (there.centre, there.low, there.high) == (here.centre + shift, here.low + shift, here.high + shift)


@given(WHOLE, CONFIDENCES)
def test_the_interval_holds_exactly_the_shifts_that_the_test_does_not_reject(
    samples: FloatArray, confidence: float
) -> None:
    found = locate(samples, confidence=confidence)

    def rejects(shift: float) -> bool:
        return locate(samples - shift, confidence=confidence).p <= (1 - confidence) * (1 + 1e-9)

    assert not rejects(found.centre)
    if math.isfinite(found.low):
        assert samples.min() <= found.low <= found.centre <= found.high <= samples.max()
        assert not rejects(found.low) and not rejects(found.high)  # the ends themselves belong to it
        assert rejects(found.low - 0.25) and rejects(found.high + 0.25)  # means of whole numbers lie half a unit apart
    else:
        assert not rejects(samples.min() - 1) and not rejects(samples.max() + 1)


def test_many_samples_use_a_normal_approximation_close_to_the_exact_value() -> None:
    exact, approximate = 400, 401  # the last size and the first of either kind
    for deviations, error in ((-4, 0.1), (-3, 0.03), (-2, 0.02), (-1, 0.02), (0, 0.02), (1, 0.02)):
        tails = []
        for size in (exact, approximate):
            middle, spread = size * (size + 1) / 4, math.sqrt(size * (size + 1) * (2 * size + 1) / 24)
            tails.append(lower_tail(round(middle + deviations * spread), size))
        assert tails[1] == pytest.approx(tails[0], rel=error)
    samples = np.random.default_rng(5).normal(0.003, 0.01, approximate)
    fewer, more = locate(samples[:exact], confidence=0.95), locate(samples, confidence=0.95)
    assert (more.low, more.high) == pytest.approx((fewer.low, fewer.high), abs=5e-5)
    shifted = [locate(samples - more.low + off, confidence=0.95) for off in (1e-9, -1e-9)]
    assert [location.p <= 0.05 for location in shifted] == [True, False]
