"""How far a figure moved, and whether it explains a change."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.history.levels import movement_between

quiet = [1.0, 1.002, 0.998, 1.001, 0.999, 1.003]


def test_a_level_that_moved_by_more_than_its_noise_explains_a_change_of_that_size() -> None:
    shift = movement_between(quiet, [1.04 * value for value in quiet])

    assert shift is not None
    assert shift.ratio == pytest.approx(1.04)
    assert shift.explains(math.log(1.04))
    assert shift.explains(math.log(1.08))


def test_it_explains_nothing_that_went_the_other_way_or_was_far_larger() -> None:
    shift = movement_between(quiet, [1.04 * value for value in quiet])

    assert shift is not None
    assert not shift.explains(math.log(0.96))
    assert not shift.explains(math.log(1.5))


def test_a_level_within_its_noise_explains_nothing() -> None:
    noisy = [1.0, 1.1, 0.9, 1.07, 0.95, 1.02]

    shift = movement_between(noisy, [1.02 * value for value in noisy])

    assert shift is not None
    assert not shift.explains(math.log(1.02))


def test_two_points_alone_explain_large_changes_only() -> None:
    small, large = movement_between([1.0], [1.04]), movement_between([1.0], [1.5])

    assert small is not None
    assert large is not None
    assert not small.explains(math.log(1.04))
    assert large.explains(math.log(1.5))


def test_without_points_on_both_sides_nothing_is_known() -> None:
    assert movement_between([], quiet) is None
    assert movement_between(quiet, []) is None


@given(
    st.lists(st.floats(0.5, 2.0), min_size=1, max_size=8),
    st.lists(st.floats(0.5, 2.0), min_size=1, max_size=8),
    st.floats(0.01, 100.0),
)
def test_no_unit_matters(before: list[float], after: list[float], unit: float) -> None:
    one = movement_between(before, after)
    other = movement_between([unit * value for value in before], [unit * value for value in after])

    assert one is not None
    assert other is not None
    assert np.isclose(one.log, other.log, atol=1e-9)
    assert np.isclose(one.error, other.error, atol=1e-9)
