"""How often changes are found, in small: the tables of docs/history.md have the figures, these are their guards.

All seeds are fixed; the bounds leave room for another numpy, not for another rule.
"""

import math
from collections.abc import Callable

import numpy as np
import pytest

from harness.stats.change_points import ChangePoint, find_changes
from harness.stats.change_points.model import evidence, least_gain, path, pull_in_spikes
from harness.stats.pairing import FloatArray

Random = np.random.Generator
MANY = 100


def play(make: Callable[[Random], FloatArray], many: int = MANY) -> list[tuple[ChangePoint, ...]]:
    return [find_changes(5e6 * np.exp(make(np.random.default_rng([7, number])))) for number in range(many)]


def white(random: Random, size: int = 100, width: float = 0.01) -> FloatArray:
    return random.normal(0, width, size)


def slow(random: Random, lag: float, size: int = 100) -> FloatArray:
    values, last = np.empty(size), 0.0
    for place, fresh in enumerate(random.normal(0, 0.01 * np.sqrt(1 - lag**2), size)):
        last = values[place] = lag * last + fresh
    return values


def often_spiked(random: Random, share: float) -> FloatArray:
    return np.asarray(white(random) + np.log(1.5) * (random.random(100) < share), dtype=np.float64)


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(white, id="white"),
        pytest.param(lambda random: 0.01 * random.standard_t(3, 100), id="heavy tails"),
        pytest.param(lambda random: slow(random, 0.6), id="AR(1) 0.6"),
        pytest.param(lambda random: white(random) + 0.03 * (random.random(100) < 0.5), id="two levels"),
        pytest.param(lambda random: often_spiked(random, 0.1), id="spikes in one run of ten"),
    ],
)
def test_series_without_a_change_are_left_alone(make: Callable[[Random], FloatArray]) -> None:
    """At 1 % of series, more than 4 of 100 would be one case in 290."""
    assert sum(bool(found) for found in play(make)) <= 4


def test_slow_noise_makes_a_change_dearer() -> None:
    """Without that price, 12 of these 200 series would have one."""
    assert sum(bool(found) for found in play(lambda random: slow(random, 0.9), 200)) <= 6


STEP = math.log(1.05)


@pytest.mark.parametrize(
    ("make", "height", "index", "off", "found"),
    [
        pytest.param(white, STEP, 97, 0, 93, id="after three points"),
        pytest.param(lambda random: often_spiked(random, 0.04), STEP, 50, 5, 95, id="among spikes"),
        pytest.param(lambda random: often_spiked(random, 0.1), STEP, 50, 5, 95, id="among many spikes"),
        pytest.param(white, 0.015, 60, 25, 75, id="of one and a half widths of the noise"),
    ],
)
def test_a_step_is_found_where_it_is_and_within_its_range(
    make: Callable[[Random], FloatArray], height: float, index: int, off: int, found: int
) -> None:
    played = play(lambda random: make(random) + height * (np.arange(100) >= index))
    right = [
        change for changes in played for change in changes if change.ratio > 1 and abs(change.index - index) <= off
    ]
    assert len(right) >= found
    assert sum(change.low <= index <= change.high for change in right) >= 0.9 * len(right)
    assert float(np.median([change.ratio for change in right])) == pytest.approx(math.exp(height), abs=0.004)
    assert float(np.mean([change.high - change.low for change in right])) < 25


def test_the_table_of_prices_holds_for_noise_that_was_not_in_it() -> None:
    """One of 200 is expected at the worst; more than 4 would be one case in 270."""
    for lag in (0.0, 0.6):
        series = [slow(np.random.default_rng([8, seed]), lag, 60) for seed in range(200)]
        gains = [evidence(path(pull_in_spikes(values), 9.0)) for values in series]
        assert sum(gain > least_gain(60) for gain in gains) <= 4
