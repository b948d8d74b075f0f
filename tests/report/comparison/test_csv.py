"""A comparison's rows for spreadsheets."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace

import pytest

from harness.records.comparison import Comparison
from harness.report.comparison import render_comparison


@pytest.mark.parametrize("name", ["full_comparison", "quiet_comparison", "recorded_comparison", "nasty_comparison"])
def test_every_row_has_the_figures_of_the_json(name: str, request: pytest.FixtureRequest) -> None:
    comparison: Comparison = request.getfixturevalue(name)
    text = render_comparison(comparison, "csv")
    lines = list(csv.DictReader(io.StringIO(text)))
    assert len(text.splitlines()) == len(lines) + 1
    rows = json.loads(render_comparison(comparison, "json"))["rows"]
    for line, row in zip(lines, rows, strict=True):
        assert set(line) == set(row) - {"repro"}
        for column in ("ratio", "ci_low", "ci_high", "p", "base_value", "head_value", "generations", "rounds"):
            assert line[column] == "" if row[column] is None else float(line[column]) == row[column]
        assert line["control"] == str(row["control"]).lower()


def test_no_rows_no_lines(full_comparison: Comparison) -> None:
    assert render_comparison(replace(full_comparison, rows=()), "csv") == ""
