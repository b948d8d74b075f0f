"""Which series a text means, and in which order they are shown."""

from __future__ import annotations

import shlex

import pytest

from harness.history.series import history_command_line, match_series
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
