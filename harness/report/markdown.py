"""Page -> Markdown for GitHub: nothing in it is markup that the page did not mean, and a comment fits its limit."""

import html
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar
from urllib.parse import quote, urlsplit

from harness.report.page import (
    Bullets,
    Cell,
    Code,
    Column,
    Fold,
    Heading,
    Inline,
    Link,
    Name,
    Page,
    Paragraph,
    Part,
    Picture,
    Sentence,
    Step,
    Steps,
    Table,
    Warnings,
    lines_of,
)
from harness.text import one_line, printable
from harness.toolchain.tools import excerpt

T = TypeVar("T")

# GitHub refuses a comment or an issue of more characters.
COMMENT_LIMIT = 65_536

# Punctuation that begins markup; an underscore inside a word and a bracket that begins no link are left readable.
_SPECIAL = re.compile(r"[\\`*~]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])|\](?=\()")
# Dollars would begin a formula. GitHub's "Writing mathematical expressions" has this way out, and no other.
_DOLLAR = "<span>$</span>"
# What GitHub makes something of in plain text: @main of `func.func @main` notifies that user, #1 and GH-1 link an
# issue, owner/name#1 one elsewhere, addresses become links, and :100: of model.mlir:100:5 an emoji, as where
# the page sets a colon behind the text. Each match ends where an invisible character keeps it from that.
_REFERENCE = re.compile(
    r"(?<!\w)[@#](?=\\?\w)|#(?=\d)|@(?=[\w.\\-]*\.\\?\w)|\bGH(?=-\d)|:(?=//)|www(?=\.)"
    r"|:(?=(?:100|1234|[+-]1|(?![\d+-]+:)(?:\\?[\w+-]){1,60}):)|:(?=(?!\d+\Z)(?:\\?[\w+-]){1,60}\Z)",
    re.IGNORECASE,
)
# Begins a heading, a list, a line across the page, a link's definition or a box, where it begins a block.
_BLOCK_START = re.compile(r"^(?:[#+-](?=[#\s-]|$)|\d{1,9}(?=[.)](?:\s|$))|\[)")
# A bracket in escaped text, with the backslash that it may have.
_BRACKET_END = re.compile(r"(?<!\\)((?:\\\\)*)\\?\]")
_UNSAFE_IN_CODE = re.compile(r"[\\`|]")

# Beyond this no browser promises to follow an address.
_LONGEST_URL = 2_000
# What an address may hold as it stands; parentheses and quotes would end it in Markdown or HTML.
_PLAIN = "%/:?#[]@!$&*+,;=-._~"
_LONGEST_ALT = 600


def escape(text: str) -> str:
    """A text as itself, on one line, inside a paragraph or a cell: no markup, no HTML, no cell's end, no mention."""
    escaped = html.escape(_SPECIAL.sub(r"\\\g<0>", one_line(text)), quote=False)
    return _unlinked(escaped).replace("|", "&#124;").replace("$", _DOLLAR)


def paragraph(text: str) -> str:
    """A text as itself where a block begins: no heading and no list either."""
    return beginning(escape(text))


def beginning(escaped: str) -> str:
    """Escaped text where a block begins."""
    return f"&#8203;{escaped}" if _BLOCK_START.search(escaped) else escaped


def _unlinked(text: str) -> str:
    return _REFERENCE.sub(r"\g<0>&#8203;", text)


def name(text: str) -> str:
    """A name as code, where `@device` mentions nobody; as escaped text where code cannot hold it."""
    line = one_line(text)
    return f"`{line}`" if line and not _UNSAFE_IN_CODE.search(line) else escape(text)


def web_address(url: str) -> str:
    """An address as both Markdown and HTML take it; "" where it is none of the web."""
    try:
        parts = urlsplit(url)
    except ValueError:  # such as an unfinished IPv6 address
        return ""
    if parts.scheme not in ("http", "https") or not parts.hostname or len(url) > _LONGEST_URL:
        return ""
    return html.escape(quote(url, safe=_PLAIN, errors="replace"))


def link(text: str, url: str) -> str:
    """A link with a text that is Markdown already; the text alone where the address is none."""
    address = web_address(url)
    if not address:
        return text
    # A bracket would end the link, or begin a picture with this address; in code it does neither.
    inside = text if text.startswith("`") else _BRACKET_END.sub(r"\1&#93;", text.replace("[", "&#91;"))
    return f"[{inside}]({address})"


def picture(alt: str, light_url: str, dark_url: str = "") -> str:
    """As GitHub's "Specifying the theme an image is shown to" has it; "" without an address."""
    light, dark = web_address(light_url), web_address(dark_url)
    if not light:
        return ""
    text = html.escape(one_line(alt)[:_LONGEST_ALT])
    source = f'<source media="(prefers-color-scheme: dark)" srcset="{dark}">' if dark else ""
    return f'<p><picture>{source}<img alt="{text}" src="{light}"></picture></p>'


