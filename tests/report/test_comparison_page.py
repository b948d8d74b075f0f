"""What a comparison's page says, in which order, and what of it is folded."""

import re
from dataclasses import asdict, replace

import pytest

from harness.records.comparison import AND_OTHER_OUTPUTS, ANOTHER_PROGRAM, Comparison, Row, Verdict
from harness.records.run import HostRecord
from harness.report import render
from harness.report.github import render_comment
from harness.report.page import Picture
from harness.report.pages import Links
from tests.report.builders import SELFCHECK, make_comparison, make_row, make_side, make_timed
from tests.report.rendered import Page, require_ours


def comment(*rows: Row) -> str:
    return render_comment(make_comparison(rows))


def test_a_terminal_lists_what_matters_and_counts_the_rest() -> None:
    rows = [make_timed(f"m/v{index}@d", 1.0, 1.0, "unchanged") for index in range(60)]
    rows += [make_timed(f"m/r{index}@d", 1.0, 1.1 + index / 1000, "regressed") for index in range(120)]
    text = render(make_comparison([*rows, make_row("m/gone@d", verdict="missing")]), "terminal")
    assert "The first 40 of 120 rows." in text and "60 unchanged; --format markdown --full lists them." in text
    assert "m/gone@d" in text and "m/r119@d" in text
    assert "m/v1@d" not in text and "m/r19@d" not in text


def test_recorded_numbers_come_with_a_warning() -> None:
    base = make_side("results/old", "3.12.0", machine="another")
    text = render_comment(make_comparison([make_timed("m/v@d", 1.0, 1.1, "regressed")], mode="recorded", base=base))
    assert "These are recorded numbers, taken at different times and on different machines" in text


def test_rows_of_hosts_say_how_many_or_whose_they_are_and_each_host_how_often_it_is_wrong() -> None:
    rows = [make_timed(f"m/{name}@d", 1.0, 1.03, "regressed", hosts=(name,)) for name in ("ash", "oak")]
    checked = HostRecord(name="ash", environment={"selfcheck": asdict(SELFCHECK)})
    hosts = (checked, HostRecord(name="oak", environment={}))
    comparison = replace(make_comparison(rows), hosts=hosts)
    assert re.search(r"m/ash@d.* ash\n", render(comparison, "terminal", width=900))
    full = render(comparison, "markdown", full=True)
    assert "On ash: " in full and "| ash | a machine of which nothing is known | 1 |" in full
    flagged = replace(comparison, rows=(*rows, replace(rows[0], control=True)))
    assert "find out there, how often each host is wrong: `harness selfcheck" in render_comment(flagged)


@pytest.mark.parametrize(
    ("rows", "verdict", "advice"),
    [
        ([make_timed("m/v@d", 1, 1.1, "regressed")], "🚩 Needs attention: 1 regression.", "correct what regressed"),
        ([make_timed("m/v@d", 1, 0.9, "improved")], "1 improvement.", "No action needed."),
        ([make_timed("m/v@d", 1, 1.0, "inconclusive")], "No regression or improvement, 1 inconcl", "twice the time"),
        ([make_row("m/v@d", verdict="failed")], "🚨 Needs attention: no latency was compared", "what the tools said"),
        ([], "🚨 Needs attention: no latency was compared.", "why nothing was compared"),
    ],
)
def test_verdict_and_advice(rows: list[Row], verdict: str, advice: str) -> None:
    text = comment(*rows)
    assert f"**{verdict}" in text
    assert advice in Page(text).unfolded


def test_a_program_that_computes_something_else_is_said_first_and_in_its_row() -> None:
    remark = f"{AND_OTHER_OUTPUTS}output 0 differs in 4 of 4 values, worst at [1]: 3 where 2 is base's"
    row = make_timed("m/v@d", 1, 0.72, "improved", reason=f"confirmed in 8 fresh generations; {remark}")
    other = make_timed("n/v@d", 1, 1.0, "unchanged", reason=f"{ANOTHER_PROGRAM}, as it was")
    text = render_comment(make_comparison([row, other]))
    assert "1 case of another program with other outputs; " in text
    assert remark in text and "another program than the base's, as it was" in text
    assert "see whether m/v@d should give other outputs" in text
    assert "No action needed" not in text and "confirmed in 8" not in text


def test_failures_and_gates_are_never_folded_and_the_quiet_rows_are(full_comparison: Comparison) -> None:
    text = render_comment(full_comparison)
    seen = Page(text).unfolded
    for unfolded in ("rdb/wide@local-sync", "gpt2/stock@vulkan", "gate memory allows no increase"):
        assert unfolded in seen
    assert "mm/tiled@local-task" not in seen and "conv/fused@local-sync" not in seen
    folds = set(re.findall(r"<summary>(.*)</summary>", text))
    assert {"What the tools said of rdb/wide@local-sync", "Inconclusive (1)", "Unchanged (3)", "New (1)"} <= folds
    assert {"Identical modules (2)", "A/A controls (2)", "How it was measured", "Commands that repeat it"} <= folds
    assert "2 identical rows were measured as A/A controls: none flagged" in text


