"""What `harness report` does."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

from harness.commands.output import Format, print_text
from harness.errors import RunError


def report_command(path: Path, output_format: Format, *, full: bool, out: Path | None) -> int:
    """`harness report`: exit status 3 if a case failed or is missing, or nothing was measured.

    Of a comparison's directory, its report and its exit status.
    """
    from harness.compare.store import is_comparison
    from harness.report import render
    from harness.report.outcome import exit_code
    from harness.report.table import build_report
    from harness.results.store import load_run

    if is_comparison(path):
        return _report_comparison(path, output_format, full=full, out=out)
    run = load_run(path)
    width = shutil.get_terminal_size((120, 24)).columns
    color = out is None and sys.stdout.isatty() and "NO_COLOR" not in os.environ
    text = render(run, output_format, full=full, width=width, color=color)
    print_text(text, out)
    return int(exit_code(build_report(run).summary))


def _report_comparison(path: Path, output_format: Format, *, full: bool, out: Path | None) -> int:
    from harness.commands.compare import print_comparison
    from harness.compare.store import COMPARISON_FILE
    from harness.report.comparison import comparison_from_json
    from harness.report.outcome import comparison_exit_code

    try:
        comparison = comparison_from_json((path / COMPARISON_FILE).read_text(), str(path / COMPARISON_FILE))
    except (OSError, UnicodeDecodeError):
        raise RunError(f"{path / COMPARISON_FILE}: cannot be read; compare again") from None
    print_comparison(comparison, output_format, full=full, out=out)
    return int(comparison_exit_code(comparison, strict=False))
