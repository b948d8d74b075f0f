"""Results on a terminal, as a comment and in full: all is there, nothing breaks out, and it fits."""

import csv
import io
from dataclasses import replace
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from harness.records.comparison import Comparison, Row
from harness.records.run import Run
from harness.report import render
from harness.report.github import render_comment, render_step_summary
from harness.report.markdown import COMMENT
from harness.report.run_report import build_report
from harness.text import one_line
from tests.report import builders
from tests.report.builders import make_comparison, make_row, make_timed
from tests.report.rendered import require_ours

SUBJECTS: dict[str, Run | Comparison] = {
    "full run": builders.make_full_run(),
    "run of one generation": builders.make_small_run(generations=1),
    "unfinished run": builders.make_unfinished_run(),
    "full comparison": builders.make_full_comparison(),
    "nasty comparison": builders.make_nasty_comparison(),
}


def squeezed(text: str) -> str:
    return "".join(text.split())


def test_a_comparison_as_a_comment_and_on_a_terminal(snapshot: SnapshotAssertion) -> None:
    rows = [
        make_timed("rdb/stock@cpu", 76.6, 1.1, "regressed", p=2.3e-4),
        make_row("rdb/stock@cpu", "copies", "improved", base_value=14, head_value=10),
    ]
    assert render_comment(make_comparison(rows)) == snapshot
    terminal = render(make_comparison(rows), "terminal", width=120)
    assert "Latency    1, +10.0 %" in terminal
    assert terminal.rindex("- repeat the largest regression") > terminal.index("How far to trust it")
    assert "\nNot shown here, but by --format markdown: Counted figures that changed" in terminal


@pytest.mark.parametrize("subject", SUBJECTS.values(), ids=SUBJECTS)
def test_every_row_is_in_every_format(subject: Run | Comparison) -> None:
    """A run's tables have variants below the name of their model."""
    if isinstance(subject, Run):
        rows = list(build_report(subject).rows())
        cases = [case.name for case in subject.header.cases]
        names = [one_line(row.variant) for row in rows]
        here = [one_line(text) for row in rows for text in (row.variant, *row.remarks)]
    else:
        cases = [row.case for row in subject.rows]
        names = here = [one_line(row.case) for row in subject.rows if not row.control]
    for full in (False, True):
        everything = one_line(require_ours(render(subject, "markdown", full=full)).everything)
        assert all(name in everything for name in names)
    terminal = squeezed(render(subject, "terminal", width=240))
    assert all(squeezed(name) in terminal for name in here)
    lines = list(csv.DictReader(io.StringIO(render(subject, "csv"))))
    assert [line["case"] for line in lines] == [one_line(case) for case in cases]


# --- However much there is ---

LONG = "it has an interval wider than 1 % either way; more would narrow it; " * 3


def many(verdict: Any, count: int, **facts: Any) -> list[Row]:
    names = (f"some-model-{index:05d}/with-a-variant@local-sync" for index in range(count))
    return [make_timed(name, 2.0, 1.1, verdict, **facts) for name in names]


@pytest.mark.parametrize(
    "rows",
    [
        many("regressed", 1_000, repro=("harness compare a b --filter c",)),
        [replace(row, reason=f"{row.case}: {LONG}") for row in many("inconclusive", 300)],
        many("missing", 300) + many("failed", 2_000, reason="fails at compile: " + "x" * 200, stderr="said\n" * 40),
        [replace(row, reason=f"{row.case}: {LONG}", stderr="said\n" * 400) for row in many("failed", 500)],
        many("new", 500) + many("unchanged", 500, gate="violated") + many("identical", 500),
    ],
    ids=["regressed", "inconclusive", "failed", "failed each otherwise", "others"],
)
def test_a_thousand_rows_fit_into_a_comment(rows: list[Row]) -> None:
    text = render_comment(make_comparison(rows))
    assert len(text.encode()) <= COMMENT
    assert "results showed]" in text or " more\n" in text
    assert rows[0].verdict != "missing" or require_ours(text).unfolded.count("some-model-") > 100


def test_the_comment_of_a_run_fits() -> None:
    full_run = builders.make_full_run()
    cases = tuple(
        replace(case, name=f"m{index}/{case.variant}@{case.device}", model=f"m{index}")
        for index in range(80)
        for case in full_run.header.cases[:10]
    )
    builds = tuple(replace(full_run.builds[0], case=case.name) for case in cases)
    run = replace(full_run, header=replace(full_run.header, cases=cases), builds=builds, finished=False)
    assert len(render(run, "markdown").encode()) <= COMMENT


def test_the_summary_of_a_job_is_the_full_report_where_there_is_room() -> None:
    huge = make_comparison([*many("regressed", 500), *many("unchanged", 1_500), *many("failed", 50)])
    assert render_step_summary(huge, room_bytes=100_000) == render_comment(huge)
    assert render_step_summary(huge, room_bytes=1_000) == ""
    report = build_report(builders.make_full_run())
    assert render_step_summary(report) == render(report, "markdown", full=True)
