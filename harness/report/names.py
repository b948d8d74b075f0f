"""What the two sides of a comparison are called, and names made safe for a picture or columns of text."""

import re
import unicodedata

from harness.records.comparison import SideFacts
from harness.text import one_line, plural

ELLIPSIS = "…"
# No reader takes in more of a name; what follows costs time to measure and cannot be shown.
_LONGEST = 400
# Invisible, or changing what is around them: formats and directions, surrogates, private use, unassigned, and marks
# that would be stacked over the character before.
_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Mn", "Me", "Zl", "Zp"})
_REVISION = re.compile(r" \([0-9a-f]+\)$")
_RELEASE_PREFIX = "iree=="
_MOST_VARIANTS = 3
_COMMIT_DIGITS = 10


def compared(base: SideFacts, head: SideFacts) -> str:
    """What is compared, in a few words: `IREE 3.13.0 against IREE 3.12.0`; see `side_names`."""
    base_name, head_name = side_names(base, head)
    return f"{head_name} against {base_name}"


def side_names(base: SideFacts, head: SideFacts) -> tuple[str, str]:
    """What the base and the head of a comparison are called in every title, by what tells them apart.

    That is the variant, within one run; the commit, where both sides have one; the release of IREE, where it differs;
    and else the run's folder.
    """
    if head.variants:
        return _variants(base.variants) or "the baseline", _variants(head.variants)
    both_commits = bool(base.commit and head.commit)
    if not both_commits and base.toolchains and head.toolchains and base.toolchains != head.toolchains:
        short = [tuple(_REVISION.sub("", toolchain) for toolchain in side.toolchains) for side in (base, head)]
        shown = short if short[0] != short[1] else [base.toolchains, head.toolchains]
        return f"IREE {' and '.join(shown[0])}", f"IREE {' and '.join(shown[1])}"
    names = _given_name(base), _given_name(head)
    return names if names[0] != names[1] else (base.label, head.label)


def given_as(side: SideFacts, *, whole: bool = False) -> str:
    """What the user called a side; of a commit with the first line of its message, and, as a whole, with its digits."""
    if not side.commit:
        return side.label
    digits = f", commit {side.commit}" if whole and side.label != side.commit else ""
    return f"{side.label}{digits} ({side.subject})" if side.subject else f"{side.label}{digits}"


def _variants(names: tuple[str, ...]) -> str:
    return plural(len(names), "variant") if len(names) > _MOST_VARIANTS else " and ".join(names)


def _given_name(side: SideFacts) -> str:
    if side.commit:
        return f"commit {side.commit[:_COMMIT_DIGITS]}"
    if side.label.startswith(_RELEASE_PREFIX):
        return f"IREE {side.label.removeprefix(_RELEASE_PREFIX)}"
    return re.split(r"[/\\]", side.label.rstrip("/\\"))[-1] or side.run


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
