"""Pictures on a branch of their own, through GitHub's Git data API: a comment cannot carry files.

Each pull request's pictures lie at `pr-<number>/<12 digits of the data>/`, and are linked by the commit that added
them, so that a link shows the same picture for ever. https://docs.github.com/rest/git has the API.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from harness.errors import GitHubError, UsageError
from harness.github.api import Client, Purpose
from harness.github.comments import Comment

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
    """Add pictures to the branch, which is made where it does not exist, without parents; the commit that has them.

    Objects are named by their content, so that making one twice is the same as once.
    """
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
    """The commit at the tip of the branch; None where there is no such branch."""
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
