"""Explanation -> page and CSV; and its short form under a row of a comparison."""

import math
import shlex
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from harness.metrics import LATENCY
from harness.records.comparison import Comparison, Explained, ExplainedPart, Verdict
from harness.records.explanation import Explanation, Part
from harness.report import page as pages
from harness.report.comparison import CHANGED, MARKS, TONES
from harness.report.data import Field, tabulate, to_csv
from harness.report.page import Bullets, Code, Column, Fold, Heading, Name, Page, Paragraph, Step, Steps, Table, Tone
from harness.report.pages import View, first_lines, sides_table
from harness.report.units import Unit, compared, interval_text, p_text, percent, share, unit_of
from harness.stats.intervals import CONFIDENCE
from harness.text import plural

# What a line of an explanation is: a part, several parts together, an operation of the device's queue, what is left of
# the latency, or a whole call.
LineKind = Literal["part", "parts", "device", "host", "call"]

# Operations of a device's queue, as the runtime names them, in words.
_DEVICE = {
    "alloca": "allocations",
    "barrier": "barriers",
    "copy": "copies",
    "dealloca": "deallocations",
    "execute": "command buffers beside dispatches",
    "fill": "fills",
    "update": "updates",
}
# A part that one side alone has is neither slower nor faster.
_ONE_SIDE: dict[Verdict, str] = {"new": "only head", "missing": "only base"}
# How many parts stand under a row of a comparison, and how many sentences of each.
_MOST_EXPLAINED, _MOST_SENTENCES = 3, 3
_MOST_NAMES = 4
# Of parts with a line of their own, of those that differ alike, and of lines of one difference: on a page with a limit.
_MOST_PARTS, _MOST_ALIKE, _MOST_LINES, _MOST_LINES_HERE = 20, 8, 60, 16


# --- Where the time goes ---


@dataclass(frozen=True, kw_only=True)
class TimeLine:
    """One line of where the time goes."""

    kind: LineKind
    name: str
    base_ns: float  # Of one call of the program. head_ns likewise.
    head_ns: float
    ratio: float | None = None
    ci_low: float | None = None
    ci_high: float | None = None
    verdict: Verdict | Literal[""] = ""  # "" where nothing was judged
    part: Part | None = None  # None where it is no part
    is_timed: bool = True  # Whether its times are known

    @property
    def change_ns(self) -> float:
        """What it adds to a call of head, beside base."""
        return self.head_ns - self.base_ns

    @property
    def tone(self) -> Tone:
        """How its line looks."""
        if self.kind == "call":
            return "strong"
        return "dim" if not self.verdict else "" if self.verdict == "missing" else TONES[self.verdict]


def part_names(parts: Sequence[Part]) -> list[str]:
    """What parts are called, no two alike: by the operation where only one has it, else by the dispatches."""
    counted = Counter(part.operation for part in parts)
    return [
        part.operation if part.operation and counted[part.operation] == 1 else " + ".join(part.head or part.base)
        for part in parts
    ]


def is_changed(part: Part) -> bool:
    """Whether a part was found to take another time, or one side alone has it."""
    return part.verdict in CHANGED or part.verdict in _ONE_SIDE


def _tells_most(part: Part) -> bool:
    return is_changed(part) or bool(not part.is_timed and part.differs_at)


def call_ns(explanation: Explanation) -> tuple[float, float]:
    """What one call of base and of head takes; 0 where no generation could be measured."""
    values = (explanation.latency.base_value, explanation.latency.head_value)
    base, head = (value if value is not None and math.isfinite(value) else 0.0 for value in values)
    return base, head


def time_lines(explanation: Explanation, *, most: int | None = None) -> list[TimeLine]:
    """Parts, what is spent elsewhere, and the whole call, to which the others add up; else parts and the call alone."""
    parts = list(explanation.parts)
    shown = len(parts) if most is None or len(parts) <= most + 1 else most
    lines = [
        TimeLine(kind="part", name=name, part=part, is_timed=part.is_timed, **_figures_of(part))
        for name, part in zip(part_names(parts)[:shown], parts, strict=False)
    ]
    if rest := parts[shown:]:
        changed = sum(map(is_changed, rest))
        name = f"{plural(len(rest), 'more part')}{f', {changed} of them changed' if changed else ''}"
        base_ns, head_ns = (math.fsum(times) for times in zip(*((p.base_ns, p.head_ns) for p in rest), strict=True))
        lines.append(TimeLine(kind="parts", name=name, base_ns=base_ns, head_ns=head_ns))
    base_ns, head_ns = call_ns(explanation)
    judged = _figures_of(explanation.latency) | {"base_ns": base_ns, "head_ns": head_ns}
    whole = "one compile" if explanation.method == "passes" else "one call"
    call = TimeLine(kind="call", name=whole if explanation.adds_up else f"{whole}, as a whole", **judged)
    return [*lines, *(elsewhere_lines(explanation) if explanation.adds_up else ()), call]


