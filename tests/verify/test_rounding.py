"""Tests of harness.verify.rounding."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.verify.rounding import FACTOR, UNIT, Shaker, merged, spread, to_kind


@pytest.fixture
def shaker() -> Shaker:
    return Shaker(samples=9, rng=np.random.default_rng(0))


@given(st.floats(width=32, allow_nan=False), st.sampled_from(["f16", "bf16", "f32"]))
def test_rounding_to_a_type_is_off_by_half_a_unit_at_most(value: float, kind: str) -> None:
    rounded = to_kind(np.array([value]), kind)[0]
    assert to_kind(np.array([rounded]), kind)[0] == rounded
    if np.isfinite(rounded) and abs(value) > 1e-4:
        assert abs(rounded - value) <= abs(value) * UNIT[kind]


def test_a_result_is_shaken_only_where_its_type_does_not_have_it(shaker: Shaker) -> None:
    samples = shaker.rounded(np.array([[3.0, 0.1]]), "f32")
    assert (samples[:, 0] == 3.0).all()
    assert samples[0, 1] == 0.1
    assert 0 < spread(samples)[1] < 0.1 * 2 * UNIT["f32"]


def test_a_sum_is_shaken_by_its_partial_sums_and_not_by_its_result(shaker: Shaker) -> None:
    samples = shaker.summed(np.array([[0.1]]), "f32", np.array([1e6]))
    assert 200 < spread(samples)[0] / UNIT["f32"] < 5000


def test_infinities_that_all_samples_share_have_no_spread(shaker: Shaker) -> None:
    values = np.array([[np.inf, -np.inf, np.nan, np.inf]] * 9)
    values[4, 3] = 1.0
    assert spread(values).tolist() == [0.0, 0.0, 0.0, np.inf]
    shaken = shaker.rounded(np.array([[0.1, 0.7]]), "f32")
    assert (shaker.extreme(np.maximum, np.array([[-np.inf, -np.inf]]), shaken) == shaken).all()


def test_a_step_gives_both_results_where_its_edge_is_near_and_one_elsewhere(shaker: Shaker) -> None:
    near = 2.0 + np.linspace(-1e-7, 1e-7, 9)[:, None] * [1.0, 1.0] + [0.0, 0.5]
    assert set(shaker.stepped(np.floor, near)[:, 0]) == {1.0, 2.0}
    assert set(shaker.stepped(np.floor, near)[:, 1]) == {2.0}
    answers = shaker.compared(np.less, near, np.array([[2.0, 2.0]]))
    assert answers[:, 0].any()
    assert not answers[1:, 0].all()
    assert not answers[:, 1].any()


def test_the_larger_of_two_that_are_close_has_the_larger_spread(shaker: Shaker) -> None:
    rough = 1.0 + np.linspace(-1e-3, 1e-3, 9)[:, None]
    rough[0] = 1.0
    most = shaker.extreme(np.maximum, rough, np.array([[1.0001]]))
    assert FACTOR * spread(most)[0] > 1e-3


@pytest.mark.parametrize(("kind", "infinite"), [("f16", {False, True}), ("f32", {False}), ("f64", {False})])
def test_beyond_a_narrow_type_an_infinity_and_the_number_are_both_right(
    shaker: Shaker, kind: str, infinite: set[bool]
) -> None:
    assert set(np.isinf(shaker.rounded(np.array([70000.0]), kind)).flat) == infinite


def test_samples_that_agree_are_one() -> None:
    assert merged(np.ones((9, 3))).shape == (1, 3)
    assert merged(np.arange(9.0)[:, None]).shape == (9, 1)
