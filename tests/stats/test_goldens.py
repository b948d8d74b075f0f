"""What IREE's own gate makes of noise."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.stats.goldens import REPETITIONS, golden_of
from harness.stats.pairing import FloatArray

TIMES = st.lists(st.floats(1e3, 1e9), min_size=12, max_size=12).map(np.array)


def process(random: np.random.Generator) -> FloatArray:
    """Calls of one process, which differ less than processes do."""
    level = 1e6 * math.exp(0.02 * random.standard_normal())
    return np.asarray(level * np.exp(0.01 * random.random(20)))


@given(st.lists(TIMES, min_size=2, max_size=6), st.floats(1.001, 2))
def test_golden_times_and_alarms_are_within_what_was_measured(generations: list[FloatArray], factor: float) -> None:
    found = golden_of(generations, factor)
    every = np.concatenate(generations)
    assert every.min() * 0.999 <= found.golden_ns <= every.max() * 1.001
    assert 0 <= found.false_alarms <= found.at_most <= 1
    if found.factor is not None:  # none where the generations agree to the last bit
        assert golden_of(generations, found.factor).false_alarms <= 0.01


def test_ten_calls_in_a_row_are_slow_together_only_where_a_slow_stretch_is_as_long() -> None:
    short, long = (np.array([1.0] * (30 - slow) + [2.0] * slow) for slow in (REPETITIONS - 1, REPETITIONS + 2))
    alarms = [golden_of([np.ones(30), calls], 1.5).false_alarms for calls in (short, long)]
    assert alarms == pytest.approx([0, 3 / 30 / 2])


def test_one_process_says_nothing_of_others() -> None:
    found = golden_of([np.array([3.0, 2.0])], 1.1)
    assert [found.golden_ns, found.at_most] == pytest.approx([2, 0.95])
    assert (found.low_ns, found.factor, found.false_alarms) == (None, None, 0)


@pytest.mark.parametrize("number", [3, 5, 20])
def test_the_factor_fails_one_process_in_a_hundred(number: int) -> None:
    random, alarms = np.random.default_rng(number), []
    for _ in range(100):
        found = golden_of([process(random) for _ in range(number)], 1.1)
        later = np.array([process(random)[:REPETITIONS].min() for _ in range(50)])
        alarms.append(np.mean(later > found.golden_ns * (found.factor or 0)))
    assert 0.002 < np.mean(alarms) < 0.02