def table(heads: Sequence[str], rows: Sequence[Sequence[str]], *, numbers: Sequence[bool] = ()) -> str:
    """A table of cells that are Markdown already; columns whose place in `numbers` is true are right-aligned."""
    aligned = [*numbers, *[False] * (len(heads) - len(numbers))]
    lines = [heads, ["---:" if number else "---" for number in aligned], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def details(summary: str, body: str, *, folded: bool = True) -> str:
    """A block that is folded away behind its summary, a plain text."""
    opening = "<details>" if folded else "<details open>"
    title = _unlinked(html.escape(one_line(summary), quote=False)).replace("$", _DOLLAR)
    return f"{opening}\n<summary>{title}</summary>\n\n{body}\n\n</details>"


def fenced(text: str, language: str = "") -> str:
    """A tool's text as it stands, in a fence longer than any in it."""
    longest = max((len(run) for run in re.findall(r"`{3,}", text)), default=2) if "```" in text else 2
    fence = "`" * (longest + 1)
    return f"{fence}{language}\n{printable(text).rstrip()}\n{fence}"


def marker(suite_name: str, kind: str = "report") -> str:
    """The hidden comment by which a posted report is found again, to be replaced rather than repeated."""
    return f"<!--harness {kind}: {one_line(suite_name).replace('>', '&gt;').replace('--', '- -')}-->"


def blocks(*parts: str) -> str:
    """Paragraphs, an empty line between them; empty ones are left out."""
    return "\n\n".join(part for part in parts if part)


# --- Pages ---

# GitHub's own message says 65,536 characters; what its API stored when people tried was 262,144 bytes of UTF-8
# (dead-claudia/github-limits, pull request 13, 2025-10). So many bytes are few enough however they are counted, with
# room for a line that whoever posts it adds.
COMMENT = 65_000

# Of each list in a page of limited length, from the most rows that there may be to the fewest.
_ROWS = (300, 100, 30, 10, 3, 1)
# Characters, in such a page, of a name, a reason or a note: nobody reads on, and a thousand of them would not fit.
_CELL = 300
# Of a paragraph.
_SENTENCE = 1_000
_LOG, _LOG_LINES = 4_000, 60
# Of a command line or several; longer ones are left out, since half a command is worse than none.
_COMMAND = 4_000


def to_markdown(page: Page, most_bytes: int | None = None) -> str:
    """Lay a page out for GitHub; with a limit, texts are cut, and lists until it fits."""
    if most_bytes is None:
        return _Writer(None).page(page)
    texts = (_Writer(rows).page(page) for rows in _ROWS)
    text = ""
    for text in texts:
        if size_bytes(text) <= most_bytes:
            break
    return text


def size_bytes(text: str) -> int:
    """Size of a text in UTF-8, which is no less than its characters, however these are counted."""
    return len(text.encode(errors="replace"))


class _Writer:
    """Writes each kind of part, with so many rows of a list; None: with all of everything."""

    def __init__(self, rows: int | None) -> None:
        self._rows = rows
        self._is_folded = False  # Whether it writes what is folded away

    def page(self, page: Page) -> str:
        """All of it."""
        verdict = self.sentence(page.verdict).strip()
        texts = (
            marker(self._cut(page.marker[1]), page.marker[0]) if page.marker else "",
            f"## {self.sentence(page.title)}" if page.title else "",
            f"**{verdict}**" if verdict else "",
            *map(self._part, page.parts),
            self._bullets(page.notes),
            *(map(self._part, page.foot) if self._rows is not None else ()),
        )
        return f"{blocks(*texts)}\n"

    def _part(self, part: Part) -> str:
        match part:
            case Table():
                return self._table(part) if self._rows is None or part.first is None else self._list(part, part.first)
            case Heading():
                return blocks(f"{'#' * part.level} {escape(self._cut(part.text))}", self._paragraph(part.aside))
            case Paragraph():
                text = self._paragraph(part.text)
                return {"strong": f"**{text}**", "dim": f"_{text}_"}.get(part.tone, text) if text else ""
            case Warnings():
                return "\n>\n".join(f"> {self._paragraph(sentence)}" for sentence in self._first(part.sentences))
            case Bullets():
                return self._bullets(part.sentences)
            case Code():
                return self._code(part)
            case Steps():
                lines = "\n".join(f"- {self._step(step)}" for step in part.steps)
                return blocks("What next:", lines) if lines else ""
            case Fold():
                outside, self._is_folded = self._is_folded, True
                body = blocks(*map(self._part, self._first(part.parts)))
                self._is_folded = outside
                if more := len(part.parts) - len(self._first(part.parts)):
                    body = blocks(body, f"_[{more:,} more are not shown]_")
                return details(self._cut(part.title), body, folded=not part.open) if body else ""
            case Picture():
                return picture(part.alt, part.light_url, part.dark_url)

    def _first(self, parts: Sequence[T]) -> Sequence[T]:
        return parts[: self._rows]

    def _bullets(self, sentences: Sequence[Sentence]) -> str:
        lines = [f"- {self._paragraph(sentence)}" for sentence in self._first(sentences)]
        if more := len(sentences) - len(lines):
            lines.append(f"- and {more:,} more")
        return "\n".join(lines)

    def _code(self, code: Code) -> str:
        text = printable(code.text).rstrip()
        if self._rows is not None and code.language == "log" and len(text) > _LOG:
            text = excerpt(text, _LOG_LINES, _LOG)
        if not text or (self._rows is not None and code.language == "sh" and size_bytes(text) > _COMMAND):
            return ""
        block = fenced(text, code.language.strip("log"))
        return details(self._cut(code.title), block) if code.title else block

    def _paragraph(self, sentence: Sentence) -> str:
        """A sentence where a block begins; of one that lists names, as many as there is room for."""
        first, *others = sentence if isinstance(sentence, tuple) else (sentence,)
        start = self._text(first, paragraph) if isinstance(first, str) else self.sentence(first)
        if isinstance(first, Name):  # which is code, unless code cannot hold it
            start = beginning(start)
        left = [piece for piece in others[2 * (self._rows or len(others)) :] if isinstance(piece, Name)]
        if len(left) > 1:
            others = [*others[: 2 * (self._rows or 0)], f" and {len(left):,} more"]
        return start + self.sentence(tuple(others))

    def sentence(self, sentence: Sentence) -> str:
        """A sentence inside a block."""
        return "".join(map(self._inline, sentence if isinstance(sentence, tuple) else (sentence,)))

    def _inline(self, piece: Inline) -> str:
        if isinstance(piece, Name):
            return name(self._cut(piece.text))
        if isinstance(piece, Link):
            text = self._cut(piece.text)
            return link(name(text) if piece.code else escape(text), piece.url)
        return self._text(piece, escape)

    def _text(self, text: str, write: Callable[[str], str]) -> str:
        """Plain text, with the space that it begins or ends with: it may stand between other pieces."""
        written = write(self._cut(text, _SENTENCE))
        before, after = text[:1].isspace(), text[-1:].isspace() and text.strip()
        return f"{' ' if before else ''}{written}{' ' if after else ''}"

    def _step(self, step: Step) -> str:
        command = name(step.command) if step.command else ""
        if self._rows is not None and size_bytes(command) > _COMMAND:
            command = ""
        return f"{self._text(step.text, paragraph)}{f': {command}' if command else ''}"

    def _list(self, of: Table, first: int) -> str:
        below = of.rows - first
        if self._is_folded or below <= 0:
            return self._table(of)
        top, rest = (
            [replace(column, cells=column.cells[rows]) for column in of.columns]
            for rows in (slice(first), slice(first, None))
        )
        return blocks(
            self._table(replace(of, columns=top)), details(f"{below:,} more", self._table(Table(columns=rest)))
        )

    def _table(self, of: Table) -> str:
        # Beside sentences, a browser leaves figures no room.
        has_figures = any(column.kind == "number" for column in of.columns)
        sentences = [column for column in of.columns if column.kind == "sentence" and has_figures]
        shown = self._first(of.shown)
        listed = ""
        if of.rows:
            columns = [column for column in of.columns if column not in sentences]
            rows = [[self._cell(column, column.cells[row]) for column in columns] for row in shown]
            numbers = [column.kind == "number" for column in columns]
            listed = table([escape(self._cut(column.head)) for column in columns], rows, numbers=numbers)
        cut = f"_[Top {len(shown)} out of {of.rows} results showed]_" if len(shown) < of.rows else ""
        before = fenced("\n".join(of.before)) if of.before else ""
        after = " ".join(self._paragraph(sentence) for sentence in of.after)
        body = blocks(before, listed, cut, *(self._below(of, column, shown) for column in sentences), after)
        if of.folded:
            return details(self._cut(of.title), body)
        return blocks(f"{'#' * of.level} {escape(self._cut(of.title))}" if of.title else "", body)

    def _below(self, of: Table, column: Column, shown: Sequence[int]) -> str:
        lines = []
        for sentence, rows in of.sharing(column, shown).items():
            names = ", ".join(self._cell(of.names, of.names.cells[row]) for row in rows)
            lines.append(f"- {beginning(names)}: {escape(self._cut(sentence))}")
        title = self._paragraph(f"{column.title[:1].upper()}{column.title[1:]}:")
        return blocks(title, "\n".join(lines)) if lines else ""

    def _cell(self, column: Column, cell: Cell) -> str:
        write = name if column.kind == "name" else escape
        return "<br>".join(write(self._cut(text)) for text in lines_of(cell))

    def _cut(self, text: str, most: int = _CELL) -> str:
        if self._rows is None or (len(text) <= most and most == _SENTENCE):
            return text
        line = one_line(text)
        return line if len(line) <= most else f"{line[: most - 3]}..."
