"""A comparison's or a run's figures -> one comment of a pull request, with pictures, as long as GitHub takes it.

The figures may come from a job that ran a pull request's code. Nothing of them is text to be posted as it is: they are
checked and read with limits here, the comment is made from them by harness.report.github, which escapes every name, and
its commands by harness.github.commands.
"""

import base64
import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from harness.errors import GitHubError, RunError, UsageError
from harness.github.api import Client, Purpose
from harness.github.commands import comparison_with_own_commands, report_with_own_commands
from harness.github.comments import Comment, OwnComments, marker_of, own_login
from harness.github.event import Event, pull_request_of
from harness.plots.pictures import files_of_comment, published
from harness.records.comparison import Comparison
from harness.report.github import render_comment
from harness.report.page import Picture
from harness.report.pages import Links
from harness.report.run_report import Report, build_report
from harness.store.files import read_document
from harness.store.kinds import COMPARISON
from harness.store.run_directory import load_run

Figures = Comparison | Report

_COMPARISON_BYTES = 128 * 2**20
_RUN_BYTES = 1024 * 2**20
# A suite's names have at most 100 each, of which a case's has four.
_NAME_CHARACTERS = 4_000
_TEXT_CHARACTERS = 100_000  # A flag may be a pass pipeline


def read_figures(path: Path) -> Figures:
    """Those of a comparison's folder or its comparison.json, or of a run's folder where there was no base."""
    folder = path.parent if path.name == COMPARISON.file else path
    file = folder / COMPARISON.file
    if (folder / "run.json").is_file() and not file.exists():
        return report_with_own_commands(_report(folder))
    if file.is_symlink():
        raise RunError(f"{file}: is a link; give the comparison's own folder")
    if not file.is_file():
        raise RunError(f"{folder}: holds neither {COMPARISON.file} nor run.json; give what `harness compare` made")
    document = read_document(file, _COMPARISON_BYTES)
    comparison = COMPARISON.load(folder)
    if (longest := max(map(len, _texts(json.loads(document))), default=0)) > _TEXT_CHARACTERS:
        raise RunError(f"{file}: has a text of {longest:,} characters, which no harness writes; compare again")
    return comparison_with_own_commands(comparison)


def _texts(value: Any) -> Iterator[str]:
    """Each is looked through and written many times in a comment."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for member in value.values() if isinstance(value, dict) else value:
            yield from _texts(member)


def _report(folder: Path) -> Report:
    entries = list(folder.iterdir())
    if any(entry.is_symlink() for entry in entries):
        raise RunError(f"{folder}: holds links; give a run's own folder")
    if sum(entry.stat().st_size for entry in entries if not entry.is_dir()) > _RUN_BYTES:
        raise RunError(f"{folder}: is larger than {_RUN_BYTES >> 20} MiB; post a run of fewer cases")
    try:
        run = load_run(folder)
        names = (name for case in run.header.cases for name in (case.name, case.model, case.variant, case.device))
        if (longest := max(map(len, names), default=0)) > _NAME_CHARACTERS:
            raise RunError(f"{folder}: has a name of {longest:,} characters, which no suite has; make the run again")
        return build_report(run)
    except RecursionError:
        raise RunError(f"{folder}: is damaged; take the run from a backup") from None


# --- Pictures on a branch of their own, through GitHub's Git data API: a comment cannot carry files ---
#
# Each pull request's pictures lie at `pr-<number>/<12 digits of them>/`, and are linked by the commit that added them,
# so that a link shows the same picture for ever. https://docs.github.com/rest/git has the API.

_ATTEMPTS = 6
# What a branch may be called is git's affair (git-check-ref-format); this is a safe part of it.
_BRANCH = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9][A-Za-z0-9._-]*)*")


def branch_named(name: str) -> str:
    """A name for the branch of pictures."""
    if not _BRANCH.fullmatch(name) or ".." in name or name.endswith((".lock", ".")) or len(name) > 200:
        raise UsageError(f"--images-branch {name[:100]!r}: is no name of a branch; harness-pictures is one")
    return name


@dataclass(frozen=True, kw_only=True)
class Shelf:
    """Where one comment's pictures are kept."""

    repository: str
    branch: str
    server: str  # Where people see the repository: https://github.com
    folder: str  # `pr-12/0123456789ab`

    def url(self, commit: str, name: str) -> str:
        """Address of a picture as that commit has it; it follows the reader's right to see the repository."""
        return f"{self.server}/{self.repository}/raw/{commit}/{self.folder}/{name}"

    def commit_in(self, comments: list[Comment]) -> str | None:
        """The commit by which one's own comment shows these very pictures; None where it shows none or others."""
        pattern = re.escape(self.url("COMMIT", "")).replace("COMMIT", "([0-9a-f]{40})")
        matches = (re.search(pattern, comment.body) for comment in reversed(comments))
        return next((match[1] for match in matches if match), None)


