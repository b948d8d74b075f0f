"""What is printed of a tuning: the answer, the variant and how to use it, and why to believe it."""

import csv
import json
from dataclasses import replace
from io import StringIO

from syrupy.assertion import SnapshotAssertion

from harness.report import render
from tests.report.tunings import CONFIRMATIONS, DISPATCHES, make_tuning


def test_the_report_of_a_variant(snapshot: SnapshotAssertion) -> None:
    assert render(make_tuning(), "terminal", width=160) == snapshot


def test_the_last_confirmation_of_a_pair_counts() -> None:
    earlier = replace(CONFIRMATIONS[0], ratio=0.9, ci_low=0.89, ci_high=0.91)
    text = render(make_tuning(confirmations=(earlier, *CONFIRMATIONS)), "terminal", width=200)
    assert "0.900 [" not in text
    assert text.count("0.338 [0.334, 0.342]") == 2  # in the answer and in the table


def test_where_nothing_raced_no_race_can_have_erred() -> None:
    nothing = make_tuning(singles=(), combinations=(), dispatches=())
    assert "dropped its best candidate" not in render(nothing, "markdown")


def test_each_candidate_has_a_line_in_csv_and_the_document_has_all_of_it() -> None:
    rows = list(csv.DictReader(StringIO(render(make_tuning(), "csv"))))
    assert [row["of"] for row in rows].count(DISPATCHES[0].name) == 2
    assert rows[0]["name"] == "channels-last" and float(rows[0]["ratio"]) == 0.52
    document = json.loads(render(make_tuning(), "json"))
    assert document["schema_version"] == 1
    assert document["plugins"][0] == ["channels-last", {"pad": True}]
