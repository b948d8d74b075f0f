"""What `harness ir` prints: op counts of a case; of two, operations, executables, sizes and lines that differ."""

import difflib
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from harness.ir.counts import Inspected, OpCounts
from harness.ir.differences import ComparedCase, Difference, IrComparison, Match, pipelines_differ
from harness.metrics import PHASES
from harness.report.data import Field, table_of, to_json
from harness.report.page import Bullets, Code, Column, Page, Paragraph, Part, Table, Tone, listed
from harness.report.pages import first_lines
from harness.report.units import NOTHING, PLAIN
from harness.text import plural, shown

# What tells how a program's tensors become buffers, dispatches and copies; --ops '*' shows everything.
TELLING_OPS = ("linalg.*", "tensor.*", "flow.*", "stream.cmd.*", "memref.alloc*", "memref.copy", "llvm.alloca")


def render_counts_json(inspected: Inspected) -> str:
    """All counts of all ops."""
    case = inspected.case
    return to_json({"case": case.name, "id": case.id, "phases": inspected.counts})


def counts_page(inspected: Inspected, ops: Sequence[str]) -> Page:
    """One row an op, one column a phase."""
    rows = count_rows(inspected.counts, ops)
    cells = {phase: [PLAIN.text(row.get(phase)) for row in rows.values()] for phase in inspected.counts}
    return Page(verdict=inspected.case.name, parts=_counts_table(list(rows), cells, ops))


def _counts_table(
    names: Sequence[str],
    cells: Mapping[str, Sequence[str]],
    ops: Sequence[str],
    *,
    title: str = "",
    after: Sequence[str] = (),
) -> list[Part]:
    if not names:
        return [Paragraph(f"No operation matches {', '.join(map(shown, ops))}; --ops '*' shows all.")]
    columns = [
        Column("operation", names, kind="name"),
        *(Column(phase, texts, kind="number", rank=place) for place, (phase, texts) in enumerate(cells.items(), 1)),
    ]
    changed = [any(_ARROW in texts[row] for texts in cells.values()) for row in range(len(names))]
    tones: list[Tone] = ["strong" if differs else "dim" for differs in changed] if title else []
    return [Table(title=title, columns=columns, tones=tones, after=after)]


def count_rows(counts: Mapping[str, OpCounts], patterns: Sequence[str]) -> dict[str, dict[str, int]]:
    """Counts by phase of each op that a pattern matches; where the pattern names a place, so does the op's name."""
    rows: dict[str, dict[str, int]] = {}
    for pattern in patterns:
        place, colon, _ = pattern.rpartition(":")
        for phase, found in counts.items():
            for op, count in found.matching(pattern).items():
                rows.setdefault(f"{place}{colon}{op}", {})[phase] = count
    return dict(sorted(rows.items()))


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
        parts += [Paragraph("They are compiled for different targets:"), Bullets(compared.target)]
    parts += [*_operations(base, head, ops), *_executables(compared), *_differences(compared)]
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
    matched = sum(bool(match.by) for match, _ in compared.executables)
    every = "the one executable" if matched == 1 else f"all {matched:,} executables"
    if len(compared.executables) > matched:
        every += " that both have"
    sentences = []
    if differing := phases.total():
        who = f"{differing} of {plural(matched, 'executable')}" if differing < matched else every
        ordered = sorted(phases, key=PHASES.index)
        where = ordered[0] if len(ordered) == 1 else ", ".join(f"{phase} ({phases[phase]})" for phase in ordered)
        sentences.append(f"{who} {'differs' if differing == 1 else 'differ'}, first at {where}")
    elif matched:
        sentences.append(f"the code of {every} is the same")
    for side, alone in (
        (compared.base, sum(match.head is None for match, _ in compared.executables)),
        (compared.head, sum(match.base is None for match, _ in compared.executables)),
    ):
        if alone:
            has = "has" if alone == 1 else "have"
            sentences.append(f"{plural(alone, 'executable')} of {side.label} {has} no counterpart")
    if compared.program is not None:
        sentences.append(f"what is outside executables differs first at {compared.program.phase}")
    elif compared.base.parts.program.keys() & compared.head.parts.program.keys():
        sentences.append("what is outside executables is the same")
    return "; ".join(sentences) or "at these phases only operations are compared"


def _operations(base: ComparedCase, head: ComparedCase, ops: Sequence[str]) -> list[Part]:
    before, after = count_rows(base.counts, ops), count_rows(head.counts, ops)
    names = sorted({*before, *after})
    phases = [phase for phase in PHASES if phase in base.counts and phase in head.counts]
    cells = {
        phase: [_both(before.get(name, {}).get(phase), after.get(name, {}).get(phase)) for name in names]
        for phase in phases
    }
    changed = {
        op
        for phase in phases
        for op in {**base.counts[phase].total, **head.counts[phase].total}
        if base.counts[phase].total.get(op) != head.counts[phase].total.get(op)
    }
    if not changed and not ops:
        return [Paragraph("All operations are there in the same number on both sides at these phases.")]
    others = len(changed - set(names))
    differ = f"{plural(others, 'other operation')} differ{'s' * (others == 1)} in number; --ops '*' shows all."
    title = f"Operations: {base.label} {_ARROW} {head.label}, where they differ"
    return _counts_table(names, cells, ops, title=title, after=[differ] if others else [])


