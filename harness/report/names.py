"""Names that come from anywhere, made safe to stand in a picture or in columns of text."""

from __future__ import annotations

import unicodedata

from harness.text import one_line

ELLIPSIS = "…"
# No reader takes in more of a name; what follows costs time to measure and cannot be shown.
_LONGEST = 400
# Invisible, or changing what is around them: formats and directions, surrogates, private use, unassigned, and marks
# that would be stacked over the character before.
_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Mn", "Me", "Zl", "Zp"})


def tidy(text: str) -> str:
    """A name on one line, without characters that are not seen or that move others; at most 400 characters.

    Accents are joined to their letters first, so that they stay.
    """
    line = unicodedata.normalize("NFC", one_line(text[: 4 * _LONGEST]))
    seen = " ".join("".join(char for char in line if unicodedata.category(char) not in _UNSEEN).split())
    if len(seen) <= _LONGEST and len(text) <= 4 * _LONGEST:
        return seen
    return f"{seen[: _LONGEST - 1]}{ELLIPSIS}"


def middle_cut(text: str, keep: int) -> str:
    """The first and last characters of a text around an ellipsis, `keep` of them; names differ at both ends.

    >>> middle_cut("residual-dense-block", 9)
    'resid…lock'
    """
    if keep >= len(text):
        return text
    tail = max(keep, 0) * 2 // 5
    head = max(keep, 0) - tail
    return f"{text[:head].rstrip()}{ELLIPSIS}{text[len(text) - tail :].lstrip() if tail else ''}"
