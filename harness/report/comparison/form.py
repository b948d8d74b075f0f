"""The two forms of the Markdown report, and how a comment stays below the length that GitHub takes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from harness.report.markdown_text import COMMENT_LIMIT, escape, name
from harness.report.words import one_line

# Of a name, a reason or a note in a comment; nobody reads on, and a thousand of them would not fit.
_LONGEST = 300


@dataclass(frozen=True, kw_only=True)
class Form:
    """How texts are written: whole in the full form, cut in a comment.

    Attributes:
        full: Every row of every list, and no limit.
    """

    full: bool

    def cut(self, text: str) -> str:
        """A text on one line; `...` says that it went on."""
        line = one_line(text)
        return line if self.full or len(line) <= _LONGEST else f"{line[: _LONGEST - 3]}..."

    def name(self, text: str) -> str:
        """A name as code."""
        return name(self.cut(text))

    def text(self, text: str) -> str:
        """A text as itself."""
        return escape(self.cut(text))


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


def fitted(parts: Sequence[Part], page: Callable[[Sequence[str], Sequence[str]], str]) -> str:
    """A page that a comment can hold, with its least important parts shortened as far as that takes.

    Args:
        page: From the parts' texts, and the names of what was shortened.
    """
    chosen = [0] * len(parts)
    while True:
        now = list(zip(parts, chosen, strict=True))
        text = page([part.texts[at] for part, at in now], [part.what for part, at in now if at and part.texts[0]])
        left = [(part.ranks[at], index) for index, (part, at) in enumerate(now) if at < len(part.ranks)]
        if len(text) <= COMMENT_LIMIT or not left:
            return text
        chosen[max(left)[1]] += 1
