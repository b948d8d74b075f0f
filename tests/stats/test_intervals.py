"""Ratios and intervals: beside SciPy's, with their symmetries, and that no input makes them lie or turn into NaN."""

import math
from collections.abc import Sequence
from dataclasses import astuple
from random import Random

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from harness.records.run import Round, Turn
from harness.stats.intervals import (
    Estimate,
    RankLocation,
    estimate_ratio,
    locate,
    lower_tail,
    paired_mean,
    rate_bounds,
    summarise_latency,
    unpaired_difference,
)
from harness.stats.pairing import FloatArray, GroupTimes, tabulate_rounds

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


# --- Wilcoxon's signed-rank test: exact by hand and against scipy, symmetric, conservative ---


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
