"""What `harness tune` found, for the pages: a list of tunings, and of each its report with a picture of the race."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from harness.dashboard.encode import key_of
from harness.errors import RunError
from harness.plots.canvas import THEMES
from harness.plots.race import draw_race
from harness.progress import Progress
from harness.records.tuning import Tuning
from harness.report.page import Name, Sentence, plain
from harness.report.pages import View
from harness.report.tune_page import beside_start
from harness.report.tune_page import page as tuning_page
from harness.report.units import interval_text
from harness.store.kinds import TUNING, tunings_in
from harness.text import terminal_line


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


def tuning_facts(found: Tuning) -> dict[str, Any]:
    """A tuning as pages show it; its page and its pictures are called after its key."""
    beside = beside_start(found) if found.answer == "faster" else None
    key = key_of(f"{found.id} {found.created}")
    return {
        "key": key,
        "file": f"tuning-{key}.html",
        "found": found,
        # Of the variant to the start
        "ratio": interval_text(beside.ratio, beside.ci_low, beside.ci_high) if beside is not None else "",
        "page": tuning_page(found, View(full=True)),  # whose first part is the answer
    }


def race_pictures(tunings: Iterable[Tuning]) -> Iterator[tuple[str, bytes]]:
    """Name and content of the pictures of those in which something was timed, one for each theme."""
    for found in tunings:
        for name, theme in THEMES.items() if found.moments else ():
            yield f"race-{tuning_facts(found)['key']}-{name}.svg", draw_race([found]).file(theme, "svg")


def pieces(sentence: Sentence) -> list[tuple[str, bool]]:
    """The texts of a sentence, each with whether it is code."""
    parts = sentence if isinstance(sentence, tuple) else (sentence,)
    return [(terminal_line(plain(part)), isinstance(part, Name)) for part in parts]
