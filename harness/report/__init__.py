"""Run, comparison, explanation, bisect or tuning -> report: for a terminal, for a pull request, for other programs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
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
    from harness.report.run_report import Report

Format = Literal["terminal", "markdown", "json", "csv"]

__all__ = ["Form", "Format", "form_of", "render"]


def _found(_: Any) -> ExitCode:
    return ExitCode.OK


@dataclass(frozen=True, kw_only=True)
class Form:
    """How a kind of result is shown, and what exit status it has."""

    json: Callable[[Any], str | bytes]
    csv: Callable[[Any], str]
    terminal: Callable[[Any, str], Page]  # Of the result and the name of the folder that holds it; "": not known
    markdown: Callable[[Any], Page]  # With everything
    comment: Callable[[Any], str] | None = None  # Markdown that is short enough for a comment; None: it is never cut
    exit_status: Callable[[Any], ExitCode] = _found


def form_of(source: Report | Comparison | Explanation | Bisection | Tuning) -> Form:
    """How a result is shown: an entry for each of `KINDS` in harness.store.kinds, that of a run for its report."""
    from harness.records.bisection import Bisection
    from harness.records.comparison import Comparison
    from harness.records.explanation import Explanation
    from harness.records.tuning import Tuning
    from harness.report import bisect_page, comparison, comparison_page, explanation_page, github, run_fields, run_page
    from harness.report import tune_page as tuning
    from harness.report.run_report import Report

    forms: dict[type, Form] = {
        Report: Form(
            json=run_fields.run_json,
            csv=run_fields.run_csv,
            terminal=run_page.terminal_page,
            markdown=github.full_page,
            comment=github.short_text,
            exit_status=lambda report: report.summary.exit_code,
        ),
        Comparison: Form(
            json=comparison.json_document,
            csv=comparison.comparison_csv,
            terminal=comparison_page.terminal_page,
            markdown=github.full_page,
            comment=github.short_text,
            exit_status=comparison.comparison_exit_code,
        ),
        Explanation: Form(
            json=explanation_page.explanation_document,
            csv=explanation_page.explanation_csv,
            terminal=explanation_page.terminal_page,
            markdown=explanation_page.markdown_page,
            comment=explanation_page.short_text,
        ),
        Bisection: Form(
            json=bisect_page.bisect_json,
            csv=bisect_page.bisect_csv,
            terminal=bisect_page.bisect_page,
            markdown=bisect_page.bisect_page,
            exit_status=bisect_page.bisect_exit_code,
        ),
        Tuning: Form(
            json=tuning.tune_json,
            csv=tuning.tune_csv,
            terminal=tuning.terminal_page,
            markdown=tuning.markdown_page,
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
    from harness.report.markdown import to_markdown
    from harness.report.run_report import build_report
    from harness.report.terminal import to_terminal

    shown = build_report(source) if isinstance(source, Run) else source
    form = form_of(shown)
    if format == "json":
        document = form.json(shown)
        return document if isinstance(document, str) else document.decode()
    if format == "csv":
        return form.csv(shown)
    if format == "terminal":
        page = form.terminal(shown, results.as_posix() if results is not None else "")
        return to_terminal(page, width=width, color=color)
    return to_markdown(form.markdown(shown)) if full or form.comment is None else form.comment(shown)
