"""What an explanation shows, whatever the page: parts by name, lines of where the time goes, and its short form."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from harness.records.comparison import Explained, ExplainedPart, Verdict
from harness.records.explanation import Explanation, Part
from harness.report.data import Field
from harness.report.page import Tone
from harness.report.units import Unit, interval_text, percent, share, unit_of
from harness.report.verdicts import CHANGED, MARKS, TONES
from harness.stats import CONFIDENCE
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
MOST_EXPLAINED, _MOST_SENTENCES = 3, 3


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
        if not self.verdict:
            return "dim"
        return "" if self.verdict == "missing" else TONES[self.verdict]

    @property
    def marked(self) -> str:
        """Its verdict with a mark, in the words of parts."""
        return f"{MARKS[self.verdict]} {_ONE_SIDE.get(self.verdict, self.verdict)}" if self.verdict else ""


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


def tells_most(part: Part) -> bool:
    """Whether what differs in it is shown: it changed, or it differs and nobody knows what it takes."""
    return is_changed(part) or bool(not part.is_timed and part.differs_at)


def call_ns(explanation: Explanation) -> tuple[float, float]:
    """What one call of base and of head takes; 0 where no generation could be measured."""
    values = (explanation.latency.base_value, explanation.latency.head_value)
    base, head = (value if value is not None and math.isfinite(value) else 0.0 for value in values)
    return base, head


def time_lines(explanation: Explanation, *, most: int | None = None) -> list[TimeLine]:
    """Parts, what is spent elsewhere, and the whole call, to which the others add up; else parts and the call alone."""
    parts = list(explanation.parts)
    names = part_names(parts)
    shown = len(parts) if most is None or len(parts) <= most + 1 else most
    lines = [
        TimeLine(kind="part", name=name, part=part, is_timed=part.is_timed, **figures_of(part))
        for name, part in zip(names[:shown], parts, strict=False)
    ]
    if rest := parts[shown:]:
        changed = sum(map(is_changed, rest))
        said = f", {changed} of them changed" if changed else ""
        lines.append(
            TimeLine(
                kind="parts",
                name=f"{plural(len(rest), 'more part')}{said}",
                base_ns=math.fsum(part.base_ns for part in rest),
                head_ns=math.fsum(part.head_ns for part in rest),
            )
        )
    judged: dict[str, Any] = {
        name: getattr(explanation.latency, name) for name in ("ratio", "ci_low", "ci_high", "verdict")
    }
    base_ns, head_ns = call_ns(explanation)
    name = "one call" if explanation.adds_up else "one call, as a whole"
    call = TimeLine(kind="call", name=name, base_ns=base_ns, head_ns=head_ns, **judged)
    return [*lines, *(elsewhere_lines(explanation) if explanation.adds_up else ()), call]


def figures_of(part: Part | ExplainedPart) -> dict[str, Any]:
    """What every line and every short form has of a part."""
    names = ("base_ns", "head_ns", "ratio", "ci_low", "ci_high", "verdict")
    return {name: getattr(part, name) for name in names}


def elsewhere_lines(explanation: Explanation) -> list[TimeLine]:
    """What both sides spend outside of dispatches: on the device's queue, and what is left of the latency."""
    base, head = explanation.base_elsewhere, explanation.head_elsewhere
    times: list[tuple[LineKind, str, float, float]] = [
        ("device", _DEVICE.get(what, what), base.device_ns.get(what, 0.0), head.device_ns.get(what, 0.0))
        for what in sorted({*base.device_ns, *head.device_ns})
    ]
    times.append(("host", host_name(explanation), base.host_ns, head.host_ns))
    return [
        TimeLine(kind=kind, name=name, base_ns=before, head_ns=after)
        for kind, name, before, after in times
        if before or after
    ]


def host_name(explanation: Explanation) -> str:
    """What stands for the part of the latency that is nothing else's: `host and waits`, and what has no time."""
    untimed = [] if all(part.is_timed for part in explanation.parts) else ["what is not timed"]
    if explanation.method == "alone":
        return ", and ".join(["the rest of the call", *untimed])
    on_queue = explanation.base_elsewhere.device_ns or explanation.head_elsewhere.device_ns
    names = ["host", *([] if on_queue else ["copies", "fills"]), "waits", *untimed]
    return f"{', '.join(names[:-1])} and {names[-1]}"


# --- Figures ---


def unit_of_call(explanation: Explanation) -> Unit:
    """That of the latency with three decimals, so that a small part of it shows too, and how it changes."""
    unit = unit_of("ns", call_ns(explanation))
    return replace(unit, decimals=3) if unit.size > 1 else unit


def signed(unit: Unit, value_ns: float) -> str:
    """A change without its unit: `+0.93`; `0.00` where that is all that is left of it."""
    text = unit.text(value_ns)
    is_nothing = not any(digit in text for digit in "123456789")
    return text.lstrip("-") if is_nothing else f"{'+' if value_ns > 0 else ''}{text}"


def time_fields(unit: Unit) -> list[Field[TimeLine]]:
    """What every table of parts has: names, both sides, the change and its ratio, the verdict."""

    def ns(name: str, title: str = "") -> Field[TimeLine]:
        return Field(
            name=name, title=title, unit=unit, value=lambda line: getattr(line, name) if line.is_timed else None
        )

    return [
        Field(name="name", title="Part", kind="name", value=lambda line: line.name),
        ns("base_ns", "Base"),
        ns("head_ns", "Head"),
        ns("change_ns"),
        Field(title="Change", unit=unit, value=lambda line: signed(unit, line.change_ns) if line.is_timed else None),
        Field(name="ratio", value=lambda line: line.ratio),
        Field(name="ci_low", value=lambda line: line.ci_low),
        Field(name="ci_high", value=lambda line: line.ci_high),
        Field(
            title=f"Ratio [{share(CONFIDENCE)} interval]",
            value=lambda line: "" if line.ratio is None else interval_text(line.ratio, line.ci_low, line.ci_high),
        ),
        Field(name="verdict", value=lambda line: line.verdict),
        Field(title="Verdict", kind="text", value=lambda line: line.marked),
    ]


def method_line(explanation: Explanation) -> str:
    """How the times of dispatches came about, what that costs, and how far they add up."""
    sides = (explanation.base_elsewhere, explanation.head_elsewhere)
    if explanation.method == "profile":
        base, head = (percent(side.profiled_ratio, decimals=1) for side in sides)
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
    rest = "" if explanation.method == "alone" else f"; the rest stands as {host_name(explanation)}"
    return f"{how}. Dispatches and the device's other work add up to {sums}{rest}."


# --- For a row of a comparison ---


def short_form(explanation: Explanation, *, most: int = MOST_EXPLAINED) -> Explained:
    """As much of it as stands under its row; parts whose time is not known are in the sentence alone."""
    timed = [part for part in explanation.parts if part.is_timed]
    names = part_names(timed)
    parts = tuple(
        ExplainedPart(name=name, what=part.what[:_MOST_SENTENCES], **figures_of(part))
        for name, part in zip(names[:most], timed, strict=False)
    )
    return Explained(
        case=explanation.case,
        explanation=explanation.id,
        sentence=explanation.sentence,
        parts=parts,
        left_out=len(timed) - len(parts),
    )