def _both(base: float | None, head: float | None) -> str:
    return PLAIN.text(base) if base == head else f"{PLAIN.text(base)} {_ARROW} {PLAIN.text(head)}"


def _executables(compared: IrComparison) -> list[Part]:
    if not compared.executables:
        return [Paragraph("There are no executables at these phases.")]
    same = [_name(match) for match, difference in compared.executables if match.by and difference is None]
    rows = [row for row in compared.executables if not row[0].by or row[1] is not None]
    after = [("The same on both sides: ", *listed(same, _MOST_NAMES), ".")] if same else []

    def matched_by(row: tuple[Match, Difference | None]) -> str:
        return row[0].by or f"only {(compared.head if row[0].base is None else compared.base).label}"

    fields: list[Field[tuple[Match, Difference | None]]] = [
        Field(title="executable", kind="name", value=lambda row: _name(row[0])),
        Field(title="matched by", kind="text", value=matched_by, rank=3),
        Field(title="dispatches", value=lambda row: _of_both(row[0], "dispatches"), rank=2),
        Field(title="differs first at", kind="text", value=lambda row: row[1].phase if row[1] else NOTHING),
        Field(title="lines", value=lambda row: "-{} +{}".format(*row[1].changes) if row[1] else NOTHING, rank=1),
        Field(title="pipeline", kind="text", value=lambda row: _pipeline(row[0])),
    ]
    return table_of(fields, rows, "Executables", after=after) or [Paragraph(sentence) for sentence in after]


def _name(match: Match) -> str:
    """Of base's executable; and of head's, where that has another name."""
    names = [side.name for side in (match.base, match.head) if side is not None]
    return f" {_ARROW} ".join(dict.fromkeys(names))


def _of_both(match: Match, name: str) -> str:
    base, head = (getattr(side, name, None) for side in (match.base, match.head))
    return _both(base, head)


def _pipeline(match: Match) -> str:
    base, head = match.base, match.head
    if base is not None and head is not None and pipelines_differ(base, head):
        return f"{base.pipeline or NOTHING} {_ARROW} {head.pipeline or NOTHING}"
    return getattr(head or base, "pipeline", "")


def _differences(compared: IrComparison) -> list[Part]:
    alike: dict[tuple[str, ...], list[tuple[str, Difference]]] = {}
    for match, difference in compared.executables:
        if difference is not None and match.base is not None and match.head is not None:
            kind = match.base.kind or match.base.name
            key = (difference.phase, kind, match.base.pipeline, match.head.pipeline)
            alike.setdefault(key, []).append((_name(match), difference))
    groups = sorted(alike.values(), key=lambda group: PHASES.index(group[0][1].phase))
    parts: list[Part] = []
    for (name, difference), *others in groups[:_MOST_KINDS]:
        parts.append(_code(f"{name} at {difference.phase}", difference))
        if others:
            parts.append(Paragraph(("So do ", *listed([other for other, _ in others], _MOST_NAMES), "."), "dim"))
    if left := groups[_MOST_KINDS:]:
        parts.append(
            Paragraph(f"{plural(len(left), 'more kind')} of executables differ; --format json has all.", "dim")
        )
    if compared.program is not None:
        parts.append(_code(f"Outside executables at {compared.program.phase}", compared.program))
    return parts


def _code(title: str, difference: Difference) -> Code:
    return Code("\n".join(first_lines(difference.lines, _MOST_LINES)), "diff", title)


def comparison_json(compared: IrComparison) -> str:
    """All counts, matches and lines that differ."""

    def side(case: ComparedCase) -> dict[str, Any]:
        names = {"case": case.name, "label": case.label, "toolchain": case.toolchain}
        return {**names, "sizes": case.sizes, "phases": case.counts}

    def lines(difference: Difference | None) -> dict[str, Any] | None:
        return None if difference is None else {"phase": difference.phase, "lines": list(difference.lines)}

    def executable(match: Match, difference: Difference | None) -> dict[str, Any]:
        record: dict[str, Any] = {}
        for name, found in (("base", match.base), ("head", match.head)):
            record[name] = getattr(found, "name", None)
            record |= {f"{name}_{fact}": getattr(found, fact, None) for fact in ("dispatches", "pipeline")}
        return {**record, "matched_by": match.by or None, "difference": lines(difference)}

    return to_json(
        {
            "base": side(compared.base),
            "head": side(compared.head),
            "target": list(compared.target),
            "executables": [executable(match, difference) for match, difference in compared.executables],
            "program": lines(compared.program),
            "unread": dict(compared.unread),
        }
    )


def texts_difference(base: ComparedCase, head: ComparedCase, phase: str) -> str:
    """The IR of two cases at a phase as `diff -u` shows it; "" where it is the same."""
    of_base, of_head = (side.texts[phase].splitlines() for side in (base, head))
    lines = difflib.unified_diff(of_base, of_head, base.label, head.label, lineterm="")
    return "".join(f"{line}\n" for line in lines)
