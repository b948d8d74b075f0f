"""Comparison or run -> what GitHub shows: a comment on a pull request, the summary of a job."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from harness.records.comparison import Comparison
from harness.report import markdown_page, render
from harness.report.markdown import COMMENT, Limits, size_bytes, to_markdown
from harness.report.page import Name, Page, Picture
from harness.report.pages import Links, Surroundings
from harness.report.portable import portable_comparison, portable_report
from harness.report.run_report import Report

# "$GITHUB_STEP_SUMMARY upload aborted, supports content up to a size of 1024k": of one step; nothing is shown then.
STEP_SUMMARY_BYTES = 1_048_576
_SUMMARY_LEVELS = (100_000, 3_000, 1_000, 300, 100, 30, 0)


def render_comment(source: Comparison | Report, *, pictures: Sequence[Picture] = (), links: Links | None = None) -> str:
    """A comment that GitHub takes, however many rows there are and whatever texts are in them."""
    return to_markdown(_page(source, _around(source, pictures, links)), COMMENT)


def render_step_summary(
    source: Comparison | Report,
    *,
    pictures: Sequence[Picture] = (),
    links: Links | None = None,
    limit_bytes: int = STEP_SUMMARY_BYTES,
) -> str:
    """What `$GITHUB_STEP_SUMMARY` takes: the full report where there is room for it, else as much as there is."""
    whole = render(source, "markdown", full=True)
    if size_bytes(whole) < limit_bytes and not pictures:
        return whole
    around = replace(_around(source, pictures, links), marked=False, levels=_SUMMARY_LEVELS)
    return to_markdown(_page(source, around), Limits(page_bytes=limit_bytes - 1))


def _around(source: Comparison | Report, pictures: Sequence[Picture], links: Links | None) -> Surroundings:
    suite = source.head.suite if isinstance(source, Comparison) else source.facts.suite
    title = ("Abbreviated Benchmark Summary of ", Name(suite))
    return Surroundings(title=title, pictures=pictures, links=links or Links())


def _page(source: Comparison | Report, around: Surroundings) -> Page:
    portable = portable_comparison(source) if isinstance(source, Comparison) else portable_report(source)
    return markdown_page(portable, around, full=False)
