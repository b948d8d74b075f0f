"""Explanation -> page, JSON and CSV; and its short form under a row of a comparison.

From top to bottom: the one sentence, where the time goes (a line a part, so that all of them add up to the call, if
they do), what the compiler did differently in the parts that changed or could not be timed, the schedule; then how it
was measured and what repeats it.
"""

import shlex
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from harness.metrics import LATENCY
from harness.records.comparison import Comparison, Explained
from harness.records.explanation import Explanation, Part
from harness.report.data import Field, records, stored_json, tabulate, to_csv
from harness.report.explanation_words import (
    TimeLine,
    figures_of,
    method_line,
    part_names,
    tells_most,
    time_fields,
    time_lines,
    unit_of_call,
)
from harness.report.markdown import COMMENT, to_markdown
from harness.report.names import compared
from harness.report.page import (
    Bullets,
    Choice,
    Code,
    Column,
    Fold,
    Heading,
    Inline,
    Name,
    Page,
    Paragraph,
    Step,
    Steps,
    Table,
    Warnings,
    filled,
)
from harness.report.page import Part as PagePart
from harness.report.pages import first_lines, sides_table, values_table
from harness.report.units import p_text, unit_of
from harness.report.verdicts import CHANGED
from harness.store.kinds import EXPLANATION
from harness.text import plural

_ARROW = "→"
_MOST_NAMES = 4
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


def terminal_page(explanation: Explanation, results: str = "") -> Page:
    """What changed and why, with the first of the lines that differ."""
    return _page(explanation, _TERMINAL, results or "results")


def markdown_page(explanation: Explanation) -> Page:
    """Every part, every line that differs, and all settings."""
    settings = [values_table("Setting", explanation.settings)] if explanation.settings else []
    return _page(explanation, _Room(), method=_method(explanation, settings))


def short_text(explanation: Explanation) -> str:
    """As much as a comment has room for."""
    return to_markdown(_page(explanation, _SHORT, method=_method(explanation)), COMMENT)


def _page(explanation: Explanation, room: _Room, results: str = "results", method: Sequence[PagePart] = ()) -> Page:
    name: tuple[Inline, ...] = (" ", Name(explanation.id)) if explanation.id else ()
    return Page(
        title=(Name(explanation.case), f": {compared(explanation.base, explanation.head)}"),
        verdict=explanation.sentence or "What differs is not known.",
        parts=(
            Paragraph(("Explanation", *name, f" of {explanation.created}."), "dim"),
            Warnings([f"{note[:1].upper()}{note[1:]}" for note in explanation.notes]),
            _where(explanation, room),
            Paragraph(method_line(explanation), "dim"),
            *_what(explanation, room),
            *_schedule(explanation),
            Steps(_steps(explanation, results)),
            *method,
        ),
        foot=_left_out,
    )


def _left_out(names: Sequence[str]) -> Sequence[PagePart]:
    return [Paragraph(f"Left out here for length: {', '.join(names)}.")] if names else ()


# --- Where ---


def _where(explanation: Explanation, room: _Room) -> Table:
    lines = time_lines(explanation, most=room.parts)
    columns = filled(tabulate(_fields(explanation, lines[-1]), lines))
    return Table(title="Where the time goes", columns=columns, tones=[line.tone for line in lines])


def _fields(explanation: Explanation, call: TimeLine) -> list[Field[TimeLine]]:
    def of_part(name: str, title: str = "", **facts: Any) -> Field[TimeLine]:
        return Field(name=name, title=title, value=lambda line: getattr(line.part, name, ""), **facts)

    def generations(line: TimeLine) -> int | str:
        return (explanation.latency.generations if line is call else getattr(line.part, "generations", 0)) or ""

    def share(line: TimeLine) -> float | str:
        """Of a change that is one; the parts of mere noise say nothing."""
        if call.verdict not in CHANGED or not call.change_ns or not line.is_timed:
            return ""
        return round(line.change_ns / call.change_ns * 100, 1) + 0.0  # What rounds to nothing has no sign

    return [
        Field(name="kind", value=lambda line: line.kind),
        *time_fields(unit_of_call(explanation)),
        Field(title="Of the Change", value=share if explanation.adds_up else lambda _: None, unit="%", rank=2),
        of_part("differs_at", "Differs First At", kind="text", rank=1),
        Field(title="Dispatches", value=lambda line: _dispatches(line.part), rank=3),
        Field(name="p", value=lambda line: getattr(line.part, "p", None)),
        Field(title="p", value=lambda line: "" if line.part is None else p_text(line.part.p), rank=4),
        of_part("matched_by", "Matched By", kind="text", rank=5),
        Field(name="generations", title="Generations", value=generations, rank=6),
        of_part("operation"),
        Field(name="base", value=lambda line: " ".join(getattr(line.part, "base", ()))),
        Field(name="head", value=lambda line: " ".join(getattr(line.part, "head", ()))),
        Field(name="what", value=lambda line: "; ".join(getattr(line.part, "what", ()))),
    ]


