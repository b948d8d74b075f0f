"""Which series `--series` means."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from harness.errors import UsageError
from harness.history.series import SeriesRow
from harness.plots.series_choice import choose_series, reference_of


def make_series(series: str, **facts: Any) -> SeriesRow:
    """A series of a stock case under the newest toolchain."""
    row = SeriesRow(
        series=series,
        suite="esrgan",
        case="rdb/stock@cpu",
        case_id="c1",
        model="rdb",
        variant="stock",
        device="cpu",
        peer="",
        role="newest",
        machine_class="AMD EPYC, 2 cores",
        metric="latency",
        unit="ns",
        points=30,
        first_run="a",
        last_run="b",
        last_value=1e6,
    )
    return replace(row, **facts)


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


@pytest.mark.parametrize(
    ("rows", "wanted", "said"),
    [
        (
            [LATENCY, make_series("ee", machine_class="Ampere Altra, 80 cores")],
            "rdb/stock@cpu",
            r"2 to choose from: aa \(AMD EPYC, 2 cores\), ee \(Ampere Altra, 80 cores\)",
        ),
        (ROWS, None, r"^results: --series is missing, and there are 4 to choose from: aa \("),
        (ROWS, "rdb/stok@cpu", r"--series rdb/stok@cpu: is no series' id .*; near are rdb/stock@cpu"),
        ([], "x", "has no series yet"),
    ],
)
def test_what_is_no_choice_is_told_in_a_sentence(rows: list[SeriesRow], wanted: str | None, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        choose_series(rows, wanted, "results")


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
