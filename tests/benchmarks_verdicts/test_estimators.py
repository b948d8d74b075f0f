"""Statistics of a generation, on rounds that say what each must give."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from benchmarks.verdicts.estimators import ESTIMATORS, load_order, place_effect
from benchmarks.verdicts.recording import Recorded
from tests.benchmarks_verdicts.conftest import side


def generation(*ratios: float) -> Recorded:
    return Recorded(
        stream="loop A/A",
        number=0,
        started_unix=0,
        seconds=1,
        load=0,
        on_calling_thread=True,
        head_first=tuple(place % 2 == 0 for place in range(len(ratios))),
        base=side(np.full(len(ratios), 1e12)),
        head=side(1e12 * np.exp(ratios)),
    )


def test_each_does_what_its_name_says() -> None:
    orders = generation(0.2, 0.0, 0.2, 0.1, 0.2, 0.0)
    found = {name: of(orders) for name, of in ESTIMATORS.items()}
    assert found["both orders' medians (used)"] == pytest.approx(0.1)
    assert found["median"] == pytest.approx(0.15)
    assert found["mean"] == pytest.approx(0.7 / 6)
    assert found["median of ABBA pairs"] == pytest.approx(0.1)
    assert found["trimmed mean (25 %)"] == pytest.approx(0.5 / 4)
    assert found["ratio of minima"] == pytest.approx(0.0)


def test_the_side_that_is_loaded_first_is_found_slower() -> None:
    stream = tuple(replace(generation(0.01 * (-1) ** (number + 1)), number=number) for number in range(20))
    effect, p = load_order(stream)
    assert effect == pytest.approx(0.01)
    assert p < 0.001


def test_the_second_turn_is_found_slower() -> None:
    slower_second = generation(-0.01, 0.01, -0.01, 0.01)  # the head comes first in even rounds
    assert place_effect([slower_second]) == pytest.approx(0.01)
    assert math.isnan(place_effect([generation(0.01)]))
