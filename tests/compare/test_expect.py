"""How long the rows of a comparison take that are left."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path

from harness.compare.comparison import conclude, plan_comparison
from harness.compare.engine import decide
from harness.compare.expect import RowsLeft, earlier_rows, foresee
from harness.compare.options import CompareOptions
from harness.records.comparison import Row
from harness.report.comparison import json_document
from harness.store.sides_directory import ComparisonDirectory
from tests.builders import make_row
from tests.compare.runs import a_case, a_side
from tests.compare.scripted import EQUAL, SLOWER, a_task, generations, ignore

NOW = datetime(2026, 1, 1, tzinfo=timezone.utc)
QUICK, SLOW = (a_task(name, generations(*EQUAL), budget_s=16) for name in ("quick", "slow"))


def a_comparison(results: Path, *rows: Row) -> None:
    base, head = a_side(a_case()), a_side(a_case(), label="results/head")
    made = conclude(plan_comparison(base, head, CompareOptions()), (), {}, created=NOW)
    with ComparisonDirectory.create(results, "small", NOW) as directory:
        directory.finish(json_document(replace(made, rows=rows)), "")


def test_the_newest_row_of_a_case_says_what_it_takes(tmp_path: Path) -> None:
    a_comparison(tmp_path, make_row(seconds=3, generations=8))
    a_comparison(tmp_path, make_row(seconds=5, generations=8), make_row(seconds=9, generations=8, control=True))
    a_comparison(tmp_path, make_row("identical", seconds=0))
    assert earlier_rows(tmp_path) == {"latency": {"net/fast@cpu": 5.0}}


def test_a_damaged_comparison_says_nothing(tmp_path: Path) -> None:
    a_comparison(tmp_path, make_row(seconds=3, generations=8))
    next(tmp_path.glob("*/comparison.json")).write_text("{}")
    assert earlier_rows(tmp_path) == {}


def test_rows_take_what_they_took_else_their_budget_and_decided_ones_nothing_more() -> None:
    left = RowsLeft([QUICK, SLOW], {"quick": 4.0})
    assert (left.seconds, left.is_known) == (4 + 16, False)
    left.spend("quick", 3)
    assert left.seconds == 1 + 16
    left.spend("quick", 3)  # longer than ever
    assert left.seconds == 10 + 16
    left.spend("quick", 20)  # it is being confirmed
    assert left.seconds == 6 + 16
    left.keep_open(["slow"])
    assert left.seconds == 16


def test_the_engine_says_which_rows_are_open() -> None:
    passes: list[list[str]] = []
    tasks = [a_task("equal", generations(*EQUAL)), a_task("slower", generations(*SLOWER))]
    list(decide(tasks, ignore, lambda names: passes.append(list(names))))
    assert passes == [["slower"], []]


def test_what_is_to_be_measured_in_a_sentence() -> None:
    tasks = [QUICK, SLOW]
    unknown = RowsLeft(tasks, {})
    assert foresee(tasks, [], [unknown]) == (
        "To measure: latencies of 2 rows for up to 16 s each; up to 32 s, and longer where a difference is confirmed, "
        "or is plain and calls take long"
    )
    known = RowsLeft(tasks, {"quick": 40, "slow": 50})
    assert foresee(tasks, [SLOW], [known, known]) == (
        "To measure: latencies of 2 rows for up to 16 s each, compile times of 1 row for up to 16 s each; about 3 min, "
        "as earlier comparisons here took"
    )