def _figures_of(part: Any) -> dict[str, Any]:
    names = ("base_ns", "head_ns", "ratio", "ci_low", "ci_high", "verdict")
    return {name: getattr(part, name, 0.0) for name in names}


def elsewhere_lines(explanation: Explanation) -> list[TimeLine]:
    """What both sides spend outside of dispatches: on the device's queue, and what is left of the latency."""
    base, head = explanation.base_elsewhere, explanation.head_elsewhere
    times: list[tuple[LineKind, str, float, float]] = [
        ("device", _DEVICE.get(what, what), base.device_ns.get(what, 0.0), head.device_ns.get(what, 0.0))
        for what in sorted({*base.device_ns, *head.device_ns})
    ]
    times.append(("host", _host_name(explanation), base.host_ns, head.host_ns))
    return [
        TimeLine(kind=kind, name=name, base_ns=before, head_ns=after)
        for kind, name, before, after in times
        if before or after
    ]


def _host_name(explanation: Explanation) -> str:
    """What stands for the part of the latency that is nothing else's: `host and waits`, and what has no time."""
    if explanation.method == "passes":
        return "in no pass: start, parsing, verification, output"
    untimed = [] if all(part.is_timed for part in explanation.parts) else ["what is not timed"]
    on_queue = explanation.base_elsewhere.device_ns or explanation.head_elsewhere.device_ns
    names = ["host", *([] if on_queue else ["copies", "fills"]), "waits", *untimed]
    if explanation.method == "alone":
        names = ["the rest of the call", *untimed]
    return " and ".join([*([", ".join(names[:-1])] if names[1:] else []), names[-1]])


def unit_of_call(explanation: Explanation) -> Unit:
    """That of the latency with three decimals, so that a small part of it shows too, and how it changes."""
    unit = unit_of("ns", call_ns(explanation))
    return replace(unit, decimals=3) if unit.size > 1 else unit


def signed(unit: Unit, value_ns: float) -> str:
    """A change without its unit: `+0.93`; `0.00` where that is all that is left of it."""
    text = unit.text(value_ns)
    is_nothing = not any(digit in text for digit in "123456789")
    return text.lstrip("-") if is_nothing else f"{'+' if value_ns > 0 else ''}{text}"


def _time_fields(unit: Unit) -> list[Field[TimeLine]]:

    def change(line: TimeLine) -> str | None:
        return signed(unit, line.change_ns) if line.is_timed else None

    def verdict(line: TimeLine) -> str:
        return f"{MARKS[line.verdict]} {_ONE_SIDE.get(line.verdict, line.verdict)}" if line.verdict else ""

    def ratio(line: TimeLine) -> str:
        return "" if line.ratio is None else interval_text(line.ratio, line.ci_low, line.ci_high)

    return [
        Field(title="Part", kind="name", value=lambda line: line.name),
        Field(title="Base", unit=unit, value=lambda line: line.base_ns if line.is_timed else None),
        Field(title="Head", unit=unit, value=lambda line: line.head_ns if line.is_timed else None),
        Field(title="Change", unit=unit, value=change),
        Field(title=f"Ratio [{share(CONFIDENCE)} interval]", value=ratio),
        Field(title="Verdict", kind="text", value=verdict),
    ]


def method_line(explanation: Explanation) -> str:
    """How the times of dispatches came about, what that costs, and how far they add up."""
    if explanation.method == "passes":
        return (
            "Both sides are compiled in turns, on one thread, with --mlir-timing: a pass has the time of all its runs, "
            "without those of passes that it runs. SerializeTargetExecutables has the code generation of LLVM."
        )
    sides = (explanation.base_elsewhere, explanation.head_elsewhere)
    if explanation.method == "profile":
        base, head = (percent(side.profiled_ratio) for side in sides)
        how = (
            "Dispatches are timed by the runtime's own profile, in processes beside those that time whole calls; with "
            f"the profile a call takes {base} on base and {head} on head"
        )
    elif any(part.is_timed for part in explanation.parts):
        how = "Each dispatch is timed by itself, since the runtime has no profile here of both sides"
    else:
        return "No dispatch can be timed here; the calls are, and the IR of both sides is compared."
    known = list(zip(sides, call_ns(explanation), strict=True))
    if not all(latency_ns > 0 and math.isfinite(side.host_ns) for side, latency_ns in known):
        return f"{how}."
    base, head = (f"{(1 - side.host_ns / latency_ns) * 100:.1f} %" for side, latency_ns in known)
    sums = f"{base} of a call of base and {head} of one of head"
    if not explanation.adds_up:
        return f"{how}. In all they take {sums}, so they are no shares of it: each time is the dispatch's own."
    rest = "" if explanation.method == "alone" else f"; the rest stands as {_host_name(explanation)}"
    return f"{how}. Dispatches and the device's other work add up to {sums}{rest}."


