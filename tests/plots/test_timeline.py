"""A series over time: its levels, where a change may have begun, and what the machine did meanwhile."""

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any

import numpy as np
import pandas as pd
import pytest

from harness.history.changes import Change
from harness.plots.canvas import DARK, LIGHT
from harness.plots.timeline import Timeline, draw_timeline
from tests.history.made import make_change
from tests.plots.conftest import assert_readable, texts_of, written_in


def change_at(begin: int, low: int, high: int, before: float, after: float, **facts: Any) -> Change:
    """A step at a run, by its number, with the range of runs in which it may have happened."""
    runs = {"first_bad": f"run-{begin}", "until": f"run-{begin}", "earliest": f"run-{low}", "latest": f"run-{high}"}
    return make_change(before=before, after=after, **{**runs, **facts})


STEP = change_at(12, 11, 13, 76e6, 80.5e6)
DRIFT = change_at(5, 3, 8, 76e6, 80e6, kind="drift", until="run-18", cause="machine")
COUNTED: dict[str, Any] = {"metric": "dispatches", "unit": "count", "direction": "more"}
VALUES = [level + 1e5 * (number % 3) for level in (76e6, 80.5e6) for number in range(12)]


def make_points(
    values: Sequence[float],
    *,
    metric: str = "latency",
    unit: str = "ns",
    case: str = "rdb/stock@cpu",
    band: float | None = 0.01,
    toolchain: Callable[[int], tuple[str, str]] = lambda _: ("3.13.0", "e4a3b04d7a"),
) -> pd.DataFrame:
    """One run a night."""
    first = datetime(2026, 6, 1, 3, 15)
    runs = range(len(values))
    releases, revisions = zip(*map(toolchain, runs), strict=True)
    made: pd.DataFrame = pd.DataFrame(
        {
            "run": [f"run-{number}" for number in runs],
            "started": [f"{(first + timedelta(days=number)).isoformat()}+00:00" for number in runs],
            "suite": "esrgan", "case": case, "machine_class": "AMD EPYC 7B13, 2 cores", "metric": metric, "unit": unit,
            "value": [float(value) for value in values],
            "low": [value * (1 - band) if band else None for value in values],
            "high": [value * (1 + band) if band else None for value in values],
            "toolchain": releases,
            "revision": revisions,
        }
    )  # fmt: skip
    return made


def line_of(points: pd.DataFrame, *changes: Change) -> Timeline:
    return Timeline(points, changes, None)


def test_steps_and_drifts_in_words_the_latest_first_with_their_causes() -> None:
    line = line_of(make_points(VALUES), STEP, DRIFT)
    assert line.verdict == "1 step and 1 drift in 24 runs."
    step, drift = line.story()
    assert step == (
        "▲ +5.9 %, 76.00 to 80.50 ms, from 2026-06-13 on (first in run run-12; 95 % range 2026-06-12 to 2026-06-14); "
        "cause: compiler."
    )
    assert "drifting from 2026-06-06 to 2026-06-19" in drift
    assert drift.endswith("; cause: machine.")
    quiet = line_of(make_points(VALUES[:1]))
    assert quiet.verdict == "No step or drift in 1 run."
    assert "1 run on 2026-06-01" in quiet.method


def test_a_toolchain_is_ticked_where_it_begins() -> None:
    builds = [("3.12.0", "aaaaaaaaaa"), ("3.13.0", "bbbbbbbbbb"), ("3.13.0", "cccccccccc")]
    line = line_of(make_points([1e6] * 9, toolchain=lambda number: builds[number // 3]))
    assert list(line.toolchains()) == [(0, "3.12.0"), (3, "3.13.0"), (6, "cccccccc")]


@pytest.mark.parametrize(("before", "amount"), [(14, "▲ +35.7 % (+5)"), (0, "▲ from nothing (+19)")])
def test_counted_figures_change_by_a_number_too(before: float, amount: str) -> None:
    points = make_points([before] * 4 + [19] * 4, metric="dispatches", unit="count", band=None)
    change = change_at(4, 4, 4, before, 19, **COUNTED)
    line = line_of(points, change)
    assert (line.amount(change), line.axis) == (amount, "dispatch count")
    assert "Pale band" not in line.foot()


def test_a_lone_spike_does_not_press_the_others_into_a_line() -> None:
    assert line_of(make_points([*VALUES[:12], 5e9, *VALUES[:12]])).limits()[1] < 100


def test_a_picture_has_its_changes_days_toolchains_and_reference() -> None:
    svg = draw_timeline(make_points(VALUES), [STEP], make_points([78e6] * 24)).file(LIGHT, "svg")
    assert_readable(svg)
    texts = texts_of(svg)
    assert {"rdb/stock@cpu: median latency", "▲ +5.9 %", "median latency, ms", "2026-06-01", "3.13.0"} <= set(texts)
    assert any("Grey: the reference toolchain" in text for text in texts)
    assert LIGHT.tones["worse"] in {text.color for text in written_in(svg)}


def test_many_changes_and_many_toolchains_leave_no_text_on_another() -> None:
    values = np.repeat([60e6, 70e6, 65e6, 75e6] * 10, 6)
    changes = [change_at(at, at, at, float(values[at - 1]), float(values[at])) for at in range(6, len(values), 6)]
    points = make_points(list(values), toolchain=lambda number: ("3.13.0", f"{number:010x}"))
    svg = draw_timeline(points, changes).file(DARK, "svg")
    assert_readable(svg)
    assert "And 33 more before." in texts_of(svg)
