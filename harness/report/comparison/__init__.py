"""Comparison -> report: for a terminal, for a pull request, for other programs."""

from __future__ import annotations

from harness.records.comparison import Comparison
from harness.report import Format
from harness.report.comparison.json_ import comparison_from_json

__all__ = ["comparison_from_json", "render_comparison"]


def render_comparison(
    comparison: Comparison,
    format: Format,  # noqa: A002
    *,
    full: bool = False,
    width: int = 120,
    color: bool = False,
) -> str:
    """A comparison as text.

    Args:
        full: Whether Markdown has every row of every list, but for thousands of unchanged figures that are counted.
        width: Columns of the terminal.
        color: Whether the terminal shows colours.
    """
    if format == "json":
        from harness.report.comparison.json_ import render_json

        return render_json(comparison)
    from harness.report.comparison.finite import finite

    known = finite(comparison)
    if format == "terminal":
        from harness.report.comparison.terminal import render_terminal

        return render_terminal(known, width=width, color=color)
    if format == "markdown":
        from harness.report.comparison.markdown import render_markdown

        return render_markdown(known, full=full)
    from harness.report.comparison.csv_ import render_csv

    return render_csv(known)
