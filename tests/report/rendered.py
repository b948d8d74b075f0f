"""What GitHub makes of a text, as well as a CommonMark parser with tables and raw HTML can tell."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from html.parser import HTMLParser

from hypothesis import strategies as st
from markdown_it import MarkdownIt

PARSER = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
_VOID = {"img", "source", "br", "hr"}
# Text in these is neither linked nor scanned for people to notify.
_CODE = {"code", "pre"}

# All that the comments are made of.
OURS = frozenset(
    [
        *("h2", "h3", "h4", "p", "strong", "em", "ul", "li", "blockquote", "details", "summary", "a", "br"),
        *("table", "thead", "tbody", "tr", "th", "td", "code", "pre", "span", "picture", "source", "img"),
    ]
)

# What GitHub makes something of in plain text: people, issues, addresses, emoji, formulas.
LIVE = re.compile(r"(?<!\w)@\w|@[\w.-]*\.\w|#\d|\bGH-\d|https?://|ftp://|www\.|:(?:100|[a-z_]+):", re.IGNORECASE)
TURNING = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")

# What a text from a pull request may try.
FRAGMENTS = (
    *("|", "`", "```", "~~~", "**", "_", "~~", "\\", "\n", "\r", "\t", " ", "$x$", "&lt;", "&#64;team", "&"),
    *("<script>alert(1)</script>", "</details>", "<details>", "<!--", "-->", "--!>", "<img src=x onerror=y>", "<b>"),
    *("@octocat", "@org/team", "#123", "org/repo#4", "GH-5", ":tada:", "model.mlir:100:3", "a@b.example"),
    *("![](http://e.org/x.png)", "[x](javascript:alert)", "[x]: http://e.org", "<http://e.org>", "https://e.org"),
    *("www.e.org", "ftp://e.org", "mailto:a@b.example", "# ", "- ", "1. ", "> ", "[!NOTE]", "[ ] "),
    *("---", "===", "|--|"),
    *("\u202e", "\u2066", "\u200f", "\u061c", "שלום", "😀", "\U000e0041", "\ud800", "\x1b[31m", "\x00", "\u2028", "x"),
)
HOSTILE = st.lists(
    st.one_of(st.sampled_from(FRAGMENTS), st.text(st.characters(), max_size=3)), min_size=1, max_size=8
).map("".join)


@dataclass
class Page(HTMLParser):
    """A rendered page, taken apart.

    Attributes:
        tags: Opening tags in order.
        links: Where they go.
        images: Every address of a picture.
        plain: Texts outside of code.
        unfolded: All texts that are seen before anything is clicked.
        everything: All texts.
    """

    markdown: str
    tags: list[str] = field(default_factory=list)
    links: list[str] = field(default_factory=list)
    images: list[str] = field(default_factory=list)
    alts: list[str] = field(default_factory=list)
    comments: list[str] = field(default_factory=list)
    attributes: set[str] = field(default_factory=set)
    plain: str = ""
    unfolded: str = ""
    everything: str = ""

    def __post_init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self._open: list[str] = []
        self.feed(PARSER.render(self.markdown))
        self.close()
        assert self._open == [], "every tag is closed"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """A tag and its attributes."""
        self.tags.append(tag)
        self.plain += "\n"  # GitHub looks at one text at a time
        known = {name: value or "" for name, value in attrs}
        self.attributes |= {f"{tag} {name}" for name in known}
        if tag == "a":
            self.links.append(known["href"])
        if tag in ("img", "source"):
            self.images.append(known.get("src") or known["srcset"])
        if tag == "img":
            self.alts.append(known["alt"])
        if tag not in _VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        """The end of the innermost tag, and of no other."""
        assert self._open, f"</{tag}> ends nothing"
        assert self._open.pop() == tag
        self.plain += "\n"

    def handle_data(self, data: str) -> None:
        """A text, by where it stands."""
        if not _CODE & set(self._open):
            self.plain += data if "span" in self._open else data.replace("$", "a formula")
        self.everything += data.replace("\u200b", "")
        if "details" not in self._open:
            self.unfolded += data

    def handle_comment(self, data: str) -> None:
        """Nothing that anybody sees."""
        self.comments.append(data)

    @property
    def shape(self) -> list[str]:
        """The tags without those that depend on how a name can be written."""
        return [tag for tag in self.tags if tag not in ("code", "span")]


def require_ours(text: str, *, links: set[str] = frozenset(), images: set[str] = frozenset()) -> Page:  # type: ignore[assignment]
    """The page of a comment, in which nothing has become markup that the comment did not mean.

    Args:
        links: All addresses that may be linked.
        images: All addresses of pictures.
    """
    page = Page(text)
    assert set(page.tags) <= OURS
    assert set(page.links) <= links
    assert set(page.images) <= images
    assert page.attributes <= {
        "a href",
        "img src",
        "img alt",
        "source media",
        "source srcset",
        "code class",
        "details open",
    } | {f"{cell} style" for cell in ("th", "td")}
    assert len(page.comments) <= 1
    assert not LIVE.search(page.plain), LIVE.search(page.plain)
    assert "a formula" not in page.plain
    assert not TURNING.search(text)
    return page