# --- Figures at a glance ---


def overview(*rows: Row) -> dict[str, list[str]]:
    """The table of figures."""
    blocks = comment(*rows).split("\n\n")
    lines = [line for block in blocks if "Geometric Mean" in block for line in block.splitlines()[2:]]
    cells = [[cell.strip().replace("\u00a0", " ") for cell in line.split("|")[1:-1]] for line in lines]
    return {first: rest for first, *rest in cells}


def counted(case: str, base: int, head: int) -> Row:
    verdict: Verdict = "regressed" if head > base else "improved" if head < base else "unchanged"
    return make_row(case, "dispatches", verdict, base_value=base, head_value=head)


ALIKE = [make_row(f"{model}/v@d", verdict="identical") for model in "fg"]
OPEN = [make_timed(f"m{n}/v@d", 1.0, 1.3, "inconclusive", metric="compile-time") for n in range(6)]
CLOSED = [make_timed(f"n{n}/v@d", 1.0, 1.3, "unchanged", metric="compile-time") for n in range(6)]
SLOWER = make_timed("a/v@d", 1.0, 1.04, "regressed")


@pytest.mark.parametrize(
    ("rows", "figure", "cells"),
    [
        (
            [
                SLOWER,
                make_timed("b/v@d", 1.0, 1.1, "regressed"),
                make_timed("c/v@d", 1.0, 0.5, "improved"),
                make_timed("d/v@d", 1.0, 1.0, "unchanged"),
                make_timed("e/v@d", 1.0, 1.0, "inconclusive"),
                make_row("f/v@d", verdict="identical"),
                make_row("g/v@d", verdict="failed"),
                make_timed("h/v@d", 1.0, 9.0, "regressed", control=True),
            ],
            "Latency",
            ["2, worst +10.0 %", "1, -50.0 %", "2, 1 identical", "1", "-10.6 % [-10.9 %, -10.2 %] of 5"],
        ),
        # Equal modules have no rows of counted figures, and count all the same; once.
        (
            [counted("a/v@d", 1, 4), counted("b/v@d", 1, 1), counted("f/v@d", 1, 1), *ALIKE],
            "Dispatch Count",
            ["1, +300.0 %", "", "3, 1 identical", "", "+41.4 % of 4"],
        ),
        # What became nothing is the best, and in no mean; what came from nothing has no percentage.
        ([counted("a/v@d", 13, 0), counted("b/v@d", 13, 4)], "Dispatch Count", ["", "2, best -100.0 %", "", "", ""]),
        ([counted("a/v@d", 0, 2), counted("b/v@d", 3, 4)], "Dispatch Count", ["2, worst from 0", "", "", "", ""]),
        # Of what is mostly not decided there is no mean.
        ([SLOWER, *OPEN], "Compilation Time", ["", "", "", "6", ""]),
        ([SLOWER, *OPEN, *CLOSED], "Compilation Time", ["", "", "6", "6", "+30.0 % [+29.4 %, +30.6 %] of 6"]),
    ],
)
def test_each_figure_has_its_counts_and_its_largest_change(rows: list[Row], figure: str, cells: list[str]) -> None:
    assert overview(*rows)[figure] == cells
    assert overview(make_timed("d/v@d", 1.0, 1.0, "unchanged")) == {}


def test_percentages_are_those_of_the_ratio_beside_them() -> None:
    """The medians of 5.117 ms and 4.305 ms are of different generations than the ratio."""
    row = replace(make_timed("m/v@d", 4.305, 1.041, "regressed"), head_value=5.117e6)
    for made in (row, replace(row, ci_low=None, ci_high=None)):
        assert "| 5.117 (vs. 4.305, 4.10%↑) | 1.041" in render_comment(make_comparison([made]))


def test_with_pictures_and_links(full_comparison: Comparison, pictures: tuple[Picture, ...], links: Links) -> None:
    text = render_comment(full_comparison, pictures=pictures, links=links)
    page = require_ours(text, addresses=("https://org.github.io/repo/", "https://github.com/org/repo/"))
    assert set(page.links) == {*vars(links).values()}
    names = ("forest-dark.png", "forest-light.png", "memory%20%281%29.png")
    assert page.images == [f"https://org.github.io/repo/pr-1/{name}" for name in names]
    assert page.alts == ['Ratios: "rdb" is > 1', "Latency against memory"]
    assert "For more information: [Full report](" in text
    assert "harness report" not in text.splitlines()[-1]
