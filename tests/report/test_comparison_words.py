"""A comparison in sentences: the one that most readers stop at, and what to do next."""

from __future__ import annotations

from dataclasses import replace

import pytest

from harness.records.comparison import Comparison, Row
from harness.report.comparison_words import headline, next_steps
from tests.report.compared import make_comparison, make_row, make_timed


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
    decide, step = next_steps(make_comparison(rows))
    assert decide.text == "correct what regressed, or say here why it is worth it"
    assert step.text == "repeat the largest regression, m/large@d"
    assert step.command.endswith("--filter 'm/large@d'")
    several = replace(rows[1], repro=("one", "two"))
    assert next_steps(make_comparison([several]))[-1].command == "one"  # the others say what was compiled
    assert next_steps(make_comparison([replace(rows[1], repro=())])) == [decide]


def test_without_a_regression_of_a_latency_that_of_a_compile_time_is_repeated() -> None:
    row = make_timed("m/v@d", 900, 1.3, "regressed", metric="compile-time")
    *_, step = next_steps(make_comparison([row]))
    assert (step.text, step.command) == ("repeat the largest regression of a compilation time, m/v@d", row.repro[0])


def test_gates_are_a_decision_that_only_people_can_take() -> None:
    rows = [make_row("m/same@d"), make_row("m/v@d", "copies", "regressed", gate="violated")]
    assert next_steps(make_comparison(rows))[0].text == (
        "bring 1 row back within the gates, or move these in suites/esrgan.toml"
    )


def test_a_flagged_control_asks_for_a_selfcheck() -> None:
    rows = [make_row("m/v@d"), make_timed("m/w@d", 1.0, 1.1, "regressed", control=True)]
    assert commands(make_comparison(rows)) == ["harness selfcheck suites/esrgan.toml"]


def test_nothing_needs_doing_only_where_something_was_compared(quiet_comparison: Comparison) -> None:
    assert next_steps(quiet_comparison) == []
    (step,) = next_steps(make_comparison([]))
    assert step.text.startswith("find out why nothing was compared")
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
