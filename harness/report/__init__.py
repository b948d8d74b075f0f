"""Run, comparison, explanation, bisect or tuning -> report: for a terminal, for a pull request, for other programs."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from pathlib import Path

    from harness.records.bisection import Bisection
    from harness.records.comparison import Comparison
    from harness.records.explanation import Explanation
    from harness.records.run import Run
    from harness.records.tuning import Tuning
    from harness.report.page import Page
    from harness.report.pages import Surroundings
    from harness.report.run_report import Report

Format = Literal["terminal", "markdown", "json", "csv"]

__all__ = ["Format", "markdown_page", "render"]


def render(
    source: Run | Report | Comparison | Explanation | Bisection | Tuning,
    format: Format,  # noqa: A002
    *,
    full: bool = False,
    width: int = 100,
    color: bool = False,
    results: Path | None = None,
) -> str:
    """A run, finished or as far as it got, a comparison, an explanation, a bisect or a tuning as text.

    Args:
        full: Whether Markdown has every row of every list.
        width: Columns of the terminal.
        color: Whether the terminal shows colours.
        results: The folder that holds it, which paths on a terminal begin with; pages for others say `results`.
    """
    from harness.records.bisection import Bisection
    from harness.records.explanation import Explanation
    from harness.records.run import Run
    from harness.records.tuning import Tuning
    from harness.report.run_report import Report, build_report

    if isinstance(source, Run):
        source = build_report(source)
    folder = results.as_posix() if results is not None else "results"
    if isinstance(source, Explanation):
        return _explanation(source, format, full=full, width=width, color=color, results=folder)
    if isinstance(source, Bisection):
        return _bisect(source, format, width=width, color=color)
    if isinstance(source, Tuning):
        return _tuning(source, format, width=width, color=color, out=results.as_posix() if results is not None else "")
    if format in ("json", "csv"):
        from harness.report.comparison import comparison_csv, json_document
        from harness.report.run_fields import run_csv, run_json

        if isinstance(source, Report):
            return run_json(source) if format == "json" else run_csv(source)
        return json_document(source).decode() if format == "json" else comparison_csv(source)
    if format == "terminal":
        from harness.report import comparison_page, run_page
        from harness.report.terminal import to_terminal

        if isinstance(source, Report) and results is not None:
            source = replace(source, facts=replace(source.facts, results=folder))
        page = (
            run_page.terminal_page(source)
            if isinstance(source, Report)
            else comparison_page.terminal_page(source, folder)
        )
        return to_terminal(page, width=width, color=color)
    from harness.report.markdown import COMMENT, to_markdown
    from harness.report.pages import Surroundings

    subject = "Summary" if isinstance(source, Report) else "Comparison"
    around = Surroundings(title=f"{'Full' if full else 'Abbreviated'} Benchmark {subject}")
    return to_markdown(markdown_page(source, around, full=full), None if full else COMMENT)


def _explanation(
    explanation: Explanation,
    format: Format,  # noqa: A002
    *,
    full: bool,
    width: int,
    color: bool,
    results: str,
) -> str:
    if format in ("json", "csv"):
        from harness.report.explanation import explanation_csv, explanation_document

        return explanation_document(explanation).decode() if format == "json" else explanation_csv(explanation)
    from harness.report import explanation_page

    if format == "terminal":
        from harness.report.terminal import to_terminal

        return to_terminal(explanation_page.terminal_page(explanation, results), width=width, color=color)
    from harness.report.markdown import COMMENT, to_markdown

    return to_markdown(explanation_page.markdown_page(explanation, full=full), None if full else COMMENT)


def _bisect(found: Bisection, format: Format, *, width: int, color: bool) -> str:  # noqa: A002
    from harness.report.bisect_page import bisect_csv, bisect_json, bisect_page

    if format in ("json", "csv"):
        return bisect_json(found) if format == "json" else bisect_csv(found)
    if format == "terminal":
        from harness.report.terminal import to_terminal

        return to_terminal(bisect_page(found), width=width, color=color)
    from harness.report.markdown import to_markdown

    return to_markdown(bisect_page(found))


def _tuning(found: Tuning, format: Format, *, width: int, color: bool, out: str) -> str:  # noqa: A002
    from harness.report import tune_page

    if format in ("json", "csv"):
        return tune_page.tune_json(found) if format == "json" else tune_page.tune_csv(found)
    if format == "terminal":
        from harness.report.terminal import to_terminal

        return to_terminal(tune_page.terminal_page(found, out), width=width, color=color)
    from harness.report.markdown import to_markdown

    return to_markdown(tune_page.markdown_page(found, out))


def markdown_page(source: Report | Comparison, around: Surroundings, *, full: bool) -> Page:
    """A comment as a page, or everything there is.

    Args:
        around: Its title, and what stands beside the figures.
        full: Every row of every list, all settings, the environment and all commands.
    """
    from harness.report import comparison_page, run_page
    from harness.report.pages import page_of
    from harness.report.run_report import Report

    if isinstance(source, Report):
        return page_of(run_page.content_of(source, around, full=full), around)
    return page_of(comparison_page.content_of(source, around, full=full), around)
