"""`harness report --format github`: the comment, the full report, the job's summary, and what GitHub Actions tells."""

from __future__ import annotations

import os
import re
import sys
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from harness.commands.output import print_text
from harness.errors import RunError, UsageError

if TYPE_CHECKING:
    from harness.records.comparison import Comparison
    from harness.records.run import Run
    from harness.report.github import Images, Links
    from harness.report.values import Report

_COMMIT = re.compile(r"[0-9a-fA-F]{7,64}")
# What a summary needs at least, to say anything.
_LEAST_SUMMARY_BYTES = 4_096


@dataclass(frozen=True, kw_only=True)
class GitHubArguments:
    """The options of `harness report` that are for GitHub, as they were given; None: not given."""

    full_out: Path | None = None
    step_summary: Path | None = None
    images_url: str | None = None
    run_url: str | None = None
    artifact_url: str | None = None
    dashboard_url: str | None = None
    base_commit: str | None = None
    head_commit: str | None = None


def require_unused(arguments: GitHubArguments) -> None:
    """Refuse options that would have no effect.

    Raises:
        UsageError: One of them was given.
    """
    for field in fields(arguments):
        if getattr(arguments, field.name) is not None:
            option = f"--{field.name.replace('_', '-')}"
            raise UsageError(f"{option} is for --format github; give that too, or leave {option} out")


def write_github(
    found: Run | Comparison, arguments: GitHubArguments, links: Links, *, full: bool, out: Path | None
) -> None:
    """Print the comment, and write the full report and the summary where they are asked for.

    Args:
        full: Print the full report in place of the comment.

    Raises:
        RunError: A file cannot be written.
    """
    from harness.records.comparison import Comparison
    from harness.report.github import (
        render_comment,
        render_full,
        render_run_comment,
        render_run_full,
        render_run_step_summary,
        render_step_summary,
    )

    summary = arguments.step_summary or _path_of_environment("GITHUB_STEP_SUMMARY")
    room_bytes = _room_bytes(summary) if summary is not None else 0
    if isinstance(found, Comparison):
        images = _images(arguments, "forest", found)
        comment = "" if full else render_comment(found, images=images, links=links)
        whole = render_full(found) if full or arguments.full_out else ""
        said = render_step_summary(found, images=images, links=links, limit_bytes=room_bytes) if room_bytes else ""
    else:
        from harness.report.table import build_report

        report = build_report(found)
        images = _images(arguments, "variants", report)
        comment = "" if full else render_run_comment(report, images=images, links=links)
        whole = render_run_full(report) if full or arguments.full_out else ""
        said = render_run_step_summary(report, images=images, links=links, limit_bytes=room_bytes) if room_bytes else ""
    print_text(whole if full else comment, out)
    if arguments.full_out is not None:
        print_text(whole, arguments.full_out)
    if summary is not None:
        _append(summary, said)


def _room_bytes(summary: Path) -> int:
    """What GitHub still takes of this step's summary; 0: nothing that says anything."""
    from harness.report.github import STEP_SUMMARY_BYTES

    try:
        left = STEP_SUMMARY_BYTES - 1 - (summary.stat().st_size if summary.exists() else 0)
    except OSError:
        return STEP_SUMMARY_BYTES  # appending will say what is wrong
    return left if left >= _LEAST_SUMMARY_BYTES else 0


def _append(summary: Path, text: str) -> None:
    if not text:
        sys.stderr.write(f"{summary} is as long as GitHub takes already; the summary was left out.\n")
        return
    try:
        with summary.open("a", encoding="utf-8") as file:
            file.write(f"\n{text}")
    except OSError as error:
        raise RunError(f"{summary}: cannot be written ({error.strerror}); choose another --step-summary") from None
    sys.stderr.write(f"The job's summary was appended to {summary}.\n")


def _path_of_environment(name: str) -> Path | None:
    return Path(os.environ[name]) if os.environ.get(name) else None


def links_of(arguments: GitHubArguments) -> Links:
    """The links that were asked for, and those that GitHub Actions tells of in its environment.

    Raises:
        UsageError: An address is none.
    """
    from harness.report.github import Links

    _address("--images-url", arguments.images_url)
    repository = _repository_url()
    run_id = os.environ.get("GITHUB_RUN_ID", "")
    here = f"{repository}/actions/runs/{run_id}" if repository and run_id.isdigit() else ""
    return Links(
        run_url=_address("--run-url", arguments.run_url) or here,
        artifact_url=_address("--artifact-url", arguments.artifact_url),
        dashboard_url=_address("--dashboard-url", arguments.dashboard_url),
        base_commit_url=_commit("--base-commit", arguments.base_commit, repository),
        head_commit_url=_commit("--head-commit", arguments.head_commit, repository),
    )


def _repository_url() -> str:
    """Where GitHub Actions says that it runs; "" elsewhere."""
    server, name = os.environ.get("GITHUB_SERVER_URL", ""), os.environ.get("GITHUB_REPOSITORY", "")
    return f"{server.rstrip('/')}/{name}" if server and name else ""


def _address(option: str, url: str | None) -> str:
    from harness.report.markdown_text import web_address

    if url is None:
        return ""
    if not web_address(url):
        raise UsageError(f"{option} {url[:100]!r}: is no address of the web; give one that begins with https://")
    return url


def _commit(option: str, commit: str | None, repository: str) -> str:
    from harness.report.links import commit_name

    if commit is None:
        return ""
    if _COMMIT.fullmatch(commit):
        if not repository:
            raise UsageError(
                f"{option} {commit}: of which repository is not known outside of GitHub Actions; give the commit's "
                "whole address, or set GITHUB_SERVER_URL and GITHUB_REPOSITORY"
            )
        return f"{repository}/commit/{commit.lower()}"
    if not commit_name(commit):
        raise UsageError(f"{option} {commit[:100]!r}: is no hash of a commit, and no address that ends in one")
    return commit


def _images(
    arguments: GitHubArguments, kind: Literal["forest", "variants"], source: Comparison | Report
) -> Images | None:
    from harness.plots.pictures import TITLES, alt_text
    from harness.report.github import Image, Images

    place = _address("--images-url", arguments.images_url).rstrip("/")
    if not place:
        return None
    light, dark = (f"{place}/{kind}-{theme}.png" for theme in ("light", "dark"))
    alt = alt_text(kind, source)
    return Images(entries=(Image(title=TITLES[kind], alt=alt, light_url=light, dark_url=dark),))
