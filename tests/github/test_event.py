"""Which pull request an event is about: GitHub's payload and API say so, an artifact never does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harness.errors import GitHubError, UsageError
from harness.github.client import Client
from harness.github.event import Found, base_commit_of, pull_request_of, read_event
from harness.github.values import repository_named
from tests.github.fake_github import FakeGitHub

REPOSITORY = repository_named("o/r")
SHA, LATER = "a" * 40, "b" * 40


def workflow_run(*numbers: int, owner: str = "o", base_id: int = 1, **changes: Any) -> dict[str, Any]:
    """The payload of a finished run of the untrusted workflow."""
    pulls = [{"number": number, "base": {"repo": {"id": base_id}}} for number in numbers]
    run = {
        "event": "pull_request",
        "pull_requests": pulls,
        "head_repository": {"owner": {"login": owner}},
        "head_branch": "topic",
        "head_sha": SHA,
        "html_url": "https://github.com/o/r/actions/runs/5",
    }
    return {"repository": {"full_name": "o/r", "id": 1}, "workflow_run": {**run, **changes}}


def found(client: Client, tmp_path: Path, payload: Any) -> Found:
    file = tmp_path / "event.json"
    file.write_text(json.dumps(payload))
    return pull_request_of(read_event(file, REPOSITORY), client, REPOSITORY)


def test_of_a_branch_here_the_payload_names_the_number(github: FakeGitHub, client: Client, tmp_path: Path) -> None:
    github.pull(7, SHA)
    assert found(client, tmp_path, workflow_run(7)).number == 7


def test_of_a_fork_the_head_tells_it(github: FakeGitHub, client: Client, tmp_path: Path) -> None:
    github.pull(8, SHA, owner="somebody", branch="topic")
    github.pull(9, SHA, owner="fork", branch="topic")
    assert found(client, tmp_path, workflow_run(owner="fork")).number == 9
    (request,) = github.requests
    assert request.query["head"] == "fork:topic"
    assert request.query["state"] == "open"


def test_a_branchs_name_is_sent_as_it_is(github: FakeGitHub, client: Client, tmp_path: Path) -> None:
    name = "a&state=closed#?%2f$(id)\u00e9"
    github.pull(9, SHA, owner="fork", branch=name)
    assert found(client, tmp_path, workflow_run(owner="fork", head_branch=name)).number == 9


def test_a_pull_request_that_has_moved_on_gets_no_old_figures(
    github: FakeGitHub, client: Client, tmp_path: Path
) -> None:
    github.pull(7, LATER)
    for payload in (workflow_run(7), workflow_run()):
        assert found(client, tmp_path, payload).why_not == (
            f"#7 has moved on since {SHA[:12]} was measured; nothing is posted"
        )


def test_a_closed_pull_request_gets_nothing(github: FakeGitHub, client: Client, tmp_path: Path) -> None:
    github.pull(7, SHA, state="closed")
    assert found(client, tmp_path, workflow_run(7)).number is None


@pytest.mark.parametrize("repository", [None, {"owner": {"login": ""}}])
def test_a_fork_that_is_gone(client: Client, tmp_path: Path, repository: Any) -> None:
    payload = workflow_run(head_repository=repository)
    assert found(client, tmp_path, payload).why_not.startswith("no open pull request of o/r has the head aaaaaaaaaaaa")


def test_a_pull_request_between_forks_is_not_ours(github: FakeGitHub, client: Client, tmp_path: Path) -> None:
    github.pull(7, SHA, owner="another")
    assert found(client, tmp_path, workflow_run(7, base_id=2, owner="fork")).number is None


def test_two_pull_requests_of_one_head_are_asked_about(github: FakeGitHub, client: Client, tmp_path: Path) -> None:
    github.pull(7, SHA)
    github.pull(8, SHA)
    with pytest.raises(GitHubError, match=r"#7, #8 have the same head aaaaaaaaaaaa; say with --pr which is meant"):
        found(client, tmp_path, workflow_run(7, 8))


def test_a_pull_requests_own_event(github: FakeGitHub, client: Client, tmp_path: Path) -> None:
    github.pull(7, SHA)
    head = {"repo": {"owner": {"login": "o"}}, "ref": "topic", "sha": SHA}
    payload = {"repository": {"full_name": "O/R"}, "pull_request": {"number": 7, "head": head}}
    assert found(client, tmp_path, payload).number == 7


# --- Events that are none ---


@pytest.mark.parametrize(
    ("payload", "says"),
    [
        ({**workflow_run(7), "repository": {"full_name": "o/other"}}, r"is of o/other and --repo is o/r"),
        (workflow_run(7, event="push"), r"was started by push and belongs to no pull request"),
        (workflow_run(event="push\n::error::x"), r"was started by push ::error::x and"),
        ({"repository": {"full_name": "o/r"}}, r"is no event of a pull request or of a workflow run"),
        (workflow_run("7; rm -rf"), r"is no event of a pull request"),  # type: ignore[arg-type]  # hostile
        (workflow_run(pull_requests="7"), r"is no event of a pull request"),
        ([], r"is no event of a pull request"),
        (None, r"is no event of a pull request"),
    ],
)
def test_a_payload_of_something_else(client: Client, tmp_path: Path, payload: Any, says: str) -> None:
    with pytest.raises(UsageError, match=says) as caught:
        found(client, tmp_path, payload)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("text", ["", "{", "[" * 100_000, "\x00"])
def test_a_payload_that_is_not_json(tmp_path: Path, text: str) -> None:
    (tmp_path / "event.json").write_text(text)
    with pytest.raises(UsageError, match=r"is not JSON; give the file at \$GITHUB_EVENT_PATH, or --pr"):
        read_event(tmp_path / "event.json", REPOSITORY)


def test_a_payload_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        read_event(tmp_path / "event.json", REPOSITORY)


@pytest.mark.parametrize("name", ["o", "o/r/x", "../r", "o/..", "o/r?x", "o r/x", "", "-o/r", "o/r\n"])
def test_names_that_no_repository_has(name: str) -> None:
    with pytest.raises(UsageError, match="is no repository of GitHub; write it as owner/name"):
        repository_named(name)


# --- The commit that was compared with ---

BASE, MERGE_BASE = "c" * 40, "d" * 40


@pytest.mark.parametrize(
    ("digits", "commit"),
    [
        ("c" * 10, BASE),  # the base branch as it is
        ("d" * 10, MERGE_BASE),  # it has moved on since the branch left it
        ("e" * 10, ""),  # the artifact names something else
        ("c" * 3, ""),  # too few to tell
        ("", ""),
        ("../../x/y", ""),
    ],
)
def test_the_base_is_linked_where_github_knows_it_as_the_artifact_does(
    github: FakeGitHub, client: Client, tmp_path: Path, digits: str, commit: str
) -> None:
    github.pull(7, SHA, base=BASE)
    github.merge_base = MERGE_BASE
    assert base_commit_of(found(client, tmp_path, workflow_run(7)), digits, client, REPOSITORY) == commit


@pytest.mark.parametrize("fault", [{"status": 404}, {"status": 200, "body": "[]"}, {"status": 200, "body": "{}"}])
def test_without_a_merge_base_there_is_no_link(
    github: FakeGitHub, client: Client, tmp_path: Path, fault: dict[str, Any]
) -> None:
    github.pull(7, SHA, base=BASE)
    github.fail("GET", "compare", **fault)
    assert base_commit_of(found(client, tmp_path, workflow_run(7)), "d" * 10, client, REPOSITORY) == ""
