"""What posting is about, as values."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from harness.errors import UsageError

# Characters that GitHub allows in names of owners and repositories.
_REPOSITORY = re.compile(r"([A-Za-z0-9][A-Za-z0-9-]*)/([A-Za-z0-9._-]+)")

# Who comments where the token is that of a workflow's job.
ACTIONS_LOGIN = "github-actions[bot]"


@dataclass(frozen=True, kw_only=True)
class Repository:
    """A repository by its owner's name and its own."""

    owner: str
    name: str

    def __str__(self) -> str:
        return f"{self.owner}/{self.name}"

    @property
    def path(self) -> str:
        """Where the API has it."""
        return f"repos/{self.owner}/{self.name}"


def repository_named(text: str) -> Repository:
    """`owner/name` as a repository.

    Raises:
        UsageError: It is no such name.
    """
    found = _REPOSITORY.fullmatch(text)
    if found is None or found[2] in {".", ".."}:
        raise UsageError(f"--repo {text[:100]!r}: is no repository of GitHub; write it as owner/name")
    return Repository(owner=found[1], name=found[2])


@dataclass(frozen=True, kw_only=True)
class Comment:
    """A comment or an issue that is there already.

    Attributes:
        number: Its id; of an issue, its number.
        login: Who wrote it.
        url: Where people see it.
    """

    number: int
    body: str
    login: str
    url: str


@dataclass(frozen=True, kw_only=True)
class Thread:
    """Where comments are listed, created and changed: those of one pull request, or the issues of a repository.

    Attributes:
        what: In words: `#12 of owner/name`.
        listing: Path of the API that lists and creates.
        one: Path of the API of a single one, without its number.
        number_key: What the API calls that number.
        needs: The permission that creating and changing takes.
    """

    what: str
    listing: str
    one: str
    number_key: str
    needs: str


def comments_of(repository: Repository, number: int) -> Thread:
    """The comments of a pull request; in GitHub's API they are those of an issue."""
    return Thread(
        what=f"#{number} of {repository}",
        listing=f"{repository.path}/issues/{number}/comments",
        one=f"{repository.path}/issues/comments",
        number_key="id",
        needs="pull-requests: write",
    )


def issues_of(repository: Repository) -> Thread:
    """The issues of a repository."""
    return Thread(
        what=f"the issues of {repository}",
        listing=f"{repository.path}/issues",
        one=f"{repository.path}/issues",
        number_key="number",
        needs="issues: write",
    )


Outcome = Literal["created", "updated", "unchanged", "printed", "not posted"]


@dataclass(frozen=True, kw_only=True)
class Posted:
    """What became of a comment.

    Attributes:
        url: Where it is; "" where it is nowhere.
        body: Its text.
        notes: What the user should know besides, a sentence each.
    """

    outcome: Outcome
    url: str
    body: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Clock:
    """What the client knows of time; tests have one that does not wait.

    Attributes:
        unix_s: Seconds since 1970, in which GitHub says when a rate limit ends.
        monotonic_s: Seconds that patience is counted in.
        sleep: Wait so many seconds.
    """

    unix_s: Callable[[], float] = time.time
    monotonic_s: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