def _dispatches(part: Part | None) -> str:
    """`2 → 1`; nothing where each side has one, as nearly all have."""
    if part is None or (len(part.base), len(part.head)) == (1, 1):
        return ""
    return f"{len(part.base)} {_ARROW} {len(part.head)}"


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
        nothing = "No part is known to have changed."
        if explanation.latency.verdict in CHANGED:
            nothing = f"No single part is known to have changed, though the {LATENCY.title.lower()} has."
        parts.append(Paragraph(nothing))
    if quiet := [name for name, part in named if part.differs_at and not tells_most(part)]:
        differ, their = ("differs", "its") if len(quiet) == 1 else ("differ", "their")
        parts.append(Paragraph((*_listed(quiet), f" {differ} in code, and no change of {their} time is known."), "dim"))
    return parts


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
    lines = first_lines(part.lines, room.lines)
    if not lines:
        return said
    of = f" of {names[0]}" if len(names) > 1 else ""
    code = Code("\n".join(lines), "diff", f"Lines{of} that differ at {part.differs_at}")
    return [*said, Choice("lines that differ", rank, (code,))]


def _listed(names: Sequence[str]) -> list[str | Name]:
    pieces: list[str | Name] = []
    for name in names[:_MOST_NAMES]:
        pieces += [", ", Name(name)] if pieces else [Name(name)]
    return pieces + ([f" and {len(names) - _MOST_NAMES:,} more"] if len(names) > _MOST_NAMES else [])


def _schedule(explanation: Explanation) -> list[PagePart]:
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
        of_case = ("--case", explanation.case, "--over", "flags", "--base", *base.variants)
        command = shlex.join(("harness", "bisect", head.suite, *of_case))
        steps.append(Step("find out what each of its flags and plugins does", command))
    if explanation.id and explanation.adds_up and any(part.is_timed for part in explanation.parts):
        folder = shlex.quote(f"{results}/{explanation.id}")
        steps.append(Step("see it as a picture", f"harness plot {folder} --kind waterfall --out waterfall.svg"))
    return steps


def _method(explanation: Explanation, settings: Sequence[PagePart] = ()) -> list[PagePart]:
    command = [Code(shlex.join(explanation.command), "sh")] if explanation.command else []
    parts = [sides_table(explanation.base, explanation.head), *settings, *command]
    return [Fold("How it was measured, and what repeats it", parts)]


# --- Under a row of a comparison ---


def folded_explanations(comparison: Comparison, results: str = "") -> list[PagePart]:
    """Each row's explanation behind its case's name; where its folder is known, with what prints all of it."""
    parts: list[PagePart] = []
    for explained in comparison.explained:
        said = _parts(explained)
        if results and explained.explanation:
            command = Name(f"harness report {shlex.quote(f'{results}/{explained.explanation}')}")
            said.append(Paragraph(("All of it: ", command), "dim"))
        parts.append(Fold(f"What the regression of {explained.case} is made of", said))
    return parts


def _parts(explained: Explained) -> list[PagePart]:
    said = Paragraph(explained.sentence)
    if not explained.parts:
        return [said]
    lines = [TimeLine(kind="part", name=part.name, **figures_of(part)) for part in explained.parts]
    unit = unit_of("ns", [value for line in lines for value in (line.base_ns, line.head_ns)])
    columns = [
        *tabulate(time_fields(unit), lines),
        Column("What Differs", [part.what for part in explained.parts], kind="sentence"),
    ]
    left = f"{plural(explained.left_out, 'other part')} changed the latency less." if explained.left_out else ""
    table = Table(columns=filled(columns), tones=[line.tone for line in lines], after=[left] if left else [])
    return [said, table]


# --- For other programs ---


def explanation_document(explanation: Explanation) -> bytes:
    """Everything that an explanation says, as it is kept."""
    return stored_json({"schema_version": EXPLANATION.version, **asdict(explanation)})


def explanation_csv(explanation: Explanation) -> str:
    """A line a part, then what is spent elsewhere and the whole call; see `time_lines`."""
    lines = time_lines(explanation)
    told = records(_fields(explanation, lines[-1]), lines)
    return to_csv([{"case": explanation.case, **record} for record in told])
