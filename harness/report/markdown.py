"""Page -> Markdown for GitHub: nothing in it is markup that the page did not mean, and a comment fits its limit."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from urllib.parse import quote, urlsplit

from harness.report.page import (
    Bullets,
    Cell,
    Choice,
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


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What a page that others have to read may take; texts that are longer are cut."""

    page_bytes: int  # Of the whole page in UTF-8
    cell: int = 300  # Characters of a name, a reason or a note: nobody reads on, and a thousand of them would not fit
    # Characters of a paragraph; of one that takes thrice as many bytes in Markdown, as many as of a cell
    sentence: int = 1_000
    log: int = 4_000  # Characters of a tool's output
    command_bytes: int = 2_000  # Of a command line; a longer one is left out, since half a command is worse than none


_LOG_LINES = 60
# Rows of a long list that a comment folds away, from the most that there may be to the fewest.
_LIST_ROWS = (300, 100, 30, 0)
_RATIO = re.compile(r"(?<!\S)[▼▲=?] (?=\d)|\[\d\S*, \d\S*\]")
_EXPONENT = re.compile(r"(?<=\de)-(?=\d)")

# GitHub's own message says 65,536 characters; what its API stored when people tried was 262,144 bytes of UTF-8
# (dead-claudia/github-limits, pull request 13, 2025-10). So many bytes are few enough however they are counted, with
# room for a line that whoever posts it adds.
COMMENT = Limits(page_bytes=65_000)


def to_markdown(page: Page, limits: Limits | None = None) -> str:
    """Lay a page out for GitHub; with limits, long lists and then the least important choices get shorter."""
    if limits is None:
        writer = _Writer(None)
        return _laid_out(page, writer, [writer.parts([part]) for part in page.parts], ())
    left_out: list[str] = []
    whole: list[str] = []
    for rows in _LIST_ROWS:
        writer = _Writer(limits, rows)
        texts = [writer.parts([part]) for part in page.parts]
        whole = whole or texts
        left_out = ["the rest of long lists"] if texts != whole else []
        text = _laid_out(page, writer, texts, left_out)
        if size_bytes(text) <= limits.page_bytes:
            return text
    choices = [(part.rank, place, part) for place, part in enumerate(page.parts) if isinstance(part, Choice)]
    for _, place, choice in sorted(choices, key=lambda ranked: ranked[:2], reverse=True):
        shorter = writer.parts(choice.shorter)
        if shorter != texts[place]:
            texts[place] = shorter
            left_out.append(choice.what)
            text = _laid_out(page, writer, texts, left_out)
        if size_bytes(text) <= limits.page_bytes:
            break
    return text


def _laid_out(page: Page, writer: _Writer, texts: Sequence[str], left_out: Sequence[str]) -> str:
    return (
        blocks(
            marker(writer.cut(page.marker[1]), page.marker[0]) if page.marker else "",
            f"## {writer.sentence(page.title)}" if page.title else "",
            f"**{verdict}**" if (verdict := writer.inline(page.verdict).strip()) else "",
            *texts,
            "\n".join(f"- {writer.paragraph(note)}" for note in page.notes),
            writer.parts(page.foot(left_out)) if writer.has_limits else "",
        )
        + "\n"
    )


def size_bytes(text: str) -> int:
    """Size of a text in UTF-8, which is no less than its characters, however these are counted."""
    return len(text.encode(errors="replace"))


