"""What a report says should be done."""

from __future__ import annotations

from dataclasses import replace

import pytest

from harness.records.comparison import Comparison
from harness.report.comparison.steps import next_steps
from tests.report.comparison.conftest import make_comparison, make_row, make_timed

UNSURE = make_timed("m/v@d", 1.0, 1.02, "inconclusive", seconds=14.3)


def commands(comparison: Comparison) -> list[str]:
    return [step.command for step in next_steps(comparison)]


@pytest.mark.parametrize(
    ("given", "doubled"),
    [
        (("harness", "compare", "a", "b"), "harness compare a b --row-budget 30"),
        (("harness", "compare", "--row-budget", "15", "a b"), "harness compare 'a b' --row-budget 30"),
        (("harness", "compare", "a", "b", "--row-budget=15"), "harness compare a b --row-budget 30"),
        (("harness", "compare", "a", "b", "--row-budget"), "harness compare a b --row-budget 30"),
        ((), ""),
    ],
)
def test_open_rows_get_twice_the_time(given: tuple[str, ...], doubled: str) -> None:
    assert commands(make_comparison([UNSURE], command=given)) == [doubled]


@pytest.mark.parametrize(
    "settings", [{}, {"row_budget_s": "long"}, {"row_budget_s": float("nan")}, {"row_budget_s": True}]
)
def test_where_the_budget_is_not_kept_the_longest_row_tells(settings: dict[str, object]) -> None:
    (command,) = commands(make_comparison([UNSURE], settings=settings))
    assert command.endswith("--row-budget 30")


def test_recorded_numbers_cannot_be_narrowed_but_measured(recorded_comparison: Comparison) -> None:
    assert commands(recorded_comparison)[-1] == "harness compare results/old results/new --across-hosts"


def test_the_regression_to_repeat_is_the_largest_that_no_gate_allows() -> None:
    rows = [
        make_timed("m/little@d", 1.0, 1.1, "regressed"),
        make_timed("m/large@d", 1.0, 1.3, "regressed"),
        make_timed("m/allowed@d", 1.0, 1.9, "regressed", gate="passed"),
    ]
    (step,) = next_steps(make_comparison(rows))
    assert step.text == "repeat the largest regression, m/large@d"
    assert step.command.endswith("--filter 'm/large@d'")
    several = replace(rows[1], repro=("one", "two"))
    assert next_steps(make_comparison([several]))[0].command == "one"  # the others say what was compiled
    assert next_steps(make_comparison([replace(rows[1], repro=())])) == []


def test_a_flagged_control_asks_for_a_selfcheck() -> None:
    rows = [make_row("m/v@d"), make_timed("m/w@d", 1.0, 1.1, "regressed", control=True)]
    assert commands(make_comparison(rows)) == ["harness selfcheck suites/esrgan.toml"]


def test_nothing_to_do_is_said_only_where_something_was_compared(quiet_comparison: Comparison) -> None:
    assert [step.text for step in next_steps(quiet_comparison)] == ["nothing needs doing"]
    assert next_steps(make_comparison([])) == []
    assert next_steps(make_comparison([make_row("m/v@d"), make_row("m/v@d", "copies", "regressed")])) == []


def test_rows_that_tell_their_time_get_it() -> None:
    why = "the budget had room for 2 generations, and 8 say something; they take {} s"
    rows = [
        make_timed("m/v@d", 1.0, 1.02, "inconclusive", reason=why.format(12)),
        make_timed("m/w@d", 1.0, 1.02, "inconclusive", reason=why.format(200)),
        make_timed("m/w@d", 1.0, 1.02, "inconclusive", metric="compile-time", reason=why.format(900)),
    ]
    (step,) = next_steps(make_comparison(rows, command=("harness", "compare", "a", "b")))
    assert step.text == "decide 2 inconclusive rows with the time that they need"
    assert step.command == "harness compare a b --row-budget 200"
    (step,) = next_steps(make_comparison(rows[:1], command=("harness", "compare", "a", "b")))
    assert (step.text, step.command) == (
        "decide 1 inconclusive row with twice the time",
        "harness compare a b --row-budget 30",
    )
