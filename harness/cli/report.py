"""`harness report`."""

from __future__ import annotations

from pathlib import Path

from harness.cli.app import Format, app


@app.command
def report(
    run: Path,
    *,
    format: Format = "terminal",  # noqa: A002 (the option's name)
    full: bool = False,
    out: Path | None = None,
) -> int:
    """Print the report of a run again.

    Args:
        run: The run's directory.
        format: How to print it.
        full: Markdown without cuts: every case, every metric, the environment.
        out: Write it to this file instead of stdout.
    """
    from harness.commands.report import report_command

    return report_command(run, format, full=full, out=out)
