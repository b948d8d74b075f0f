"""An explanation as people and programs read it: parts that add up, what differs, and its short form in a comment."""

import csv
from dataclasses import replace
from io import StringIO

import pytest

from harness.records.comparison import Explained
from harness.report import render
from harness.report.explanation_page import short_form, time_lines
from harness.report.github import render_comment
from harness.store.folders import COMPARISON, EXPLANATION
from tests.report.builders import make_comparison, make_timed
from tests.report.explanations import LINES, PIPELINE, make_explanation, make_part
from tests.report.rendered import require_ours


def test_the_lines_add_up_to_the_call() -> None:
    explanation = make_explanation()
    assert EXPLANATION.parse(render(explanation, "json")) == explanation
    for most in (None, 1, 2):
        *lines, call = time_lines(explanation, most=most)
        assert sum(line.base_ns for line in lines) == pytest.approx(call.base_ns)
        assert sum(line.head_ns for line in lines) == pytest.approx(call.head_ns)
    names = [line.name for line in time_lines(explanation, most=1)]
    assert names == ["conv_a", "3 more parts, 2 of them changed", "copies", "host and waits", "one call"]


def test_a_part_that_is_not_timed_has_no_times_and_the_line_of_the_host_says_so() -> None:
    conv = make_part("conv", 0.0, 0.0, "inconclusive", base=("d_1",), head=("d_1",), is_timed=False)
    explanation = make_explanation(conv, make_part("pad", 1.0, 1.0))
    text = render(explanation, "markdown")
    assert "| `host, waits and what is not timed`" in text
    assert "the rest stands as host, waits and what is not timed" in text
    (row,) = [line for line in text.splitlines() if line.startswith("| `conv`")]
    assert "0.0" not in row
    assert [part.name for part in short_form(explanation).parts] == ["pad"]
    # What differs in it is shown.
    differs = replace(conv, differs_at="flow", lines=LINES, what=(PIPELINE,))
    alone = render(make_explanation(differs, method="alone"), "markdown")
    assert "No dispatch can be timed here" in alone and LINES[0] in alone and PIPELINE in alone
    first, *_ = csv.DictReader(StringIO(render(explanation, "csv")))
    assert (first["name"], first["base_ns"], first["head_ns"]) == ("conv", "", "")


def test_a_change_whose_code_is_the_same_says_so_and_one_without_parts_too() -> None:
    same = make_explanation(make_part("conv", 4.0, 8.0, "regressed"))
    assert "The IR is the same on both sides, at every phase." in render(same, "markdown")
    none = make_explanation(make_part("conv", 4.0, 8.0, "inconclusive"), schedule=())
    text = render(none, "markdown")
    assert "No single part is known to have changed, though the latency has." in text
    assert "Outside of dispatches, the two programs are the same as far as is known." in text


def test_lines_that_are_many_are_cut_but_in_the_full_report() -> None:
    lines = tuple(f"+ line {number}" for number in range(100))
    explanation = make_explanation(make_part("conv", 4.0, 8.0, "regressed", differs_at="flow", lines=lines))
    assert "... 40 more lines; --format json has all" in render(explanation, "markdown")
    assert "+ line 99" in render(explanation, "markdown", full=True)


def test_the_three_largest_parts_stand_folded_in_a_comment() -> None:
    row = make_timed("rdb/stock@cpu", 169.0, 4.2, "regressed")
    comparison = make_comparison([row], explained=(short_form(make_explanation()),))
    page = require_ours(render_comment(comparison))
    assert "What the regression of rdb/stock@cpu is made of" in page.everything
    assert PIPELINE in page.everything and PIPELINE not in page.unfolded
    assert "1 other part changed the latency less." in page.everything
    terminal = render(comparison, "terminal", width=200)
    assert "harness report results/20261122-140000-esrgan-explain" in terminal
    assert COMPARISON.parse(render(comparison, "json")) == comparison
    why = Explained(case="rdb/stock@cpu", explanation="", sentence="It cannot be explained: it is gone.")
    assert why.sentence in render_comment(replace(comparison, explained=(why,)))
