"""Which pull request a workflow's event is about.

The number comes from GitHub's own payload and API and never from an artifact, which a pull request's code may have
written. https://docs.github.com/actions/reference/workflows-and-actions/events-that-trigger-workflows#workflow_run has
the payload: `pull_requests` is empty where the head is in a fork, so that the head's branch and commit tell.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.errors import GitHubError, UsageError
from harness.github.client import Client
from harness.github.refusals import Purpose
from harness.github.values import Repository
from harness.store.files import read_document
from harness.text import one_line

_EVENT_BYTES = 32 * 2**20
_NEEDS = "pull-requests: write"
_COMMIT = re.compile(r"[0-9a-f]{40}")
_DIGITS = re.compile(r"[0-9a-f]{7,40}")


@dataclass(frozen=True, kw_only=True)
class Event:
    """What is needed of a payload.

    Attributes:
        numbers: Pull requests that it names.
        owner: Who has the head's repository.
        branch: The head's.
        sha: The head commit that was measured.
        run_url: The workflow run that measured; "" where the event is the pull request's own.
    """

    numbers: tuple[int, ...]
    owner: str
    branch: str
    sha: str
    run_url: str


@dataclass(frozen=True, kw_only=True)
class Found:
    """The pull request, or why nothing is to be posted.

    Attributes:
        number: None where nothing is to be posted.
        sha: Its head commit.
        base_sha: The commit at the tip of its base branch, as GitHub has it.
        why_not: One sentence; "" where there is a number.
    """

    number: int | None
    sha: str = ""
    base_sha: str = ""
    why_not: str = ""


def read_event(file: Path, repository: Repository) -> Event:
    """The payload that GitHub Actions keeps at $GITHUB_EVENT_PATH.

    Raises:
        UsageError: It cannot be read, is another kind of event, or another repository's.
    """
    try:
        payload = json.loads(read_document(file, _EVENT_BYTES))
    except (ValueError, RecursionError):
        raise UsageError(f"--event {file}: is not JSON; give the file at $GITHUB_EVENT_PATH, or --pr") from None
    try:
        owner = str(payload["repository"]["full_name"])
        if owner.lower() != str(repository).lower():
            raise UsageError(
                f"--event {file}: is of {one_line(owner)[:100]} and --repo is {repository}; they have to agree"
            )
        if "workflow_run" in payload:
            return _of_run(payload["workflow_run"], payload["repository"].get("id"), file)
        request = payload["pull_request"]
        return Event(
            numbers=(int(request["number"]),),
            owner=str((request["head"]["repo"] or {}).get("owner", {}).get("login", "")),
            branch=str(request["head"]["ref"]),
            sha=str(request["head"]["sha"]),
            run_url="",
        )
    except (KeyError, TypeError, ValueError, AttributeError):
        raise UsageError(
            f"--event {file}: is no event of a pull request or of a workflow run; start the workflow on workflow_run "
            "or pull_request, or give --pr"
        ) from None


def _of_run(run: Mapping[str, Any], repository_id: Any, file: Path) -> Event:
    if run["event"] not in ("pull_request", "pull_request_target"):
        raise UsageError(
            f"--event {file}: the workflow run was started by {one_line(str(run['event']))[:50]} and belongs to no "
            "pull request; let the job depend on github.event.workflow_run.event == 'pull_request'"
        )
    # A branch may also be the head of a pull request between forks, which is another repository's affair.
    here = [one for one in run.get("pull_requests") or [] if one["base"]["repo"]["id"] == repository_id]
    return Event(
        numbers=tuple(int(one["number"]) for one in here),
        owner=str((run.get("head_repository") or {}).get("owner", {}).get("login", "")),
        branch=str(run["head_branch"]),
        sha=str(run["head_sha"]),
        run_url=str(run.get("html_url", "")),
    )


def pull_request_of(event: Event, client: Client, repository: Repository) -> Found:
    """The open pull request whose head is what was measured.

    Raises:
        GitHubError: GitHub refuses to say, or several have that head.
    """
    candidates = (
        [_read(client, repository, number) for number in event.numbers]
        if event.numbers
        else _with_head(client, repository, event)
    )
    is_open = [one for one in candidates if one.get("state") == "open"]
    current = [one for one in is_open if (one.get("head") or {}).get("sha") == event.sha]
    if len(current) == 1:
        base = current[0].get("base")
        base_sha = str(base.get("sha", "")) if isinstance(base, dict) else ""
        return Found(number=int(current[0]["number"]), sha=event.sha, base_sha=base_sha)
    if current:
        names = ", ".join(f"#{one['number']}" for one in current)
        raise GitHubError(f"{repository}: {names} have the same head {event.sha[:12]}; say with --pr which is meant")
    if is_open:
        return Found(
            number=None,
            why_not=f"#{is_open[0]['number']} has moved on since {event.sha[:12]} was measured; nothing is posted",
        )
    return Found(
        number=None, why_not=f"no open pull request of {repository} has the head {event.sha[:12]}; nothing is posted"
    )


def base_commit_of(found: Found, digits: str, client: Client, repository: Repository) -> str:
    """The commit that a comparison of this pull request says it was made with; "" where GitHub knows it otherwise.

    It is the tip of the base branch or where the head's branch left that; an artifact that names another is not
    believed.

    Args:
        digits: Its first ones, as the artifact has them.
    """
    if not _DIGITS.fullmatch(digits) or not _COMMIT.fullmatch(found.base_sha) or not _COMMIT.fullmatch(found.sha):
        return ""
    if found.base_sha.startswith(digits):
        return found.base_sha
    purpose = Purpose(what="compare its head with its base", needs="contents: read")
    try:
        document = client.get(f"{repository.path}/compare/{found.base_sha}...{found.sha}", purpose, {"per_page": "1"})
        merge_base = str(document["merge_base_commit"]["sha"])
    except (GitHubError, KeyError, TypeError):  # a link less
        return ""
    return merge_base if _COMMIT.fullmatch(merge_base) and merge_base.startswith(digits) else ""


def _read(client: Client, repository: Repository, number: int) -> dict[str, Any]:
    purpose = Purpose(what=f"read pull request #{number}", needs=_NEEDS)
    found = client.get(f"{repository.path}/pulls/{number}", purpose)
    return found if isinstance(found, dict) else {}


def _with_head(client: Client, repository: Repository, event: Event) -> list[dict[str, Any]]:
    if not event.owner or not event.branch:  # the fork is gone
        return []
    purpose = Purpose(what="list its pull requests", needs=_NEEDS)
    query = {"state": "open", "head": f"{event.owner}:{event.branch}"}
    return [one for one in client.pages(f"{repository.path}/pulls", purpose, query) if isinstance(one, dict)]
