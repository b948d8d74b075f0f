"""Links of a comment: none but to web addresses, and none that ends before its end."""

from __future__ import annotations

import re

from harness.report.github.values import Links
from harness.report.markdown_text import link, name, web_address

__all__ = ["commit_link", "link", "more_information", "web_address"]

_COMMIT = re.compile(r"[0-9a-f]{7,64}")
_COMMIT_DIGITS = 10


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
