"""Explanation -> page: for a terminal, as Markdown of bounded length, or with everything there is.

From top to bottom: the one sentence, where the time goes (a line a part, so that all of them add up to the call, if
they do), what the compiler did differently in the parts that changed or could not be timed, the schedule; then how it
was measured and what repeats it.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from harness.metrics import LATENCY
from harness.records.explanation import Explanation, Part
from harness.report.explanation_words import (
    TimeLine,
    method_line,
    part_names,
    tells_most,
    time_columns,
    time_lines,
    unit_of_call,
    without_empty,
)
from harness.report.names import compared
from harness.report.page import (
    Bullets,
    Choice,
    Code,
    Column,
    Fold,
    Heading,
    Name,
    Page,
    Paragraph,
    Sentence,
    Step,
    Steps,
    Table,
    Warnings,
)
from harness.report.page import Part as PagePart
from harness.report.pages import sides_table, values_table
from harness.report.units import p_text
from harness.report.verdicts import CHANGED
from harness.text import plural

_ARROW = "→"
_MOST_NAMES = 4
_LONGEST_LINE = 400
SAME_IR = "The IR is the same on both sides, at every phase."
SAME_SCHEDULE = "Outside of dispatches, the two programs are the same as far as is known."


@dataclass(frozen=True, kw_only=True)
class _Room:
    """How much of an explanation a page shows; None: all of it."""

    parts: int | None = None  # With a line of their own
    alike: int | None = None  # Groups of parts that differ in the same way
    lines: int | None = None  # Of one difference


_TERMINAL = _Room(parts=20, alike=8, lines=16)
_SHORT = _Room(parts=24, alike=12, lines=60)


def terminal_page(explanation: Explanation, results: str) -> Page:
    """What changed and why, with the first of the lines that differ."""
    return _page(explanation, _TERMINAL, results)


def markdown_page(explanation: Explanation, *, full: bool) -> Page:
    """A page for an issue or a comment.

    Args:
        full: With every part, every line that differs, and all settings.
    """
    return _page(explanation, _Room() if full else _SHORT, "results")


def _page(explanation: Explanation, room: _Room, results: str) -> Page:
    whole = room == _Room()
    return Page(
        title=(Name(explanation.case), f": {compared(explanation.base, explanation.head)}"),
        verdict=explanation.sentence or "What differs is not known.",
        parts=(
            Paragraph(_about(explanation), "dim"),
            Warnings([f"{note[:1].upper()}{note[1:]}" for note in explanation.notes]),
            _where(explanation, room),
            Paragraph(method_line(explanation), "dim"),
            *_what(explanation, room),
            *_schedule(explanation),
            Steps(_steps(explanation, results)),
            *(() if room == _TERMINAL else _method(explanation, whole=whole)),
        ),
        foot=_left_out,
    )


def _about(explanation: Explanation) -> Sentence:
    name: Sentence = ("Explanation ", Name(explanation.id)) if explanation.id else "Explanation"
    return (*(name if isinstance(name, tuple) else (name,)), f" of {explanation.created}.")


def _left_out(names: Sequence[str]) -> Sequence[PagePart]:
    return [Paragraph(f"Left out here for length: {', '.join(names)}.")] if names else ()


# --- Where ---


def _where(explanation: Explanation, room: _Room) -> Table:
    """A line a part, what is spent elsewhere, and the call that all of them add up to."""
    lines = time_lines(explanation, most=room.parts)
    call = lines[-1]
    columns = [
        *time_columns(lines, unit_of_call(explanation)),
        Column(
            "Of the Change",
            [_share(line, call) if explanation.adds_up else "" for line in lines],
            kind="number",
            unit="%",
            rank=2,
        ),
        Column("Differs First At", [_differs_at(line) for line in lines], rank=1),
        Column("Dispatches", [_dispatches(line.part) for line in lines], kind="number", rank=3),
        Column("p", [p_text(line.part.p) if line.part is not None else "" for line in lines], kind="number", rank=4),
        Column("Matched By", [line.part.matched_by if line.part is not None else "" for line in lines], rank=5),
        Column("Generations", [_generations(explanation, line) for line in lines], kind="number", rank=6),
    ]
    return Table(title="Where the time goes", columns=without_empty(columns), tones=[line.tone for line in lines])


def _share(line: TimeLine, call: TimeLine) -> str:
    """Of a change that is one; the parts of mere noise say nothing."""
    if call.verdict not in CHANGED or not call.change_ns or not line.is_timed:
        return ""
    # What rounds to nothing has no sign.
    return f"{round(line.change_ns / call.change_ns * 100, 1) + 0.0:.1f}"


def _differs_at(line: TimeLine) -> str:
    return line.part.differs_at if line.part is not None else ""


def _dispatches(part: Part | None) -> str:
    """`2 → 1`; nothing where each side has one, as nearly all have."""
    if part is None or (len(part.base), len(part.head)) == (1, 1):
        return ""
    return f"{len(part.base)} {_ARROW} {len(part.head)}"


def _generations(explanation: Explanation, line: TimeLine) -> str:
    number = line.part.generations if line.part is not None else 0
    if line.kind == "call":
        number = explanation.latency.generations
    return str(number) if number else ""


# --- What ---


def _what(explanation: Explanation, room: _Room) -> list[PagePart]:
    """Parts that changed or could not be timed, those that differ in the same way together; then others that differ."""
    named = list(zip(part_names(explanation.parts), explanation.parts, strict=True))
    alike: dict[tuple[bool, str, tuple[str, ...]], list[tuple[str, Part]]] = {}
    for name, part in named:
        if tells_most(part):
            alike.setdefault((part.change_ns > 0, part.differs_at, part.what[:1]), []).append((name, part))
    groups = list(alike.values())
    shown = groups[: room.alike]
    parts: list[PagePart] = [Heading("What differs there")] if shown else []
    for place, group in enumerate(shown):
        parts += _group(group, room, rank=20 + place)
    if len(shown) < len(groups):
        left = sum(map(len, groups[len(shown) :]))
        parts.append(Paragraph(f"{plural(left, 'more part')} like these; --format json has what differs there.", "dim"))
    if not groups:
        parts.append(Paragraph(_nothing_changed(explanation)))
    if quiet := [name for name, part in named if part.differs_at and not tells_most(part)]:
        differ = (
            "differs in code, and no change of its time is known"
            if len(quiet) == 1
            else ("differ in code, and no change of their time is known")
        )
        parts.append(Paragraph((*_listed(quiet), f" {differ}."), "dim"))
    return parts


def _nothing_changed(explanation: Explanation) -> str:
    if explanation.latency.verdict in CHANGED:
        return f"No single part is known to have changed, though the {LATENCY.title.lower()} has."
    return "No part is known to have changed."


def _group(group: Sequence[tuple[str, Part]], room: _Room, *, rank: int) -> list[PagePart]:
    """Parts that differ in the same way: who they are, how, and the lines of the first of them.

    What is most telling is the same; what else differs not quite alike in all of them is said of the first.
    """
    names = [name for name, _ in group]
    part = group[0][1]
    common = [sentence for sentence in part.what if all(sentence in other.what for _, other in group)]
    own = [f"in {names[0]}, {sentence}" for sentence in part.what if sentence not in common]
    sentences = (*common, *own) or (() if part.differs_at else (SAME_IR,))
    said: list[PagePart] = [Paragraph((*_listed(names), ":"), "strong"), Bullets(sentences)]
    lines = _lines(part, room)
    if not lines:
        return said
    of = f" of {names[0]}" if len(names) > 1 else ""
    code = Code("\n".join(lines), "diff", f"Lines{of} that differ at {part.differs_at}")
    return [*said, Choice(forms=((code,), ()), what=("lines that differ",), ranks=(rank,))]


def _lines(part: Part, room: _Room) -> list[str]:
    shown = [line if len(line) <= _LONGEST_LINE else f"{line[:_LONGEST_LINE]} ..." for line in part.lines[: room.lines]]
    if len(shown) < len(part.lines):
        shown.append(f"... {plural(len(part.lines) - len(shown), 'more line')}; --format json has all")
    return shown


def _listed(names: Sequence[str]) -> list[str | Name]:
    pieces: list[str | Name] = []
    for name in names[:_MOST_NAMES]:
        pieces += [", ", Name(name)] if pieces else [Name(name)]
    return pieces + ([f" and {len(names) - _MOST_NAMES:,} more"] if len(names) > _MOST_NAMES else [])


def _schedule(explanation: Explanation) -> list[PagePart]:
    """What differs outside of dispatches."""
    if not explanation.schedule:
        return [Paragraph(SAME_SCHEDULE, "dim")]
    return [Heading("Schedule"), Bullets(explanation.schedule)]


# --- How, and again ---


def _steps(explanation: Explanation, results: str) -> list[Step]:
    steps = []
    if explanation.latency.verdict == "inconclusive":
        steps.append(Step("decide more parts by giving it more time, with --budget"))
    base, head = explanation.base, explanation.head
    if head.variants and explanation.latency.verdict in CHANGED:
        words = (
            "harness",
            "bisect",
            head.suite,
            "--case",
            explanation.case,
            "--over",
            "flags",
            "--base",
            *base.variants,
        )
        steps.append(Step("find out what each of its flags and plugins does", shlex.join(words)))
    if explanation.id and explanation.adds_up and any(part.is_timed for part in explanation.parts):
        folder = shlex.quote(f"{results}/{explanation.id}")
        steps.append(Step("see it as a picture", f"harness plot {folder} --kind waterfall --out waterfall.svg"))
    return steps


def _method(explanation: Explanation, *, whole: bool) -> list[PagePart]:
    """Both sides, the settings and the command, folded away."""
    parts: list[PagePart] = [sides_table(explanation.base, explanation.head)]
    if whole and explanation.settings:
        parts.append(values_table("Setting", explanation.settings))
    if explanation.command:
        parts.append(Code(shlex.join(explanation.command), "sh"))
    return [Fold("How it was measured, and what repeats it", parts)]
