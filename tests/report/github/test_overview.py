"""The table of figures: how many rows changed, which way, and by how much at most."""

from __future__ import annotations

from harness.records.comparison import Comparison
from harness.report.github.overview import overview, overview_of_others
from tests.report.comparison.conftest import make_comparison, make_row, make_timed


def lines(text: str) -> dict[str, list[str]]:
    cells = [[cell.strip().replace("\u00a0", " ") for cell in line.split("|")[1:-1]] for line in text.splitlines()[2:]]
    return {first: rest for first, *rest in cells}


def test_each_figure_has_its_counts_and_its_largest_change() -> None:
    rows = [
        make_timed("a/v@d", 1.0, 1.04, "regressed"),
        make_timed("b/v@d", 1.0, 1.1, "regressed"),
        make_timed("c/v@d", 1.0, 0.5, "improved"),
        make_timed("d/v@d", 1.0, 1.0, "unchanged"),
        make_timed("e/v@d", 1.0, 1.0, "inconclusive"),
        make_row("f/v@d", verdict="identical"),
        make_row("g/v@d", verdict="failed"),
        make_timed("b/v@d", 900, 1.0, "unchanged", metric="compile-time"),
        make_timed("h/v@d", 1.0, 9.0, "regressed", control=True),
    ]
    assert lines(overview(make_comparison(rows))) == {
        "Latency": ["2, worst +10.0 %", "1, -50.0 %", "2, 1 identical", "1", "-8.9 % of 6"],
        "Compilation Time": ["", "", "1", "", "+0.0 % of 1"],
    }


def test_the_mean_is_that_of_all_rows_and_equal_modules_count_with_one() -> None:
    rows = [make_timed("a/v@d", 1.0, 4.0, "regressed"), make_row("f/v@d", verdict="identical")]
    assert lines(overview(make_comparison(rows)))["Latency"][-1] == "+100.0 % of 2"


def test_equal_modules_have_no_rows_of_counted_figures_and_count_all_the_same() -> None:
    rows = [
        make_row("a/v@d", "dispatches", "regressed", base_value=1, head_value=4),
        make_row("b/v@d", "dispatches", base_value=1, head_value=1),
        make_row("f/v@d", verdict="identical"),
        make_row("g/v@d", verdict="identical", control=True),
    ]
    assert lines(overview(make_comparison(rows)))["Dispatch Count"] == [
        "1, +300.0 %",
        "",
        "2, 1 identical",
        "",
        "+58.7 % of 3",
    ]
    kept = [*rows, make_row("f/v@d", "dispatches", base_value=1, head_value=1)]  # by a harness that still made them
    assert lines(overview(make_comparison(kept)))["Dispatch Count"][2] == "2"


def test_from_nothing_there_is_no_percentage() -> None:
    rows = [make_row("a/v@d", "dispatches", "regressed", base_value=0, head_value=3, ratio=None)]
    assert lines(overview(make_comparison(rows)))["Dispatch Count"] == ["1, from 0", "", "", "", ""]


def test_figures_that_the_old_comments_did_not_have_are_a_table_of_their_own(full_comparison: Comparison) -> None:
    assert set(lines(overview(full_comparison))) == {
        "Latency",
        "Compilation Time",
        "Instructions",
        "Transient Memory",
        "Dispatch Count",
    }
    assert set(lines(overview_of_others(full_comparison))) == {"Copies"}


def test_nothing_changed_needs_no_table(quiet_comparison: Comparison) -> None:
    assert overview(quiet_comparison) == overview_of_others(quiet_comparison) == ""


def test_a_thousand_figures_are_cut() -> None:
    rows = [make_row("a/v@d", f"flow/op.{index}", "regressed", base_value=1, head_value=2) for index in range(1_000)]
    assert "... 970 more figures changed" in overview_of_others(make_comparison(rows))


def test_a_mean_of_what_is_mostly_not_decided_is_none() -> None:
    rows = [make_timed(f"m{n}/v@d", 1.0, 1.3, "inconclusive", metric="compile-time") for n in range(6)]
    rows.append(make_timed("m0/v@d", 1.0, 1.3, "regressed"))
    assert lines(overview(make_comparison(rows)))["Compilation Time"] == ["", "", "", "6", ""]
    half = [*rows, *(make_timed(f"n{n}/v@d", 1.0, 1.3, "unchanged", metric="compile-time") for n in range(6))]
    assert lines(overview(make_comparison(half)))["Compilation Time"][-1] == "+30.0 % of 12"


def test_what_became_nothing_is_the_best_and_in_no_mean() -> None:
    rows = [
        make_row("a/v@d", "dispatches", "improved", base_value=13, head_value=0),
        make_row("b/v@d", "dispatches", "improved", base_value=13, head_value=4),
    ]
    assert lines(overview(make_comparison(rows)))["Dispatch Count"] == ["", "2, best -100.0 %", "", "", ""]
    rows = [
        make_row("a/v@d", "dispatches", "regressed", base_value=0, head_value=2, ratio=None),
        make_row("b/v@d", "dispatches", "regressed", base_value=3, head_value=4),
    ]
    assert lines(overview(make_comparison(rows)))["Dispatch Count"] == ["2, worst from 0", "", "", "", ""]
