"""A series over time: its levels, where a change may have begun, and what the machine did meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

import numpy as np
import pandas as pd
import pytest

from harness.plots.canvas import DARK, LIGHT, THEMES, Theme
from harness.plots.timeline import draw_timeline, timeline_of
from harness.stats.change_points import ChangePoint
from tests.plots.conftest import NASTY_NAME, assert_readable, texts_of, written_in

STEP = ChangePoint(kind="step", index=12, low=11, high=13, end=12, before=76e6, after=80.5e6, p=1e-6)
DRIFT = ChangePoint(kind="drift", index=5, low=3, high=8, end=18, before=76e6, after=80e6, p=1e-6)


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
    made: pd.DataFrame = pd.DataFrame(
        [
            {
                "run": f"run-{number}",
                "started": f"{(first + timedelta(days=number)).isoformat()}+00:00",
                "suite": "esrgan",
                "case": case,
                "machine_class": "AMD EPYC 7B13, 2 cores",
                "metric": metric,
                "unit": unit,
                "value": float(value),
                "low": value * (1 - band) if band else None,
                "high": value * (1 + band) if band else None,
                "toolchain": toolchain(number)[0],
                "revision": toolchain(number)[1],
            }
            for number, value in enumerate(values)
        ]
    )
    return made


VALUES = [76e6 + 1e5 * (number % 3) for number in range(12)] + [80.5e6 + 1e5 * (number % 3) for number in range(12)]


def test_a_step_in_words() -> None:
    line = timeline_of(make_points(VALUES), [STEP])
    assert line.title == "rdb/stock@cpu: median latency"
    assert line.verdict == "1 step in 24 runs."
    assert line.axis == "median latency, ms"
    assert line.story == (
        "▲ +5.9 %, 76.00 to 80.50 ms, from 2026-06-13 on (first in run run-12; 95 % range 2026-06-12 to 2026-06-14).",
    )
    assert line.amounts == ("▲ +5.9 %",)
    assert [(change.before, change.after) for change in line.changes] == [(76.0, 80.5)]


def test_causes_stand_behind_their_changes() -> None:
    first, second = timeline_of(make_points(VALUES), [DRIFT, STEP], causes=["machine", "compiler"]).story
    assert first.endswith("2026-06-14); cause: compiler.")
    assert second.endswith("; cause: machine.")


def test_a_drift_and_no_change_in_words() -> None:
    line = timeline_of(make_points(VALUES), [DRIFT])
    assert line.verdict == "1 drift in 24 runs."
    assert "drifting from 2026-06-06 to 2026-06-19" in line.story[0]
    quiet = timeline_of(make_points(VALUES[:1]), [])
    assert quiet.verdict == "No step or drift in 1 run."
    assert "1 run on 2026-06-01" in quiet.method


def test_the_reference_is_that_of_the_same_runs() -> None:
    reference = make_points([70e6] * 24).drop(index=[3])
    line = timeline_of(make_points(VALUES[:6]), [], reference)
    assert line.reference.tolist() == pytest.approx([70.0, 70.0, 70.0, float("nan"), 70.0, 70.0], nan_ok=True)


def test_a_toolchain_is_ticked_where_it_begins() -> None:
    builds = [("3.12.0", "aaaaaaaaaa"), ("3.13.0", "bbbbbbbbbb"), ("3.13.0", "cccccccccc")]
    line = timeline_of(make_points([1e6] * 9, toolchain=lambda number: builds[number // 3]), [])
    assert line.toolchains == ((0, "3.12.0"), (3, "3.13.0"), (6, "cccccccc"))


def test_counted_figures_change_by_a_number_too() -> None:
    points = make_points([14] * 4 + [19] * 4, metric="dispatches", unit="count", band=None)
    change = ChangePoint(kind="step", index=4, low=4, high=4, end=4, before=14, after=19, p=0.0)
    line = timeline_of(points, [change])
    assert line.amounts == ("▲ +35.7 % (+5)",)
    assert line.axis == "dispatch count"
    assert line.band == ""
    from_nothing = ChangePoint(kind="step", index=4, low=4, high=4, end=4, before=0, after=19, p=0.0)
    assert timeline_of(points, [from_nothing]).amounts == ("▲ from nothing (+19)",)


def test_a_lone_spike_does_not_press_the_others_into_a_line() -> None:
    line = timeline_of(make_points([*VALUES[:12], 5e9, *VALUES[:12]]), [])
    assert line.limits[1] < 100


@pytest.mark.parametrize("theme", THEMES.values(), ids=THEMES)
def test_a_picture_in_both_themes(theme: Theme) -> None:
    svg = draw_timeline(make_points(VALUES), [STEP], theme, "svg", reference=make_points([78e6] * 24))
    assert_readable(svg)
    texts = texts_of(svg)
    for shown in ("rdb/stock@cpu: median latency", "▲ +5.9 %", "median latency, ms", "2026-06-01", "3.13.0"):
        assert shown in texts
    assert any("Grey: the reference toolchain" in text for text in texts)
    assert theme.tones["worse"] in {text.color for text in written_in(svg)}


def test_many_changes_and_many_toolchains_leave_no_text_on_another() -> None:
    values = np.repeat([60e6, 70e6, 65e6, 75e6] * 10, 6)
    changes = [
        ChangePoint(
            kind="step", index=at, low=at, high=at, end=at, before=float(values[at - 1]), after=float(values[at]), p=0.0
        )
        for at in range(6, len(values), 6)
    ]
    points = make_points(list(values), toolchain=lambda number: ("3.13.0", f"{number:010x}"))
    svg = draw_timeline(points, changes, DARK, "svg")
    assert_readable(svg)
    assert "And 33 more before." in texts_of(svg)


def test_equal_points_give_equal_bytes_and_names_stay_names() -> None:
    points = make_points(
        VALUES, case=NASTY_NAME, metric="odd/" + "m" * 300, toolchain=lambda _: (NASTY_NAME, NASTY_NAME)
    )
    assert draw_timeline(points, [STEP, DRIFT], LIGHT, "svg") == draw_timeline(points, [STEP, DRIFT], LIGHT, "svg")
    svg = draw_timeline(points, [DRIFT], LIGHT, "svg")
    assert_readable(svg)
    assert b"<script" not in svg


@pytest.mark.parametrize("values", [[5e6], [5e6] * 3, [0.0, 0.0], [1e-3, 1e15]])
def test_any_values_have_an_axis(values: list[float]) -> None:
    assert_readable(draw_timeline(make_points(values), [], LIGHT, "svg"))
