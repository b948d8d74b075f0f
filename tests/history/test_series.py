"""Which series a text means, in which order they are shown, and what runs recorded of their machine."""

from __future__ import annotations

import shlex
from dataclasses import replace

import pytest

from harness.history.series import RunFacts, history_command_line, match_series
from tests.plots.test_series_choice import make_series

LATENCY = make_series("aa")
REFERENCE = make_series("bb", role="reference")
DISPATCHES = make_series("cc", metric="dispatches", unit="count")
RATIO = make_series("dd", metric="latency-vs-reference", unit="ratio")
BASELINE = make_series("ee", metric="latency-vs-baseline", unit="ratio")
TILED = make_series("ff", case="rdb/tiled@cpu", case_id="c2")
ODD = make_series("gg", case="rdb/[x]@cpu", metric="flow/flow.dispatch", unit="count")
ROWS = [BASELINE, DISPATCHES, REFERENCE, ODD, RATIO, TILED, LATENCY]


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ("aa", [LATENCY]),
        ("rdb/stock@cpu", [LATENCY, REFERENCE, RATIO, BASELINE, DISPATCHES]),
        ("rdb/stock@cpu latency", [LATENCY, REFERENCE]),
        ("rdb/stock@cpu/latency", [LATENCY, REFERENCE]),
        ("*/latency", [LATENCY, REFERENCE, TILED]),
        ("rdb/* latency", [LATENCY, REFERENCE, TILED]),
        ("rdb/*", [LATENCY, REFERENCE, TILED, RATIO, BASELINE, ODD, DISPATCHES]),
        ("rdb/[x]@cpu", [ODD]),  # a name, and no pattern
        ("rdb/[x]@cpu/flow/flow.dispatch", [ODD]),
        ("RDB/*", []),
        ("", []),
    ],
)
def test_ids_names_and_patterns(wanted: str, found: list[object]) -> None:
    assert match_series(ROWS, wanted) == found


def test_only_some_metrics() -> None:
    assert match_series(ROWS, "rdb/stock@cpu", ["dispatches", "latency-vs-baseline"]) == [BASELINE, DISPATCHES]


def test_a_hint_names_the_folder_so_that_a_shell_takes_it() -> None:
    line = history_command_line("my nights", "--sql", "SELECT 'x'").strip("`")
    assert shlex.split(line) == ["harness", "history", "my nights", "--sql", "SELECT 'x'"]
    assert history_command_line("results", "--columns") == "`harness history --columns`"
    assert "secret" not in history_command_line("https://user:secret@host/x")


FACTS = RunFacts(
    started="2026-01-01T02:00:00+00:00",
    machine="3f2a91c04b7e",
    kernel="6.1.0",
    devices="cpu: this CPU; gpu: Radeon; driver: 24.1; gpu-2: A4000, Vulkan 1.3",
    commit="35217dcf00",
    load=0.4,
    reference="",
)


@pytest.mark.parametrize(
    ("device", "driver"),
    [("cpu", "this CPU"), ("gpu-2", "A4000, Vulkan 1.3"), ("2", ""), ("tpu", "")],
)
def test_a_case_is_explained_by_the_driver_of_its_own_device_alone(device: str, driver: str) -> None:
    assert FACTS.driver(device) == driver


def test_runs_that_record_no_device_say_nothing_of_it() -> None:
    assert replace(FACTS, devices="").driver("cpu") == ""
