"""Pictures on a branch of their own, through GitHub's Git data API: a comment cannot carry files.

Each pull request's pictures lie at `pr-<number>/<12 digits of the data>/`, and are linked by the commit that added
them, so that a link shows the same picture for ever. https://docs.github.com/rest/git has the API.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlsplit

from harness.errors import GitHubError, UsageError
from harness.github.client import Client
from harness.github.refusals import Purpose
from harness.github.values import Comment, Repository

_NEEDS = "contents: write"
_ATTEMPTS = 6
# What a branch may be called is git's affair (git-check-ref-format); this is a safe part of it.
_BRANCH = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9][A-Za-z0-9._-]*)*")


@dataclass(frozen=True, kw_only=True)
class Shelf:
    """Where one comment's pictures are kept.

    Attributes:
        server: Where people see the repository: https://github.com.
        folder: `pr-12/0123456789ab`.
    """

    repository: Repository
    branch: str
    server: str
    folder: str

    def url(self, commit: str, name: str) -> str:
        """Address of a picture as that commit has it; it follows the reader's right to see the repository."""
        return f"{self.server}/{self.repository}/raw/{commit}/{self.folder}/{name}"


def branch_named(name: str) -> str:
    """A name for the branch of pictures.

    Raises:
        UsageError: It is none.
    """
    if not _BRANCH.fullmatch(name) or ".." in name or name.endswith((".lock", ".")) or len(name) > 200:
        raise UsageError(f"--images-branch {name[:100]!r}: is no name of a branch; harness-pictures is one")
    return name


def server_of(api_url: str) -> str:
    """Where people see what an API serves: github.com, or the host of a GitHub Enterprise Server."""
    parts = urlsplit(api_url)
    if parts.hostname == "api.github.com":
        return "https://github.com"
    return f"{parts.scheme}://{parts.netloc}"


def already_there(shelf: Shelf, comments: list[Comment]) -> str | None:
    """The commit by which one's own comment shows these very pictures; None where it shows none or others."""
    pattern = re.compile(re.escape(shelf.url("-", "")).replace(r"/raw/\-/", r"/raw/([0-9a-f]{40})/"))
    for comment in reversed(comments):
        if found := pattern.search(comment.body):
            return found[1]
    return None


def publish(
    client: Client, shelf: Shelf, files: Mapping[str, bytes], *, say: Callable[[str], None] = lambda _: None
) -> str:
    """Add pictures to the branch, which is made where it is not there, without parents; the commit that has them.

    Raises:
        GitHubError: They cannot be added.
    """
    git = f"{shelf.repository.path}/git"
    entries = [
        {
            "path": f"{shelf.folder}/{name}",
            "mode": "100644",
            "type": "blob",
            "sha": _send(client, f"{git}/blobs", _blob(content), f"keep {name}"),
        }
        for name, content in files.items()
    ]
    for attempt in range(_ATTEMPTS):
        tip = _tip(client, git, shelf.branch)
        tree = {"tree": entries} | ({"base_tree": _tree_of(client, git, tip)} if tip else {})
        commit = _send(
            client,
            f"{git}/commits",
            {
                "message": f"Pictures of {shelf.folder}",
                "tree": _send(client, f"{git}/trees", tree, "keep a tree of pictures"),
                "parents": [tip] if tip else [],
            },
            "commit pictures",
        )
        try:
            _move(client, git, shelf.branch, commit, there=tip is not None)
        except GitHubError as error:
            if error.status not in (409, 422) or attempt + 1 == _ATTEMPTS:
                raise
            say(f"branch {shelf.branch} has moved on meanwhile; adding the pictures again")
            client.pause(error, attempt)
            continue
        return commit
    raise AssertionError("the last attempt returns or raises")


def _move(client: Client, git: str, branch: str, commit: str, *, there: bool) -> None:
    """Let the branch be at that commit, unless somebody else moved it."""
    purpose = Purpose(what=f"move branch {branch}", needs=_NEEDS)
    if there:
        client.send("PATCH", f"{git}/refs/heads/{quote(branch)}", purpose, {"sha": commit, "force": False})
    else:
        client.send("POST", f"{git}/refs", purpose, {"ref": f"refs/heads/{branch}", "sha": commit})


def _tip(client: Client, git: str, branch: str) -> str | None:
    try:
        found = client.get(f"{git}/ref/heads/{quote(branch)}", Purpose(what=f"read branch {branch}", needs=_NEEDS))
    except GitHubError as error:
        if error.status == 404:
            return None
        raise
    return _sha(found.get("object") if isinstance(found, dict) else None, client)


def _tree_of(client: Client, git: str, commit: str) -> str:
    found = client.get(f"{git}/commits/{commit}", Purpose(what="read a commit of pictures", needs=_NEEDS))
    return _sha(found.get("tree") if isinstance(found, dict) else None, client)


def _send(client: Client, path: str, document: Any, what: str) -> str:
    """Objects are named by their content, so that making one twice is the same as once."""
    return _sha(client.send("POST", path, Purpose(what=what, needs=_NEEDS), document), client)


def _blob(content: bytes) -> dict[str, str]:
    return {"content": base64.b64encode(content).decode(), "encoding": "base64"}


def _sha(document: Any, client: Client) -> str:
    sha = document.get("sha") if isinstance(document, dict) else None
    if not isinstance(sha, str) or not re.fullmatch(r"[0-9a-f]{40,64}", sha):
        raise GitHubError(f"{client.host}: answers without the hash of what was sent; check --api-url")
    return sha
