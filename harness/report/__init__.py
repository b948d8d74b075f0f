"""Run, comparison, explanation, bisect or tuning -> report: for a terminal, for a pull request, for other programs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from harness.errors import ExitCode, UsageError
from harness.options import Format

if TYPE_CHECKING:
    from pathlib import Path
    from xml.etree.ElementTree import Element

    from harness.records.bisection import Bisection
    from harness.records.comparison import Comparison
    from harness.records.explanation import Explanation
    from harness.records.run import Run
    from harness.records.tuning import Tuning
    from harness.report.page import Page
    from harness.report.pages import View
    from harness.report.run_report import Report

__all__ = ["Form", "Format", "form_of", "render"]


@dataclass(frozen=True, kw_only=True)
class Form:
    """How a kind of result is shown, and what exit status it has."""

    page: Callable[[Any, View], Page]
    csv: Callable[[Any], str]
    json: Callable[[Any], str] | None = None  # None: as the document that its folder keeps
    tests: Callable[[Any], Element] | None = None  # Of JUnit; None: it has none
    exit_status: Callable[[Any], ExitCode] = lambda _: ExitCode.OK


def form_of(source: Report | Comparison | Explanation | Bisection | Tuning) -> Form:
    """How a result is shown: an entry for each of `KINDS` in harness.store.folders, that of a run for its report."""
    from harness.records.bisection import Bisection
    from harness.records.comparison import Comparison
    from harness.records.explanation import Explanation
    from harness.records.tuning import Tuning
    from harness.report import bisect_page, comparison_page, explanation_page, run_fields, run_page, tune_page
    from harness.report.comparison import comparison_csv, comparison_exit_code
    from harness.report.junit import tests_of_comparison, tests_of_run
    from harness.report.run_report import Report

    forms: dict[type, Form] = {
        Report: Form(
            page=run_page.page,
            csv=run_fields.run_csv,
            json=run_fields.run_json,
            tests=tests_of_run,
            exit_status=lambda report: report.summary.exit_code,
        ),
        Comparison: Form(
            page=comparison_page.page,
            csv=comparison_csv,
            tests=tests_of_comparison,
            exit_status=comparison_exit_code,
        ),
        Explanation: Form(page=explanation_page.page, csv=explanation_page.explanation_csv),
        Bisection: Form(page=bisect_page.page, csv=bisect_page.bisect_csv, exit_status=bisect_page.bisect_exit_code),
        Tuning: Form(page=tune_page.page, csv=tune_page.tune_csv),
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
    from harness.report.data import document_of
    from harness.report.junit import junit
    from harness.report.markdown import COMMENT, to_markdown
    from harness.report.pages import View
    from harness.report.run_report import build_report
    from harness.report.terminal import to_terminal
    from harness.store.folders import kind_of_value

    shown = build_report(source) if isinstance(source, Run) else source
    form = form_of(shown)
    if format == "json":
        return form.json(shown) if form.json is not None else document_of(shown).decode()
    if format == "csv":
        return form.csv(shown)
    if format == "junit":
        if form.tests is None:
            raise UsageError(f"{kind_of_value(shown).phrase} has nothing that passes or fails; give --format markdown")
        return junit([form.tests(shown)])
    if format == "terminal":
        where = results.as_posix() if results is not None else ""
        page = form.page(shown, View(terminal=True, width=width, results=where))
        return to_terminal(page, width=width, color=color)
    return to_markdown(form.page(shown, View(full=full)), None if full else COMMENT)
