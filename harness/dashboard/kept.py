"""What other commands keep in folders of their own, as pages: tunings, and explanations with the IR of both sides."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator
from itertools import zip_longest
from pathlib import Path
from typing import Any, TypeVar

from harness.dashboard.encode import key_of
from harness.errors import RunError
from harness.progress import Progress
from harness.records.explanation import Explanation
from harness.records.tuning import Tuning
from harness.report.explanation_page import page as explanation_page
from harness.report.page import Name, Sentence, plain
from harness.report.pages import View
from harness.report.tune_page import beside_start
from harness.report.tune_page import page as tuning_page
from harness.report.units import interval_text, side_names
from harness.store.folders import Kind
from harness.text import terminal_line

Kept = TypeVar("Kept", Tuning, Explanation)
# A line of one side in pieces, each with whether the other side has another there.
Pieces = list[tuple[str, bool]]
_WORD = re.compile(r"\w+|\s+|.")
_ALIKE = 0.4  # of their words, below which two lines are no two versions of one


def load_kept(kind: Kind[Kept], folders: Iterable[Path], progress: Progress) -> list[Kept]:
    """What these folders hold, the newest first; what cannot be read is noted and left out."""
    found: dict[tuple[str, str], Kept] = {}  # a copy of one is no other
    for folder in dict.fromkeys(folder.resolve() for folder in folders):
        try:
            kept = kind.load(folder)
        except RunError as error:
            progress.note(f"{error}; it is left out")
            continue
        found[kept.id, kept.created] = kept
    return sorted(found.values(), key=lambda kept: kept.created, reverse=True)


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


def explanation_facts(found: Explanation) -> dict[str, Any]:
    """An explanation as pages show it."""
    latency = found.latency
    return {
        "file": explanation_file(found),
        "found": found,
        "ratio": "" if latency.ratio is None else interval_text(latency.ratio, latency.ci_low, latency.ci_high),
        "sides": side_names(found.base, found.head),
        "page": explanation_page(found, View(full=True)),
    }


def explanation_file(found: Explanation) -> str:
    """The name of its page."""
    return f"explanation-{key_of(f'{found.id} {found.created}')}.html"


def pieces(sentence: Sentence) -> Pieces:
    """The texts of a sentence, each with whether it is code."""
    parts = sentence if isinstance(sentence, tuple) else (sentence,)
    return [(terminal_line(plain(part)), isinstance(part, Name)) for part in parts]


def side_by_side(difference: str) -> Iterator[tuple[str, Pieces, Pieces]]:
    """The rows of a difference in two columns: `same`, `other` or `gap`, and the line of base and of head."""
    gone: list[str] = []
    new: list[str] = []
    for line in [*difference.split("\n"), ""]:
        mark, text = line[:1], line[2:]
        if mark != "+" and (new or mark != "-"):  # whatever comes now belongs to no line before it
            for base, head in zip_longest(gone, new, fillvalue=""):
                yield ("other", *_pieces(base, head))
            gone, new = [], []
        if mark in ("-", "+"):
            (gone if mark == "-" else new).append(text)
        elif line:
            yield ("gap" if mark == "@" else "same", [(text, False)], [(text, False)])


def _pieces(base: str, head: str) -> tuple[Pieces, Pieces]:
    """Two lines with what differs between them, where they are versions of one line."""
    words = _WORD.findall(base), _WORD.findall(head)
    matcher = difflib.SequenceMatcher(None, *words, autojunk=False)
    if matcher.ratio() < _ALIKE:
        return [(base, False)], [(head, False)]
    blocks = matcher.get_opcodes()
    return (
        [("".join(words[0][a:b]), kind != "equal") for kind, a, b, _, _ in blocks],
        [("".join(words[1][a:b]), kind != "equal") for kind, _, _, a, b in blocks],
    )
