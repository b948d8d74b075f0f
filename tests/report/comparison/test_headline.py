"""The one sentence that most readers stop at."""

from __future__ import annotations

from dataclasses import replace

import pytest

from harness.records.comparison import Comparison, Row
from harness.report.comparison.words import headline, p_text
from tests.report.comparison.conftest import make_comparison, make_row, make_timed


def said(*rows: Row) -> str:
    return headline(make_comparison(rows))


def test_everything_is_counted_with_gates_first(full_comparison: Comparison) -> None:
    assert headline(full_comparison) == (
        "1 gate violated; 2 regressions (1 within its gate), 1 improvement, 1 failed, 1 missing, 1 inconclusive, "
        "2 unchanged, 2 identical, 1 new; compilation times: 1 regression; 4 other figures changed."
    )


def test_nothing_changed_is_said_first(quiet_comparison: Comparison) -> None:
    assert headline(quiet_comparison) == "No regression or improvement, 1 unchanged, 1 identical."


@pytest.mark.parametrize("rows", [(), (make_row("a/b@c", verdict="failed"),), (make_row("a/b@c", verdict="new"),)])
def test_nothing_compared_does_not_read_as_nothing_wrong(rows: tuple[Row, ...]) -> None:
    assert said(*rows).startswith("No latency was compared")


def test_a_control_is_never_counted() -> None:
    row = make_timed("a/b@c", 1.0, 1.0, "unchanged")
    control = replace(row, verdict="regressed", control=True, gate="violated")
    assert said(row, control) == said(row)


def test_a_case_that_failed_twice_is_one_failure() -> None:
    rows = [make_row("a/b@c", metric, "failed") for metric in ("latency", "compile-time")]
    assert said(*rows) == "No latency was compared, 1 failed."


def test_many_rows_may_violate_one_gate() -> None:
    rows = [make_row(f"m/v{index}@d", "copies", "regressed", gate="violated") for index in range(3)]
    assert said(*rows) == "Gates violated in 3 rows; no latency was compared; 3 other figures changed."


@pytest.mark.parametrize(
    ("p", "text"),
    [
        (None, "-"),
        (1.0, "1"),
        (0.8, "0.8"),
        (0.031, "0.031"),
        (0.01, "0.01"),
        (0.0097, "1e-2"),
        (2.3e-4, "2e-4"),
        (0.0, "0"),
    ],
)
def test_p_values(p: float | None, text: str) -> None:
    assert p_text(p) == text
