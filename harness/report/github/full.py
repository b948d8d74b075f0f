"""Comparison -> the full report, and the summary of the job that made it."""

from __future__ import annotations

from harness.records.comparison import Comparison
from harness.report.comparison import render_comparison
from harness.report.github.comment import lay_out
from harness.report.github.limits import LEVELS_OF_A_SUMMARY, STEP_SUMMARY_BYTES
from harness.report.github.summary import whole_or_shorter
from harness.report.github.values import Images, Links


def render_full(comparison: Comparison) -> str:
    """Every row, every setting and every command; of any length, for a file."""
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

    def shorter(shown: Images, most_bytes: int) -> str:
        return lay_out(
            comparison,
            top="",
            images=shown,
            links=links or Links(),
            limit_bytes=most_bytes,
            levels=LEVELS_OF_A_SUMMARY,
        )

    return whole_or_shorter(render_full(comparison), images, shorter, limit_bytes)
