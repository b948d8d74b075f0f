"""Run, comparison, explanation, bisect or tuning -> report: for a terminal, for a pull request, for other programs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from pathlib import Path

    from harness.records.bisection import Bisection
    from harness.records.comparison import Comparison
    from harness.records.explanation import Explanation
    from harness.records.run import Run
    from harness.records.tuning import Tuning
    from harness.report.page import Page
    from harness.report.pages import ReportContext
    from harness.report.run_report import Report

Format = Literal["terminal", "markdown", "json", "csv"]

__all__ = ["Format", "markdown_page", "render"]


@dataclass(frozen=True, kw_only=True)
class _Shown:
    """One result in each format."""

    json: Callable[[], str]
    csv: Callable[[], str]
    terminal: Callable[[], Page]
    markdown: Callable[[], Page]
    fits_a_comment: bool = False  # Whether its Markdown is cut until it does


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
    shown = _shown(source, full=full, results=results.as_posix() if results is not None else "")
    if format in ("json", "csv"):
        return shown.json() if format == "json" else shown.csv()
    if format == "terminal":
        from harness.report.terminal import to_terminal

        return to_terminal(shown.terminal(), width=width, color=color)
    from harness.report.markdown import COMMENT, to_markdown

    return to_markdown(shown.markdown(), COMMENT if shown.fits_a_comment and not full else None)


def _shown(source: Run | Report | Comparison | Explanation | Bisection | Tuning, *, full: bool, results: str) -> _Shown:
    from harness.records.bisection import Bisection
    from harness.records.explanation import Explanation
    from harness.records.run import Run
    from harness.records.tuning import Tuning
    from harness.report.run_report import Report, build_report

    if isinstance(source, Explanation):
        from harness.report import explanation_page

        return _Shown(
            json=lambda: explanation_page.explanation_document(source).decode(),
            csv=partial(explanation_page.explanation_csv, source),
            terminal=partial(explanation_page.terminal_page, source, results or "results"),
            markdown=partial(explanation_page.markdown_page, source, full=full),
            fits_a_comment=True,
        )
    if isinstance(source, Bisection):
        from harness.report.bisect_page import bisect_csv, bisect_json, bisect_page

        page = partial(bisect_page, source)
        return _Shown(json=partial(bisect_json, source), csv=partial(bisect_csv, source), terminal=page, markdown=page)
    if isinstance(source, Tuning):
        from harness.report import tune_page

        return _Shown(
            json=partial(tune_page.tune_json, source),
            csv=partial(tune_page.tune_csv, source),
            terminal=partial(tune_page.terminal_page, source, results),
            markdown=partial(tune_page.markdown_page, source, results),
        )
    from harness.report.pages import ReportContext

    title = f"{'Full' if full else 'Abbreviated'} Benchmark"
    if isinstance(source, Run | Report):
        from harness.report import run_fields, run_page

        report = build_report(source) if isinstance(source, Run) else source
        here = replace(report, facts=replace(report.facts, results=results)) if results else report
        return _Shown(
            json=partial(run_fields.run_json, report),
            csv=partial(run_fields.run_csv, report),
            terminal=partial(run_page.terminal_page, here),
            markdown=partial(markdown_page, report, ReportContext(title=f"{title} Summary"), full=full),
            fits_a_comment=True,
        )
    from harness.report import comparison, comparison_page

    return _Shown(
        json=lambda: comparison.json_document(source).decode(),
        csv=partial(comparison.comparison_csv, source),
        terminal=partial(comparison_page.terminal_page, source, results or "results"),
        markdown=partial(markdown_page, source, ReportContext(title=f"{title} Comparison"), full=full),
        fits_a_comment=True,
    )


def markdown_page(source: Report | Comparison, around: ReportContext, *, full: bool) -> Page:
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
