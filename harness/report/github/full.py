"""Comparison -> the full report, and the summary of the job that made it."""

from __future__ import annotations

from harness.compare.values import Comparison
from harness.report.comparison import render_comparison
from harness.report.comparison.form import size_bytes
from harness.report.github.comment import lay_out
from harness.report.github.limits import LEVELS_OF_A_SUMMARY, STEP_SUMMARY_BYTES
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
    whole = render_full(comparison)
    if size_bytes(whole) < limit_bytes and not (images and images.entries):
        return whole
    return lay_out(
        comparison,
        top="",
        images=images or Images(),
        links=links or Links(),
        limit_bytes=limit_bytes - 1,
        levels=LEVELS_OF_A_SUMMARY,
    )
