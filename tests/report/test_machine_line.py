"""How far a report says that the machine can be trusted."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from harness.records.comparison import SelfcheckFacts
from harness.report.machine import controls_line, machine_line
from tests.report.comparison.conftest import SELFCHECK, make_timed

UNKNOWN = "this machine's A/A rate is not known; `harness selfcheck SUITE` measures it"


def test_a_machine_that_was_checked() -> None:
    assert machine_line(SELFCHECK) == (
        "on this machine: 0 of 400 A/A rows flagged (at most 0.75 % by the 95 % bound); detects 1.2 % in 15 s "
        "(checked with suites/esrgan.toml)"
    )


@pytest.mark.parametrize(
    "selfcheck",
    [None, replace(SELFCHECK, rows=0), replace(SELFCHECK, upper_bound=math.nan)],
    ids=["none", "empty", "nan"],
)
def test_a_machine_that_was_not(selfcheck: SelfcheckFacts | None) -> None:
    assert machine_line(selfcheck) == UNKNOWN


@pytest.mark.parametrize("detects", [None, math.nan, math.inf])
def test_a_machine_that_sees_nothing(detects: float | None) -> None:
    assert machine_line(replace(SELFCHECK, detects=detects, seconds=math.inf)).endswith(
        "; detects nothing smaller than a doubling (checked with suites/esrgan.toml)"
    )


def test_large_shares_have_no_exponents() -> None:
    assert "(at most 100 % by" in machine_line(replace(SELFCHECK, upper_bound=1.0))


def test_controls() -> None:
    same = make_timed("a/b@c", 1.0, 1.0, "unchanged", control=True)
    assert controls_line([]) == ""
    assert controls_line([same]) == "1 identical row was measured as an A/A control: none flagged"
    assert controls_line([same] * 4) == "4 identical rows were measured as A/A controls: none flagged"
    assert controls_line([same, replace(same, verdict="failed")]).endswith(": none flagged, 1 failed")
    assert ": 1 flagged, so some verdicts" in controls_line([same, replace(same, verdict="improved")])
