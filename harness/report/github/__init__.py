"""Comparison or run -> what GitHub shows: a comment on a pull request, the full report, the summary of a job."""

from __future__ import annotations

from harness.report.github.comment import render_comment
from harness.report.github.full import render_full, render_step_summary
from harness.report.github.run import render_run_comment, render_run_full, render_run_step_summary
from harness.report.github.values import Image, Images, Links

__all__ = [
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
