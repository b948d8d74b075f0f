"""The pieces of the search, each against what it stands for."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.stats.change_points.model import (
    Drift,
    Shape,
    Step,
    drift_places,
    evidence,
    fit,
    path,
    plateau_places,
    step_places,
)
from harness.stats.change_points.noise import (
    ALPHA,
    innovation_power,
    lag_one,
    least_gain,
    noise_width,
    p_of,
    pull_in_spikes,
)
from harness.stats.pairing import FloatArray


def noise(size: int, seed: int = 0, width: float = 1.0) -> FloatArray:
    return np.random.default_rng(seed).normal(0, width, size)


def autocorrelated(size: int, lag: float, seed: int = 0) -> FloatArray:
    fresh = noise(size, seed, math.sqrt(1 - lag**2))
    values = np.empty(size)
    last = 0.0
    for place in range(size):
        last = values[place] = lag * last + fresh[place]
    return values


# --- Noise ---


@pytest.mark.parametrize("share", [0.6, 0.9, 0.95])
def test_the_width_of_noise_does_not_see_steps_drifts_and_few_spikes(share: float) -> None:
    values = noise(2000)
    assert noise_width(values, share) == pytest.approx(1, rel=0.06)
    changed = values + 20.0 * (np.arange(2000) > 700) + np.arange(2000) / 100
    changed[::100] += 50
    assert noise_width(changed, share) == pytest.approx(1, rel=0.2)
    values[::8] += 50  # a lower share bears more spikes
    assert (noise_width(values, share) < 1.6) == (share == 0.6)


def test_spikes_are_pulled_in_and_levels_stay() -> None:
    steps = np.repeat([0.0, 5.0, 2.0], [60, 5, 60])
    spiked = steps.copy()
    spiked[[4, 10, 11, 90]] = [40, -40, 40, 9]
    assert pull_in_spikes(spiked).tolist() == steps.tolist()
    ends = np.repeat([7.0, 0.0, 7.0], [3, 40, 3])
    assert pull_in_spikes(ends).tolist() == ends.tolist()
    pairs = np.repeat([7.0, 0.0, 7.0], [2, 20, 2])
    assert pull_in_spikes(pairs).tolist() == [0.0] * 24


def test_what_autocorrelation_explains_is_not_new() -> None:
    slow = autocorrelated(5000, 0.6)
    assert lag_one(slow) == pytest.approx(0.6, abs=0.05)
    assert innovation_power(slow) / 5000 == pytest.approx(1 - 0.36, rel=0.1)
    assert lag_one(np.tile([1.0, -1.0], 50)) == 0  # neighbours that avoid each other make no change likelier


# --- Shapes ---

SHAPES = st.one_of(
    st.builds(Step, index=st.integers(min_value=3, max_value=37)),
    st.builds(lambda start, length: Drift(start=start, end=start + length), st.integers(0, 19), st.just(20)),
)


def power(values: FloatArray, shapes: list[Shape]) -> float:
    """Sum of squares that a model leaves, by numpy's own least squares."""
    design = np.column_stack([np.ones(values.size), *(shape.column(values.size) for shape in shapes)])
    best = design @ np.linalg.lstsq(design, values, rcond=None)[0]
    return float(((values - best) ** 2).sum())


@given(st.integers(0, 1000), st.lists(SHAPES, max_size=3, unique=True))
@settings(max_examples=60, deadline=None)
def test_gains_are_what_least_squares_gives(seed: int, shapes: list[Shape]) -> None:
    values = noise(40, seed)
    model = fit(values, shapes)
    sums, left = model.sums(), power(values, shapes)
    assert float(model.residuals @ model.residuals) == pytest.approx(left)
    one = step_places(40)[::7]
    start, end = (places[::29] for places in plateau_places(40))
    begin, finish = (places[::11] for places in drift_places(40))
    tried: list[tuple[FloatArray, list[list[FloatArray]]]] = [
        (sums.steps(one), [[Step(index=int(at)).column(40)] for at in one]),
        (
            sums.plateaus(start, end),
            [[Step(index=int(a)).column(40) - Step(index=int(b)).column(40)] for a, b in zip(start, end, strict=True)],
        ),
        (
            sums.drifts(begin, finish),
            [[Drift(start=int(a), end=int(b)).column(40)] for a, b in zip(begin, finish, strict=True)],
        ),
    ]
    known = [np.ones(40), *(shape.column(40) for shape in shapes)]
    for gains, columns in tried:
        for gain, (column,) in zip(gains, columns, strict=True):
            design = np.column_stack([*known, column])
            best = design @ np.linalg.lstsq(design, values, rcond=None)[0]
            expected = left - float(((values - best) ** 2).sum())
            assert gain == pytest.approx(expected, abs=1e-6) or gain == 0.0  # 0: hardly differs from the model's own


# --- Prices ---


def test_p_is_alpha_at_the_price_and_falls_beyond() -> None:
    for size in (8, 25, 100, 777, 5000):
        price = least_gain(size)
        assert p_of(price, size) == pytest.approx(ALPHA)
        assert p_of(price + 5, size) < ALPHA / 10
        assert p_of(0.0, size) <= 1


def test_the_table_holds_for_noise_that_was_not_in_it() -> None:
    """One of 200 is expected at the worst; more than 4 would be one case in 270."""
    for lag in (0.0, 0.6):
        gains = [evidence(path(pull_in_spikes(autocorrelated(60, lag, seed)), 9.0)) for seed in range(200)]
        assert sum(gain > least_gain(60) for gain in gains) <= 4
