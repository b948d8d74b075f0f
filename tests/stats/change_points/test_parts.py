"""The pieces of the search, each against what it stands for."""

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
    least_gain,
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


def test_the_table_holds_for_noise_that_was_not_in_it() -> None:
    """One of 200 is expected at the worst; more than 4 would be one case in 270."""
    for lag in (0.0, 0.6):
        gains = [evidence(path(pull_in_spikes(autocorrelated(60, lag, seed)), 9.0)) for seed in range(200)]
        assert sum(gain > least_gain(60) for gain in gains) <= 4