class _Writer:
    """Writes each kind of part, with the limits of a page and of the rows that a list folds away; None: without any."""

    def __init__(self, limits: Limits | None, list_rows: int = 0) -> None:
        self._limits = limits
        self._list_rows = list_rows
        self._is_folded = False  # Whether it writes what is folded away

    @property
    def has_limits(self) -> bool:
        return self._limits is not None

    def parts(self, parts: Sequence[Part]) -> str:
        return blocks(*map(self._part, parts))

    def _part(self, part: Part) -> str:
        if isinstance(part, Table):
            return self._table(part) if self._limits is None or part.first is None else self._list(part, part.first)
        if isinstance(part, Heading):
            return blocks(f"{'#' * part.level} {escape(self.cut(part.text))}", self.paragraph(part.aside))
        if isinstance(part, Paragraph):
            text = self.paragraph(part.text)
            return {"strong": f"**{text}**", "dim": f"_{text}_"}.get(part.tone, text) if text else ""
        if isinstance(part, Warnings):
            return "\n>\n".join(f"> {self.paragraph(sentence)}" for sentence in part.sentences)
        if isinstance(part, Bullets):
            return "\n".join(f"- {self.paragraph(bullet)}" for bullet in part.sentences)
        if isinstance(part, Code):
            text = fenced(self._log(part.text) if part.language == "log" else part.text, part.language.strip("log"))
            return details(self.cut(part.title), text) if part.title else text
        if isinstance(part, Steps):
            lines = "\n".join(f"- {self._step(step)}" for step in part.steps)
            return blocks("What next:", lines) if lines else ""
        if isinstance(part, Fold):
            self._is_folded = True
            body = self.parts(part.parts)
            self._is_folded = False
            return details(self.cut(part.title), body, folded=not part.open) if body else ""
        if isinstance(part, Picture):
            return picture(part.alt, part.light_url, part.dark_url)
        return self.parts(part.parts)

    def paragraph(self, sentence: Sentence) -> str:
        """A sentence where a block begins."""
        first, *others = sentence if isinstance(sentence, tuple) else (sentence,)
        start = self._text(first, paragraph) if isinstance(first, str) else self.inline(first)
        if isinstance(first, Name):  # which is code, unless code cannot hold it
            start = beginning(start)
        return start + "".join(map(self.inline, others))

    def sentence(self, sentence: Sentence) -> str:
        """A sentence inside a block."""
        return "".join(map(self.inline, sentence if isinstance(sentence, tuple) else (sentence,)))

    def inline(self, piece: Inline) -> str:
        """A piece of a sentence."""
        if isinstance(piece, Name):
            return name(self.cut(piece.text))
        if isinstance(piece, Link):
            text = self.cut(piece.text)
            return link(name(text) if piece.code else escape(text), piece.url)
        return self._text(piece, escape)

    def _text(self, text: str, write: Callable[[str], str]) -> str:
        """Plain text, with the space that it begins or ends with: it may stand between other pieces."""
        written = write(self.cut(text, sentence=True))
        if self._limits is not None and size_bytes(written) > 3 * self._limits.sentence:
            written = write(self.cut(text))
        before, after = text[:1].isspace(), text[-1:].isspace() and text.strip()
        return f"{' ' if before else ''}{written}{' ' if after else ''}"

    def _step(self, step: Step) -> str:
        command = name(step.command) if step.command else ""
        if self._limits is not None and size_bytes(command) > self._limits.command_bytes:
            command = ""
        return f"{self._text(step.text, paragraph)}{f': {command}' if command else ''}"

    def _list(self, of: Table, first: int) -> str:
        """The first rows, and others folded away as far as there is room; what is folded already is only cut."""
        below = of.rows - first
        if self._is_folded or below <= 0 or not self._list_rows:
            return self._table(replace(of, most=max(first, self._list_rows if self._is_folded else 0)))
        top, rest = (
            [replace(column, cells=column.cells[rows]) for column in of.columns]
            for rows in (slice(first), slice(first, None))
        )
        listed = self._table(Table(columns=rest, most=self._list_rows))
        return blocks(self._table(replace(of, columns=top)), details(f"{below:,} more", listed))

    def _table(self, of: Table) -> str:
        # Beside sentences, a browser leaves figures no room.
        has_figures = any(column.kind == "number" for column in of.columns)
        sentences = [column for column in of.columns if column.kind == "sentence" and has_figures]
        if not of.rows:
            listed = ""
        else:
            columns = [column for column in of.columns if column not in sentences]
            rows = [[self._cell(column, column.cells[row]) for column in columns] for row in of.shown]
            numbers = [column.kind == "number" for column in columns]
            listed = table([escape(self.cut(column.head)) for column in columns], rows, numbers=numbers)
        cut = f"_[Top {len(of.shown)} out of {of.rows} results showed]_" if len(of.shown) < of.rows else ""
        before = fenced("\n".join(of.before)) if of.before else ""
        after = " ".join(self.paragraph(sentence) for sentence in of.after)
        body = blocks(before, listed, cut, *(self._below(of, column) for column in sentences), after)
        if of.folded:
            return details(self.cut(of.title), body)
        return blocks(f"{'#' * of.level} {escape(self.cut(of.title))}" if of.title else "", body)

    def _below(self, of: Table, column: Column) -> str:
        """A column of sentences as a list: each of them once, behind the rows that it is about."""
        lines = []
        for sentence, rows in of.sharing(column).items():
            names = ", ".join(self._cell(of.names, of.names.cells[row]) for row in rows)
            lines.append(f"- {beginning(names)}: {escape(self.cut(sentence))}")
        title = self.paragraph(f"{column.title[:1].upper()}{column.title[1:]}:")
        return blocks(title, "\n".join(lines)) if lines else ""

    def _cell(self, column: Column, cell: Cell) -> str:
        write = {"name": name, "number": _unbroken, "text": _whole_ratio}.get(column.kind, escape)
        return "<br>".join(write(self.cut(text)) for text in lines_of(cell))

    def cut(self, text: str, *, sentence: bool = False) -> str:
        """A text on one line; `...` says that it went on."""
        if self._limits is None:
            return text
        most = self._limits.sentence if sentence else self._limits.cell
        line = text if sentence and len(text) <= most else one_line(text)
        return line if len(line) <= most else f"{line[: most - 3]}..."

    def _log(self, text: str) -> str:
        """A tool's output from its first error on, as far as there is room."""
        whole = printable(text).rstrip()
        if self._limits is None or len(whole) <= self._limits.log:
            return whole
        return excerpt(whole, _LOG_LINES, self._limits.log)


def _whole_ratio(text: str) -> str:
    """A text whose ratio is broken before its interval at most, as in `▼ 0.279 [0.276, 0.282]`."""
    return _RATIO.sub(lambda match: match[0].replace(" ", "\u00a0"), escape(text))


def _unbroken(figure: str) -> str:
    """A figure such as `2e-4` or `+12 %`, which no browser breaks at this hyphen or before its unit."""
    return _whole_ratio(_EXPONENT.sub("\u2011", figure)).replace(" %", "\u00a0%")
