"""Intervals of counted rates: Clopper and Pearson's, as scipy has it, with the ends' error on the open side."""

from __future__ import annotations

import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from harness.stats.rates import rate_bounds

COUNTS = st.integers(min_value=1, max_value=2000).flatmap(
    lambda trials: st.tuples(st.integers(min_value=0, max_value=trials), st.just(trials))
)
CONFIDENCES = st.sampled_from([0.8, 0.9, 0.95, 0.99])


@given(COUNTS.filter(lambda count: 0 < count[0] < count[1]), CONFIDENCES)
def test_between_the_ends_it_is_scipys(count: tuple[int, int], confidence: float) -> None:
    hits, trials = count
    expected = scipy.stats.binomtest(hits, trials).proportion_ci(confidence_level=confidence, method="exact")
    assert rate_bounds(hits, trials, confidence=confidence) == pytest.approx((expected.low, expected.high), rel=1e-6)


@pytest.mark.parametrize(
    ("hits", "trials", "bounds"),
    [
        (0, 300, (0.0, 1 - 0.05 ** (1 / 300))),  # "none of 300" is "below 1 %"
        (300, 300, (0.05 ** (1 / 300), 1.0)),
        (0, 1, (0.0, 0.95)),
        (1, 1, (0.05, 1.0)),
        (0, 0, (0.0, 1.0)),
    ],
)
def test_at_the_ends_all_of_the_error_is_on_the_open_side(hits: int, trials: int, bounds: tuple[float, float]) -> None:
    assert rate_bounds(hits, trials) == pytest.approx(bounds, rel=1e-9)


@given(COUNTS, CONFIDENCES)
def test_the_bounds_hold_the_rate_and_mirror_with_it(count: tuple[int, int], confidence: float) -> None:
    hits, trials = count
    low, high = rate_bounds(hits, trials, confidence=confidence)
    assert 0 <= low <= hits / trials <= high <= 1
    mirrored = rate_bounds(trials - hits, trials, confidence=confidence)
    assert mirrored == pytest.approx((1 - high, 1 - low), abs=1e-9)


@given(st.integers(min_value=1, max_value=20), CONFIDENCES)
def test_ten_times_the_trials_narrow_it(hits: int, confidence: float) -> None:
    few, many = rate_bounds(hits, 20, confidence=confidence), rate_bounds(10 * hits, 200, confidence=confidence)
    assert many[1] - many[0] < few[1] - few[0]
