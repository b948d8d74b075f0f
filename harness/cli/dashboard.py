"""`harness dashboard`."""

from __future__ import annotations

from pathlib import Path

from harness.cli.app import app


@app.command
def dashboard(results: str = "results", *, out: Path, title: str = "IREE benchmarks") -> int:
    """Make a folder of pages that shows a whole history; a browser opens it from disk, or any web server serves it.

    Args:
        results: The results folder, or its URL.
        out: The folder to make; one that holds an older dashboard is replaced, once the new one is whole.
        title: What stands at the head of every page.
    """
    from harness.commands.dashboard import dashboard_command

    return dashboard_command(results, out, title=title)
