"""What `harness ir` prints of a case's op counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from fnmatch import fnmatchcase

from rich.console import Console
from rich.text import Text

from harness.inspecting import Inspected
from harness.ir import OpCounts
from harness.report.columns import Column
from harness.report.json_ import SCHEMA_VERSION, json_text
from harness.report.terminal_text import drawn, empty_table
from harness.report.units import NOTHING
from harness.report.words import one_line

# What tells how a program's tensors become buffers, dispatches and copies; --ops '*' shows everything.
TELLING_OPS = ("linalg.*", "tensor.*", "flow.*", "stream.cmd.*", "memref.alloc*", "memref.copy", "llvm.alloca")


def render_counts_json(inspected: Inspected) -> str:
    """All counts of all ops."""
    case = inspected.case
    return json_text(
        {
            "schema_version": SCHEMA_VERSION,
            "case": case.name,
            "id": case.id,
            "phases": {phase: asdict(counts) for phase, counts in inspected.counts.items()},
        }
    )


def render_counts(inspected: Inspected, ops: Sequence[str], *, width: int, color: bool) -> str:
    """One row an op, one column a phase.

    Args:
        ops: Shell patterns of op names, one of which has to match.
    """
    counts = inspected.counts
    names = _names(counts, ops)
    columns = [
        Column(title="operation", cells=tuple(map(one_line, names)), number=False),
        *(Column(title=phase, cells=tuple(_cell(found, name) for name in names)) for phase, found in counts.items()),
    ]

    def draw(console: Console) -> None:
        console.print(Text(one_line(inspected.case.name), style="bold"))
        if not names:
            console.print(Text(f"No operation matches {', '.join(map(one_line, ops))}; --ops '*' shows all."))
            return
        table = empty_table(columns)
        for cells in zip(*(column.cells for column in columns), strict=True):
            table.add_row(*map(Text, cells))
        console.print(table)
        console.print(Text("Inside executables and on the host together; --format json tells them apart.", style="dim"))

    return drawn(draw, width=width, color=color)


def _names(counts: Mapping[str, OpCounts], ops: Sequence[str]) -> list[str]:
    every = {name for found in counts.values() for name in found.total}
    return sorted(name for name in every if any(fnmatchcase(name, pattern) for pattern in ops))


def _cell(counts: OpCounts, name: str) -> str:
    count = counts.total.get(name, 0)
    return f"{count:,}" if count else NOTHING
