"""`harness plot`."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from harness.cli.app import Count, Patterns, app


@app.command
def plot(
    path: str,
    *,
    out: Path,
    kind: Literal["forest", "variants", "memory", "roofline", "timeline", "all"] | None = None,
    theme: Literal["light", "dark"] = "light",
    patterns: Patterns = None,
    series: str | None = None,
    top: Count = None,
) -> int:
    """Draw a run, a comparison, or a series of a results folder.

    forest: ratios with their intervals; of a comparison, or of a run's variants against its baseline. variants: bars
    of what each variant of a model takes. memory: latency against memory, with the Pareto front. roofline: what each
    case computes a second, below what the machine's cores and memory allow. timeline: one series over all runs, with
    its change points.

    Args:
        path: A run's or a comparison's directory; for a timeline a folder of runs, or its URL.
        out: The picture's file; its name ends in .svg or .png. With --kind all, a folder for all of them.
        kind: What to draw; all: every picture that there is of it, in both themes and formats. By default forest of a
            comparison, roofline of a run, and timeline of a folder of runs.
        theme: For a light page or a dark one.
        series: Of a timeline: the series' id, or its case's name (its latency), or `case metric`; shell patterns.
        top: How many rows, models or devices are drawn at most; the rest is counted.
    """
    from harness.commands.plot import PlotArguments, plot_command

    return plot_command(
        PlotArguments(
            path=path, out=out, kind=kind, theme=theme, patterns=tuple(patterns or ()), series=series, top=top
        )
    )
