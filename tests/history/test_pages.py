"""What people read: pages on a terminal and as Markdown, out of which no name breaks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from harness.history.changes_page import changes_page, verdict
from harness.history.findings import findings
from harness.history.frame_text import render_frame
from harness.history.page import Page, Sheet, page_markdown, page_terminal
from harness.history.values import Change
from harness.report.columns import Column
from tests.history.test_findings import ORDER, change

EVIL = "<script>alert(1)</script>|`x`\n# **bold** @someone #1 ![a](b) 😀"


def page(changes: Sequence[Change], **given: Any) -> Page:
    facts: dict[str, Any] = {"searched": 38, "noisy": 14, "last": 10, "notes": (), **given}
    return changes_page(findings(changes, ORDER, facts["last"]), **facts)


def several() -> list[Change]:
    early = {"first_bad": "run05", "earliest": "run04", "latest": "run06", "until": "run05"}
    return [
        change(),
        change(metric="dispatches", unit="count", direction="more", before=7.0, after=9.0, ratio=9 / 7),
        change(case="net/tiled@cpu", cause="machine", evidence="the reference toolchain moved likewise", **early),
        change(case="net/stock@cpu", cause="machine", evidence="the reference toolchain moved likewise", **early),
        change(
            case="net/tiled@cpu",
            kind="drift",
            cause="unknown",
            evidence="nothing else is known",
            first_bad="run08",
            earliest="run06",
            latest="run12",
            until="run29",
        ),
        change(metric="copies", unit="count", direction="less", before=2.0, after=0.0, ratio=0.0, case="net/x@cpu"),
    ]


def test_changes_as_markdown(snapshot: SnapshotAssertion) -> None:
    notes = ("run03 is left out: it is damaged",)

    assert page_markdown(page(several(), notes=notes)) == snapshot


@pytest.mark.parametrize("width", [80, 160])
def test_changes_on_a_terminal(snapshot: SnapshotAssertion, width: int) -> None:
    assert page_terminal(page(several()), width=width, color=False) == snapshot


def test_the_verdict_comes_first_and_names_what_became_slower() -> None:
    text = page_markdown(page(several()))

    assert text.startswith("**1 case became slower by the compiler in the last 10 runs: net/stock@cpu latency ▲ +4.0 %")


@pytest.mark.parametrize(
    ("changes", "searched", "said"),
    [
        ([], 0, "No series has two points yet, so there is nothing to find changes in."),
        ([], 5, "No latency and no compile time became longer by the compiler in the last 10 runs."),
        (
            [change(cause="machine")],
            5,
            "No latency and no compile time became longer by the compiler in the last 10 runs; other changes: "
            "1 of the machine.",
        ),
        (
            [change(case=f"net/{number}@cpu") for number in range(5)],
            5,
            "5 cases became slower by the compiler in the last 10 runs: "
            "net/0@cpu latency ▲ +4.0 % (2.000 -> 2.080 ms), net/1@cpu latency ▲ +4.0 % (2.000 -> 2.080 ms), "
            "net/2@cpu latency ▲ +4.0 % (2.000 -> 2.080 ms) and 2 more.",
        ),
    ],
)
def test_verdicts(changes: list[Change], searched: int, said: str) -> None:
    assert verdict(findings(changes, ORDER, 10), searched=searched, last=10) == said


def test_thousands_of_changes_are_cut_and_the_cut_is_told() -> None:
    many = [change(case=f"net/{number}@cpu") for number in range(3_000)]

    text = page_markdown(page(many))

    assert len(text) < 100_000
    assert "2900 more are in --format csv and json." in text


def test_no_name_breaks_out_of_a_cell() -> None:
    long = "A" * 10_000
    evil = [
        change(case=EVIL, evidence=EVIL, toolchain_after=EVIL, metric="flow/<b>|`", unit="count"),
        change(case=long, first_bad="run26", earliest="run26", latest="run26"),
    ]

    text = page_markdown(page(evil, notes=(EVIL,)))

    assert "<script>" not in text
    assert "<b>" not in text
    assert long not in text
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert {line.count("|") for line in rows} == {rows[0].count("|")}
    assert "\x1b" not in page_terminal(page([change(case="\x1b[31mred")]), width=120, color=False)


def test_a_folded_sheet_is_folded_and_its_rows_hold_together() -> None:
    sheet = Sheet(title="more <b>", columns=(Column(title="a", cells=("x|y",)),), folded=True, before=("▁▂```",))

    text = page_markdown(Page(sheets=(sheet,)))

    assert text.startswith("<details>\n<summary>more &lt;b&gt;</summary>\n\n````\n▁▂```\n````")
    assert "x&#124;y" in text


@pytest.mark.parametrize("form", ["terminal", "markdown", "csv", "json"])
def test_a_query_as_text(snapshot: SnapshotAssertion, form: Any) -> None:
    import pandas as pd

    frame = pd.DataFrame(
        {
            "run": ["run01", "a|b\n<i>"],
            "value": [1234567.891, float("nan")],
            "count": pd.array([3, None], dtype="Int64"),
            "right": [True, False],
            "when": [pd.Timestamp("2026-01-01T02:00:00Z"), None],
            "list": [[1, 2], None],
        }
    )

    assert render_frame(frame, form, width=120, color=False) == snapshot


def test_a_query_without_rows_says_so_and_keeps_its_heads() -> None:
    import pandas as pd

    frame = pd.DataFrame({"run": [], "value": []})

    assert render_frame(frame, "terminal", width=80, color=False).strip() == "No rows."
    assert render_frame(frame, "csv", width=80, color=False) == "run,value\n"
    assert '"rows": []' in render_frame(frame, "json", width=80, color=False)
