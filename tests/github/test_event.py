"""Which pull request an event is about: GitHub's payload and API say so, an artifact never does."""

import json
from pathlib import Path
from typing import Any

import pytest

from harness.errors import GitHubError, UsageError
from harness.github.event import pull_request_of, read_event
from harness.github_api import Client
from tests.github.fake_github import SHA, FakeGitHub, pull_request, workflow_run

LATER = "b" * 40


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "event.json"


def pull_of(client: Client, file: Path, payload: Any) -> int | str:
    file.write_text(json.dumps(payload))
    return pull_request_of(read_event(file, "o/r"), client, "o/r")


ODD = "a&state=closed#?%2f$(id)\u00e9"
NONE = f"no open pull request of o/r has the head {SHA[:12]}; nothing is posted"
MOVED = f"#7 has moved on since {SHA[:12]} was measured; nothing is posted"


@pytest.mark.parametrize(
    ("pulls", "payload", "result"),
    [
        # A branch of the repository, whose number the payload has; and the pull request's own event.
        ([{"number": 7}], workflow_run(7), 7),
        ([{"number": 7}], pull_request(7), 7),
        # A fork, whose head leads to it, under whatever name.
        ([{"number": 8, "owner": "somebody"}, {"number": 9, "owner": "fork"}], workflow_run(owner="fork"), 9),
        ([{"number": 9, "owner": "fork", "branch": ODD}], workflow_run(owner="fork", head_branch=ODD), 9),
        # It has moved on, is closed, is another repository's; the fork is gone.
        ([{"number": 7, "sha": LATER}], workflow_run(7), MOVED),
        ([{"number": 7, "sha": LATER}], workflow_run(), MOVED),
        ([{"number": 7, "state": "closed"}], workflow_run(7), NONE),
        ([{"number": 7, "owner": "another"}], workflow_run(7, base_id=2, owner="fork"), NONE),
        ([{"number": 7}], workflow_run(head_repository=None), NONE),
        ([{"number": 7}], workflow_run(head_repository={"owner": {"login": ""}}), NONE),
        ([{"number": 7}], pull_request(8, repo=None), "answers 404"),
        ([{"number": 7}, {"number": 8}], workflow_run(7, 8), "#7, #8 have the same head aaaaaaaaaaaa; say with --pr"),
    ],
)
def test_the_pull_request_of_an_event(
    github: FakeGitHub, client: Client, file: Path, pulls: list[dict[str, Any]], payload: Any, result: int | str
) -> None:
    for pull in pulls:
        github.pull(**{"sha": SHA, **pull})
    try:
        found = pull_of(client, file, payload)
    except GitHubError as error:
        assert str(result) in str(error)
    else:
        assert found == result


NOT_EVENTS: tuple[Any, ...] = (
    {"repository": {"full_name": "o/r"}},
    workflow_run("7; rm -rf"),  # type: ignore[arg-type]  # hostile
    workflow_run(pull_requests="7"),
    workflow_run(7, head_sha="$(id)"),
    [],
    None,
)


@pytest.mark.parametrize(
    ("payload", "sentence"),
    [
        ({**workflow_run(7), "repository": {"full_name": "o/other"}}, r"is of o/other and --repo is o/r"),
        (workflow_run(7, event="push"), r"was started by push and belongs to no pull request"),
        (workflow_run(event="push\n::error::x"), r"was started by push ::error::x and"),
        *[(payload, r"is no event of a pull request or of a workflow run") for payload in NOT_EVENTS],
    ],
)
def test_a_payload_of_something_else(client: Client, file: Path, payload: Any, sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence) as caught:
        pull_of(client, file, payload)
    assert "\n" not in str(caught.value)
    with pytest.raises(UsageError, match=r"cannot be read \(No such file or directory\); correct the path"):
        read_event(file.with_name("none.json"), "o/r")
