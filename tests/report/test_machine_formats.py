"""CSV and JSON: the run's own numbers, for other programs."""

from __future__ import annotations

import csv
import io
import json
import math
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from harness.records.run import Run
from harness.report import Format, render
from harness.report.csv_ import render_csv
from harness.report.json_ import render_json
from harness.report.table import build_report


def as_csv(run: Run) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(render_csv(build_report(run)))))


def as_json(run: Run) -> dict[str, Any]:
    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    document = json.loads(render_json(build_report(run)), parse_constant=refuse)
    assert isinstance(document, dict)
    return document


def test_csv(full_run: Run, snapshot: SnapshotAssertion) -> None:
    assert render_csv(build_report(full_run)) == snapshot


def test_json(full_run: Run, snapshot: SnapshotAssertion) -> None:
    assert render_json(build_report(full_run)) == snapshot


@pytest.mark.parametrize("name", ["full_run", "small_run", "one_generation_run", "unfinished_run", "nasty_run"])
def test_both_have_every_case_with_the_same_figures(name: str, request: pytest.FixtureRequest) -> None:
    run: Run = request.getfixturevalue(name)
    lines, document = as_csv(run), as_json(run)
    assert [row["case"] for row in document["rows"]] == [case.name for case in run.header.cases]
    assert len(lines) == len(document["rows"])
    for line, row in zip(lines, document["rows"], strict=True):
        for column in line.keys() & row.keys():
            value = row[column]
            if value is None:
                assert line[column] == ""
            elif isinstance(value, bool):
                assert line[column] == str(value).lower()
            elif isinstance(value, int | float):
                assert float(line[column]) == value


def test_json_numbers_are_the_runs(full_run: Run) -> None:
    rows = {row["case"]: row for row in as_json(full_run)["rows"]}
    for build in full_run.builds:
        row = rows[build.case]
        assert row["compile_ns"] == build.compile_ns
        assert row["module_sha256"] == build.module_sha256
        if build.statistics is not None and build.sizes is not None:
            assert row["dispatches"] == build.statistics.dispatches
            assert row["transient_bytes"] == build.statistics.transient_bytes
            assert row["module_bytes"] == build.sizes.module_bytes
    for reference in full_run.references[:2]:
        assert rows[reference.case]["reference_ns"] == sorted(reference.real_time_ns)[1]
    for check in full_run.checks:
        assert rows[check.case]["max_absolute_error"] == check.max_absolute
        assert rows[check.case]["checked_against"] == check.against
    estimate = next(row for row in build_report(full_run).rows() if row.variant == "channels-last").estimate
    assert estimate is not None
    shown = rows["rdb/channels-last@local-sync"]
    assert shown["ratio"] == pytest.approx(estimate.ratio, rel=1e-8)
    assert (shown["ratio_low"], shown["ratio_high"]) == pytest.approx((estimate.low, estimate.high), rel=1e-8)
    assert (shown["ratio_generations"], shown["ratio_rounds"], shown["ratio_confidence"]) == (5, 40, 0.95)


def test_json_says_what_the_run_was(full_run: Run) -> None:
    document = as_json(full_run)
    assert document["schema_version"] == 1
    assert document["run"]["id"] == full_run.header.id
    assert document["run"]["command"] == list(full_run.header.command)
    assert document["run"]["environment"] == full_run.header.environment
    assert document["groups"][0]["rounds_by_generation"] == [8, 8, 8, 8, 8]
    assert document["summary"]["planned"] == len(document["rows"])


def test_json_holds_no_nan_and_no_infinity_whatever_an_environment_says(small_run: Run) -> None:
    odd: dict[str, dict[str, Any]] = {
        "load": {"now": math.nan, "peaks": (math.inf, 1.0), "file": PurePosixPath("a/b"), "nested": {1: -math.inf}}
    }
    document = as_json(replace(small_run, header=replace(small_run.header, environment=odd)))
    assert document["run"]["environment"]["load"] == {
        "now": None,
        "peaks": [None, 1.0],
        "file": "a/b",
        "nested": {"1": None},
    }


def test_an_infinite_error_is_no_number(full_run: Run) -> None:
    checks = tuple(replace(check, max_absolute=math.inf, max_relative=math.nan) for check in full_run.checks)
    run = replace(full_run, checks=checks)
    assert {row["max_absolute_error"] for row in as_json(run)["rows"]} == {None}
    assert {line["max_relative_error"] for line in as_csv(run)} == {""}


def test_csv_has_one_line_for_each_case_whatever_its_name(nasty_run: Run) -> None:
    assert render_csv(build_report(nasty_run)).count("\n") == 1 + len(nasty_run.header.cases)
    assert as_csv(nasty_run)[1]["variant"] == "a|b`c` <i>*x*</i> _y_ [z](http://e.org) -->"


def test_json_keeps_names_and_messages_as_they_are(nasty_run: Run) -> None:
    row = as_json(nasty_run)["rows"][1]
    assert row["case"] == nasty_run.header.cases[1].name
    assert row["failure_message"] == "line one | two\nline `three` <details>"
    assert row["repro"][0].startswith("harness export ")


@pytest.mark.parametrize("format_", ["terminal", "markdown", "json", "csv"])
def test_render_takes_every_format(small_run: Run, format_: Format) -> None:
    text = render(small_run, format_)
    assert "fast" in text
    assert text.endswith("\n")
