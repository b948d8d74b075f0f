"""Clocks that cannot be right are told in words, and never change the order of anything else."""

from __future__ import annotations

from datetime import datetime, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.records.run import Round
from harness.store.clock import clock_fault, utc_text

NOW = datetime(2026, 11, 21, 12, tzinfo=timezone.utc)


def rounds(*seconds: float, host: str = "") -> list[Round]:
    return [
        Round(group="net@cpu", generation=0, round=number, started_unix_ns=int(second * 1e9), turns=(), host=host)
        for number, second in enumerate(seconds)
    ]


@pytest.mark.parametrize(
    ("started", "fault"),
    [
        ("2026-11-21T11:00:00+00:00", ""),
        ("2026-11-22T11:00:00+00:00", ""),  # a day is not enough to be sure
        ("2026-11-22T13:00:00+00:00", "it started on 2026-11-22, which is in the future"),
        ("2099-01-01T00:00:00Z", "it started on 2099-01-01, which is in the future"),
        ("1970-01-01T00:00:07+00:00", "it started in 1970, before anything could be measured"),
        ("yesterday", "its start, 'yesterday', is no time"),
        ("", "its start, '', is no time"),
    ],
)
def test_a_start_that_cannot_be_right(started: str, fault: str) -> None:
    assert clock_fault(started, (), NOW) == fault


@pytest.mark.parametrize(
    ("measured", "fault"),
    [
        (rounds(100, 101, 50), "its clock went back by 51 s while it was measured"),
        (rounds(100, 101, 100.5, 102), ""),  # what keeps a clock right may move it by less than a second
        ([*rounds(100, 101, host="a"), *rounds(50, 51, host="b")], ""),  # each host has a clock of its own
    ],
)
def test_a_clock_that_goes_back_while_it_is_measured(measured: list[Round], fault: str) -> None:
    assert clock_fault("2026-11-21T11:00:00Z", measured, NOW) == fault


def test_times_of_all_zones_become_utc() -> None:
    assert utc_text("2026-11-21T03:15:00+02:00") == "2026-11-21T01:15:00+00:00"
    assert utc_text("2026-11-21T03:15:00Z") == utc_text("2026-11-21T03:15:00") == "2026-11-21T03:15:00+00:00"


@given(st.text(max_size=40))
def test_no_text_is_too_odd_for_a_time(text: str) -> None:
    assert isinstance(clock_fault(text, (), NOW), str)
    assert utc_text(text) == "" or utc_text(text).endswith("+00:00")
