"""An axis of ratios: how far it reaches and what is written along it."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.report.ratio_axis import Extent, RatioAxis, ratio_axis

RATIOS = st.lists(st.floats(1e-300, 1e300), max_size=20)


def axis_of(*ratios: float, floor: float = 0.01) -> RatioAxis:
    return ratio_axis([Extent(ratio=ratio) for ratio in ratios], floor)


def texts(axis: RatioAxis) -> list[str]:
    return [tick.text for tick in axis.ticks]


def test_small_changes_have_even_ticks() -> None:
    assert texts(axis_of(0.97, 1.05)) == ["0.98", "1.00", "1.02", "1.04"]


def test_large_ones_have_round_figures() -> None:
    assert texts(axis_of(0.2, 5)) == ["0.2", "0.5", "1", "2", "5"]


def test_where_nothing_moved_the_floor_is_seen() -> None:
    axis = axis_of(1.0)
    assert axis.low < 1 / 1.03
    assert axis.high > 1.03


def test_one_that_is_far_away_does_not_press_the_others_together() -> None:
    axis = axis_of(1.02, 0.97, 1.03, 1.01, 50.0)
    assert 1.04 < axis.high < 1.3
    assert axis_of(1.02, 40.0, 50.0).high > 50


def test_an_interval_is_shown_whole_where_that_is_not_far() -> None:
    axis = ratio_axis([Extent(ratio=1.3, low=0.9, high=1.8)], 0.01)
    assert axis.low < 0.9
    assert axis.high > 1.8


@given(RATIOS, st.floats(0, 2))
def test_every_axis_has_1_and_both_its_sides(ratios: list[float], floor: float) -> None:
    axis = axis_of(*ratios, floor=floor)
    assert 0 < axis.low < 1 < axis.high < math.inf
    assert 0.15 < axis.share(1.0) < 0.85
    assert axis.low <= 1 / (1 + floor)
    assert 1 + floor <= axis.high


@given(RATIOS, st.integers(3, 9))
def test_ticks_are_few_in_order_and_within(ratios: list[float], most: int) -> None:
    axis = ratio_axis([Extent(ratio=ratio) for ratio in ratios], 0.01, most_ticks=most)
    places = [tick.ratio for tick in axis.ticks]
    assert 1 <= len(places) <= most
    assert places == sorted(set(places))
    assert all(axis.low * (1 - 1e-9) <= place <= axis.high * (1 + 1e-9) for place in places)
    assert len(set(texts(axis))) == len(places)


@pytest.mark.parametrize("absurd", [1e-300, 1e308])
def test_absurd_figures_have_an_axis(absurd: float) -> None:
    assert texts(axis_of(absurd))
    assert texts(axis_of(1.1, floor=absurd))
