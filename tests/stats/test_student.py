"""Welch's interval of two sides' generations, beside SciPy's."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.stats import ttest_ind

from harness.stats.student import unpaired_difference

SAMPLES = st.lists(st.floats(min_value=-3, max_value=3), min_size=2, max_size=8)


@given(SAMPLES, SAMPLES)
def test_it_is_welchs(base: Sequence[float], head: Sequence[float]) -> None:
    assume(max(base) - min(base) > 1e-3 and max(head) - min(head) > 1e-3)
    found = unpaired_difference(base, head, confidence=0.95)
    theirs = ttest_ind(head, base, equal_var=False)
    interval = theirs.confidence_interval(0.95)
    assert found.p == pytest.approx(theirs.pvalue, rel=1e-6, abs=1e-12)
    assert (found.low, found.high) == pytest.approx((interval.low, interval.high), rel=1e-6, abs=1e-9)
    assert found.samples == min(len(base), len(head))


def test_one_sample_gives_no_interval() -> None:
    found = unpaired_difference([1.0], [1.5, 1.6], confidence=0.95)
    assert found.centre == pytest.approx(0.55)
    assert (found.low, found.high) == (-math.inf, math.inf)
    assert (found.p, found.samples) == (1.0, 1)


def test_samples_that_agree_to_the_last_bit_leave_no_doubt() -> None:
    same = unpaired_difference([0.25] * 5, [0.25] * 5, confidence=0.95)
    assert (same.centre, same.low, same.high, same.p) == (0.0, 0.0, 0.0, 1.0)
