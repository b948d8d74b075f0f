"""Which pull request a workflow's event is about.

The number comes from GitHub's own payload and API and never from an artifact, which a pull request's code may have
written. https://docs.github.com/actions/reference/workflows-and-actions/events-that-trigger-workflows#workflow_run has
the payload: `pull_requests` is empty where the head is in a fork; then the head's branch and commit tell which it is.
"""

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.errors import GitHubError, UsageError
from harness.github_api import Client, Purpose
from harness.store.files import read_document
from harness.text import one_line

_EVENT_BYTES = 32 * 2**20
_NEEDS = "pull-requests: write"
_COMMIT = re.compile(r"[0-9a-f]{40}")


@dataclass(frozen=True, kw_only=True)
class Event:
    """What is needed of a payload."""

    numbers: tuple[int, ...]  # Pull requests that it names
    owner: str  # Who has the head's repository
    branch: str  # The head's
    sha: str  # The head commit that was measured
    run_url: str  # The workflow run that measured; "" where the event is the pull request's own


def read_event(file: Path, repository: str) -> Event:
    """The payload that GitHub Actions keeps at $GITHUB_EVENT_PATH."""
    try:
        payload = json.loads(read_document(file, _EVENT_BYTES))
    except (ValueError, RecursionError):
        raise UsageError(f"--event {file}: is not JSON; give the file at $GITHUB_EVENT_PATH, or --pr") from None
    try:
        return _event(payload, file, repository)
    except (KeyError, TypeError, ValueError, AttributeError):
        raise UsageError(
            f"--event {file}: is no event of a pull request or of a workflow run; start the workflow on workflow_run "
            "or pull_request, or give --pr"
        ) from None


def _event(payload: Any, file: Path, repository: str) -> Event:
    here = payload["repository"]
    name = str(here["full_name"])
    if name.lower() != repository.lower():
        raise UsageError(f"--event {file}: is of {one_line(name)[:100]} and --repo is {repository}; they have to agree")
    if "workflow_run" not in payload:
        request = payload["pull_request"]
        numbers, head = [request["number"]], request["head"]
        owner, branch, sha, run_url = head["repo"], head["ref"], head["sha"], ""
    else:
        run = payload["workflow_run"]
        if run["event"] not in ("pull_request", "pull_request_target"):
            raise UsageError(
                f"--event {file}: the workflow run was started by {one_line(str(run['event']))[:50]} and belongs to no "
                "pull request; let the job depend on github.event.workflow_run.event == 'pull_request'"
            )
        pulls = run.get("pull_requests") or []
        # A branch may also be the head of a pull request between forks, which is another repository's affair.
        numbers = [pull["number"] for pull in pulls if pull["base"]["repo"]["id"] == here.get("id")]
        owner, branch, sha = run.get("head_repository"), run["head_branch"], run["head_sha"]
        run_url = run.get("html_url", "")
    if not _COMMIT.fullmatch(sha):
        raise ValueError("no commit")
    return Event(
        numbers=tuple(map(int, numbers)),
        owner=str((owner or {}).get("owner", {}).get("login", "")),
        branch=str(branch),
        sha=sha,
        run_url=str(run_url),
    )


def pull_request_of(event: Event, client: Client, repository: str) -> int | str:
    """The open pull request whose head is what was measured, or a sentence that says why nothing is posted."""
    digits = event.sha[:12]
    is_open = [pull for pull in _candidates(event, client, repository) if pull.get("state") == "open"]
    current = [pull for pull in is_open if (pull.get("head") or {}).get("sha") == event.sha]
    if len(current) > 1:
        names = ", ".join(f"#{pull['number']}" for pull in current)
        raise GitHubError(f"{repository}: {names} have the same head {digits}; say with --pr which is meant")
    if current:
        return int(current[0]["number"])
    if is_open:
        return f"#{is_open[0]['number']} has moved on since {digits} was measured; nothing is posted"
    return f"no open pull request of {repository} has the head {digits}; nothing is posted"


def _candidates(event: Event, client: Client, repository: str) -> list[dict[str, Any]]:
    """The pull requests that the event names, else those of the head's branch; none of a fork that is gone."""
    path = f"repos/{repository}/pulls"
    items: list[Any] = [
        client.get(f"{path}/{number}", Purpose(what=f"read pull request #{number}", needs=_NEEDS))
        for number in event.numbers
    ]
    if not event.numbers and event.owner and event.branch:
        query = {"state": "open", "head": f"{event.owner}:{event.branch}"}
        items += client.pages(path, Purpose(what="list its pull requests", needs=_NEEDS), query)
    return [item for item in items if isinstance(item, dict)]
