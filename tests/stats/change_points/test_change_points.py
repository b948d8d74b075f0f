"""Changes in the history of a benchmark: what is one and what is not, on series with names."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.stats.change_points import ChangePoint, find_changes
from harness.stats.pairing import FloatArray


def level(size: int, *, width: float = 0.01, seed: int = 0, at: float = 5e6) -> FloatArray:
    """A benchmark that stays as it is, with so much noise."""
    return np.asarray(at * np.exp(np.random.default_rng(seed).normal(0, width, size)), dtype=np.float64)


def step(size: int, index: int, share: float) -> FloatArray:
    return np.asarray(np.where(np.arange(size) >= index, 1 + share, 1.0), dtype=np.float64)


def ramp(size: int, start: int, end: int, share: float) -> FloatArray:
    return np.asarray((1 + share) ** np.clip((np.arange(size) - start) / (end - start), 0, 1), dtype=np.float64)


def with_values(series: FloatArray, places: list[int], factor: float) -> FloatArray:
    spiked = np.array(series, dtype=np.float64)
    spiked[places] *= factor
    return spiked


def kinds(changes: tuple[ChangePoint, ...]) -> list[str]:
    return [one.kind for one in changes]


# --- What is none ---

BIMODAL = level(100, width=0.002) * np.where(np.random.default_rng(1).random(100) < 0.5, 1.03, 1.0)
RARELY_HIGH = level(100, width=0.002) * np.where(np.random.default_rng(2).random(100) < 0.1, 1.03, 1.0)
FLAPPING = level(120, width=0.002) * np.where(np.arange(120) // 15 % 2, 1.03, 1.0)

QUIET = {
    "nothing": np.empty(0),
    "one point": np.array([5e6]),
    "two points, a third apart": np.array([3e6, 4e6]),
    "too few to know the noise": np.array([1.0, 1, 1, 2, 2, 2]),
    "flat": np.full(100, 5e6),
    "flat, with noise": level(100),
    "flat, with much noise": level(100, width=0.2),
    "a spike": with_values(level(100), [40], 1.5),
    "two spikes in a row": with_values(level(100), [40, 41], 1.5),
    "a spike in a flat line": with_values(np.full(100, 5e6), [40], 1.5),
    "spikes here and there": with_values(level(100), [7, 30, 31, 55, 80], 1.3),
    "the last value is off": with_values(level(100), [99], 1.5),
    "the last two values are off": with_values(level(100), [98, 99], 1.5),
    "two levels, one or the other by chance": BIMODAL,
    "two levels, one of them rare": RARELY_HIGH,
    "two levels, for a while each": FLAPPING,
    "alternating": np.tile([5e6, 5.2e6], 50),
}


@pytest.mark.parametrize("name", QUIET)
def test_no_change_is_seen(name: str) -> None:
    assert find_changes(QUIET[name]) == ()


# --- What is one ---


@pytest.mark.parametrize("share", [0.05, -0.05, 0.5, 20.0])
def test_a_step_is_found_where_it_is(share: float) -> None:
    (found,) = find_changes(level(100) * step(100, 60, share))
    assert (found.kind, found.index, found.end) == ("step", 60, 60)
    assert found.low <= 60 <= found.high
    assert found.ratio == pytest.approx(1 + share, rel=0.01)
    assert found.before == pytest.approx(5e6, rel=0.005)
    assert found.after == pytest.approx(5e6 * (1 + share), rel=0.005)
    assert found.p < 1e-6


def test_a_step_without_noise() -> None:
    (found,) = find_changes(np.full(40, 5e6) * step(40, 25, 0.001))
    assert (found.kind, found.index, found.low, found.high) == ("step", 25, 25, 25)
    assert found.ratio == pytest.approx(1.001)


def test_a_new_level_counts_from_its_third_point() -> None:
    series = level(103, seed=3) * step(103, 97, 0.05)
    found = [find_changes(series[:size]) for size in range(97, 104)]
    assert [len(one) for one in found] == [0, 0, 0, 1, 1, 1, 1]
    assert {one[0].index for one in found[3:]} == {97}


def test_a_step_is_found_among_spikes() -> None:
    (found,) = find_changes(with_values(level(100) * step(100, 50, 0.05), [10, 33, 52, 53, 90], 1.4))
    assert (found.kind, found.index) == ("step", 50)


# Milliseconds of one program in twelve runs in a row, in two of which the machine was busy.
SPIKY_MS = np.array([531.2, 952.9, 537.6, 534.5, 702.7, 545.3, 528.5, 536.0, 533.0, 528.0, 527.3, 528.8])


@pytest.mark.parametrize("factor", [1.05, 1.1, 1.2, 1.5, 0.8])
def test_a_step_in_a_real_series_with_spikes(factor: float) -> None:
    (found,) = find_changes(np.concatenate([SPIKY_MS, SPIKY_MS * factor]))
    assert found.kind == "step"
    assert found.low <= 12 <= found.high
    assert found.ratio == pytest.approx(factor, rel=0.005)
    assert found.before == pytest.approx(float(np.median(SPIKY_MS)), rel=0.005)


@pytest.mark.parametrize("times", [1, 2, 5])
def test_the_same_series_without_a_step(times: int) -> None:
    assert find_changes(np.tile(SPIKY_MS, times)) == ()


# --- Levels ---


def test_levels_are_medians_so_spikes_do_not_move_them() -> None:
    series = with_values(level(100, width=0.002) * step(100, 50, 0.05), [*range(3, 50, 9), *range(56, 100, 9)], 1.8)
    (found,) = find_changes(series)
    assert found.before == pytest.approx(float(np.median(series[20:50])), rel=1e-6)
    assert found.after == pytest.approx(float(np.median(series[50:80])), rel=1e-6)
    assert found.ratio == pytest.approx(1.05, rel=0.002)


def test_a_level_ends_at_the_next_change() -> None:
    series = level(100) * step(100, 50, 0.06) * step(100, 60, 0.05)
    first, second = find_changes(series)
    assert first.after == pytest.approx(second.before)
    assert second.before == pytest.approx(float(np.median(series[50:60])), rel=1e-5)


def test_levels_of_a_drift_are_those_at_its_ends() -> None:
    series = with_values(level(200, width=0.002) * ramp(200, 80, 140, 0.06), [60, 70, 75, 150, 155, 160], 1.8)
    (found,) = find_changes(series)
    assert found.kind == "drift"
    assert found.before == pytest.approx(5e6, rel=0.002)
    assert found.after == pytest.approx(5.3e6, rel=0.002)


def test_several_steps() -> None:
    series = level(200) * step(200, 40, 0.05) * step(200, 90, 0.06) * step(200, 150, -0.04)
    found = find_changes(series)
    assert kinds(found) == ["step"] * 3
    assert [one.index for one in found] == pytest.approx([40, 90, 150], abs=1)
    assert [one.ratio for one in found] == pytest.approx([1.05, 1.06, 0.96], rel=0.01)


def test_a_regression_and_its_repair_are_two() -> None:
    there, back = find_changes(level(100) * step(100, 50, 0.06) * step(100, 60, 1 / 1.06 - 1))
    assert (there.index, back.index) == (50, 60)
    assert there.ratio > 1.04
    assert back.ratio < 0.96


def test_a_slow_regression_is_a_drift() -> None:
    (found,) = find_changes(level(200) * ramp(200, 80, 150, 0.06))
    assert found.kind == "drift"
    assert found.low <= 81 <= found.high
    assert abs(found.index - 81) < 15
    assert abs(found.end - 150) < 15
    assert found.ratio == pytest.approx(1.06, rel=0.01)


def test_a_drift_that_goes_on_is_found_before_it_ends() -> None:
    (found,) = find_changes(level(200) * ramp(200, 140, 199, 0.05))
    assert found.kind == "drift"
    assert found.end == pytest.approx(199, abs=12)


def test_a_step_within_a_drift_is_told_apart() -> None:
    found = find_changes(level(300, width=0.005) * ramp(300, 60, 240, 0.06) * step(300, 150, 0.05))
    assert sorted(kinds(found)) == ["drift", "step"]
    stepped = next(one for one in found if one.kind == "step")
    assert abs(stepped.index - 150) <= 1
    assert stepped.ratio == pytest.approx(1.05, rel=0.02)


def test_what_the_engineers_of_iree_missed() -> None:
    """A drift of 2.3 % in five weeks, and a step of 3.8 %, both unseen under a limit of 10 % (iree#24258, #24259)."""
    drifting = find_changes(level(150, seed=5) * ramp(150, 80, 115, 0.023))
    stepping = find_changes(level(60, seed=5) * step(60, 55, 0.038))
    assert [one.ratio for one in drifting] == pytest.approx([1.023], abs=0.01)
    assert [(one.kind, one.index) for one in stepping] == [("step", 55)]


# --- What holds for every series ---

SEEDS = st.integers(min_value=0, max_value=10_000)


@given(st.lists(st.floats(min_value=5e-324, max_value=1.7e308, allow_nan=False), max_size=60), st.booleans())
@settings(max_examples=80, deadline=None)
def test_any_positive_numbers_have_an_answer(values: list[float], exact: bool) -> None:
    for one in find_changes(np.array(values), exact=exact):
        assert 1 <= one.low <= one.index <= one.high < len(values)
        assert one.index <= one.end < len(values)
        assert 0 <= one.p <= 1


@given(st.lists(st.sampled_from([1.0, 1.01, 1.02, 2.0]), max_size=80))
@settings(max_examples=80, deadline=None)
def test_numbers_that_repeat_have_an_answer(values: list[float]) -> None:
    found = find_changes(np.array(values))
    assert [one.index for one in found] == sorted(one.index for one in found)


@given(st.integers(min_value=0, max_value=300), st.floats(min_value=1e-9, max_value=1e9))
@settings(max_examples=50, deadline=None)
def test_a_constant_series_has_no_change(size: int, value: float) -> None:
    assert find_changes(np.full(size, value)) == ()
    assert find_changes(np.full(size, value), exact=True) == ()


@given(SEEDS, st.floats(min_value=1e-12, max_value=1e12), st.floats(min_value=-0.2, max_value=0.2))
@settings(max_examples=30, deadline=None)
def test_the_unit_does_not_matter(seed: int, unit: float, share: float) -> None:
    series = level(80, seed=seed) * step(80, 50, share)
    found, scaled = find_changes(series), find_changes(series * unit)
    assert [(one.kind, one.index, one.low, one.high) for one in found] == [
        (one.kind, one.index, one.low, one.high) for one in scaled
    ]
    assert [one.after * unit for one in found] == pytest.approx([one.after for one in scaled])


@given(SEEDS, st.integers(min_value=20, max_value=60))
@settings(max_examples=20, deadline=None)
def test_a_plain_step_is_the_same_backwards(seed: int, index: int) -> None:
    series = level(80, seed=seed) * step(80, index, 0.1)
    ahead = [one for one in find_changes(series) if one.ratio > 1.05]
    back = [one for one in find_changes(series[::-1].copy()) if one.ratio < 0.95]
    assert [one.index for one in ahead] == [80 - one.index for one in back] == [index]


@given(SEEDS, st.integers(min_value=1, max_value=100))
@settings(max_examples=20, deadline=None)
def test_a_longer_past_moves_a_plain_step(seed: int, more: int) -> None:
    series = level(60 + more, seed=seed) * step(60 + more, 40 + more, 0.1)
    (short,) = (one for one in find_changes(series[more:]) if one.ratio > 1.05)
    (longer,) = (one for one in find_changes(series) if one.ratio > 1.05)
    assert longer.index == short.index + more


@pytest.mark.parametrize(
    ("values", "exact"),
    [([1.0, np.nan], False), ([1.0, np.inf], True), ([1.0, 0.0], False), ([1.0, -1.0], True), ([[1.0, 2.0]], False)],
)
def test_what_is_no_series_is_refused(values: list[float], exact: bool) -> None:
    with pytest.raises(ValueError, match="series"):
        find_changes(np.array(values), exact=exact)
