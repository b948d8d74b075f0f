"""The page model: what a report says, as values: a verdict, parts and notes. A backend for each format lays it out.

Texts in a page are plain and may come from anywhere: no caller puts them on one line, escapes them or makes them safe.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Literal, TypeAlias

from harness.report.units import NOTHING

# What a column holds. A name is shown as code in Markdown; a number is right-aligned; a sentence is long: it stands
# below the table where there is no room beside it, in Markdown below all tables of numbers.
Kind = Literal["name", "text", "number", "sentence"]
# What a row or a paragraph means. A colour only repeats what words or marks say.
Tone = Literal["", "good", "bad", "open", "new", "dim", "strong"]
# A cell of a sentence column may hold several sentences.
Cell: TypeAlias = str | tuple[str, ...]


@dataclass(frozen=True)
class Name:
    """A name, a path or a command inside a sentence: code in Markdown."""

    text: str


@dataclass(frozen=True)
class Link:
    """A link inside a sentence; its text alone where the address is not of the web, or on a terminal."""

    text: str
    url: str
    code: bool = False  # Whether the text is shown as code


# Plain text with names and links in it.
Inline: TypeAlias = str | Name | Link
Sentence: TypeAlias = Inline | tuple[Inline, ...]


@dataclass(frozen=True)
class Column:
    """One column of a table."""

    title: str
    cells: Sequence[Cell]  # Text of each row; a figure comes without its unit
    _: KW_ONLY
    kind: Kind = "text"
    unit: str = ""  # Of all figures; "" for plain numbers and for words
    # 0: always shown. Where a terminal has too little room, columns of the highest rank are left out first.
    rank: int = 0
    tones: Sequence[Tone] = ()  # Of each cell; () where a cell has its row's

    @property
    def head(self) -> str:
        """Title and unit: `latency (ms)`."""
        return f"{self.title} ({self.unit})" if self.unit else self.title


@dataclass(frozen=True, kw_only=True)
class Table:
    """Columns of equal length; the first column of names, else the first of all, tells the rows apart."""

    columns: Sequence[Column]
    title: str = ""  # "" for none
    tones: Sequence[Tone] = ()  # Of each row; () where rows are alike
    before: Sequence[str] = ()  # Lines of a drawing between title and table, shown as they stand
    after: Sequence[Sentence] = ()  # Sentences below it
    most: int | None = None  # How many rows are shown, below which a line counts the others; None: all
    # How many rows of a long list a comment shows, above the others that it folds away; None: it is no such list.
    # Of such a list a terminal has the first ones alone.
    first: int | None = None
    folded: bool = False  # Whether Markdown folds it away behind its title
    level: int = 3  # Of its heading in Markdown
    dense: bool = False  # Whether a terminal puts its columns close together, since there are many

    @property
    def rows(self) -> int:
        """How many rows it has."""
        return len(self.columns[0].cells) if self.columns else 0

    @property
    def shown(self) -> range:
        """Places of the rows that are shown."""
        return range(self.rows if self.most is None else min(self.most, self.rows))

    @property
    def names(self) -> Column:
        """The column that tells its rows apart."""
        return next((column for column in self.columns if column.kind == "name"), self.columns[0])

    def sharing(self, column: Column, rows: Sequence[int]) -> dict[str, list[int]]:
        """Each distinct sentence of a column, with the places of those rows that say it."""
        places: dict[str, list[int]] = {}
        for row in rows:
            for sentence in lines_of(column.cells[row]):
                places.setdefault(sentence, []).append(row)
        return places


@dataclass(frozen=True)
class Heading:
    """A title above parts; `aside` is what a terminal writes beside it and Markdown below it."""

    text: str
    level: int = 3
    aside: Sentence = ""


@dataclass(frozen=True)
class Paragraph:
    """A sentence or several; `dim` ones, which explain, are in italics in Markdown."""

    text: Sentence
    tone: Tone = ""


@dataclass(frozen=True)
class Warnings:
    """Sentences to read before any figure: marked on a terminal, a quotation in Markdown."""

    sentences: Sequence[str]


@dataclass(frozen=True)
class Bullets:
    """A list of sentences."""

    sentences: Sequence[Sentence]


@dataclass(frozen=True)
class Code:
    """Lines that nothing may wrap."""

    text: str
    # `sh` for commands to copy; `log` for what a tool printed, which may be cut; `diff` for lines that begin with - or
    # +; "" for a drawing
    language: Literal["", "sh", "log", "diff"] = ""
    title: str = ""  # What Markdown folds it away behind; "": it is not folded


@dataclass(frozen=True)
class Step:
    """Something to do next; `command` is the command line that does it, where there is one."""

    text: str
    command: str = ""


@dataclass(frozen=True)
class Steps:
    """What to do next."""

    steps: Sequence[Step]


@dataclass(frozen=True)
class Fold:
    """Parts that Markdown folds away behind a title, unless they are `open`; a comment may have only the first ones."""

    title: str
    parts: Sequence[Part]
    open: bool = False
    aside: bool = False  # Whether a terminal leaves it out


@dataclass(frozen=True, kw_only=True)
class Picture:
    """A picture on the web in two versions, one for each of GitHub's themes; a terminal leaves it out."""

    alt: str  # What it shows, in words, for those who do not see it
    light_url: str  # Of the version for a light page, http or https; also shown where themes are not known
    dark_url: str = ""  # Of the version for a dark page; "": the light one has to do
    title: str = ""  # What it is folded away behind, where it is


Part: TypeAlias = Table | Heading | Paragraph | Warnings | Bullets | Code | Steps | Fold | Picture


@dataclass(frozen=True, kw_only=True)
class Page:
    """A verdict, parts, and what bears on all of them."""

    verdict: str = ""  # One sentence, which comes first; "" where a part says it
    parts: Sequence[Part] = ()
    notes: Sequence[Sentence] = ()  # Sentences that come last
    title: Sentence = ""  # Of the whole page; "" for none
    # Kind and name of the page, by which Markdown that was posted is found again; () for none
    marker: tuple[str, str] | tuple[()] = ()
    foot: Sequence[Part] = ()  # What ends a page that is cut to a length: where all of it is


def plain(sentence: Sentence) -> str:
    """A sentence as plain text."""
    if isinstance(sentence, tuple):
        return "".join(map(plain, sentence))
    return sentence if isinstance(sentence, str) else sentence.text


def listed(names: Sequence[str], most: int | None = None) -> tuple[Inline, ...]:
    """Names in a sentence; of many the first, and how many more there are."""
    pieces = [piece for name in names[:most] for piece in (", ", Name(name))][1:]
    more = len(names) - len(names[:most])
    return (*pieces, *([f" and {more:,} more"] if more else []))


def filled(columns: Iterable[Column]) -> list[Column]:
    """Those columns in which some row says something."""
    return [column for column in columns if any(cell not in ("", NOTHING, ()) for cell in column.cells)]


def lines_of(cell: Cell) -> tuple[str, ...]:
    """The sentences of a cell, without empty ones."""
    return tuple(text for text in ((cell,) if isinstance(cell, str) else cell) if text)
