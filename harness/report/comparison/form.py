"""The two forms of the Markdown report, and how a comment stays below the length that GitHub takes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from harness.report.markdown_text import COMMENT_LIMIT, escape, name, paragraph
from harness.text import one_line, printable

# Of a name, a reason or a note in a comment; nobody reads on, and a thousand of them would not fit.
_LONGEST = 300
# Of a tool's output in a comment; the last words say what went wrong.
_LONGEST_LOG = 4_000


@dataclass(frozen=True, kw_only=True)
class Form:
    """How texts are written: whole in the full form, cut in a comment.

    Attributes:
        full: Every row of every list, and no limit.
        folded: In a comment, how many rows of a list are there folded away, below those that are always seen; those
            after them are left out.
    """

    full: bool
    folded: int = 0
    # A full report has the name of a case in a dozen tables, and one reason in many rows.
    _known: dict[tuple[str, bool], str] = field(default_factory=dict, init=False, repr=False, compare=False)

    def cut(self, text: str) -> str:
        """A text on one line; `...` says that it went on."""
        line = one_line(text)
        return line if self.full or len(line) <= _LONGEST else f"{line[: _LONGEST - 3]}..."

    def log(self, text: str) -> str:
        """The end of a tool's output; `...` says that there was more before it."""
        known = printable(text).rstrip()
        return known if self.full or len(known) <= _LONGEST_LOG else f"...\n{known[-_LONGEST_LOG:]}"

    def name(self, text: str) -> str:
        """A name as code."""
        known = self._known.get((text, True))
        if known is None:
            known = self._known[text, True] = name(self.cut(text))
        return known

    def first_name(self, text: str) -> str:
        """A name as code, where a block begins."""
        shown = self.name(text)
        return shown if shown.startswith("`") else paragraph(self.cut(text))

    def text(self, text: str) -> str:
        """A text as itself."""
        known = self._known.get((text, False))
        if known is None:
            known = self._known[text, False] = escape(self.cut(text))
        return known


@dataclass(frozen=True, kw_only=True)
class Part:
    """A part of the page.

    Attributes:
        what: Its name in the list of what a comment leaves out.
        texts: From the longest that there is to the shortest; "" where it can be left out altogether.
        ranks: Of each text but the last: the parts of the highest rank are shortened first.
    """

    texts: tuple[str, ...]
    ranks: tuple[int, ...] = ()
    what: str = ""


def fitted(
    parts: Sequence[Part], page: Callable[[Sequence[str], Sequence[str]], str], *, limit_bytes: int = COMMENT_LIMIT
) -> str:
    """A page that a comment can hold, with its least important parts shortened as far as that takes.

    Args:
        page: From the parts' texts, and the names of what was shortened.
        limit_bytes: Of the page; it stays larger where nothing is left to shorten.
    """
    chosen = [0] * len(parts)
    while True:
        now = list(zip(parts, chosen, strict=True))
        text = page([part.texts[at] for part, at in now], [part.what for part, at in now if at and part.texts[0]])
        left = [(part.ranks[at], index) for index, (part, at) in enumerate(now) if at < len(part.ranks)]
        if size_bytes(text) <= limit_bytes or not left:
            return text
        chosen[max(left)[1]] += 1


def size_bytes(text: str) -> int:
    """Of a text in UTF-8, which is no less than its characters, however these are counted."""
    return len(text.encode(errors="replace"))
