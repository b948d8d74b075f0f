"""Text for people: on one line, without control characters, and with a hint where a word is misspelt."""

import difflib
import fnmatch
import re
from collections.abc import Iterable, Sequence

# Colours and other escape sequences that tools print, and control characters of any kind; among them those that turn
# the direction of text, which make a line read other than it is (Unicode's UAX #9 lists them), and halves of characters
# that JSON can hold and no file can.
_CONTROL = re.compile(
    r"\x1b\[[0-9;?]*[A-Za-z]|[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)
_SHOWN_CHARACTERS = 80
_MOST_NAMES = 4
# Of a line on a terminal: its beginning says what is wrong, its end what to do.
_LINE_BEGINNING, _LINE_END = 1400, 500


def printable(text: str) -> str:
    """A tool's text without escape sequences and control characters; its lines stay."""
    return text if text.replace("\n", " ").isprintable() else _CONTROL.sub("", text)


def one_line(text: str) -> str:
    """A text that may come from anywhere, on one line."""
    return " ".join(printable(text.replace("\r", "\n")).split())


def terminal_line(text: str) -> str:
    """Anything as one line for a terminal, printable and of at most some 2,000 characters; its blanks stay."""
    if len(text) > _LINE_BEGINNING + _LINE_END:
        text = f"{text[:_LINE_BEGINNING]} ... {text[-_LINE_END:]}"
    if text.isprintable():
        return text
    kept = _CONTROL.sub(lambda control: " " if control[0].isspace() else "", text)
    return "".join(character if character.isprintable() else " " if character.isspace() else "" for character in kept)


def shown(name: str) -> str:
    """A name that may be anything, on one line and not too long for a sentence."""
    line = one_line(name)
    return line if len(line) <= _SHOWN_CHARACTERS else f"{line[:_SHOWN_CHARACTERS]}..."


def plural(number: int, noun: str, nouns: str = "") -> str:
    """A number of things: `1 row`, `2,000 rows`; `nouns` where the plural does not end in s."""
    return f"{number:,} {noun if number == 1 else nouns or f'{noun}s'}"


def such_as(names: Sequence[str]) -> str:
    """`, one of a, b`; of more than four, `, such as` the first of them; "" of none."""
    if not names:
        return ""
    return f", {'one of' if len(names) <= _MOST_NAMES else 'such as'} {', '.join(names[:_MOST_NAMES])}"


def did_you_mean(word: str, known: Sequence[str], otherwise: str | None = None) -> str:
    """`; did you mean "x"?` when a known word is close, else `otherwise`, else `; known: a, b, c`."""
    close = difflib.get_close_matches(word, known, n=1, cutoff=0.6)
    if close:
        return f'; did you mean "{close[0]}"?'
    if otherwise is not None:
        return otherwise
    return f"; known: {', '.join(sorted(known))}" if known else ""


def matching(patterns: Iterable[str]) -> re.Pattern[str]:
    """One expression that matches a whole name if any of the patterns does; with no pattern, only the empty name."""
    return re.compile("|".join(fnmatch.translate(pattern) for pattern in patterns) or r"\Z")
