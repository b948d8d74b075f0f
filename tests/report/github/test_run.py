"""A run with nothing to compare it with: its variants against their baseline."""

from __future__ import annotations

from dataclasses import asdict, replace

import pytest
from hypothesis import HealthCheck, assume, given, settings
from syrupy.assertion import SnapshotAssertion

from harness.records.run import Run
from harness.report.github import Images, Links, render_run_comment, render_run_full, render_run_step_summary
from harness.report.markdown_text import COMMENT_LIMIT
from harness.report.table import build_report
from harness.report.values import Report
from harness.text import one_line
from tests.report.comparison.conftest import SELFCHECK
from tests.report.github.page import Page, require_ours
from tests.report.github.test_hostile import FRAGMENTS, HOSTILE


def called(report: Report, text: str) -> Report:
    """The same report with a text in place of its names, reasons and notes."""
    sections = tuple(
        replace(
            section,
            model=text,
            group=f"{text}{index}",
            device=text,
            device_facts=text,
            call=text,
            rows=tuple(
                replace(
                    row,
                    case=f"{text}{number}",
                    variant=row.variant and f"{text}{row.variant}",
                    same_as=row.same_as and text,
                    checked_against=row.checked_against and text,
                    remarks=tuple(text for _ in row.remarks),
                    repro=tuple(text for _ in row.repro),
                    failure=row.failure and replace(row.failure, message=text, stderr=f"{text}\n{text}x"),
                )
                for number, row in enumerate(section.rows)
            ),
        )
        for index, section in enumerate(report.sections)
    )
    facts = replace(report.facts, id=text, suite=text, suite_name=text, machine=text, cpu=text, baseline=text)
    return replace(report, sections=sections, facts=facts, notes=(text,))


@pytest.mark.parametrize("name", ["full_run", "small_run", "unfinished_run", "nasty_run"])
def test_comments(name: str, request: pytest.FixtureRequest, snapshot: SnapshotAssertion) -> None:
    text = render_run_comment(build_report(request.getfixturevalue(name)))
    assert text == snapshot
    require_ours(text)


def test_it_says_that_there_is_no_base(small_run: Run, links: Links) -> None:
    text = render_run_comment(build_report(small_run), links=links)
    lines = [line for line in text.splitlines() if line]
    assert lines[0] == "<!--harness report: esrgan-->"
    assert lines[1] == "## Abbreviated Benchmark Summary of `suites/esrgan.toml`"
    assert ", with no base to compare with: " in text
    assert f"@ commit [`0a1b2c3d4e`]({links.head_commit_url}), run `" in text


def test_failures_come_first_and_unfolded(full_run: Run) -> None:
    text = render_run_comment(build_report(full_run))
    assert "**🚨 Needs attention: 17 cases: 3 failed, 1 missing" in text
    seen = Page(text).unfolded
    assert "rdb/wide-vectors@local-sync" in seen
    assert seen.index("Failed Cases") < seen.index("Regressed Latencies")


def test_pictures_of_variants(small_run: Run, images: Images) -> None:
    page = Page(render_run_comment(build_report(small_run), images=images))
    assert page.images[1] == "https://org.github.io/repo/pr-1/forest-light.png"


@given(HOSTILE)
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
def test_whatever_a_text_is_the_page_has_the_same_parts(full_run: Run, text: str) -> None:
    assume(one_line(text))
    report = build_report(full_run)
    page = require_ours(render_run_comment(called(report, text)))
    assert page.shape == Page(render_run_comment(called(report, "plain"))).shape


@pytest.mark.parametrize("text", FRAGMENTS)
def test_the_full_report_holds_together(full_run: Run, text: str) -> None:
    require_ours(render_run_full(called(build_report(full_run), f"{text}a")))


@pytest.mark.parametrize("character", ["a", "@x", "|", "語", "😀", "`", "$"])
def test_names_of_ten_thousand_characters(full_run: Run, character: str) -> None:
    text = render_run_comment(called(build_report(full_run), (character * 10_000)[:10_000]))
    assert len(text.encode()) < COMMENT_LIMIT
    require_ours(text)


def test_four_thousand_failures(full_run: Run) -> None:
    report = build_report(full_run)
    section = report.sections[0]
    failed = next(row for row in section.rows if row.status == "failed")
    rows = tuple(replace(failed, case=f"model-{index}/v@cpu", variant=f"v{index}") for index in range(4_000))
    text = render_run_comment(replace(report, sections=(replace(section, rows=(*section.rows, *rows)),)))
    assert len(text.encode()) < COMMENT_LIMIT
    assert "Left out here for length: " in text
    assert "more" in Page(text).unfolded
    assert "model-7/v@cpu" in Page(text).unfolded


def test_the_summary_of_a_job_is_the_full_report_where_there_is_room(full_run: Run) -> None:
    report = build_report(full_run)
    assert render_run_step_summary(report) == render_run_full(report)
    assert len(render_run_step_summary(report, limit_bytes=9_000).encode()) < 9_000


def test_pictures_are_in_the_summary_of_a_job_too(small_run: Run, images: Images) -> None:
    assert "forest-light.png" in render_run_step_summary(build_report(small_run), images=images)


def test_a_suite_of_elsewhere_is_named_by_its_file(small_run: Run) -> None:
    report = build_report(small_run)
    known = {**report.facts.environment, "selfcheck": asdict(replace(SELFCHECK, suite="/home/me/checked.toml"))}
    text = render_run_comment(replace(report, facts=replace(report.facts, environment=known)))
    assert "(checked with checked.toml)" in text


def test_the_full_report_is_a_link_where_there_is_one(small_run: Run, links: Links) -> None:
    report = build_report(small_run)
    assert "The full report, with every case and the environment, where it was measured: `harness report" in (
        render_run_comment(report)
    )
    assert "harness report results/" not in render_run_comment(report, links=links)
