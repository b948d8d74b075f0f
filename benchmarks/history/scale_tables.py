"""Section "Scale" of docs/history.md: every number in it is measured, none is typed."""

import math
from datetime import datetime, timezone
from pathlib import Path

from benchmarks.documents import replace_between
from benchmarks.history.scale import Measured, Scale
from harness.machine.environment import processor
from harness.report.markdown import blocks, table
from harness.toolchain.host_cpu import environment_here

BEGIN, END = (
    "<!-- made by `python -m benchmarks.history scale`: begin -->",
    "<!-- made by `python -m benchmarks.history scale`: end -->",
)

_TITLES = {
    "open": "opening a history",
    "series": "all points of one series, in an open history",
    "history --series": "`harness history RESULTS --series NAME`, a fresh process",
    "changes": "change points of all series, in an open history",
    "identical": "`harness compare --no-remeasure`, every module identical, a fresh process",
    "recorded": "`harness compare --no-remeasure`, no module identical, a fresh process",
}
# What was asked for, in seconds; the others are shown because somebody will ask.
_GOALS_S = {"open": 30.0, "series": 0.3, "changes": 60.0, "identical": 3.0, "recorded": 3.0}
_MOST_BYTES = 2 * 10**9


def write_scale(document: Path, scale: Scale) -> None:
    """Replace what stands between the document's marks.

    Raises:
        RuntimeError: It has no marks.
    """
    replace_between(document, BEGIN, END, render_scale(scale))


def render_scale(scale: Scale) -> str:
    """The goals and the growth, as Markdown."""
    return blocks(_where(scale), "### The goals", _goals(scale), "### Growth", _growth(scale), _HOW)


_HOW = (
    "The exponent is that of the size in a power law between two sizes: 1 is linear, 0 does not grow. Memory is the "
    "largest sum over the process and its children, looked at every 20 ms. A question in an open history is one of a "
    "process that has pandas and DuckDB loaded, as a notebook has; the commands are timed from their start to their "
    "end."
)


def _where(scale: Scale) -> str:
    environment = environment_here()
    machine, cpu = environment["machine"], environment["cpu"]
    kind = "virtual machine" if machine.get("virtual") else "machine"
    now = datetime.now(timezone.utc)
    return (
        f"Measured on {now:%Y-%m-%d} on {processor(environment) or 'unknown'}, {cpu.get('usable_cores', '?')} "
        f"cores ({kind}, {machine.get('distribution', machine.get('system', ''))}), load {scale.load[0]:.1f} to "
        f"{scale.load[1]:.1f}; medians of fresh processes. Histories are made up: {scale.runs:,} runs of a suite under "
        "a reference toolchain and that day's newest, each with tables of its own; half of the series are timed and "
        "noisy by 1 %, half are counted. Runs that are compared have five generations of four rounds a case, and "
        "eight other figures."
    )


def _goals(scale: Scale) -> str:
    lines = []
    for what, goal_s in _GOALS_S.items():
        largest = scale.of(what)[-1]
        lines.append([_TITLES[what], _size(scale, largest), f"under {goal_s:g} s", _seconds(largest.cost.seconds)])
    peak = max(scale.measured, key=lambda one: one.cost.peak_bytes)
    most = f"{peak.cost.peak_bytes / 1e9:.2f} GB ({_TITLES[peak.what]})"
    lines.append(["memory of any of these", "the largest", f"under {_MOST_BYTES / 1e9:g} GB", most])
    return table(("what", "size", "goal", "measured"), lines)


def _growth(scale: Scale) -> str:
    lines = []
    for what, title in _TITLES.items():
        found = scale.of(what)
        for one, before in zip(found, [None, *found], strict=False):
            lines.append(
                [
                    title if before is None else "",
                    f"{one.size:,}",
                    _seconds(one.cost.seconds),
                    _seconds(one.cost.slowest),
                    f"{one.cost.peak_bytes / 1e6:,.0f}",
                    "" if before is None else f"{exponent(before, one):.2f}",
                    str(one.cost.repeats),
                ]
            )
    heads = ("what", "series or cases", "median", "slowest", "memory (MB)", "exponent", "times")
    return table(heads, lines, numbers=(False, True, True, True, True, True, True))


def exponent(smaller: Measured, larger: Measured) -> float:
    """Of the size in the time, between two sizes; NaN where they are equal."""
    if smaller.size == larger.size:
        return math.nan
    return math.log(larger.cost.seconds / smaller.cost.seconds) / math.log(larger.size / smaller.size)


def _size(scale: Scale, one: Measured) -> str:
    if one.what in ("identical", "recorded"):
        return f"{one.size:,} cases"
    return f"{one.size:,} series x {scale.runs:,} runs"


def _seconds(seconds: float) -> str:
    return f"{seconds * 1000:.0f} ms" if seconds < 1 else f"{seconds:.1f} s"