# --- The page ---


def page(explanation: Explanation, view: View) -> Page:
    """What changed and why; all of it has every part, every line that differs, and the settings."""
    name = (" ", Name(explanation.id)) if explanation.id else ()
    lines = time_lines(explanation, most=None if view.full else _MOST_PARTS)
    columns = pages.filled(tabulate(_fields(explanation, lines[-1]), lines))
    schedule: list[pages.Part] = [Heading("Schedule"), Bullets(explanation.schedule)]
    if explanation.method == "passes":
        schedule = []
    elif not explanation.schedule:
        schedule = [Paragraph("Outside of dispatches, the two programs are the same as far as is known.", "dim")]
    method = (sides_table(explanation.base, explanation.head), Code(shlex.join(explanation.command), "sh"))
    return Page(
        title=(Name(explanation.case), f": {compared(explanation.base, explanation.head)}"),
        verdict=explanation.sentence or "What differs is not known.",
        parts=(
            Paragraph(("Explanation", *name, f" of {explanation.created}."), "dim"),
            pages.Warnings([f"{note[:1].upper()}{note[1:]}" for note in explanation.notes]),
            Table(title="Where the time goes", columns=columns, tones=[line.tone for line in lines]),
            Paragraph(method_line(explanation), "dim"),
            *(() if explanation.method == "passes" else _what(explanation, view)),
            *schedule,
            Steps(_steps(explanation, view)),
            Fold("How it was measured, and what repeats it", method, aside=True),
        ),
    )


def _fields(explanation: Explanation, call: TimeLine) -> list[Field[TimeLine]]:
    def of_change(line: TimeLine) -> float | None:
        """Of a change that is one; the parts of mere noise say nothing."""
        if call.verdict not in CHANGED or not call.change_ns or not line.is_timed or not explanation.adds_up:
            return None
        return round(line.change_ns / call.change_ns * 100, 1) + 0.0  # What rounds to nothing has no sign

    def dispatches(line: TimeLine) -> str:
        """`2 → 1`; nothing where each side has one, as nearly all have."""
        part = None if explanation.method == "passes" else line.part
        counts = (len(part.base), len(part.head)) if part is not None else (1, 1)
        return "" if counts == (1, 1) else f"{counts[0]} → {counts[1]}"

    def generations(line: TimeLine) -> int | None:
        return (explanation.latency.generations if line is call else getattr(line.part, "generations", 0)) or None

    return [
        *_time_fields(unit_of_call(explanation)),
        Field(title="Of the Change", value=of_change, unit="%", rank=2),
        Field(title="Differs First At", value=lambda line: getattr(line.part, "differs_at", ""), kind="text", rank=1),
        Field(title="Dispatches", value=dispatches, rank=3),
        Field(title="p", value=lambda line: "" if line.part is None else p_text(line.part.p), rank=4),
        Field(title="Matched By", value=lambda line: getattr(line.part, "matched_by", ""), kind="text", rank=5),
        Field(title="Generations", value=generations, rank=6),
    ]


def _what(explanation: Explanation, view: View) -> list[pages.Part]:
    named = list(zip(part_names(explanation.parts), explanation.parts, strict=True))
    alike: dict[tuple[bool, str, tuple[str, ...]], list[tuple[str, Part]]] = {}
    for name, part in named:
        if _tells_most(part):
            alike.setdefault((part.change_ns > 0, part.differs_at, part.what[:1]), []).append((name, part))
    groups = list(alike.values())
    shown = groups if view.full else groups[:_MOST_ALIKE]
    parts: list[pages.Part] = [Heading("What differs there")] if shown else []
    for group in shown:
        parts += _group(group, view)
    if left := sum(map(len, groups[len(shown) :])):
        parts.append(Paragraph(f"{plural(left, 'more part')} like these: see --format json.", "dim"))
    if not groups:
        though = f", though the {LATENCY.title.lower()} has" if explanation.latency.verdict in CHANGED else ""
        parts.append(Paragraph(f"No single part is known to have changed{though}."))
    if quiet := [name for name, part in named if part.differs_at and not _tells_most(part)]:
        parts.append(
            Paragraph(("Of other code, with no known change of time: ", *pages.listed(quiet, _MOST_NAMES)), "dim")
        )
    return parts


