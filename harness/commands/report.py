"""What `harness report` does."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from harness.commands.output import print_text
from harness.commands.report_github import GitHubArguments, links_of, require_unused, write_github
from harness.errors import UsageError

if TYPE_CHECKING:
    from harness.records.comparison import Comparison
    from harness.records.run import Run

__all__ = ["GitHubArguments", "report_command"]

ReportFormat = Literal["terminal", "markdown", "json", "csv", "github"]


def report_command(
    path: Path,
    output_format: ReportFormat,
    *,
    full: bool,
    out: Path | None,
    base: Path | None = None,
    across_hosts: bool = False,
    github: GitHubArguments | None = None,
) -> int:
    """`harness report`: of a run, exit status 3 if a case failed or is missing, or nothing was measured.

    Of a comparison, and of a run against a base, the exit status that `harness compare` has.
    """
    from harness.progress import Terminal
    from harness.reporting import load_against, load_either

    github = github or GitHubArguments()
    if output_format != "github":
        require_unused(github)
    links = links_of(github)  # what is wrong with them is told before anything takes long
    if across_hosts and base is None:
        raise UsageError("--across-hosts is for two runs; give the other one with --base")
    if base is None:
        found = load_either(path)
    else:
        with Terminal() as progress:
            found = load_against(path, base, progress, across_hosts=across_hosts)
    if output_format == "github":
        write_github(found, github, links, full=full, out=out)
        return _exit_status(found)
    width = shutil.get_terminal_size((120, 24)).columns
    color = out is None and sys.stdout.isatty() and "NO_COLOR" not in os.environ
    print_text(_render(found, output_format, full=full, width=width, color=color), out)
    return _exit_status(found)


def _render(
    found: Run | Comparison,
    output_format: Literal["terminal", "markdown", "json", "csv"],
    *,
    full: bool,
    width: int,
    color: bool,
) -> str:
    from harness.records.comparison import Comparison
    from harness.report import render
    from harness.report.comparison import render_comparison

    if isinstance(found, Comparison):
        return render_comparison(found, output_format, full=full, width=width, color=color)
    return render(found, output_format, full=full, width=width, color=color)


def _exit_status(found: Run | Comparison) -> int:
    from harness.records.comparison import Comparison
    from harness.report.outcome import comparison_exit_code, exit_code
    from harness.report.table import build_report

    if isinstance(found, Comparison):
        return int(comparison_exit_code(found, strict=False))
    return int(exit_code(build_report(found).summary))
