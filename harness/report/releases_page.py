"""A run of many releases in a page: one table of lines x releases, the steps as a list, and what fails where."""

import math
import re
from collections.abc import Sequence
from itertools import groupby

from harness.report.comparison import MARKS, TONES
from harness.report.page import Bullets, Column, Heading, Inline, Name, Paragraph, Part, Sentence, Table, Tone, listed
from harness.report.releases import Line, ReleasePoint, Releases, State, Step
from harness.report.units import NOTHING, interval_text, share, with_unit
from harness.text import plural

_MOST_LISTED = 20
_MOST_NAMES = 3
_MANY_LINES = 30  # More of them stand in the order of their largest steps
_LIKELY = 1.1
# A release without its last zero, and what makes it a nightly or a build of somebody's own.
_RELEASE = re.compile(r"(\d+\.\d+(?:\.\d+)*?)(?:\.0)?([^\d.].*)?")
STATE_WORDS: dict[State, str] = {"fails": "fails", "wrong": "wrong", "not available": "n/a", "not measured": NOTHING}


def releases_parts(found: Releases, floor: float) -> list[Part]:
    """The table, its legend, the steps and the failures."""
    legend = (
        f"Ratios to the line's first release: {MARKS['regressed']} slower, {MARKS['improved']} faster, "
        f"{MARKS['inconclusive']} unclear, no mark: the same within {share(floor)}."
    )
    likely = [step for step in found.neighbours if step.row.verdict == "inconclusive" and step.size > math.log(_LIKELY)]
    likely.sort(key=lambda step: -step.size)
    return [
        Heading(f"Over {len(found.names)} releases of IREE", aside=f"{found.names[0]} to {found.names[-1]}"),
        Table(columns=_columns(found), dense=True),
        Paragraph(legend, "dim"),
        *_list("Steps between neighbouring releases, the largest first", list(map(step_sentence, found.steps))),
        *_list(
            f"Beyond {share(_LIKELY - 1)}, and not decided by the generations there are",
            list(map(step_sentence, likely)),
        ),
        *_list("Where cases fail, are wrong or cannot be had", _failures(found)),
    ]


def step_sentence(step: Step) -> Sentence:
    """`softmax/stock@v3: 28.1 [27.9, 28.4] times as slow from 3.4.0 to 3.5.0`."""
    between = f" (not measured under {', '.join(step.between)})" if step.between else ""
    return Name(step.line.name), f": {times_text(step)} from {step.before} to {step.after}{between}"


def times_text(step: Step) -> str:
    """`28.1 [27.9, 28.4] times as slow`."""
    ratio, low, high = ratios = (step.row.ratio, step.row.ci_low, step.row.ci_high)
    is_faster = ratio is not None and ratio < 1
    if is_faster:
        ratio, high, low = (1 / value if value else None for value in ratios)
    return f"{interval_text(ratio, low, high)} times as {'fast' if is_faster else 'slow'}"


def releases_verdict(found: Releases) -> str:
    """All of it in one sentence."""
    largest = f", up to {math.exp(found.steps[0].size):.3g} times" if found.steps else ""
    bad = {stretch.line.name for stretch in found.stretches if stretch.is_bad}
    fail = f"; {plural(len(bad), 'line fails or is', 'lines fail or are')} wrong under some release" if bad else ""
    lines = f"{plural(len(found.lines), 'line')} over {plural(len(found.names), 'release')}"
    return f"{lines}: {plural(len(found.steps), 'step')}{largest}{fail}."


def _columns(found: Releases) -> list[Column]:
    heads = [short_release(name) for name in found.names]
    # A narrow terminal leaves out first the releases at which the least happens, of such the oldest.
    moves, sizes = dict.fromkeys(reversed(found.names), 0.0), dict.fromkeys((line.name for line in found.lines), 0.0)
    for step in found.neighbours:
        moves[step.after] = max(moves[step.after], step.size)
        sizes[step.line.name] = max(sizes[step.line.name], step.size)
    moves |= {stretch.first: math.inf for stretch in found.stretches if stretch.before is not None}
    moves |= {found.names[0]: math.inf, found.names[-1]: math.inf}
    ranks = {name: rank for rank, name in enumerate(sorted(moves, key=lambda name: -moves[name]))}
    # A comment has the first of many lines.
    is_long = len(found.lines) > _MANY_LINES
    lines = sorted(found.lines, key=lambda line: -sizes[line.name]) if is_long else found.lines
    columns = [Column("line", [line.name for line in lines], kind="name"), _latency(lines, 0, heads[0][0])]
    for place, (title, unit) in enumerate(heads):
        points = [line.points[place] for line in lines]
        cells, tones = [_cell(point) for point in points], [_tone(point) for point in points]
        rank = ranks[found.names[place]] if 0 < place < len(heads) - 1 else 0
        columns.append(Column(title, cells, kind="number", unit=unit, rank=rank, tones=tones))
    return [*columns, _latency(lines, -1, heads[-1][0])]


def _latency(lines: Sequence[Line], place: int, release: str) -> Column:
    values = [line.points[place].latency_ns for line in lines]
    cells = [NOTHING if value is None else with_unit(value) for value in values]
    return Column("time", cells, kind="number", unit=release)


def short_release(release: str) -> tuple[str, str]:
    """As narrow as it can be: `3.13` of 3.13.0; and what stands below it, as `+local`."""
    parts = _RELEASE.fullmatch(release)
    return (parts[1], parts[2] or "") if parts else (release, "")


def _cell(point: ReleasePoint) -> str:
    if point.ratio is None:
        return STATE_WORDS[point.state]
    mark = "" if point.verdict in (None, "unchanged") else MARKS[point.verdict]
    return f"{mark}{short_ratio(point.ratio)}"


def short_ratio(ratio: float) -> str:
    """In at most four characters where it is a usual one: 1.00, 28.1, 134."""
    decimals = max(0, 2 - max(0, math.floor(math.log10(ratio))))
    return f"{ratio:.{decimals}f}" if ratio >= 0.1 else f"{ratio:.2g}"


def _tone(point: ReleasePoint) -> Tone:
    if point.state in ("fails", "wrong") and not point.expected:
        return "bad"
    return "dim" if point.verdict is None else TONES[point.verdict]


def _failures(found: Releases) -> list[Sentence]:
    """A sentence for all lines that are without figures alike under the same releases; those with most lines first."""
    alike: dict[tuple[str, str], list[str]] = {}
    for line in found.lines:
        for state, group in groupby(line.points, key=lambda point: point.state):
            points = list(group)
            first, last = points[0].release, points[-1].release
            if state not in ("measured", "not measured") and not points[-1].expected:
                span = first if first == last else f"{first} to {last}"
                alike.setdefault((span, points[-1].why), []).append(line.name)
    by_number = sorted(alike.items(), key=lambda entry: -len(entry[1]))
    return [(f"{span}: ", *listed(names, _MOST_NAMES), f": {why}") for (span, why), names in by_number]


def _list(title: str, sentences: Sequence[Sentence]) -> list[Part]:
    rest: list[Inline] = [f"and {len(sentences) - _MOST_LISTED:,} more"] if len(sentences) > _MOST_LISTED else []
    return [Heading(title), Bullets([*sentences[:_MOST_LISTED], *rest])] if sentences else []
