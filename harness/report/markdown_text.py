"""Pieces of GitHub's Markdown that hold together whatever text is put into them."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from urllib.parse import quote, urlsplit

from harness.text import one_line, printable

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
    r"(?<!\w)[@#](?=\\?\w)|#(?=\d)|@(?=[\w.-]*\.\w)|\bGH(?=-\d)|:(?=//)|www(?=\.)"
    r"|:(?=(?:100|1234|[+-]1|(?![\d+-]+:)[\w+-]{1,60}):)|:(?=(?!\d+\Z)[\w+-]{1,60}\Z)",
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