def publish(client: Client, shelf: Shelf, files: Mapping[str, bytes]) -> str:
    """Add pictures to the branch, which is made where it does not exist, without parents; the commit that has them."""
    git, branch = f"repos/{shelf.repository}/git", quote(shelf.branch)

    def make(kind: str, what: str, document: Any) -> str:
        return _sha(client.send("POST", f"{git}/{kind}", _purpose(what), document), client)

    entries = []
    for name, content in files.items():
        blob = {"content": base64.b64encode(content).decode(), "encoding": "base64"}
        sha = make("blobs", f"keep {name}", blob)
        entries.append({"path": f"{shelf.folder}/{name}", "mode": "100644", "type": "blob", "sha": sha})
    for attempt in range(_ATTEMPTS):
        tip = _tip(client, f"{git}/ref/heads/{branch}", shelf.branch)
        tree: dict[str, Any] = {"tree": entries}
        if tip:
            commit_of_tip = client.get(f"{git}/commits/{tip}", _purpose("read a commit of pictures"))
            tree["base_tree"] = _sha(commit_of_tip, client, "tree")
        document = {
            "message": f"Pictures of {shelf.folder}",
            "tree": make("trees", "keep a tree of pictures", tree),
            "parents": [tip] if tip else [],
        }
        commit = make("commits", "commit pictures", document)
        purpose = _purpose(f"move branch {shelf.branch}")
        try:
            if tip:
                client.send("PATCH", f"{git}/refs/heads/{branch}", purpose, {"sha": commit, "force": False})
            else:
                client.send("POST", f"{git}/refs", purpose, {"ref": f"refs/heads/{shelf.branch}", "sha": commit})
            return commit
        except GitHubError as error:
            if error.status not in (409, 422) or attempt + 1 == _ATTEMPTS:
                raise
            client.say(f"branch {shelf.branch} has moved on meanwhile; adding the pictures again")
            client.pause(error, attempt)
    raise AssertionError("the last attempt returns or raises")


def _tip(client: Client, path: str, branch: str) -> str | None:
    try:
        return _sha(client.get(path, _purpose(f"read branch {branch}")), client, "object")
    except GitHubError as error:
        if error.status == 404:
            return None
        raise


def _purpose(what: str) -> Purpose:
    return Purpose(what=what, needs="contents: write")


def _sha(document: Any, client: Client, key: str = "") -> str:
    """The hash in an answer, or in what it has at a key."""
    part = document.get(key) if key and isinstance(document, dict) else document
    sha = part.get("sha") if isinstance(part, dict) else None
    if not isinstance(sha, str) or not re.fullmatch(r"[0-9a-f]{40,64}", sha):
        raise GitHubError(f"{client.host}: answers without the hash of what was sent; check --api-url")
    return sha


# --- Posting ---


@dataclass(frozen=True, kw_only=True)
class Destination:
    """Where a comment goes and what it links to."""

    repository: str
    target: int | Event  # Number of the pull request, or the event that leads to it
    links: Links
    server: str  # Where people see the repository
    author: str | None = None  # Login of the token's owner; None: GitHub is asked
    images_branch: str | None = None  # Branch for pictures
    images_url: str = ""  # Where somebody else publishes the pictures; "" for nowhere, without a slash at its end


def post(figures: Figures, destination: Destination, client: Client) -> str:
    """Find, update or create the comment."""
    links, repository, number = destination.links, destination.repository, destination.target
    if isinstance(number, Event):
        found = pull_request_of(number, client, repository)
        if isinstance(found, str):
            return found
        number = found
    comments = OwnComments(client, repository, destination.author or own_login(client), number)
    existing = comments.with_marker(marker_of(render_comment(figures, links=links)))
    pictures = _pictures(figures, destination, number, existing, client)
    return comments.put(render_comment(figures, pictures=pictures, links=links), existing)


def _pictures(
    figures: Figures, destination: Destination, number: int, existing: list[Comment], client: Client
) -> Sequence[Picture]:
    """By their addresses; on a branch by those in the commit that has them.

    Without pictures a comment has a plot of text, so failing here is no failure.
    """
    if destination.images_url:
        return published(figures, lambda name: f"{destination.images_url}/{name}")
    if destination.images_branch is None or not (files := files_of_comment(figures)):
        return ()
    shelf = Shelf(
        repository=destination.repository,
        branch=destination.images_branch,
        server=destination.server,
        folder=f"pr-{number}/{hashlib.sha256(b''.join(files.values())).hexdigest()[:12]}",
    )
    try:
        commit = shelf.commit_in(existing) or publish(client, shelf, files)
    except GitHubError as error:
        client.say(f"{error}; the comment goes without pictures")
        return ()
    return published(figures, lambda name: shelf.url(commit, name))
