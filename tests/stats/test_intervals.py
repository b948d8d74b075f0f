"""Textbook intervals, beside SciPy's: Student's of pairs, Welch's of runs, Clopper and Pearson's of counted rates."""

import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from harness.stats.intervals import paired_mean, rate_bounds, unpaired_difference

SAMPLES = st.lists(st.floats(min_value=-3, max_value=3), min_size=2, max_size=8)


@given(SAMPLES, SAMPLES)
def test_they_are_scipys(base: Sequence[float], head: Sequence[float]) -> None:
    import scipy.stats  # takes a second

    assume(max(base) - min(base) > 1e-3 and max(head) - min(head) > 1e-3)
    paired = paired_mean(np.array(head), confidence=0.8), scipy.stats.ttest_1samp(head, 0.0), 0.8
    welch = unpaired_difference(np.array(base), np.array(head), confidence=0.95)
    for found, theirs, confidence in (paired, (welch, scipy.stats.ttest_ind(head, base, equal_var=False), 0.95)):
        interval = theirs.confidence_interval(confidence)
        assert found.p == pytest.approx(theirs.pvalue, rel=1e-6, abs=1e-12)
        assert (found.low, found.high) == pytest.approx((interval.low, interval.high), rel=1e-6, abs=1e-9)
    assert paired[0].centre == pytest.approx(float(np.mean(head)), abs=1e-12)
    assert (paired[0].size, welch.size) == (len(head), min(len(base), len(head)))


@pytest.mark.parametrize(("base", "head"), [([1.0], [1.5, 1.6]), ([1.0] * 5, [1.55] * 5)])
def test_one_generation_or_none_that_varies_says_nothing_of_the_difference(
    base: list[float], head: list[float]
) -> None:
    found = unpaired_difference(np.array(base), np.array(head), confidence=0.95)
    assert found.centre == pytest.approx(0.55)
    assert (found.low, found.high, found.p, found.size) == (-math.inf, math.inf, 1.0, len(base))


@given(st.integers(0, 1000), st.integers(0, 1000), st.sampled_from([0.8, 0.9, 0.95, 0.99]))
def test_the_bounds_of_a_rate_are_scipys_between_the_ends_and_mirror_with_it(
    hits: int, misses: int, confidence: float
) -> None:
    import scipy.stats

    trials = hits + misses
    assume(trials)
    low, high = rate_bounds(hits, trials, confidence=confidence)
    assert 0 <= low <= hits / trials <= high <= 1
    assert rate_bounds(trials - hits, trials, confidence=confidence) == pytest.approx((1 - high, 1 - low), abs=1e-9)
    if 0 < hits < trials:
        expected = scipy.stats.binomtest(hits, trials).proportion_ci(confidence_level=confidence, method="exact")
        assert (low, high) == pytest.approx((expected.low, expected.high), rel=1e-6)


@pytest.mark.parametrize(
    ("hits", "trials", "bounds"),
    [
        (0, 300, (0.0, 1 - 0.05 ** (1 / 300))),  # "none of 300" is "below 1 %"
        (300, 300, (0.05 ** (1 / 300), 1.0)),
        (0, 0, (0.0, 1.0)),
    ],
)
def test_at_the_ends_all_of_the_error_is_on_the_open_side(hits: int, trials: int, bounds: tuple[float, float]) -> None:
    assert rate_bounds(hits, trials) == pytest.approx(bounds, rel=1e-9)
