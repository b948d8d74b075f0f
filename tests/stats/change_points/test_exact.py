"""Steps in counted values: every one that lasts, at once, and no flapping."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.stats.change_points import find_changes


def places(*values: float) -> list[int]:
    return [change.index for change in find_changes(np.array(values, dtype=np.float64), exact=True)]


def test_any_difference_is_a_step() -> None:
    (found,) = find_changes(np.array([1_000_000.0] * 5 + [1_000_001.0] * 5), exact=True)
    assert (found.kind, found.index, found.low, found.high, found.end) == ("step", 5, 5, 5, 5)
    assert (found.before, found.after, found.p) == (1_000_000.0, 1_000_001.0, 0.0)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ((), []),
        ((7,), []),
        ((7, 7, 7), []),
        ((7, 8), [1]),  # a count needs no second look
        ((7, 7, 7, 7, 8), [4]),
        ((7, 7, 7, 8, 7, 7, 7), []),  # a slip
        ((7, 7, 7, 8, 8, 7, 7, 7), []),
        ((7, 7, 7, 8, 8, 8, 7, 7, 7), [3, 6]),  # a regression and its repair
        ((7, 7, 7, 8, 9, 9, 9), [3, 4]),  # on the way to a third value
        ((7, 7, 7, 8, 7, 9, 9, 9), [5]),
        ((7, 8, 7, 8, 7, 8, 7, 8), [7]),  # whether the last one lasts is not known yet
        ((0, 0, 0, 5, 5, 5), [3]),
    ],
)
def test_which_changes_last(values: tuple[float, ...], expected: list[int]) -> None:
    assert places(*values) == expected


def test_a_program_with_two_outcomes_is_quiet_until_a_third() -> None:
    flapping = [7.0] * 4 + [8.0] * 4 + [7.0] * 4 + [8.0] * 4 + [7.0] * 4
    assert places(*flapping) == []
    assert places(*flapping, 9.0, 9.0) == [20]


def test_from_nothing_the_ratio_is_infinite() -> None:
    (found,) = find_changes(np.array([0.0, 0, 0, 5, 5, 5]), exact=True)
    assert found.ratio == float("inf")


def test_counts_that_vary_like_noise_are_noise() -> None:
    random = np.random.default_rng(0)
    counts = np.round(random.normal(1e6, 1e4, 100))
    assert find_changes(counts, exact=True) == ()
    counts[50:] += 100_000
    (found,) = find_changes(counts, exact=True)
    assert (found.kind, found.index) == ("step", 50)
    assert 0 < found.p < 1e-6


def test_noise_around_zero_has_an_answer() -> None:
    counts = np.random.default_rng(0).integers(0, 3, 60).astype(np.float64)
    assert find_changes(counts, exact=True) == ()


@given(st.lists(st.integers(min_value=3, max_value=12), min_size=1, max_size=5))
@settings(max_examples=60, deadline=None)
def test_levels_that_are_all_different_are_all_found(lengths: list[int]) -> None:
    values = np.repeat(np.arange(1.0, len(lengths) + 1), lengths)
    expected = np.cumsum(lengths)[:-1].tolist()
    if len(expected) <= max(3, values.size / 4):
        assert [change.index for change in find_changes(values, exact=True)] == expected
