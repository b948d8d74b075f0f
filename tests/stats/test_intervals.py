"""Ratios and intervals: beside SciPy's, with their symmetries, and that no input makes them lie or turn into NaN."""

import math
from collections.abc import Sequence
from dataclasses import astuple

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from harness.records.run import Round, Turn
from harness.stats.intervals import (
    Estimate,
    estimate_ratio,
    paired_mean,
    rate_bounds,
    summarise_latency,
    unpaired_difference,
)
from harness.stats.pairing import GroupTimes, tabulate_rounds

SAMPLES = st.lists(st.floats(min_value=-3, max_value=3), min_size=2, max_size=8)
Pairs = list[list[tuple[int, int]]]


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
    assert (paired[0].size, welch.size) == (len(head), min(len(base), len(head)))


@pytest.mark.parametrize(("base", "head"), [([1.0], [1.5, 1.6]), ([1.0] * 5, [1.55] * 5)])
def test_one_generation_or_none_that_varies_says_nothing_of_the_difference(
    base: list[float], head: list[float]
) -> None:
    found = unpaired_difference(np.array(base), np.array(head), confidence=0.95)
    assert found.centre == pytest.approx(0.55)
    assert (found.low, found.high, found.p, found.size) == (-math.inf, math.inf, 1.0, len(base))


@given(st.integers(0, 1000), st.integers(0, 1000), st.sampled_from([0.8, 0.95, 0.99]))
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


def test_at_the_ends_all_of_the_error_is_on_the_open_side() -> None:
    assert rate_bounds(0, 300) == pytest.approx((0.0, 1 - 0.05 ** (1 / 300)))  # "none of 300" is "below 1 %"
    assert rate_bounds(0, 0) == (0.0, 1.0)


# --- Of turns ---


# Wall times of case and baseline by round, by generation; zero and less is what a coarse or a broken clock may say.
TIMES = st.one_of(st.just(0), st.integers(min_value=-1, max_value=2**62))
ANY = st.lists(st.lists(st.tuples(TIMES, TIMES), min_size=1, max_size=7), min_size=1, max_size=5)


def tabulated(pairs: Pairs) -> GroupTimes:
    return tabulate_rounds(
        Round(
            group="g",
            generation=generation,
            round=number,
            started_unix_ns=0,
            turns=tuple(Turn(case=case, calls=1, wall_ns=ns, cpu_ns=0) for case, ns in zip("ab", pair, strict=True)),
        )
        for generation, rounds in enumerate(pairs)
        for number, pair in enumerate(rounds)
    )


def bounds(found: Estimate | None) -> list[float]:
    return [] if found is None else [value for value in (found.low, found.ratio, found.high) if value is not None]


@pytest.mark.parametrize("pairs", [[[(110, 100)] * 1000], [[(110, 100)] * 3] * 4])
def test_one_generation_or_times_that_agree_to_the_last_bit_have_a_ratio_and_no_interval(pairs: Pairs) -> None:
    """Nothing that is timed agrees so, unless the clock is too coarse to tell."""
    assert bounds(estimate_ratio(tabulated(pairs).log_ratios("a", "b"))) == pytest.approx([1.1])


@given(ANY)
def test_no_times_give_nan_or_infinity(pairs: Pairs) -> None:
    times = tabulated(pairs)
    found = bounds(estimate_ratio(times.log_ratios("a", "b"), confidence=0.999))
    latency = summarise_latency(times.ns_per_call("a"))
    assert all(map(math.isfinite, (*found, *(astuple(latency) if latency else ()))))
    assert found == sorted(found)
    assert all(figure > 0 for figure in found)


def test_latency_is_the_median_of_medians_between_its_extremes() -> None:
    latency = summarise_latency([np.array([5.0, 1.0, 3.0]), np.array([10.0]), np.array([4.0, 6.0])])
    assert latency is not None
    assert (latency.median_ns, latency.low_ns, latency.high_ns) == (5.0, 3.0, 10.0)
    assert (latency.generations, latency.rounds) == (3, 6)
    assert summarise_latency([]) is None
