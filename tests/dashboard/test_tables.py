"""What pages load: columns lose nothing that anybody can see, and lists, series and runs say what they should."""

import json
import math
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.dashboard.encode import column, key_of, script
from tests.dashboard.made import HOSTILE, NIGHTS, STEP_AT, decode, digest, key_of_series, load, run_id, table


@given(st.lists(st.floats() | st.integers(0, 2**52), max_size=40))
def test_figures_keep_six_digits_and_whole_numbers_all(values: list[float]) -> None:
    for value, read in zip(values, decode(column(values), len(values)), strict=True):
        if not math.isfinite(value):
            assert read is None
        elif value == int(value) and abs(value) < 2**53:
            assert read == value
        else:
            assert read == pytest.approx(value, rel=5.1e-7)


@given(st.text() | st.sampled_from(HOSTILE))
def test_a_script_holds_nothing_that_could_end_it(text: str) -> None:
    written = script("run/0123456789abcdef", {"name": text})
    assert written.isascii()
    assert "<" not in written
    assert "\n" not in written[:-1]
    assert json.loads(written.partition(",")[2][: -len(");\n")]) == {"name": text}


@given(st.text() | st.sampled_from(["../../etc/passwd", "00ff00ff00ff00ff\n"]))
def test_names_of_files_are_hex_whatever_is_named(text: str) -> None:
    assert re.fullmatch("[0-9a-f]{16}", key_of(text))
    assert key_of(key_of(text)) == key_of(text)  # an id that is hex stays


def test_a_series_has_its_points_changes_and_the_reference_beside_it(site: Path) -> None:
    series = load(site, f"series/{key_of_series('rdb/stock@cpu')}")
    points = table(series["points"])
    runs = table(load(site, "runs"))
    assert len(points["value"]) == NIGHTS
    assert [runs["run"][run] for run in points["run"]][STEP_AT] == run_id(STEP_AT)
    assert points["value"][STEP_AT] == pytest.approx(4.32e7, rel=0.01)
    assert points["low"][0] == pytest.approx(0.99 * points["value"][0], rel=1e-6)
    assert points["high"][0] == pytest.approx(1.015 * points["value"][0], rel=1e-6)
    assert "toolchain" not in points  # they are those of the runs
    assert series["references"] == [digest("blocks rdb/stock@cpu latency reference")]
    assert series["repro"] == "harness export suites/blocks.toml rdb\n# IREE 3.14.0rc20260301\niree-compile m.mlir"
    (change,) = series["changes"]
    assert runs["run"][change["first_bad"]] == run_id(STEP_AT)
    assert change["worse"] is True
    # From nothing to something there is no ratio; a series of another engine has that one's version.
    (change,) = load(site, f"series/{key_of_series('mlp/stock@cpu', 'dispatches')}")["changes"]
    assert change["ratio"] is None
    assert (change["before"], change["after"]) == (0, 3)
    points = table(load(site, f"series/{key_of_series('rdb/onnxruntime@cpu')}")["points"])
    assert set(points["toolchain"]) == {"ONNX Runtime 1.31.1"}


def test_a_run_has_its_cases_and_each_figure_beside_that_of_the_run_before(site: Path) -> None:
    run = load(site, f"run/{digest(run_id(STEP_AT))}")
    cases = table(run["cases"])
    names = table(load(site, "series")["names"])
    latency = table(next(metric for metric in run["metrics"] if metric["metric"] == "latency"))
    case_names = [names["case"][name] for name in cases["name"]]
    failed = case_names.index("conv/fused@cpu")
    assert (cases["status"][failed], cases["stage"][failed]) == ("failed", "compile")
    moved = {
        case_names[int(row)]: change
        for row, change in zip(latency["case"], latency["change"], strict=True)
        if row >= 0 and cases["role"][int(row)] == "newest"
    }
    assert moved["rdb/stock@cpu"] == pytest.approx(1.08, abs=0.02)
    assert moved["conv/stock@cpu"] == pytest.approx(1.0, abs=0.02)


def test_commands_are_kept_once_for_all_nights_with_each_ones_toolchain(site: Path) -> None:
    key = digest("blocks\0rdb/stock@cpu")
    assert load(site, f"commands/{key}") == {
        "commands": ["harness export suites/blocks.toml rdb\n# IREE \1\niree-compile m.mlir"]
    }
