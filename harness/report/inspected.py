"""What `harness ir` prints of a case's op counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict

from harness.ir.op_counts import Inspected, OpCounts
from harness.report.data import to_json
from harness.report.page import Column, Page, Paragraph, Table
from harness.report.terminal import to_terminal
from harness.report.units import PLAIN

# What tells how a program's tensors become buffers, dispatches and copies; --ops '*' shows everything.
TELLING_OPS = ("linalg.*", "tensor.*", "flow.*", "stream.cmd.*", "memref.alloc*", "memref.copy", "llvm.alloca")
_LONGEST_NAME = 60


def render_counts_json(inspected: Inspected) -> str:
    """All counts of all ops."""
    case = inspected.case
    return to_json(
        {
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
        Column("operation", [_cut(op) for op in rows]),
        *(
            Column(phase, [PLAIN.text(row.get(phase)) for row in rows.values()], kind="number", rank=place)
            for place, phase in enumerate(inspected.counts, start=1)
        ),
    ]
    after = []
    if not all(":" in pattern for pattern in ops):
        after = ["Inside executables and on the host together; --ops 'executables:*' and 'host:*' tell them apart."]
    nothing = Paragraph(f"No operation matches {', '.join(map(_cut, ops))}; --ops '*' shows all.")
    part = Table(columns=columns, after=after) if rows else nothing
    return to_terminal(Page(verdict=inspected.case.name, parts=(part,)), width=width, color=color)


def _rows(counts: Mapping[str, OpCounts], patterns: Sequence[str]) -> dict[str, dict[str, int]]:
    """Counts by phase of each op that a pattern matches; where the pattern names a place, so does the op's name."""
    rows: dict[str, dict[str, int]] = {}
    for pattern in patterns:
        place, colon, _ = pattern.rpartition(":")
        for phase, found in counts.items():
            for op, count in found.matching(pattern).items():
                rows.setdefault(f"{place}{colon}{op}", {})[phase] = count
    return dict(sorted(rows.items()))


def _cut(name: str) -> str:
    return name if len(name) <= _LONGEST_NAME else f"{name[:_LONGEST_NAME]}..."
