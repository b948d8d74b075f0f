"""`harness plot`."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from harness.cli.app import app


@app.command
def plot(
    run: Path,
    *,
    out: Path,
    kind: Literal["roofline"] = "roofline",  # noqa: ARG001 (the only one so far)
) -> int:
    """Draw a run: what each case computes a second, below what this machine's cores and memory allow.

    Args:
        run: The run's directory.
        out: The picture's file; its name ends in .svg or .png.
        kind: What to draw.
    """
    from harness.commands.plot import plot_command

    return plot_command(run, out)
