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
    from harness.report.table import build_report

    report = build_report(run)
    if format == "terminal":
        from harness.report.run_terminal import render_terminal

        return render_terminal(report, width=width, color=color)
    if format == "markdown":
        from harness.report.run_markdown import render_markdown

        return render_markdown(report, full=full)
    if format == "csv":
        from harness.report.csv_ import render_csv

        return render_csv(report)
    from harness.report.json_ import render_json

    return render_json(report)
