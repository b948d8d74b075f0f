"""What `harness selfcheck` found, for a terminal and as JSON."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Literal

from rich.console import Console
from rich.text import Text

from harness.compare.selfcheck import CaseCheck, Selfcheck
from harness.report.columns import Column
from harness.report.machine import machine_line
from harness.report.terminal_text import drawn, empty_table
from harness.report.units import NOTHING, with_unit
from harness.text import one_line

# Raised when a name changes its meaning or goes away; new names may appear without.
SCHEMA_VERSION = 1


def render_selfcheck(check: Selfcheck, format: Literal["terminal", "json"], *, width: int, color: bool) -> str:  # noqa: A002
    """A check of this machine as text."""
    if format == "json":
        return json.dumps({"schema_version": SCHEMA_VERSION, **asdict(check)}, indent=2, allow_nan=False) + "\n"
    return drawn(lambda console: _print(console, check), width=width, color=color)


def _print(console: Console, check: Selfcheck) -> None:
    console.print(Text(machine_line(check.facts), style="bold"))
    console.print()
    columns = [
        Column(title="case", cells=tuple(one_line(one.case) for one in check.cases), number=False),
        _numbers("latency", [NOTHING if one.latency_ns is None else with_unit(one.latency_ns) for one in check.cases]),
        _numbers("rows", [str(one.rows) for one in check.cases]),
        _numbers("flagged", [str(one.flagged) for one in check.cases]),
        _numbers("inconclusive", [str(one.inconclusive) for one in check.cases]),
        _numbers("failed", [str(one.failed) for one in check.cases]),
        _numbers("spread", [_share(one.spread) for one in check.cases]),
        _numbers("detects", [_share(one.detects) for one in check.cases]),
        _numbers("s a row", [f"{one.seconds:.1f}" for one in check.cases]),
    ]
    table = empty_table(columns)
    for index in range(len(check.cases)):
        table.add_row(*(Text(column.cells[index]) for column in columns))
    console.print(table)
    console.print()
    for line in _legend(check):
        console.print(Text(line))


def _numbers(title: str, cells: list[str]) -> Column:
    return Column(title=title, cells=tuple(cells))


def _share(value: float | None) -> str:
    return NOTHING if value is None else f"{value * 100:.2f} %"


def _legend(check: Selfcheck) -> list[str]:
    lines = [
        f"Every module was compared with itself, {check.budget_s:g} s a row at most, floor {check.floor * 100:g} %; a "
        "flagged row is a false alarm.",
        "spread: of the log ratio between generations; detects: the smallest slowdown that nine of ten rows find in "
        "their time.",
    ]
    wide = [one.case for one in check.cases if _is_wide(one)]
    if wide:
        lines.append(
            f"Where rows stay inconclusive ({', '.join(map(one_line, wide[:3]))}{', ...' if len(wide) > 3 else ''}), "
            f"give more time: harness compare --row-budget {2 * check.budget_s:g}"
        )
    return lines


def _is_wide(one: CaseCheck) -> bool:
    return one.inconclusive > one.rows / 10
