"""Run, comparison, explanation, bisect or tuning -> report: for a terminal, for a pull request, for other programs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from harness.errors import ExitCode

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

__all__ = ["Form", "Format", "form_of", "markdown_page", "render"]


@dataclass(frozen=True, kw_only=True)
class Form:
    """How a kind of result is shown, and what exit status it has.

    A page is made of the result and of the name of the folder that holds it; "": not known.
    """

    json: Callable[[Any], str]
    csv: Callable[[Any], str]
    terminal: Callable[[Any, str], Page]
    markdown: Callable[[Any, str], Page]  # With everything
    short: Callable[[Any], Page] | None = None  # Markdown that is cut until it fits a comment; None: it is never cut
    exit_status: Callable[[Any], ExitCode] = lambda _: ExitCode.OK  # What was found is no failure


def form_of(source: Report | Comparison | Explanation | Bisection | Tuning) -> Form:
    """How a result is shown: an entry for each of `KINDS` in harness.store.kinds, that of a run for its report."""
    from harness.records.bisection import Bisection
    from harness.records.comparison import Comparison
    from harness.records.explanation import Explanation
    from harness.records.tuning import Tuning
    from harness.report import (
        bisect_page,
        comparison,
        comparison_page,
        explanation_page,
        run_fields,
        run_page,
        tune_page,
    )
    from harness.report.pages import ReportContext
    from harness.report.run_report import Report, exit_code

    def titled(subject: str, *, full: bool) -> Callable[..., Page]:
        around = ReportContext(title=f"{'Full' if full else 'Abbreviated'} Benchmark {subject}")
        return lambda source, *_: markdown_page(source, around, full=full)

    def run_terminal(report: Report, results: str) -> Page:
        facts = replace(report.facts, results=results) if results else report.facts
        return run_page.terminal_page(replace(report, facts=facts))

    forms: dict[type, Form] = {
        Report: Form(
            json=run_fields.run_json,
            csv=run_fields.run_csv,
            terminal=run_terminal,
            markdown=titled("Summary", full=True),
            short=titled("Summary", full=False),
            exit_status=lambda report: exit_code(report.summary),
        ),
        Comparison: Form(
            json=lambda source: comparison.json_document(source).decode(),
            csv=comparison.comparison_csv,
            terminal=lambda source, results: comparison_page.terminal_page(source, results or "results"),
            markdown=titled("Comparison", full=True),
            short=titled("Comparison", full=False),
            exit_status=lambda source: comparison.comparison_exit_code(source, strict=False),
        ),
        Explanation: Form(
            json=lambda source: explanation_page.explanation_document(source).decode(),
            csv=explanation_page.explanation_csv,
            terminal=lambda source, results: explanation_page.terminal_page(source, results or "results"),
            markdown=lambda source, _: explanation_page.markdown_page(source, full=True),
            short=lambda source: explanation_page.markdown_page(source, full=False),
        ),
        Bisection: Form(
            json=bisect_page.bisect_json,
            csv=bisect_page.bisect_csv,
            terminal=lambda source, _: bisect_page.bisect_page(source),
            markdown=lambda source, _: bisect_page.bisect_page(source),
            exit_status=bisect_page.bisect_exit_code,
        ),
        Tuning: Form(
            json=tune_page.tune_json,
            csv=tune_page.tune_csv,
            terminal=tune_page.terminal_page,
            markdown=tune_page.markdown_page,
        ),
    }
    return forms[type(source)]


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
    from harness.records.run import Run
    from harness.report.run_report import build_report

    shown = build_report(source) if isinstance(source, Run) else source
    form, folder = form_of(shown), results.as_posix() if results is not None else ""
    if format in ("json", "csv"):
        return form.json(shown) if format == "json" else form.csv(shown)
    if format == "terminal":
        from harness.report.terminal import to_terminal

        return to_terminal(form.terminal(shown, folder), width=width, color=color)
    from harness.report.markdown import COMMENT, to_markdown

    if form.short is None or full:
        return to_markdown(form.markdown(shown, folder))
    return to_markdown(form.short(shown), COMMENT)


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
