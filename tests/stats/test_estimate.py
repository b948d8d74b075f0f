"""Ratios and intervals: their symmetries, and that no input makes them lie or turn into NaN."""

import math
from dataclasses import astuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.records.run import Round, Turn
from harness.stats import Estimate, GroupTimes, estimate_ratio, summarise_latency, tabulate_rounds

Pairs = list[list[tuple[int, int]]]


def generations_of(times: st.SearchStrategy[int]) -> st.SearchStrategy[Pairs]:
    """Wall times of case and baseline by round, for one to five generations."""
    return st.lists(st.lists(st.tuples(times, times), min_size=1, max_size=7), min_size=1, max_size=5)


USABLE = generations_of(st.integers(min_value=1_000, max_value=10**12))
# Zero and less is what a coarse or a broken clock may say.
ANY = generations_of(st.one_of(st.just(0), st.integers(min_value=-1, max_value=2**62)))


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


def estimate(pairs: Pairs, case: str = "a", baseline: str = "b") -> Estimate:
    found = estimate_ratio(tabulated(pairs).log_ratios(case, baseline))
    assert found is not None
    return found


def bounds(found: Estimate) -> list[float]:
    return [value for value in (found.low, found.ratio, found.high) if value is not None]


@pytest.mark.parametrize("pairs", [[[(110, 100)] * 1000], [[(110, 100)] * 3] * 4])
def test_one_generation_or_times_that_agree_to_the_last_bit_have_a_ratio_and_no_interval(pairs: Pairs) -> None:
    """Nothing that is timed agrees so, unless the clock is too coarse to tell."""
    found = estimate(pairs)
    assert found.ratio == pytest.approx(1.1)
    assert (found.low, found.high) == (None, None)


@given(ANY)
def test_no_times_give_nan_or_infinity(pairs: Pairs) -> None:
    times = tabulated(pairs)
    found = estimate_ratio(times.log_ratios("a", "b"), confidence=0.999)
    latency = summarise_latency(times.ns_per_call("a"))
    figures = [*(bounds(found) if found else ()), *(astuple(latency) if latency else ())]
    assert all(math.isfinite(figure) for figure in figures if figure is not None)
    if found is not None:
        assert found.ratio > 0
        assert bounds(found) == sorted(bounds(found))


@pytest.mark.parametrize("every", [1, 2])
@given(pairs=USABLE, factor=st.integers(min_value=2, max_value=1000))
def test_noise_that_a_round_shares_drops_out(every: int, pairs: Pairs, factor: int) -> None:
    """Also where it is the same in all rounds, as on a slower machine."""
    factors = [[1 if number % every else factor for number in range(len(rounds))] for rounds in pairs]
    noisy = [
        [(a * by, b * by) for (a, b), by in zip(rounds, of_rounds, strict=True)]
        for rounds, of_rounds in zip(pairs, factors, strict=True)
    ]
    np.testing.assert_allclose(bounds(estimate(noisy)), bounds(estimate(pairs)), rtol=1e-9)


def test_latency_is_the_median_of_medians_between_its_extremes() -> None:
    latency = summarise_latency([np.array([5.0, 1.0, 3.0]), np.array([10.0]), np.array([4.0, 6.0])])
    assert latency is not None
    assert (latency.median_ns, latency.low_ns, latency.high_ns) == (5.0, 3.0, 10.0)
    assert (latency.generations, latency.rounds) == (3, 6)
    assert summarise_latency([]) is None
