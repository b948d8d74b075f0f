"""What GitHub makes of a text, as well as a CommonMark parser with tables and raw HTML can tell."""

import re
from html.parser import HTMLParser

from hypothesis import strategies as st
from markdown_it import MarkdownIt

PARSER = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
_VOID = {"img", "source", "br", "hr", "meta", "link", "input"}
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


class Elements(HTMLParser):
    """Elements and texts of HTML; `open` holds what was not closed, `wrong` what was closed wrongly."""

    def __init__(self, markup: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[tuple[str, frozenset[str]]] = []  # With the tags around each
        self.comments: list[str] = []
        self.open: list[str] = []
        self.wrong: list[str] = []
        self.feed(markup)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Remember it, and that it has to be closed."""
        self.elements.append((tag, dict(attrs)))
        if tag not in _VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Remember it."""
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        """Only the element that was opened last may be closed."""
        if not self.open or self.open.pop() != tag:
            self.wrong.append(tag)

    def handle_data(self, data: str) -> None:
        """Remember the text."""
        self.texts.append((data, frozenset(self.open)))

    def handle_comment(self, data: str) -> None:
        """Nothing that anybody sees."""
        self.comments.append(data)

    @property
    def text(self) -> str:
        """All texts."""
        return " ".join(text for text, _ in self.texts)

    def values(self, name: str) -> list[str]:
        """Every value of an attribute."""
        return [given[name] or "" for _, given in self.elements if name in given]


class Page(Elements):
    """Markdown as GitHub shows it, taken apart."""

    def __init__(self, markdown: str) -> None:
        super().__init__(PARSER.render(markdown))
        assert (self.open, self.wrong) == ([], []), "every tag is closed, and nothing else"
        self.tags = [tag for tag, _ in self.elements]
        self.links, self.alts = self.values("href"), self.values("alt")
        sources = [given for tag, given in self.elements if tag in ("img", "source")]
        self.images = [given.get("src") or given["srcset"] or "" for given in sources]
        self.attributes = {f"{tag} {name}" for tag, given in self.elements for name in given}
        # Outside of code, where GitHub looks at one text at a time
        outside = [(text, around) for text, around in self.texts if not _CODE & around]
        self.plain = "\n".join(text if "span" in around else text.replace("$", "a formula") for text, around in outside)
        self.unfolded = "".join(text for text, around in self.texts if "details" not in around)  # Before any click
        self.everything = "".join(text.replace("\u200b", "") for text, _ in self.texts)


def require_ours(text: str, *, addresses: tuple[str, ...] = ()) -> Page:
    """The page of a comment, in which nothing has become markup that the comment did not mean.

    Args:
        addresses: What every address of a link or a picture begins with, if there is any.
    """
    page = Page(text)
    assert set(page.tags) <= OURS
    assert all(address.startswith(addresses) for address in (*page.links, *page.images))
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
