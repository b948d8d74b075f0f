"""Which series `--series` means."""

from __future__ import annotations

from typing import Any

import pytest

from harness.errors import UsageError
from harness.history.series import SeriesRow
from harness.plots.series_choice import choose_series, reference_of


def make_series(series: str, **given: Any) -> SeriesRow:
    facts: dict[str, Any] = {
        "series": series,
        "suite": "esrgan",
        "case": "rdb/stock@cpu",
        "case_id": "c1",
        "model": "rdb",
        "variant": "stock",
        "device": "cpu",
        "peer": "",
        "role": "newest",
        "machine_class": "AMD EPYC, 2 cores",
        "metric": "latency",
        "unit": "ns",
        "points": 30,
        "first_run": "a",
        "last_run": "b",
        "last_value": 1e6,
    }
    return SeriesRow(**{**facts, **given})


LATENCY = make_series("aa")
REFERENCE = make_series("bb", role="reference")
DISPATCHES = make_series("cc", metric="dispatches", unit="count")
TILED = make_series("dd", case="rdb/tiled@cpu", case_id="c2")
ROWS = [DISPATCHES, LATENCY, REFERENCE, TILED]


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ("bb", REFERENCE),
        ("rdb/stock@cpu", LATENCY),
        ("rdb/stock@cpu/latency", LATENCY),
        ("rdb/stock@cpu/dispatches", DISPATCHES),
        ("rdb/stock@cpu dispatches", DISPATCHES),
        ("rdb/st*", LATENCY),
        ("rdb/stock@cpu disp*", DISPATCHES),
        ("rdb/tiled@cpu", TILED),
    ],
)
def test_by_id_or_by_case_and_metric(wanted: str, found: SeriesRow) -> None:
    assert choose_series(ROWS, wanted, "results") == found


def test_one_series_needs_no_name() -> None:
    assert choose_series([TILED], None, "results") == TILED


def test_several_are_told_by_what_differs() -> None:
    other = make_series("ee", machine_class="Ampere Altra, 80 cores")
    with pytest.raises(UsageError, match=r"2 to choose from: aa \(AMD EPYC, 2 cores\), ee \(Ampere Altra, 80 cores\)"):
        choose_series([LATENCY, other], "rdb/stock@cpu", "results")


def test_without_a_name_latencies_are_offered_first() -> None:
    with pytest.raises(UsageError, match=r"^results: --series is missing, and there are 4 to choose from: aa \("):
        choose_series(ROWS, None, "results")


def test_a_name_that_is_nearly_right() -> None:
    with pytest.raises(UsageError, match=r"--series rdb/stok@cpu: is no series' id .*; near are rdb/stock@cpu"):
        choose_series(ROWS, "rdb/stok@cpu", "results")


def test_an_empty_history() -> None:
    with pytest.raises(UsageError, match="has no series yet"):
        choose_series([], "x", "results")


def test_the_reference_is_the_same_cases_on_the_same_machines() -> None:
    elsewhere = make_series("ff", role="reference", machine_class="Ampere Altra, 80 cores", points=900)
    longer = make_series("gg", role="reference", points=90)
    assert reference_of([*ROWS, elsewhere, longer], LATENCY) == longer
    assert reference_of(ROWS, TILED) is None
    assert reference_of(ROWS, REFERENCE) is None


def test_messages_name_a_command_that_lists_all_and_never_a_password() -> None:
    for wanted in (None, "nobody"):
        with pytest.raises(UsageError, match=r"`harness history https://\.\.\.@host/x --sql .* lists") as caught:
            choose_series(ROWS, wanted, "https://user:secret@host/x")
        assert "secret" not in str(caught.value)
