"""What `harness ir` prints of a case's op counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict

from rich.console import Console
from rich.text import Text

from harness.ir.op_counts import Inspected, OpCounts
from harness.report.columns import Column
from harness.report.json_ import SCHEMA_VERSION, json_text
from harness.report.terminal_text import drawn, empty_table, fitting, print_left_out
from harness.report.units import PLAIN
from harness.text import one_line

# What tells how a program's tensors become buffers, dispatches and copies; --ops '*' shows everything.
TELLING_OPS = ("linalg.*", "tensor.*", "flow.*", "stream.cmd.*", "memref.alloc*", "memref.copy", "llvm.alloca")
_LONGEST_NAME = 60


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
        ops: Patterns as `OpCounts.matching` takes them, one of which has to match.
    """
    rows = _rows(inspected.counts, ops)
    columns = [
        Column(title="operation", cells=tuple(map(_shown, rows)), number=False),
        *(
            Column(title=phase, cells=tuple(PLAIN.text(row.get(phase)) for row in rows.values()), rank=place)
            for place, phase in enumerate(inspected.counts, start=1)
        ),
    ]

    def draw(console: Console) -> None:
        console.print(Text(one_line(inspected.case.name), style="bold"))
        if not rows:
            console.print(Text(f"No operation matches {', '.join(map(_shown, ops))}; --ops '*' shows all."))
            return
        shown = fitting(columns, console.width)
        table = empty_table(shown)
        for cells in zip(*(column.cells for column in shown), strict=True):
            table.add_row(*map(Text, cells))
        console.print(table)
        print_left_out(console, columns, shown)
        if not all(":" in pattern for pattern in ops):
            both = "Inside executables and on the host together; --ops 'executables:*' and 'host:*' tell them apart."
            console.print(Text(both, style="dim"))

    return drawn(draw, width=width, color=color)


def _rows(counts: Mapping[str, OpCounts], patterns: Sequence[str]) -> dict[str, dict[str, int]]:
    """Counts by phase of each op that a pattern matches; where the pattern names a place, so does the op's name."""
    rows: dict[str, dict[str, int]] = {}
    for pattern in patterns:
        place, colon, _ = pattern.rpartition(":")
        for phase, found in counts.items():
            for op, count in found.matching(pattern).items():
                rows.setdefault(f"{place}{colon}{op}", {})[phase] = count
    return dict(sorted(rows.items()))


def _shown(name: str) -> str:
    line = one_line(name)
    return line if len(line) <= _LONGEST_NAME else f"{line[:_LONGEST_NAME]}..."
