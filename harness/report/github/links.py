"""Links of a comment: none but to web addresses, and none that ends before its end."""

from __future__ import annotations

import html
import re
from urllib.parse import quote, urlsplit

from harness.report.github.values import Links
from harness.report.markdown_text import name

# Beyond this no browser promises to follow an address.
_LONGEST_URL = 2_000
# What an address may hold as it stands; parentheses and quotes would end it in Markdown or HTML.
_PLAIN = "%/:?#[]@!$&*+,;=-._~"
_COMMIT = re.compile(r"[0-9a-f]{7,64}")
_COMMIT_DIGITS = 10


def web_address(url: str) -> str:
    """An address as both Markdown and HTML take it; "" where it is none of the web."""
    try:
        known = urlsplit(url)
    except ValueError:  # such as an unfinished IPv6 address
        return ""
    if known.scheme not in ("http", "https") or not known.hostname or len(url) > _LONGEST_URL:
        return ""
    return html.escape(quote(url, safe=_PLAIN, errors="replace"))


def link(text: str, url: str) -> str:
    """A link with a text that is Markdown already; the text alone where the address is none."""
    address = web_address(url)
    return f"[{text}]({address})" if address else text


def commit_link(url: str) -> str:
    """A link to a commit by its first digits; "" where the address names none."""
    commit = url.rstrip("/").rpartition("/")[2]
    if not web_address(url) or not _COMMIT.fullmatch(commit):
        return ""
    return link(name(commit[:_COMMIT_DIGITS]), url)


def more_information(links: Links) -> str:
    """Where more is to be read, in one line; "" where nothing is."""
    named = (
        ("Full report", links.artifact_url),
        ("Workflow run", links.run_url),
        ("Dashboard", links.dashboard_url),
    )
    shown = [link(text, url) for text, url in named if web_address(url)]
    return f"For more information: {' · '.join(shown)}" if shown else ""
