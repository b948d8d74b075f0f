"""What `harness tune` found, for the pages: a list of tunings, and of each its report with a picture of the race."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.dashboard.encode import key_of
from harness.errors import RunError
from harness.plots.canvas import THEMES
from harness.plots.race import draw_race
from harness.progress import Progress
from harness.records.tuning import Tuning
from harness.report.page import Name, Part, Sentence, plain
from harness.report.tune_page import beside_start, markdown_page
from harness.report.units import interval_text
from harness.store.kinds import TUNING, tunings_in
from harness.text import terminal_line


@dataclass(frozen=True, kw_only=True)
class TuningFacts:
    """One tuning."""

    key: str  # Its page and its pictures are called after it
    found: Tuning
    ratio: str  # Of the variant to the start; "" where there is no variant
    title: str
    parts: tuple[Part, ...]  # Its report
    notes: tuple[str, ...]

    @property
    def file(self) -> str:
        """Name of its page."""
        return f"tuning-{self.key}.html"


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
        key=key_of(f"{found.id} {found.created}"),
        found=found,
        ratio=interval_text(beside.ratio, beside.ci_low, beside.ci_high) if beside is not None else "",
        title=plain(page.title),
        parts=tuple(page.parts[1:]),  # the first one is the answer
        notes=tuple(map(plain, page.notes)),
    )


def race_pictures(tunings: Iterable[TuningFacts]) -> Iterator[tuple[str, bytes]]:
    """Name and content of the pictures of those in which something was timed, one for each theme."""
    for facts in tunings:
        for name, theme in THEMES.items() if facts.found.moments else ():
            yield f"race-{facts.key}-{name}.svg", draw_race([facts.found], theme, "svg")


def pieces(sentence: Sentence) -> list[tuple[str, bool]]:
    """The texts of a sentence, each with whether it is code."""
    parts = sentence if isinstance(sentence, tuple) else (sentence,)
    return [(terminal_line(plain(part)), isinstance(part, Name)) for part in parts]


def kind_of_part(part: Part) -> str:
    """`Table`, `Bullets`, ...: how a template tells them apart."""
    return type(part).__name__
