"""What `harness ir` prints of a case's op counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from harness.ir.counts import Inspected, OpCounts
from harness.report.data import to_json
from harness.report.page import Column, Page, Paragraph, Table
from harness.report.units import PLAIN

# What tells how a program's tensors become buffers, dispatches and copies; --ops '*' shows everything.
TELLING_OPS = ("linalg.*", "tensor.*", "flow.*", "stream.cmd.*", "memref.alloc*", "memref.copy", "llvm.alloca")
_LONGEST_NAME = 60
_TOGETHER = "Inside executables and on the host together; --ops 'executables:*' and 'host:*' tell them apart."


def render_counts_json(inspected: Inspected) -> str:
    """All counts of all ops."""
    case = inspected.case
    return to_json({"case": case.name, "id": case.id, "phases": counts_record(inspected.counts)})


def counts_page(inspected: Inspected, ops: Sequence[str]) -> Page:
    """One row an op, one column a phase."""
    rows = count_rows(inspected.counts, ops)
    columns = [
        Column("operation", [cut_name(op) for op in rows], kind="name"),
        *(
            Column(phase, [PLAIN.text(row.get(phase)) for row in rows.values()], kind="number", rank=place)
            for place, phase in enumerate(inspected.counts, start=1)
        ),
    ]
    part = Table(columns=columns, after=after_counts(ops)) if rows else no_operation(ops)
    return Page(verdict=inspected.case.name, parts=(part,))


def after_counts(ops: Sequence[str]) -> list[str]:
    """What a reader has to know of counts at no place."""
    return [] if all(":" in pattern for pattern in ops) else [_TOGETHER]


def no_operation(ops: Sequence[str]) -> Paragraph:
    """Where a table would have no rows."""
    return Paragraph(f"No operation matches {', '.join(map(cut_name, ops))}; --ops '*' shows all.")


def counts_record(counts: Mapping[str, OpCounts]) -> dict[str, Any]:
    """All counts, for other programs."""
    return {phase: asdict(found) for phase, found in counts.items()}


def count_rows(counts: Mapping[str, OpCounts], patterns: Sequence[str]) -> dict[str, dict[str, int]]:
    """Counts by phase of each op that a pattern matches; where the pattern names a place, so does the op's name."""
    rows: dict[str, dict[str, int]] = {}
    for pattern in patterns:
        place, colon, _ = pattern.rpartition(":")
        for phase, found in counts.items():
            for op, count in found.matching(pattern).items():
                rows.setdefault(f"{place}{colon}{op}", {})[phase] = count
    return dict(sorted(rows.items()))


def cut_name(name: str) -> str:
    """An op's name, which may be anything, as far as a table has room."""
    return name if len(name) <= _LONGEST_NAME else f"{name[:_LONGEST_NAME]}..."
