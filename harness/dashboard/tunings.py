"""What `harness tune` found, for the pages: a list of tunings, and of each its report with a picture of the race."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.dashboard.encode import key_of
from harness.errors import RunError
from harness.plots.race import best_so_far, race_axis, race_clock, race_winner
from harness.progress import Progress
from harness.records.tuning import Tuning
from harness.report.page import Name, Part, Sentence, plain
from harness.report.ratio_axis import RatioAxis
from harness.report.tune_page import beside_start, markdown_page
from harness.report.units import interval_text, ratio_text
from harness.store.kinds import TUNING, tunings_in
from harness.text import terminal_line

# Of the picture, in its own units; texts lie in the margins.
_WIDTH, _HEIGHT = 760.0, 250.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 46.0, 12.0, 10.0, 40.0
_MOST_TICKS = 9
_STEPS = (1, 2, 5, 10, 15, 20, 30, 60, 120, 300, 600)


@dataclass(frozen=True, kw_only=True)
class Dot:
    """A candidate in the picture of a race."""

    x: float
    y: float
    best: bool  # Whether it was the best when it was timed
    text: str  # What it is, for who points at it


@dataclass(frozen=True, kw_only=True)
class RacePicture:
    """The race, as places in a box of `size`."""

    line: str  # The `d` of the SVG path of the best so far
    dots: tuple[Dot, ...]
    # Lines of the ratio's ticks, with their texts; upright likewise, of the time's
    across: tuple[tuple[float, str], ...]
    upright: tuple[tuple[float, str], ...]
    start: float  # Where the ratio is 1
    # Of the winner: its place, which end of its text is there, and the text
    label: tuple[float, float, str, str] | None
    unit: str  # Of time
    size: tuple[float, float] = (_WIDTH, _HEIGHT)
    box: tuple[float, float, float, float] = (_LEFT, _TOP, _WIDTH - _RIGHT, _HEIGHT - _BOTTOM)


@dataclass(frozen=True, kw_only=True)
class TuningFacts:
    """One tuning."""

    file: str  # Of its page
    found: Tuning
    ratio: str  # Of the variant to the start; "" where there is no variant
    title: str
    parts: tuple[Part, ...]  # Its report
    notes: tuple[str, ...]
    race: RacePicture | None  # None: nothing was timed


def load_tunings(places: Iterable[Path], progress: Progress) -> list[Tuning]:
    """All tunings of these folders, the newest first; what cannot be read is noted and left out."""
    found: dict[tuple[str, str], Tuning] = {}  # a copy of one is no other
    for folder in dict.fromkeys(folder.resolve() for place in places for folder in tunings_in(place)):
        try:
            tuning = TUNING.load(folder)
        except RunError as error:
            progress.note(f"{error}; it is left out")
            continue
        found[tuning.id, tuning.created] = tuning
    return sorted(found.values(), key=lambda tuning: tuning.created, reverse=True)


def tuning_facts(tunings: Sequence[Tuning]) -> list[TuningFacts]:
    """Tunings as pages show them, in the same order."""
    return [_facts(found) for found in tunings]


def _facts(found: Tuning) -> TuningFacts:
    beside = beside_start(found) if found.answer == "faster" else None
    page = markdown_page(found)
    return TuningFacts(
        file=f"tuning-{key_of(f'{found.id} {found.created}')}.html",
        found=found,
        ratio=interval_text(beside.ratio, beside.ci_low, beside.ci_high) if beside is not None else "",
        title=plain(page.title),
        parts=tuple(page.parts[1:]),  # the first one is the answer
        notes=tuple(map(plain, page.notes)),
        race=race_picture(found) if found.moments else None,
    )


def race_picture(found: Tuning) -> RacePicture:
    """The race of a tuning in which something was timed."""
    axis = race_axis(found)
    end_s, unit, size = race_clock(found)

    def x(seconds: float) -> float:
        return round(_LEFT + seconds / end_s * (_WIDTH - _LEFT - _RIGHT), 1)

    first, *rest = [(x(seconds), _y(axis, ratio)) for seconds, ratio in best_so_far(found)]
    step = next((step for step in _STEPS if end_s / size / step <= _MOST_TICKS), _STEPS[-1])
    winner = race_winner(found)
    label = None
    if winner is not None:
        at = x(winner.seconds)
        before = at > _WIDTH / 2
        y = _y(axis, winner.ratio)
        below = y + 24 < _HEIGHT - _BOTTOM
        text = f"{winner.name} {ratio_text(winner.ratio)}"
        label = (at - 9 if before else at + 9, y + 16 if below else y - 9, "end" if before else "start", text)
    return RacePicture(
        line=f"M{first[0]},{first[1]}" + "".join(f"H{at}V{y}" for at, y in rest),
        dots=tuple(
            Dot(
                x=x(moment.seconds),
                y=_y(axis, moment.ratio),
                best=moment.best,
                text=f"{moment.name}: {ratio_text(moment.ratio)}",
            )
            for moment in found.moments
        ),
        across=tuple((_y(axis, tick.ratio), tick.text) for tick in axis.ticks),
        upright=tuple((x(at * size), f"{at:g}") for at in range(0, int(end_s / size) + 1, step)),
        start=_y(axis, 1.0),
        label=label,
        unit=unit,
    )


def _y(axis: RatioAxis, ratio: float) -> float:
    """The place of a ratio; what lies beyond the axis is at its edge."""
    share = min(max(axis.share(ratio), 0.0), 1.0)
    return round(_TOP + (1 - share) * (_HEIGHT - _TOP - _BOTTOM), 1)


def pieces(sentence: Sentence) -> list[tuple[str, bool]]:
    """The texts of a sentence, each with whether it is code."""
    parts = sentence if isinstance(sentence, tuple) else (sentence,)
    return [(terminal_line(plain(part)), isinstance(part, Name)) for part in parts]


def kind_of_part(part: Part) -> str:
    """`Table`, `Bullets`, ...: how a template tells them apart."""
    return type(part).__name__
