"""What `harness history` shows: verdicts, tables and notes, and nothing that a name could turn into markup."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pandas as pd
import pytest

from harness.history.changes import Change
from harness.history.dating import Dated, Question
from harness.history.events import ChangeEvent, acknowledge, group_changes
from harness.history.failures import FailingCase
from harness.history.pages import changes_page, changes_verdict, overview_page
from harness.history.series_page import query_page, series_page, series_table
from harness.report.markdown import to_markdown
from harness.report.page import Page, Table
from tests.history.made import make_change, make_news, make_series
from tests.history.test_events import EARLY, ORDER

EVIL = "<script>alert(1)</script>|`x`\n# **bold** @someone #1 ![a](b) \x1b[31m"
NONE_LONGER = "No latency and no compile time became longer by the compiler in the last 10 runs"
FAILS = "1 case fails: net/tiled@cpu since run07 (3.13.0): compile: iree-compile exited with 1: cannot tile."


def page_of(
    events: Sequence[ChangeEvent] = (), failing: Sequence[FailingCase] = (), bisects: Sequence[Dated] = ()
) -> Page:
    notes = ("run03 is left out: it is damaged",)
    given: Any = {"searched": 3, "noisy": 3, "last": 10, "command": "harness history ack", "notes": notes}
    return changes_page(events, failing, bisects, **given)


def events_of(*changes: Change) -> list[ChangeEvent]:
    return group_changes(changes, ORDER, 10)


def tables(page: Page) -> list[Table]:
    return [part for part in page.parts if isinstance(part, Table)]


def cells(table: Table, title: str) -> list[object]:
    (column,) = (column for column in table.columns if column.title == title)
    return list(column.cells)


def test_changes_have_a_verdict_what_fails_the_recent_events_the_earlier_ones_and_notes() -> None:
    late = {"first_bad": "run08", "earliest": "run06", "latest": "run12", "until": "run29"}
    machine = {"cause": "machine", "evidence": "the reference toolchain moved likewise", **EARLY}
    events = events_of(
        make_change(),
        make_change(metric="dispatches", unit="count", direction="more", before=7.0, after=9.0),
        make_change(case="net/tiled@cpu", **machine),
        make_change(case="net/stock@cpu", **machine),
        make_change(case="net/tiled@cpu", kind="drift", cause="unknown", evidence="nothing else is known", **late),
        make_change(case="net/known@cpu", evidence=EVIL),
    )
    (known,) = (event for event in events if event.lead.case == "net/known@cpu")
    mark = replace(acknowledge(known, ORDER, "fixed", EVIL, "anna"), when="2026-03-01T09:00:00.000000+00:00")
    events = [replace(event, marks=(mark,)) if event is known else event for event in events]
    question = Question(suite="x.toml", case="net/stock@cpu", metric="latency", good="3.11.0", bad="3.13.0")
    found = Dated(question=question, answer="Since 3.12.0: latency 1.4 times that of 3.11.0.", is_final=True)
    open_one = Dated(question=replace(question, case="net/tiled@cpu"))
    page = page_of(events, [make_news()], [found, open_one])
    assert page.verdict == (
        f"{FAILS} 1 case became slower by the compiler in the last 10 runs: net/stock@cpu latency ▲ +4.0 % "
        "(2.000 -> 2.080 ms); other changes: 1 of unknown cause; known: 1 marked as fixed."
    )
    failing, recent, apart, earlier = tables(page)
    titles = ["Cases that fail", "Changes in the last 10 runs", "Acknowledged, or marked as fixed", "1 earlier change"]
    assert [table.title for table in (failing, recent, apart, earlier)] == titles
    assert (earlier.folded, page.notes[-1]) == (True, "run03 is left out: it is damaged")
    assert cells(recent, "change") == [f"latency {kind}▲ +4.0 % (2.000 -> 2.080 ms)" for kind in ("", "drift ")]
    assert cells(recent, "why") == [
        "the ratio to the reference toolchain 3.12.0 moved by +3.9 %; seen too in dispatch count",
        "nothing else is known; it goes on until run29; it began between run06 and run12",
    ]
    assert (cells(apart, "state"), cells(apart, "on"), cells(apart, "note")) == (
        ["marked as fixed"], ["2026-03-01"], [mark.note],
    )  # fmt: skip
    assert (cells(earlier, "cases"), cells(earlier, "change")) == (["2"], ["latency ▲ +4.0 % (median)"])
    assert str(cells(earlier, "why")[0]).endswith("it happened between run04 and run06")
    markdown = to_markdown(page)
    assert f"- `net/stock@cpu`: {found.answer}" in markdown
    assert markdown.count("harness bisect x.toml") == 1
    assert open_one.question.command in markdown
    assert "<script" not in markdown


@pytest.mark.parametrize(
    ("changes", "searched", "verdict"),
    [
        ([], 0, "No series has two points yet, so there is nothing to find changes in."),
        ([make_change(cause="machine")], 5, f"{NONE_LONGER}; other changes: 1 of the machine."),
        (
            [make_change(case=f"net/{number}@cpu") for number in range(5)],
            5,
            "5 cases became slower by the compiler in the last 10 runs: "
            "net/0@cpu latency ▲ +4.0 % (2.000 -> 2.080 ms), net/1@cpu latency ▲ +4.0 % (2.000 -> 2.080 ms), "
            "net/2@cpu latency ▲ +4.0 % (2.000 -> 2.080 ms) and 2 more.",
        ),
    ],
)
def test_the_verdict_on_changes(changes: list[Change], searched: int, verdict: str) -> None:
    assert changes_verdict(events_of(*changes), searched=searched, last=10) == verdict


@pytest.mark.parametrize(
    ("changed", "text"),
    [
        ({"metric": "latency-vs-reference", "unit": "ratio", "before": 1.0, "after": 1.04},
         "latency vs. reference toolchain ▲ +4.0 % (1.000 -> 1.040)"),
        ({"role": "reference", "toolchain_after": "3.12.0"}, "latency under 3.12.0 ▲ +4.0 % (2.000 -> 2.080 ms)"),
        ({"metric": "flow/linalg.matmul", "unit": "count", "before": 0.0, "after": 3.0},
         "linalg.matmul at flow ▲ new (0 -> 3)"),
        ({"metric": "module-size", "unit": "bytes", "before": 889_400.0, "after": 889_900.0},
         "module size ▲ +0.1 % (868.6 -> 869.0 KiB)"),
    ],
)  # fmt: skip
def test_a_change_names_its_figure_and_both_levels(changed: dict[str, Any], text: str) -> None:
    (table,) = tables(page_of(events_of(make_change(**changed))))
    assert cells(table, "change") == [text]


def test_an_overview_has_a_line_for_each_suite_and_class_of_machines() -> None:
    row = {"suite": "nightly", "machine_class": "EPYC", "runs": 60, "series": 38, "last": "2026-03-01T02:00",
           "last_run": "run29", "toolchain": "3.13.0"}  # fmt: skip
    events = events_of(make_change(machine_class="EPYC, A4000"), make_change(case="net/x@cpu"))
    rows = pd.DataFrame([row, {**row, "machine_class": "Ampere"}])
    page = overview_page(rows, events, [make_news()], last=10, notes=("a note",))
    table, failing = tables(page)
    assert page.verdict == f"{FAILS} 120 runs of 1 suite."
    assert (cells(table, "machines"), cells(table, "changed")) == (["EPYC", "Ampere"], ["▲ 1 compiler", "none"])
    assert (failing.title, page.notes[-1]) == ("Cases that fail", "a note")


# --- Series and answers ---


def test_a_series_is_drawn_and_its_latest_points_are_listed_with_their_changes() -> None:
    values = [1e6] * 45 + [2e6] * 15
    lows = [value * 0.99 for value in values[:-1]] + [float("nan")]
    columns = {"started": "2026-01-01T02:00:00+00:00", "toolchain": "3.13.0", "value": values, "low": lows}
    points = pd.DataFrame({"run": [f"run{number:02d}" for number in range(60)], **columns, "high": values})
    found = [make_change(series="aa", first_bad="run45", ratio=2.0, cause="machine", evidence="the machine moved")]
    table = series_table(make_series("aa"), points, found, width=60)
    assert table.title == "rdb/stock@cpu latency (newest, AMD EPYC, 2 cores, series aa)"
    assert list(table.before) == ["▁" * 45 + "█" * 15, " " * 45 + "^"]
    assert cells(table, "change")[25] == "step +100.0 %, machine"
    assert cells(table, "low")[-2:] == ["1.980", "-"]
    assert table.after == (
        "20 earlier points are in the line alone; --format csv prints all.",
        "run45: machine, since the machine moved.",
    )
    assert (table.rows, series_table(make_series("aa"), points, found, width=60, alone=False).rows) == (40, 10)
    page = series_page([table], 2, ("a note",))
    assert page.notes == ("2 more series match; --metric and `CASE METRIC` choose among them.", "a note")


def test_an_answer_is_a_table_of_plain_values() -> None:
    frame = pd.DataFrame(
        {
            "value": [1234567.891, float("nan")],
            "count": pd.array([3, None], dtype="Int64"),
            "right": [True, False],
            "when": [pd.Timestamp("2026-01-01T02:00:00Z"), None],
        }
    )
    (table,) = tables(query_page(frame))
    assert [(column.title, column.kind, *column.cells) for column in table.columns] == [
        ("value", "number", "1,234,568", "-"),
        ("count", "number", "3", "-"),
        ("right", "text", "true", "false"),
        ("when", "text", "2026-01-01 02:00:00+00:00", "-"),
    ]
