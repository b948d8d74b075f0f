"""From base's latency to head's, one bar for each part that changes it."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from harness.errors import RunError
from harness.plots.canvas import BODY, MARGIN, ROOM, SMALL, WIDTH, Canvas, Drawing, cut, widest, width_px
from harness.records.comparison import Verdict
from harness.records.explanation import Explanation
from harness.report.explanation_page import (
    call_ns,
    elsewhere_lines,
    is_changed,
    method_line,
    part_names,
    signed,
    unit_of_call,
)
from harness.report.forest import Tone
from harness.report.units import Unit, compared, interval_text, percent
from harness.text import plural

_USUAL_PARTS = 12
_ROW = 24.0
_WHY = 15.0
_BAR = 13.0
_GAP = 14.0
_LONGEST_LABEL = 330.0
_LEAST_PLOT = 240.0
_DOTS = (0.0, (1.0, 2.0))
# Where all levels lie within the upper part of the axis, it begins below the lowest of them: by so much of what they
# span, and by so much of the highest at least.
_FROM_ZERO_BELOW = 0.7
_BELOW_OF_SPAN, _BELOW_AT_LEAST = 0.35, 0.02
_RIGHT = 0.02
# What the steps lack to head's latency, as a share of it, from which on that is a step of its own.
_LACKING = 0.002
_TONES: dict[Verdict, Tone] = {
    "regressed": "worse",
    "new": "worse",
    "improved": "better",
    "missing": "better",
}
_WORDS: dict[Tone, str] = {"worse": "takes longer", "better": "takes less", "same": "the same or not judged"}


@dataclass(frozen=True, kw_only=True)
class Step:
    """One bar."""

    name: str
    start_ns: float  # Where it begins; 0 of a whole call. end_ns: where it ends.
    end_ns: float
    tone: Tone | None = None  # None: it is a whole call
    why: str = ""  # What differs there; "" where that is not known


def waterfall_steps(explanation: Explanation, top: int | None = None) -> list[Step]:
    """Base's call, the parts that changed, all others together, what is spent elsewhere, and head's call."""
    base_ns, head_ns = call_ns(explanation)
    if not base_ns or not head_ns:
        why = f" ({explanation.latency.reason})" if explanation.latency.reason else ""
        raise RunError(f"has no latency of both sides to draw{why}")
    if not explanation.adds_up:
        raise RunError("has parts that take more than the call in all, so no bar can begin where another one ends")
    steps = [Step(name="base", start_ns=0.0, end_ns=base_ns)]
    level_ns = base_ns

    def add(name: str, change_ns: float, tone: Tone, why: str = "") -> None:
        nonlocal level_ns
        steps.append(Step(name=name, start_ns=level_ns, end_ns=level_ns + change_ns, tone=tone, why=why))
        level_ns += change_ns

    names = part_names(explanation.parts)
    drawn = [place for place, part in enumerate(explanation.parts) if is_changed(part)][: top or _USUAL_PARTS]
    for place in drawn:
        part = explanation.parts[place]
        add(names[place], part.change_ns, _TONES.get(part.verdict, "same"), next(iter(part.what), ""))
    if rest := [part for place, part in enumerate(explanation.parts) if place not in drawn]:
        add(plural(len(rest), "other part" if drawn else "part"), sum(part.change_ns for part in rest), "same")
    for line in elsewhere_lines(explanation):
        if line.change_ns:
            add(line.name, line.change_ns, "same")
    if abs(head_ns - level_ns) > _LACKING * head_ns:
        add("medians that do not add up", head_ns - level_ns, "same")
    return [*steps, Step(name="head", start_ns=0.0, end_ns=head_ns)]


def draw_waterfall(explanation: Explanation, top: int | None = None) -> Drawing:
    """The bars below each other, each beginning where the last one ended."""
    steps = waterfall_steps(explanation, top)
    unit, row = unit_of_call(explanation), explanation.latency
    figures = [_figure(step, steps[0].end_ns, unit) for step in steps]
    begin_ns = axis_begin_ns(steps)
    broken = f" The axis begins at {unit.text(begin_ns)} {unit.name}." if begin_ns else ""
    ratio = interval_text(row.ratio, row.ci_low, row.ci_high)
    lines = [
        explanation.sentence or "What differs is not known.",
        f"In all: {figures[0]} on base, {figures[-1]} on head; ratio {ratio}.",
    ]

    def paint(canvas: Canvas) -> None:
        tones = {step.tone for step in steps}
        canvas.tones((tone, word) for tone, word in _WORDS.items() if tone in tones)
        _draw_steps(canvas, steps, figures, unit, begin_ns)
        canvas.foot(f"Bars begin where the one above ends.{broken}", method_line(explanation))

    title = f"{explanation.case}: {compared(explanation.base, explanation.head)}"
    return Drawing(kind="Waterfall", title=title, lines=lines, paint=paint)


def axis_begin_ns(steps: Sequence[Step]) -> float:
    """Where the axis begins: at zero, unless all bars but those of whole calls would then be too small to be seen."""
    levels_ns = [step.end_ns for step in steps]
    low_ns, high_ns = min(levels_ns), max(levels_ns)
    if low_ns < _FROM_ZERO_BELOW * high_ns:
        return 0.0
    return max(0.0, low_ns - max(_BELOW_OF_SPAN * (high_ns - low_ns), _BELOW_AT_LEAST * high_ns))


def _figure(step: Step, base_ns: float, unit: Unit) -> str:
    if step.tone is None:
        return f"{unit.text(step.end_ns)} {unit.name}"
    change_ns = step.end_ns - step.start_ns
    return f"{signed(unit, change_ns)} {unit.name} ({percent(1 + change_ns / base_ns)})"


def _draw_steps(canvas: Canvas, steps: Sequence[Step], figures: Sequence[str], unit: Unit, begin_ns: float) -> None:
    theme = canvas.theme
    room = ROOM - widest(figures) - 2 * _GAP
    labels = max(width_px(step.name, BODY, bold=step.tone is None) for step in steps)
    label = min(labels, _LONGEST_LABEL, room - _LEAST_PLOT)
    left, top, middles = MARGIN + label + _GAP, canvas.y, list[float]()
    for place, (step, text) in enumerate(zip(steps, figures, strict=True)):
        if place % 2 == 0:
            canvas.stripe(canvas.y, _ROW + (_WHY if step.why else 0.0))
        bold, middle = step.tone is None, canvas.down(_ROW) + _ROW / 2
        middles.append(middle - top)
        canvas.text(left - _GAP, middle, cut(step.name, label, BODY, bold=bold), align="right", bold=bold)
        color = theme.tones[step.tone] if step.tone in ("worse", "better") else theme.ink
        canvas.text(WIDTH - MARGIN, middle, text, size=SMALL, color=color, align="right")
        if step.why:
            canvas.note(MARGIN, canvas.down(_WHY) + _WHY / 2 - 4, cut(step.why, ROOM))
    height = canvas.y - top
    axes = canvas.axes(left, top, room - label, height, xlabel=f"time ({unit.name})")
    canvas.down(44)
    starts, ends = ([max(at, begin_ns) / unit.size for at in side] for side in
                    ([step.start_ns for step in steps], [step.end_ns for step in steps]))  # fmt: skip
    begin, end = begin_ns / unit.size, max(ends)
    axes.set(xlim=(begin, end + _RIGHT * (end - begin)), ylim=(height, 0), yticks=[])
    canvas.round_ticks(axes.xaxis, 6)
    axes.grid(axis="x")
    lengths = [end - start for start, end in zip(starts, ends, strict=True)]
    colors = [theme.axis if step.tone is None else theme.tones[step.tone] for step in steps]
    axes.barh(middles, lengths, left=starts, height=_BAR, color=colors, zorder=3)
    for (middle, following), end in zip(pairwise(middles), ends, strict=False):
        axes.plot([end, end], [middle, following], color=theme.axis, linewidth=0.8, linestyle=_DOTS, zorder=1)
