"""Op counts in a comparison: exact figures like any other, called by op and phase, whatever the op is called."""

from __future__ import annotations

import csv
import io
import re

import pytest
from markdown_it import MarkdownIt

from harness.records.comparison import Comparison
from harness.report.comparison import comparison_from_json, render_comparison
from tests.report.comparison.conftest import make_comparison, make_row, make_timed

UPDATES = "flow/flow.tensor.update"
PARSER = MarkdownIt("commonmark").enable(["table", "strikethrough"])


def compared(*metrics: str) -> Comparison:
    """Fewer ops of each in one case and more in another, and a latency that is the same."""
    rows = [make_timed("mm/stock@cpu", 2.4, 1.0, "unchanged"), make_timed("rdb/stock@cpu", 9.1, 1.0, "unchanged")]
    for metric in metrics:
        fewer = {"base_value": 13, "head_value": 1, "unit": "count", "reason": "1 op where there were 13"}
        more = {
            "base_value": 0,
            "head_value": 1_200,
            "unit": "count",
            "reason": "1,200 ops where there were 0; gate ops allows no increase",
            "gate": "violated",
        }
        rows.append(make_row("mm/stock@cpu", metric, "improved", **fewer))
        rows.append(make_row("rdb/stock@cpu", metric, "regressed", **more))
    return make_comparison(rows)


def test_markdown_lists_them_under_their_name() -> None:
    text = render_comparison(compared(UPDATES), "markdown", full=True)
    assert "**1 gate violated; no regression or improvement, 2 unchanged; 2 other figures changed.**" in text
    headings = re.findall(r"^### (.*)$", text, re.MULTILINE)
    assert headings[:1] == ["Violated Gates: flow.tensor.update at flow 🚨"]
    assert "Improved flow.tensor.update at flow 🎉" in headings
    assert "1 (vs. 13, 92.31%↓)" in text
    assert "1,200 (vs. 0)" in text


@pytest.mark.parametrize("width", [60, 120])
def test_a_terminal_shows_them_among_the_other_figures(width: int) -> None:
    text = " ".join(render_comparison(compared(UPDATES), "terminal", width=width).split())
    assert "flow.tensor.update at flow" in text
    assert "gate ops allows no increase" in text


def test_csv_and_json_have_their_own_names() -> None:
    comparison = compared(UPDATES, "input/linalg.*")
    lines = list(csv.DictReader(io.StringIO(render_comparison(comparison, "csv"))))
    assert [line["metric"] for line in lines] == ["latency"] * 2 + [UPDATES] * 2 + ["input/linalg.*"] * 2
    assert [line["head_value"] for line in lines[2:4]] == ["1.0", "1200.0"]
    assert comparison_from_json(render_comparison(comparison, "json")) == comparison


@pytest.mark.parametrize(
    "metric",
    ["input/linalg.*", "flow/*a* | b", "flow/two\nlines \x1b[31mred", "flow/<script>`_x_`", "flow/" + "long." * 2_000],
    ids=["a wildcard", "a cell's end", "two lines", "markup", "10,000 characters"],
)
def test_ops_of_any_name_break_no_format(metric: str) -> None:
    comparison = compared(metric)
    for full in (False, True):
        text = render_comparison(comparison, "markdown", full=full)
        tokens = PARSER.parse(text)
        rows = sum(token.type == "tr_open" for token in tokens)
        rules = sum(token.type == "table_open" for token in tokens)
        assert rows + rules == sum(line.startswith("|") for line in text.splitlines())
        inside = [child.type for token in tokens for child in token.children or ()]
        assert not {"html_inline", "em_open", "s_open"} & set(inside)
        assert "\x1b" not in text
    for line in render_comparison(comparison, "terminal", width=100).splitlines():
        assert line.isprintable()
    lines = render_comparison(comparison, "csv").splitlines()
    assert len(lines) == 1 + len(comparison.rows)
    assert comparison_from_json(render_comparison(comparison, "json")) == comparison
