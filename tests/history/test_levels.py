"""Where the two levels of a change are, how far another figure moved between them, and whether that explains it."""

import math

import numpy as np
import pytest

from harness.history.levels import Movement, SeriesChange, movement_between, movement_of
from harness.history.series import SeriesValues
from harness.stats.change_points.find import find_changes
from tests.history.made import make_series

QUIET = [1.0, 1.002, 0.998, 1.001, 0.999, 1.003]
NOISY = [1.0, 1.1, 0.9, 1.07, 0.95, 1.02]


def moved(before: list[float], after: list[float]) -> Movement:
    found = movement_between(before, after)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("movement", "change", "explains", "is_most", "is_little"),
    [
        (moved(QUIET, [1.04 * value for value in QUIET]), 1.04, True, True, False),
        (moved(QUIET, [1.04 * value for value in QUIET]), 1.12, True, False, True),  # a good part, and not the most
        (moved(QUIET, [1.04 * value for value in QUIET]), 0.96, False, False, True),  # the other way
        (moved(QUIET, [1.04 * value for value in QUIET]), 1.5, False, False, True),  # far too little
        (moved(NOISY, [1.02 * value for value in NOISY]), 1.02, False, False, False),  # within its noise
        (moved([1.0], [1.04]), 1.04, False, False, False),  # two points alone explain large changes only
        (moved([1.0], [1.5]), 1.5, True, True, False),
    ],
)
def test_what_a_movement_explains(
    movement: Movement, change: float, explains: bool, is_most: bool, is_little: bool
) -> None:
    by = math.log(change)
    assert (movement.explains(by), movement.is_most_of(by), movement.is_little_of(by)) == (explains, is_most, is_little)
    assert movement_between([], QUIET) is movement_between(QUIET, []) is None


def changes_in(values: np.ndarray, runs: np.ndarray) -> tuple[SeriesValues, list[SeriesChange]]:
    """A series with a point in these runs, and its changes."""
    series = SeriesValues(series="aa", places=runs, values=values)
    points, row = find_changes(values), make_series("aa")
    return series, [SeriesChange(row=row, values=series, points=points, place=place) for place in range(len(points))]


def noise(size: int) -> np.ndarray:
    return 1 + 0.002 * np.random.default_rng(7).standard_normal(size)


def test_levels_reach_up_to_thirty_runs_and_to_the_changes_next_to_them() -> None:
    values = noise(90) * np.repeat([1.0, 1.1, 1.0], [50, 20, 20])

    _, (first, second) = changes_in(values, 2 * np.arange(90))

    assert (first.run(first.last_good), first.run(first.point.index)) == (98, 100)
    assert first.levels[0].tolist() == list(range(40, 100, 2))
    assert first.levels[1].tolist() == list(range(100, 140, 2))
    assert [level.tolist() for level in second.levels] == [list(range(100, 140, 2)), list(range(140, 180, 2))]


def test_what_a_step_inside_a_drift_did_is_taken_off_the_drift() -> None:
    inside = np.where(np.arange(90) >= 45, 1.05, 1.0)
    series, changes = changes_in(noise(90) * (1 + 0.08 * np.arange(90) / 90) * inside, np.arange(90))

    (drift,) = [change for change in changes if change.point.kind == "drift"]
    (step,) = drift.steps_inside
    whole, of_step = movement_of(series, drift), movement_of(series, step)

    assert step.point.index == 45
    assert all(level.size <= 6 for level in step.levels)  # inside a drift a level does not stay
    assert whole is not None and of_step is not None
    assert of_step.ratio == pytest.approx(1.05, abs=0.01)
    assert whole.ratio == pytest.approx(1.07, abs=0.015)
    for kept in (series.places < 40, np.abs(series.places - 45) > 8):  # no point after the drift, or around the step
        other = SeriesValues(series="bb", places=series.places[kept], values=series.values[kept])
        assert movement_of(other, drift) is None