def _group(group: Sequence[tuple[str, Part]], view: View) -> list[pages.Part]:
    """Parts that differ in the same way: who they are, how, and the lines of the first of them."""
    names, (first, part) = [name for name, _ in group], group[0]
    common = [sentence for sentence in part.what if all(sentence in other.what for _, other in group)]
    own = [f"in {first}, {sentence}" for sentence in part.what if sentence not in common]
    sentences = (*common, *own) or (() if part.differs_at else ("The IR is the same on both sides, at every phase.",))
    lines = first_lines(part.lines, None if view.full else _MOST_LINES_HERE if view.terminal else _MOST_LINES)
    title = f"Lines{f' of {first}' if len(names) > 1 else ''} that differ at {part.differs_at}"
    code = [Code("\n".join(lines), "diff", title)] if lines else []
    return [Paragraph((*pages.listed(names, _MOST_NAMES), ":"), "strong"), Bullets(sentences), *code]


def _steps(explanation: Explanation, view: View) -> list[Step]:
    steps = []
    if explanation.latency.verdict == "inconclusive":
        steps.append(Step("decide more parts by giving it more time, with --budget"))
    base, head = explanation.base, explanation.head
    if head.variants and explanation.latency.verdict in CHANGED:
        of_case = ("--case", explanation.case, "--over", "flags", "--base", *base.variants)
        of_metric = () if explanation.latency.metric == LATENCY.name else ("--metric", explanation.latency.metric)
        command = shlex.join(("harness", "bisect", head.suite, *of_case, *of_metric))
        steps.append(Step("find out what each of its flags and plugins does", command))
    if explanation.id and explanation.adds_up and any(part.is_timed for part in explanation.parts):
        folder = shlex.quote(view.folder(explanation.id))
        steps.append(Step("see it as a picture", f"harness plot {folder} --kind waterfall --out waterfall.svg"))
    return steps


# --- Under a row of a comparison ---


def short_form(explanation: Explanation) -> Explained:
    """As much of it as stands under its row; parts whose time is not known are in the sentence alone."""
    timed = [part for part in explanation.parts if part.is_timed]
    parts = tuple(
        ExplainedPart(name=name, what=part.what[:_MOST_SENTENCES], **_figures_of(part))
        for name, part in zip(part_names(timed)[:_MOST_EXPLAINED], timed, strict=False)
    )
    return Explained(
        case=explanation.case,
        explanation=explanation.id,
        sentence=explanation.sentence,
        parts=parts,
        left_out=len(timed) - len(parts),
    )


def folded_explanations(comparison: Comparison, view: View) -> list[pages.Part]:
    """Each row's explanation behind its case's name; on a terminal, where its folder is, with what prints all of it."""
    parts: list[pages.Part] = []
    for explained in comparison.explained:
        said = [Paragraph(explained.sentence), *_parts(explained)]
        if view.terminal and explained.explanation:
            command = Name(f"harness report {shlex.quote(view.folder(explained.explanation))}")
            said.append(Paragraph(("All of it: ", command), "dim"))
        parts.append(Fold(f"What the regression of {explained.case} is made of", said))
    return parts


def _parts(explained: Explained) -> list[pages.Part]:
    lines = [TimeLine(kind="part", name=part.name, **_figures_of(part)) for part in explained.parts]
    unit = unit_of("ns", [value for line in lines for value in (line.base_ns, line.head_ns)])
    what = Column("What Differs", [part.what for part in explained.parts], kind="sentence")
    columns = pages.filled([*tabulate(_time_fields(unit), lines), what])
    left = [f"{plural(explained.left_out, 'other part')} changed the latency less."] if explained.left_out else []
    return [Table(columns=columns, tones=[line.tone for line in lines], after=left)] if lines else []


# --- As CSV ---


def explanation_csv(explanation: Explanation) -> str:
    """A line a part, then what is spent elsewhere and the whole call; see `time_lines`."""
    return to_csv([_record(explanation.case, line) for line in time_lines(explanation)])


def _record(case: str, line: TimeLine) -> dict[str, Any]:
    times, judged = ("base_ns", "head_ns", "change_ns"), ("ratio", "ci_low", "ci_high", "verdict")
    facts, lists = ("p", "generations", "differs_at", "matched_by", "operation"), ("base", "head", "what")
    return {
        "case": case,
        "kind": line.kind,
        "name": line.name,
        **{name: getattr(line, name) if line.is_timed else None for name in times},
        **{name: getattr(line, name) for name in judged},
        **{name: getattr(line.part, name, None) for name in facts},
        **{name: "; ".join(getattr(line.part, name, ())) for name in lists},
    }
