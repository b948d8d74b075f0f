"""Run -> report: for a terminal, for a pull request, for other programs."""

from __future__ import annotations

from typing import Literal

from harness.records.run import Run

Format = Literal["terminal", "markdown", "json", "csv"]

__all__ = ["Format", "render"]


def render(run: Run, format: Format, *, full: bool = False, width: int = 100, color: bool = False) -> str:  # noqa: A002
    """A run as text, finished or as far as it got.

    Args:
        full: Whether Markdown has every row of every list.
        width: Columns of the terminal.
        color: Whether the terminal shows colours.
    """
    from harness.report.run_report import build_report

    report = build_report(run)
    if format in ("json", "csv"):
        from harness.report.run_fields import run_csv, run_json

        return run_json(report) if format == "json" else run_csv(report)
    from harness.report.run_page import comment_page, full_page, terminal_page

    if format == "terminal":
        from harness.report.terminal import to_terminal

        return to_terminal(terminal_page(report), width=width, color=color)
    from harness.report.markdown import COMMENT, to_markdown

    return to_markdown(full_page(report)) if full else to_markdown(comment_page(report), COMMENT)
