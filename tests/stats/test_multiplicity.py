"""Correcting for many rows: Benjamini and Hochberg's procedure, as scipy has it."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from harness.stats.multiplicity import adjust_p

P_VALUES = st.lists(st.floats(min_value=0, max_value=1), min_size=1, max_size=30)


@given(P_VALUES)
def test_it_is_scipys(p_values: list[float]) -> None:
    np.testing.assert_allclose(adjust_p(p_values), scipy.stats.false_discovery_control(p_values), rtol=1e-12)


def test_an_example_by_hand() -> None:
    # Times 4/rank: 0.04, 0.04, 0.052, 0.5; a value is never above one of a higher rank.
    np.testing.assert_allclose(adjust_p([0.039, 0.01, 0.5, 0.02]), [0.052, 0.04, 0.5, 0.04])


@pytest.mark.parametrize("p", [0.0, 0.02, 1.0])
def test_a_single_row_needs_no_correction(p: float) -> None:
    assert adjust_p([p]).tolist() == [p]


def test_no_rows_are_no_error() -> None:
    assert adjust_p([]).size == 0


def test_what_is_plain_alone_is_not_plain_among_twenty() -> None:
    assert adjust_p([0.04])[0] <= 0.05
    assert adjust_p([0.04, *[0.5] * 19])[0] == pytest.approx(0.5)
    # Company of others that differ makes it plain again: the share of wrong findings is what is kept.
    assert adjust_p([0.04, *[0.001] * 19])[0] <= 0.05


@given(P_VALUES)
def test_values_stay_between_p_and_one_and_keep_the_order(p_values: list[float]) -> None:
    adjusted = adjust_p(p_values)
    assert (adjusted >= np.array(p_values) * (1 - 1e-12)).all()
    assert (adjusted <= 1).all()
    assert (np.diff(adjusted[np.argsort(p_values, kind="stable")]) >= 0).all()


@given(P_VALUES, st.data())
def test_a_row_that_becomes_plainer_never_makes_another_less_plain(p_values: list[float], data: st.DataObject) -> None:
    """So a row that was found to differ stays found while others are still being sampled."""
    row = data.draw(st.integers(min_value=0, max_value=len(p_values) - 1))
    lowered = list(p_values)
    lowered[row] *= data.draw(st.floats(min_value=0, max_value=1))
    assert (adjust_p(lowered) <= adjust_p(p_values) * (1 + 1e-12)).all()


@given(P_VALUES, st.data())
def test_the_order_of_rows_does_not_matter(p_values: list[float], data: st.DataObject) -> None:
    order = data.draw(st.permutations(range(len(p_values))))
    np.testing.assert_array_equal(adjust_p([p_values[place] for place in order]), adjust_p(p_values)[order])


def test_of_rows_that_do_not_differ_any_is_found_as_seldom_as_promised() -> None:
    generator = np.random.default_rng(11)
    trials, level = 2000, 0.05
    found = sum(bool((adjust_p(generator.uniform(size=20).tolist()) <= level).any()) for _ in range(trials))
    # The rate is exactly the level for independent rows; four standard deviations of a count.
    slack = 4 * np.sqrt(trials * level * (1 - level))
    assert abs(found - trials * level) < slack
