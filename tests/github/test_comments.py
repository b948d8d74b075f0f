"""One comment, found by its marker and its author, created once and updated in place."""

from collections.abc import Callable
from typing import Any

import pytest

from harness.errors import GitHubError
from harness.github.comments import OwnComments, own_login
from harness.github_api import Client
from tests.github.fake_github import BOT, FakeGitHub

MARKER = "<!--harness comparison: suites/esrgan.toml-->"
OLD, NEW = f"{MARKER}\n\nold\n", f"{MARKER}\n\nnew\n"


def post(client: Client, body: str = NEW, existing: list[str] | None = None) -> str:
    """What became of it: one word, of which the sentence has more."""
    comments = OwnComments(client, "o/r", BOT, 7)
    return comments.put(body, comments.with_marker(MARKER) if existing is None else []).partition(" ")[0]


def test_it_is_created_then_updated_in_place_then_left_and_of_duplicates_the_newest(
    github: FakeGitHub, client: Client
) -> None:
    assert (post(client, OLD), post(client, NEW)) == ("created", "updated")
    github.requests.clear()
    for stored in (NEW, NEW.strip(), NEW.replace("\n", "\r\n")):
        github.comments[0]["body"] = stored
        assert post(client) == "https://github.example/o/r/7#1001"  # says this already
    assert set(github.methods) == {"GET"}
    github.comment(OLD)
    assert post(client, f"{NEW}more") == "updated"
    assert github.bodies == [NEW.replace("\n", "\r\n"), f"{NEW}more"]


@pytest.mark.parametrize(
    ("body", "login"),
    [
        *[(OLD, login) for login in ("mallory", "github-actions", "GITHUB-ACTIONS[BOT]x", "")],
        *[(body, BOT) for body in (f"> {OLD}", f"As was said:\n{OLD}", f"{MARKER} and more", "")],
        ("<!--harness comparison: suites/other.toml-->\n\nof another suite", BOT),
        ("<!--harness report: suites/esrgan.toml-->\n\nof a run", BOT),
    ],
)
def test_what_others_wrote_and_what_has_another_marker_is_never_changed(
    github: FakeGitHub, client: Client, body: str, login: str
) -> None:
    github.comment(body, login=login)
    github.comments += [{"id": 1, "body": None, "user": None}, {"id": "x", "body": OLD, "user": {"login": BOT}}, {}]
    assert post(client) == "created"
    assert github.bodies[0] == body


# --- Where nobody knows whether a comment was created ---


def test_a_comment_that_was_created_or_changed_without_an_answer_is_not_created_again(
    github: FakeGitHub, client: Client
) -> None:
    github.fail("POST", "comments", "lost")
    assert post(client, OLD) == "created"
    github.fail("PATCH", "comments", "lost")
    assert post(client, NEW) == "updated"
    assert github.bodies == [NEW]
    github.comments.clear()
    github.comment(OLD)  # another job's, meanwhile
    github.fail("POST", "comments", status=502)
    assert post(client, NEW, existing=[]) == "updated"
    assert github.bodies == [NEW]


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize(
    "fault", [{"kind": "reset"}, {"kind": "hang"}, {"status": 201, "body": "<html>"}, {"status": 204, "body": ""}]
)
def test_a_comment_that_was_not_created_is_created_after_the_comments_were_read_again(
    github: FakeGitHub, client: Client, fault: dict[str, Any]
) -> None:
    github.fail("POST", "comments", **fault)
    assert post(client) == "created"
    assert github.bodies == [NEW]
    assert github.methods == ["GET", "POST", "GET", "POST"]


def test_a_success_that_shows_no_comment_is_none(github: FakeGitHub, client_with: Callable[[float], Client]) -> None:
    for method, body, why in (("POST", "", "write to"), ("PATCH", OLD, "change its comment on")):
        if body:
            github.comment(body)
        github.fail(method, "comments", times=5, status=200, body="{}")
        with pytest.raises(GitHubError, match=f"shows no comment when asked to {why} #7 of"):
            post(client_with(2))
        github.faults.clear()
    assert github.bodies == [OLD]


def test_whose_token_it_is(github: FakeGitHub, client: Client) -> None:
    assert own_login(client) == BOT  # a workflow's, which may not ask
    github.login = "ada"
    assert own_login(client) == "ada"
    github.fail("GET", "user", status=401, body='{"message": "Bad credentials"}')
    with pytest.raises(GitHubError, match=r"answers 401 \(Bad credentials\): the token is wrong or has expired"):
        own_login(client)


def test_an_issue_is_found_among_pull_requests_and_updated(github: FakeGitHub, client: Client) -> None:
    github.issues.append({"number": 3, "body": OLD, "user": {"login": BOT}, "pull_request": {}})
    issues = OwnComments(client, "o/r", BOT, None)
    outcomes = [issues.put(body, issues.with_marker(MARKER), title="Compiler changes") for body in (OLD, NEW)]
    assert [outcome.partition(" ")[0] for outcome in outcomes] == ["created", "updated"]
    assert [issue["body"] for issue in github.issues] == [OLD, NEW]
    assert github.requests[1].document["title"] == "Compiler changes"
    assert github.requests[0].query.items() >= {"state": "open", "creator": BOT}.items()
