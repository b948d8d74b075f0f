"""What a page on GitHub shows beside the figures: its title, pictures and links that others publish."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from harness.report.markdown_text import web_address
from harness.report.page import Fold, Inline, Link, Paragraph, Part, Picture, Sentence

_COMMIT = re.compile(r"[0-9a-f]{7,64}")
_COMMIT_DIGITS = 10
_MOST_PICTURES = 12


@dataclass(frozen=True, kw_only=True)
class Image:
    """A picture in two versions, one for each of GitHub's themes.

    Attributes:
        title: What it is folded away behind, where it is not the first.
        alt: What it shows, in words, for those who do not see it.
        light_url: Of the version for a light page, http or https; also shown where themes are not known.
        dark_url: Of the version for a dark page; "": the light one has to do.
    """

    title: str
    alt: str
    light_url: str
    dark_url: str = ""


@dataclass(frozen=True, kw_only=True)
class Images:
    """The pictures of a page, the most important one first."""

    entries: tuple[Image, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Links:
    """Where more is to be read; all http or https, "" where there is nothing.

    Attributes:
        run_url: Of the workflow run that measured.
        artifact_url: Of the artifact with the full report.
        dashboard_url: Of the dashboard of the whole history.
        base_commit_url: Of the commit that was compared with; its last part is the commit, as GitHub has it.
        head_commit_url: Of the commit that was measured.
    """

    run_url: str = ""
    artifact_url: str = ""
    dashboard_url: str = ""
    base_commit_url: str = ""
    head_commit_url: str = ""


@dataclass(frozen=True, kw_only=True)
class Surroundings:
    """What a page has around its figures.

    Attributes:
        levels: Rows of each list that are folded away, from the most that there may be to the fewest.
        marked: Whether the page begins with the marker by which a posted one is found again.
    """

    title: Sentence
    images: Images = field(default_factory=Images)
    links: Links = field(default_factory=Links)
    levels: tuple[int, ...] = (300, 100, 30, 0)
    marked: bool = True

    @property
    def has_report(self) -> bool:
        """Whether the full report is published."""
        return bool(web_address(self.links.artifact_url))

    @property
    def report_link(self) -> Link:
        """`the full report`, as a link where it is published."""
        return Link("the full report", self.links.artifact_url)


def commit_name(url: str) -> Inline | None:
    """A link to a commit by its first digits; None where the address names none."""
    commit = url.rstrip("/").rpartition("/")[2]
    if not web_address(url) or not _COMMIT.fullmatch(commit):
        return None
    return Link(commit[:_COMMIT_DIGITS], url, code=True)


def more_information(links: Links) -> list[Part]:
    """Where more is to be read, in one line; [] where nothing is."""
    titles = (
        ("Full report", links.artifact_url),
        ("Workflow run", links.run_url),
        ("Dashboard", links.dashboard_url),
    )
    pieces: list[Inline] = []
    for title, url in titles:
        if web_address(url):
            pieces += [" · " if pieces else "For more information: ", Link(title, url)]
    return [Paragraph(tuple(pieces))] if pieces else []


def pictures(images: Images, *, folded: bool) -> list[Part]:
    """All pictures; the first is there at once unless `folded`, the others behind their titles."""
    published = [image for image in images.entries[:_MOST_PICTURES] if web_address(image.light_url)]
    parts: list[Part] = []
    for image in published:
        picture = Picture(alt=image.alt, light_url=image.light_url, dark_url=image.dark_url)
        parts.append(Fold(image.title, (picture,)) if folded or parts else picture)
    return parts
