"""Run, comparison, explanation, bisect or tuning -> report: for a terminal, for a pull request, for other programs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

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


@dataclass(frozen=True, kw_only=True)
class Form:
    """How a kind of result is shown; a page is made of the result and of the folder that holds it, None: not known."""

    json: Callable[[Any], str]
    csv: Callable[[Any], str]
    terminal: Callable[[Any, Path | None], Page]
    markdown: Callable[[Any, Path | None], Page]  # With everything
    short: Callable[[Any], Page] | None = None  # Markdown that fits a comment; None: there is one only


def form_of(source: Report | Comparison | Explanation | Bisection | Tuning) -> Form:
    """How a result is shown: the entries are those of harness.store.kinds, a run's being of its report."""
    from harness.records.bisection import Bisection
    from harness.records.comparison import Comparison
    from harness.records.explanation import Explanation
    from harness.records.tuning import Tuning
    from harness.report import bisect_page, comparison_page, explanation_page, run_page, tune_page
    from harness.report.comparison import comparison_csv, json_document
    from harness.report.explanation import explanation_csv, explanation_document
    from harness.report.pages import Surroundings
    from harness.report.run_fields import run_csv, run_json
    from harness.report.run_report import Report

    def titled(subject: str, *, full: bool) -> Callable[..., Page]:
        around = Surroundings(title=f"{'Full' if full else 'Abbreviated'} Benchmark {subject}")
        return lambda source, *_: markdown_page(source, around, full=full)

    def run_terminal(report: Report, results: Path | None) -> Page:
        facts = report.facts if results is None else replace(report.facts, results=_name(results))
        return run_page.terminal_page(replace(report, facts=facts))

    forms: dict[type, Form] = {
        Report: Form(
            json=run_json,
            csv=run_csv,
            terminal=run_terminal,
            markdown=titled("Summary", full=True),
            short=titled("Summary", full=False),
        ),
        Comparison: Form(
            json=lambda source: json_document(source).decode(),
            csv=comparison_csv,
            terminal=lambda source, results: comparison_page.terminal_page(source, _name(results)),
            markdown=titled("Comparison", full=True),
            short=titled("Comparison", full=False),
        ),
        Explanation: Form(
            json=lambda source: explanation_document(source).decode(),
            csv=explanation_csv,
            terminal=lambda source, results: explanation_page.terminal_page(source, _name(results)),
            markdown=lambda source, _: explanation_page.markdown_page(source, full=True),
            short=lambda source: explanation_page.markdown_page(source, full=False),
        ),
        Bisection: Form(
            json=bisect_page.bisect_json,
            csv=bisect_page.bisect_csv,
            terminal=lambda source, _: bisect_page.bisect_page(source),
            markdown=lambda source, _: bisect_page.bisect_page(source),
        ),
        Tuning: Form(
            json=tune_page.tune_json,
            csv=tune_page.tune_csv,
            terminal=lambda source, out: tune_page.terminal_page(source, out.as_posix() if out is not None else ""),
            markdown=lambda source, out: tune_page.markdown_page(source, out.as_posix() if out is not None else ""),
        ),
    }
    return forms[type(source)]


def _name(results: Path | None) -> str:
    return results.as_posix() if results is not None else "results"


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
    form = form_of(shown)
    if format == "json":
        return form.json(shown)
    if format == "csv":
        return form.csv(shown)
    if format == "terminal":
        from harness.report.terminal import to_terminal

        return to_terminal(form.terminal(shown, results), width=width, color=color)
    from harness.report.markdown import COMMENT, to_markdown

    if form.short is None or full:
        return to_markdown(form.markdown(shown, results))
    return to_markdown(form.short(shown), COMMENT)


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
