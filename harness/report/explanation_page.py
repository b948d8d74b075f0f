"""Explanation -> page and CSV; and its short form under a row of a comparison.

From top to bottom: the one sentence, where the time goes (a line a part, so that all of them add up to the call, if
they do), what the compiler did differently in the parts that changed or could not be timed, the schedule; then how it
was measured and what repeats it.
"""

import shlex
from collections.abc import Sequence
from typing import Any

from harness.metrics import LATENCY
from harness.records.comparison import Comparison, Explained
from harness.records.explanation import Explanation, Part
from harness.report.data import Field, records, tabulate, to_csv
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
from harness.report.names import compared
from harness.report.page import (
    Bullets,
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
from harness.report.pages import View, first_lines, sides_table, values_table
from harness.report.units import p_text, unit_of
from harness.report.verdicts import CHANGED
from harness.text import plural

_MOST_NAMES = 4
# Of parts with a line of their own, of those that differ alike, and of lines of one difference: on a page with a limit.
_MOST_PARTS, _MOST_ALIKE, _MOST_LINES, _MOST_LINES_HERE = 20, 8, 60, 16


def page(explanation: Explanation, view: View) -> Page:
    """What changed and why; all of it has every part, every line that differs, and the settings."""
    name: tuple[Inline, ...] = (" ", Name(explanation.id)) if explanation.id else ()
    lines = time_lines(explanation, most=None if view.full else _MOST_PARTS)
    columns = filled(tabulate(_fields(explanation, lines[-1]), lines))
    schedule: list[PagePart] = [Heading("Schedule"), Bullets(explanation.schedule)]
    if not explanation.schedule:
        schedule = [Paragraph("Outside of dispatches, the two programs are the same as far as is known.", "dim")]
    method: list[PagePart] = [sides_table(explanation.base, explanation.head)]
    if view.full and explanation.settings:
        method.append(values_table("Setting", explanation.settings))
    if explanation.command:
        method.append(Code(shlex.join(explanation.command), "sh"))
    return Page(
        title=(Name(explanation.case), f": {compared(explanation.base, explanation.head)}"),
        verdict=explanation.sentence or "What differs is not known.",
        parts=(
            Paragraph(("Explanation", *name, f" of {explanation.created}."), "dim"),
            Warnings([f"{note[:1].upper()}{note[1:]}" for note in explanation.notes]),
            Table(title="Where the time goes", columns=columns, tones=[line.tone for line in lines]),
            Paragraph(method_line(explanation), "dim"),
            *_what(explanation, view),
            *schedule,
            Steps(_steps(explanation, view)),
            Fold("How it was measured, and what repeats it", method, aside=True),
        ),
    )


def _fields(explanation: Explanation, call: TimeLine) -> list[Field[TimeLine]]:
    def of_part(name: str, title: str = "", **facts: Any) -> Field[TimeLine]:
        return Field(name=name, title=title, value=lambda line: getattr(line.part, name, ""), **facts)

    def joined(name: str, between: str = " ") -> Field[TimeLine]:
        return Field(name=name, value=lambda line: between.join(getattr(line.part, name, ())))

    def generations(line: TimeLine) -> int | str:
        return (explanation.latency.generations if line is call else getattr(line.part, "generations", 0)) or ""

    def share(line: TimeLine) -> float | str:
        """Of a change that is one; the parts of mere noise say nothing."""
        if call.verdict not in CHANGED or not call.change_ns or not line.is_timed or not explanation.adds_up:
            return ""
        return round(line.change_ns / call.change_ns * 100, 1) + 0.0  # What rounds to nothing has no sign

    return [
        Field(name="kind", value=lambda line: line.kind),
        *time_fields(unit_of_call(explanation)),
        Field(title="Of the Change", value=share, unit="%", rank=2),
        of_part("differs_at", "Differs First At", kind="text", rank=1),
        Field(title="Dispatches", value=lambda line: _dispatches(line.part), rank=3),
        Field(name="p", value=lambda line: getattr(line.part, "p", None)),
        Field(title="p", value=lambda line: "" if line.part is None else p_text(line.part.p), rank=4),
        of_part("matched_by", "Matched By", kind="text", rank=5),
        Field(name="generations", title="Generations", value=generations, rank=6),
        of_part("operation"),
        joined("base"),
        joined("head"),
        joined("what", "; "),
    ]


def _dispatches(part: Part | None) -> str:
    """`2 → 1`; nothing where each side has one, as nearly all have."""
    if part is None or (len(part.base), len(part.head)) == (1, 1):
        return ""
    return f"{len(part.base)} → {len(part.head)}"


# --- What differs ---


def _what(explanation: Explanation, view: View) -> list[PagePart]:
    """Parts that changed or could not be timed, those that differ in the same way together; then others that differ."""
    named = list(zip(part_names(explanation.parts), explanation.parts, strict=True))
    alike: dict[tuple[bool, str, tuple[str, ...]], list[tuple[str, Part]]] = {}
    for name, part in named:
        if tells_most(part):
            alike.setdefault((part.change_ns > 0, part.differs_at, part.what[:1]), []).append((name, part))
    groups = list(alike.values())
    shown = groups if view.full else groups[:_MOST_ALIKE]
    parts: list[PagePart] = [Heading("What differs there")] if shown else []
    for group in shown:
        parts += _group(group, view)
    if left := sum(map(len, groups[len(shown) :])):
        parts.append(Paragraph(f"{plural(left, 'more part')} like these; --format json has what differs there.", "dim"))
    if not groups:
        has_changed = explanation.latency.verdict in CHANGED
        though = f"No single part is known to have changed, though the {LATENCY.title.lower()} has."
        parts.append(Paragraph(though if has_changed else "No part is known to have changed."))
    if quiet := [name for name, part in named if part.differs_at and not tells_most(part)]:
        differ, their = ("differs", "its") if len(quiet) == 1 else ("differ", "their")
        parts.append(Paragraph((*_listed(quiet), f" {differ} in code, and no change of {their} time is known."), "dim"))
    return parts


def _group(group: Sequence[tuple[str, Part]], view: View) -> list[PagePart]:
    """Parts that differ in the same way: who they are, how, and the lines of the first of them.

    What is most telling is the same; what else differs not quite alike in all of them is said of the first.
    """
    names, (first, part) = [name for name, _ in group], group[0]
    common = [sentence for sentence in part.what if all(sentence in other.what for _, other in group)]
    own = [f"in {first}, {sentence}" for sentence in part.what if sentence not in common]
    sentences = (*common, *own) or (() if part.differs_at else ("The IR is the same on both sides, at every phase.",))
    lines = first_lines(part.lines, None if view.full else _MOST_LINES_HERE if view.terminal else _MOST_LINES)
    title = f"Lines{f' of {first}' if len(names) > 1 else ''} that differ at {part.differs_at}"
    code = [Code("\n".join(lines), "diff", title)] if lines else []
    return [Paragraph((*_listed(names), ":"), "strong"), Bullets(sentences), *code]


def _listed(names: Sequence[str]) -> list[str | Name]:
    pieces: list[str | Name] = []
    for name in names[:_MOST_NAMES]:
        pieces += [", ", Name(name)] if pieces else [Name(name)]
    return pieces + ([f" and {len(names) - _MOST_NAMES:,} more"] if len(names) > _MOST_NAMES else [])


def _steps(explanation: Explanation, view: View) -> list[Step]:
    steps = []
    if explanation.latency.verdict == "inconclusive":
        steps.append(Step("decide more parts by giving it more time, with --budget"))
    base, head = explanation.base, explanation.head
    if head.variants and explanation.latency.verdict in CHANGED:
        of_case = ("--case", explanation.case, "--over", "flags", "--base", *base.variants)
        command = shlex.join(("harness", "bisect", head.suite, *of_case))
        steps.append(Step("find out what each of its flags and plugins does", command))
    if explanation.id and explanation.adds_up and any(part.is_timed for part in explanation.parts):
        folder = shlex.quote(view.folder(explanation.id))
        steps.append(Step("see it as a picture", f"harness plot {folder} --kind waterfall --out waterfall.svg"))
    return steps


# --- Under a row of a comparison ---


def folded_explanations(comparison: Comparison, view: View) -> list[PagePart]:
    """Each row's explanation behind its case's name; on a terminal, where its folder is, with what prints all of it."""
    parts: list[PagePart] = []
    for explained in comparison.explained:
        said = [Paragraph(explained.sentence), *_parts(explained)]
        if view.terminal and explained.explanation:
            command = Name(f"harness report {shlex.quote(view.folder(explained.explanation))}")
            said.append(Paragraph(("All of it: ", command), "dim"))
        parts.append(Fold(f"What the regression of {explained.case} is made of", said))
    return parts


def _parts(explained: Explained) -> list[PagePart]:
    lines = [TimeLine(kind="part", name=part.name, **figures_of(part)) for part in explained.parts]
    unit = unit_of("ns", [value for line in lines for value in (line.base_ns, line.head_ns)])
    what = Column("What Differs", [part.what for part in explained.parts], kind="sentence")
    columns = filled([*tabulate(time_fields(unit), lines), what])
    left = [f"{plural(explained.left_out, 'other part')} changed the latency less."] if explained.left_out else []
    return [Table(columns=columns, tones=[line.tone for line in lines], after=left)] if lines else []


def explanation_csv(explanation: Explanation) -> str:
    """A line a part, then what is spent elsewhere and the whole call; see `time_lines`."""
    lines = time_lines(explanation)
    told = records(_fields(explanation, lines[-1]), lines)
    return to_csv([{"case": explanation.case, **record} for record in told])
