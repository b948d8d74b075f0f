"""What `harness ir` prints: op counts of a case; of two, operations, executables, sizes and lines that differ."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from harness.ir.counts import Inspected, OpCounts
from harness.ir.differences import ComparedCase, Difference, IrComparison, Match, pipelines_differ
from harness.metrics import PHASES
from harness.report.data import to_json
from harness.report.page import Bullets, Code, Column, Page, Paragraph, Part, Table, Tone
from harness.report.pages import first_lines
from harness.report.units import NOTHING, PLAIN, byte_unit
from harness.text import plural

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


# --- Of two cases ---

_ARROW = "→"
# Of what differs, a page shows so much; JSON has all.
_MOST_KINDS = 12
_MOST_NAMES = 12
_MOST_LINES = 60
_LEFT_OUT = (
    "Lines are compared without numbers of values and dispatches, the place of buffers in memory, values of large "
    "constants, and what releases only spell otherwise."
)


def comparison_page(compared: IrComparison, ops: Sequence[str]) -> Page:
    """Operations, executables and sizes of two cases side by side, and the lines that differ."""
    base, head = compared.base, compared.head
    parts: list[Part] = []
    if compared.target:
        parts.append(Paragraph("They are compiled for different targets:"))
        parts.append(Bullets(compared.target))
    parts += [_operations(base, head, ops), *_executables(compared), _sizes(base, head), *_differences(compared)]
    same = base.name == head.name or base.label == base.name
    subject = f"{base.label} against {head.label}" if same else f"{base.name} against {head.name}"
    named = "" if base.label == base.name else f"{base.name}, "
    unread = [
        f"Phase {phase} is not compared: the IR of one of the two cannot be read back there ({why})."
        for phase, why in compared.unread.items()
    ]
    return Page(verdict=f"{named}{subject}: {_verdict(compared)}.", parts=parts, notes=[*unread, _LEFT_OUT])


def _verdict(compared: IrComparison) -> str:
    """`5 of 10 executables differ, first at flow; what is outside executables is the same`."""
    phases = Counter(difference.phase for _, difference in compared.executables if difference is not None)
    ordered = sorted(phases.items(), key=lambda item: PHASES.index(item[0]))
    matched = sum(bool(match.by) for match, _ in compared.executables)
    all_of_them = "the one executable" if matched == 1 else f"all {matched:,} executables"
    if len(compared.executables) > matched:
        all_of_them += " that both have"
    sentences = []
    if phases:
        differing = phases.total()
        who = f"{differing} of {plural(matched, 'executable')}" if differing < matched else all_of_them
        where = ordered[0][0] if len(ordered) == 1 else ", ".join(f"{phase} ({number})" for phase, number in ordered)
        sentences.append(f"{who} {'differs' if differing == 1 else 'differ'}, first at {where}")
    elif matched:
        sentences.append(f"the code of {all_of_them} is the same")
    for label, alone in (
        (compared.base.label, [match for match, _ in compared.executables if match.head is None]),
        (compared.head.label, [match for match, _ in compared.executables if match.base is None]),
    ):
        if alone:
            has = "has" if len(alone) == 1 else "have"
            sentences.append(f"{plural(len(alone), 'executable')} of {label} {has} no counterpart")
    if compared.program is not None:
        sentences.append(f"what is outside executables differs first at {compared.program.phase}")
    elif compared.base.parts.program.keys() & compared.head.parts.program.keys():
        sentences.append("what is outside executables is the same")
    return "; ".join(sentences) or "at these phases only operations are compared"


def _operations(base: ComparedCase, head: ComparedCase, ops: Sequence[str]) -> Part:
    rows = [count_rows(side.counts, ops) for side in (base, head)]
    names = sorted({*rows[0], *rows[1]})
    if not names:
        return no_operation(ops)
    phases = [phase for phase in PHASES if phase in base.counts and phase in head.counts]
    cells = {
        (name, phase): _both(rows[0].get(name, {}).get(phase), rows[1].get(name, {}).get(phase))
        for name in names
        for phase in phases
    }
    changed = [any(_ARROW in cells[name, phase] for phase in phases) for name in names]
    columns = [
        Column("operation", [cut_name(name) for name in names], kind="name"),
        *(
            Column(phase, [cells[name, phase] for name in names], kind="number", rank=place)
            for place, phase in enumerate(phases, start=1)
        ),
    ]
    tones: list[Tone] = ["strong" if differs else "dim" for differs in changed]
    others = len(_changed_ops(base, head) - set(names))
    hidden = (
        [f"{plural(others, 'other operation')} differ{'s' * (others == 1)} in number; --ops '*' shows all."]
        if others
        else []
    )
    title = f"Operations: {base.label} {_ARROW} {head.label}, where they differ"
    return Table(title=title, columns=columns, tones=tones, after=[*hidden, *after_counts(ops)])


def _changed_ops(base: ComparedCase, head: ComparedCase) -> set[str]:
    changed: set[str] = set()
    for phase in base.counts.keys() & head.counts.keys():
        totals = [side.counts[phase].total for side in (base, head)]
        changed |= {op for op in totals[0].keys() | totals[1].keys() if totals[0].get(op) != totals[1].get(op)}
    return changed


def _both(base: float | None, head: float | None) -> str:
    return PLAIN.text(base) if base == head else f"{PLAIN.text(base)} {_ARROW} {PLAIN.text(head)}"


def _executables(compared: IrComparison) -> list[Part]:
    rows = compared.executables
    if not rows:
        return [Paragraph("There are no executables at these phases.")]
    same = [match for match, difference in rows if match.by and difference is None]
    rows = tuple(row for row in rows if not row[0].by or row[1] is not None)
    after = []
    if same:
        names = ", ".join(_name(match) for match in same[:_MOST_NAMES])
        more = f" and {len(same) - _MOST_NAMES} more" if len(same) > _MOST_NAMES else ""
        after.append(f"The same on both sides: {names}{more}.")
    by = [match.by or f"only {(compared.head if match.base is None else compared.base).label}" for match, _ in rows]
    columns = [
        Column("executable", [_name(match) for match, _ in rows], kind="name"),
        Column("other name", [_other_name(match) for match, _ in rows], kind="name", rank=4),
        Column("matched by", by, rank=3),
        Column("dispatches", [_dispatches(match) for match, _ in rows], kind="number", rank=2),
        Column("differs first at", [difference.phase if difference else NOTHING for _, difference in rows]),
        Column("lines", [_lines(difference) for _, difference in rows], kind="number", rank=1),
        Column("pipeline", [_pipeline(match) for match, _ in rows]),
    ]
    columns = [column for column in columns if any(column.cells)]
    if not rows:
        return [Paragraph(sentence) for sentence in after]
    return [Table(title="Executables", columns=columns, after=after)]


def _name(match: Match) -> str:
    executable = match.base or match.head
    assert executable is not None  # noqa: S101 (a match has a side)
    return executable.name


def _other_name(match: Match) -> str:
    return match.head.name if match.head is not None and match.head.name != _name(match) else ""


def _dispatches(match: Match) -> str:
    sides = [executable.dispatches if executable is not None else None for executable in (match.base, match.head)]
    return _both(*sides)


def _lines(difference: Difference | None) -> str:
    if difference is None:
        return NOTHING
    removed, added = difference.changes
    return f"-{removed} +{added}"


def _pipeline(match: Match) -> str:
    """Where it differs, both; else that of either."""
    if match.base is None or match.head is None:
        return (match.base or match.head).pipeline  # type: ignore[union-attr]
    if not pipelines_differ(match.base, match.head):
        return match.head.pipeline
    return f"{match.base.pipeline or NOTHING} {_ARROW} {match.head.pipeline or NOTHING}"


def _sizes(base: ComparedCase, head: ComparedCase) -> Part:
    records = [_sizes_record(side) for side in (base, head)]
    if None in records:
        return Paragraph("")
    names = list(dict.fromkeys(name for record in records for name in record))  # type: ignore[union-attr]
    values = [[record.get(name) for name in names] for record in records]  # type: ignore[union-attr]
    unit = byte_unit(value for side in values for value in side)
    columns = [
        Column("part of the module", names, kind="name"),
        *(
            Column(side.label, [unit.text(value) for value in column], kind="number", unit=unit.name)
            for side, column in zip((base, head), values, strict=True)
        ),
    ]
    tones: list[Tone] = ["strong" if first != second else "dim" for first, second in zip(*values, strict=True)]
    return Table(title="Sizes", columns=columns, tones=tones)


def _sizes_record(side: ComparedCase) -> dict[str, int] | None:
    if side.sizes is None:
        return None
    sizes = side.sizes
    parts = {"module": sizes.module_bytes, "host program": sizes.vm_bytes, "constants": sizes.constant_bytes}
    return {**parts, **sizes.dispatch_bytes}


def _differences(compared: IrComparison) -> list[Part]:
    """The lines that differ: of each kind of executable those of the first one, and then those outside executables."""
    alike: dict[tuple[str, ...], list[tuple[Match, Difference]]] = {}
    for match, difference in compared.executables:
        if difference is not None:
            assert match.base is not None and match.head is not None  # noqa: S101 (one alone has no difference)
            kind = match.base.kind or match.base.name
            key = (difference.phase, kind, match.base.pipeline, match.head.pipeline)
            alike.setdefault(key, []).append((match, difference))
    groups = sorted(alike.values(), key=lambda group: PHASES.index(group[0][1].phase))
    parts: list[Part] = []
    for (match, difference), *others in groups[:_MOST_KINDS]:
        parts += _lines_of(f"{_name(match)} at {difference.phase}", difference)
        if others:
            names = ", ".join(_name(other) for other, _ in others[:_MOST_NAMES])
            more = f" and {len(others) - _MOST_NAMES} more" if len(others) > _MOST_NAMES else ""
            parts.append(Paragraph(f"So do {names}{more}; --format json has their lines.", "dim"))
    if len(groups) > _MOST_KINDS:
        left = plural(len(groups) - _MOST_KINDS, "more kind")
        parts.append(Paragraph(f"{left} of executables differ; --format json has all.", "dim"))
    if compared.program is not None:
        parts += _lines_of(f"Outside executables at {compared.program.phase}", compared.program)
    return parts


def _lines_of(title: str, difference: Difference) -> list[Part]:
    return [Code("\n".join(first_lines(difference.lines, _MOST_LINES)), "diff", title)]


def comparison_json(compared: IrComparison) -> str:
    """All counts, matches and lines that differ."""
    base, head = compared.base, compared.head

    def side(case: ComparedCase) -> dict[str, Any]:
        return {
            "case": case.name,
            "label": case.label,
            "toolchain": case.toolchain,
            "sizes": None if case.sizes is None else asdict(case.sizes),
            "phases": counts_record(case.counts),
        }

    def executable(match: Match, difference: Difference | None) -> dict[str, Any]:
        return {
            "base": None if match.base is None else match.base.name,
            "head": None if match.head is None else match.head.name,
            "matched_by": match.by or None,
            "base_dispatches": None if match.base is None else match.base.dispatches,
            "head_dispatches": None if match.head is None else match.head.dispatches,
            "base_pipeline": None if match.base is None else match.base.pipeline,
            "head_pipeline": None if match.head is None else match.head.pipeline,
            "difference": _difference_record(difference),
        }

    return to_json(
        {
            "base": side(base),
            "head": side(head),
            "target": list(compared.target),
            "executables": [executable(match, difference) for match, difference in compared.executables],
            "program": _difference_record(compared.program),
            "unread": dict(compared.unread),
        }
    )


def _difference_record(difference: Difference | None) -> dict[str, Any] | None:
    return None if difference is None else {"phase": difference.phase, "lines": list(difference.lines)}


def texts_difference(base: ComparedCase, head: ComparedCase, phase: str) -> str:
    """The IR of two cases at a phase as `diff -u` shows it; "" where it is the same."""
    of_base, of_head = (side.texts[phase].splitlines() for side in (base, head))
    lines = difflib.unified_diff(of_base, of_head, base.label, head.label, lineterm="")
    return "".join(f"{line}\n" for line in lines)
