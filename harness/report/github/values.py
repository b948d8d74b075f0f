"""What a comment on GitHub shows beside the figures: pictures and links, which others publish."""

from __future__ import annotations

from dataclasses import dataclass


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
    """The pictures of a comment, the most important one first."""

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
