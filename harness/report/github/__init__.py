"""Comparison or run -> what GitHub shows: a comment on a pull request, the full report, the summary of a job."""

from __future__ import annotations

from dataclasses import replace

from harness.records.comparison import Comparison
from harness.report.github.portable import portable_comparison, portable_report
from harness.report.links import Image, Images, Links, Surroundings
from harness.report.markdown import COMMENT, Limits, size_bytes, to_markdown
from harness.report.page import Name, Page, Sentence
from harness.report.run_report import Report

__all__ = [
    "STEP_SUMMARY_BYTES",
    "Image",
    "Images",
    "Links",
    "render_comment",
    "render_full",
    "render_run_comment",
    "render_run_full",
    "render_run_step_summary",
    "render_step_summary",
]

# "$GITHUB_STEP_SUMMARY upload aborted, supports content up to a size of 1024k": of one step; nothing is shown then.
STEP_SUMMARY_BYTES = 1_048_576
_SUMMARY_LEVELS = (100_000, 3_000, 1_000, 300, 100, 30, 0)


def render_comment(comparison: Comparison, *, images: Images | None = None, links: Links | None = None) -> str:
    """A comment that GitHub takes, however many rows there are and whatever texts are in them.

    Args:
        images: Pictures that are published elsewhere; without any, the largest changes are drawn in characters.
        links: Where more is to be read.
    """
    around = _around(comparison.head.suite, images, links)
    return to_markdown(_comparison_page(comparison, around), COMMENT)


def render_full(comparison: Comparison) -> str:
    """Every row, every setting and every command; of any length, for a file."""
    from harness.report.comparison import render_comparison

    return render_comparison(comparison, "markdown", full=True)


def render_step_summary(
    comparison: Comparison,
    *,
    images: Images | None = None,
    links: Links | None = None,
    limit_bytes: int = STEP_SUMMARY_BYTES,
) -> str:
    """What `$GITHUB_STEP_SUMMARY` takes: the full report where there is room for it, else as much as there is.

    Args:
        limit_bytes: What the step has left; it may have written a summary before.
    """
    whole = render_full(comparison)
    if size_bytes(whole) < limit_bytes and not (images and images.entries):
        return whole
    around = replace(_around(comparison.head.suite, images, links), marked=False, levels=_SUMMARY_LEVELS)
    return to_markdown(_comparison_page(comparison, around), Limits(page_bytes=limit_bytes - 1))


def render_run_comment(report: Report, *, images: Images | None = None, links: Links | None = None) -> str:
    """A comment on a run that nothing is compared with: its variants against their baseline.

    Args:
        images: Pictures that are published elsewhere.
        links: Where more is to be read.
    """
    return to_markdown(_run_page(report, _around(report.facts.suite, images, links)), COMMENT)


def render_run_full(report: Report) -> str:
    """Every case, every metric and the environment; of any length, for a file."""
    from harness.report.run_page import full_page

    return to_markdown(full_page(report))


def render_run_step_summary(
    report: Report,
    *,
    images: Images | None = None,
    links: Links | None = None,
    limit_bytes: int = STEP_SUMMARY_BYTES,
) -> str:
    """The same of a run as `render_step_summary` gives of a comparison."""
    whole = render_run_full(report)
    if size_bytes(whole) < limit_bytes and not (images and images.entries):
        return whole
    around = replace(_around(report.facts.suite, images, links), marked=False)
    return to_markdown(_run_page(report, around), Limits(page_bytes=limit_bytes - 1))


def _around(suite: str, images: Images | None, links: Links | None) -> Surroundings:
    title: Sentence = ("Abbreviated Benchmark Summary of ", Name(suite))
    return Surroundings(title=title, images=images or Images(), links=links or Links())


def _comparison_page(comparison: Comparison, around: Surroundings) -> Page:
    from harness.report.comparison_page import markdown_page
    from harness.report.comparison_words import finite

    return markdown_page(portable_comparison(finite(comparison)), around, full=False)


def _run_page(report: Report, around: Surroundings) -> Page:
    from harness.report.run_page import markdown_page

    return markdown_page(portable_report(report), around, full=False)
