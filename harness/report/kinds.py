"""A run's report or a comparison -> its page: each kind has a file that fills it."""

from __future__ import annotations

from harness.records.comparison import Comparison
from harness.report import comparison_page, run_page
from harness.report.page import Page
from harness.report.pages import Surroundings, page_of
from harness.report.run_report import Report


def terminal_page(source: Report | Comparison) -> Page:
    """What somebody may have to act on, and the figures."""
    if isinstance(source, Comparison):
        return comparison_page.terminal_page(source)
    return run_page.terminal_page(source)


def markdown_page(source: Report | Comparison, around: Surroundings, *, full: bool) -> Page:
    """A comment, or everything there is.

    Args:
        around: Its title, and what stands beside the figures.
        full: Every row of every list, all settings, the environment and all commands.
    """
    if isinstance(source, Comparison):
        content = comparison_page.content_of(source, around, full=full)
    else:
        content = run_page.content_of(source, around, full=full)
    return page_of(content, around)
