"""One comment, found by its marker and its author, created once and updated in place."""

from collections.abc import Callable

import pytest

from harness.errors import GitHubError
from harness.github.api import Client
from harness.github.comments import OwnComments, own_login
from tests.github.fake_github import BOT, FakeGitHub

MARKER = "<!--harness comparison: suites/esrgan.toml-->"
OLD, NEW = f"{MARKER}\n\nold\n", f"{MARKER}\n\nnew\n"


def post(client: Client, body: str = NEW) -> str:
    """What became of it: one word, of which the sentence has more."""
    comments = OwnComments(client, "o/r", BOT, 7)
    return comments.put(body, comments.with_marker(MARKER)).partition(" ")[0]


def test_it_is_created_then_updated_in_place_then_left(github: FakeGitHub, client: Client) -> None:
    comments = OwnComments(client, "o/r", BOT, 7)
    github.comment("a person's", login="somebody")
    url = "https://github.example/o/r/7#1002"
    assert comments.put(OLD, comments.with_marker(MARKER)) == f"created {url}"
    assert comments.put(NEW, comments.with_marker(MARKER)) == f"updated {url}"
    github.requests.clear()
    for stored in (NEW, NEW.strip(), NEW.replace("\n", "\r\n")):
        github.comments[1]["body"] = stored
        assert comments.put(NEW, comments.with_marker(MARKER)) == f"{url} says this already; nothing is sent"
    assert set(github.methods) == {"GET"}
    assert github.bodies[0] == "a person's"


@pytest.mark.parametrize(
    ("body", "login"),
    [
        *[(OLD, login) for login in ("mallory", "github-actions", "GITHUB-ACTIONS[BOT]x", "")],
        *[
            (body, BOT)
            for body in (
                f"> {OLD}",
                f"As was said:\n{OLD}",
                "<!--harness comparison: suites/other.toml-->\n\nof another suite",
                "<!--harness report: suites/esrgan.toml-->\n\nof a run",
                f"{MARKER} and more",
                "",
            )
        ],
    ],
)
def test_what_others_wrote_and_what_has_another_marker_is_never_changed(
    github: FakeGitHub, client: Client, body: str, login: str
) -> None:
    github.comment(body, login=login)
    github.comments += [{"id": 1, "body": None, "user": None}, {"id": "x", "body": OLD, "user": {"login": BOT}}, {}]
    assert post(client) == "created"
    assert github.bodies[0] == body


def test_of_duplicates_the_newest_is_kept_up_to_date_and_the_user_hears_of_the_others(
    github: FakeGitHub, client: Client, sentences: list[str]
) -> None:
    older = github.comment(OLD)
    github.comment(OLD)
    assert post(client) == "updated"
    assert github.bodies == [OLD, NEW]
    assert sentences == [
        f"#7 of o/r has 2 comments of this suite; the newest is kept up to date, delete {older['html_url']}"
    ]


# --- Where nobody knows whether a comment was created ---

NOT_GITHUBS = [{"status": 201, "body": "<html>"}, {"status": 200, "body": "{}"}, {"status": 204, "body": ""}]


def test_a_comment_that_was_created_or_changed_without_an_answer_is_not_created_again(
    github: FakeGitHub, client: Client, waits: list[float]
) -> None:
    github.fail("POST", "comments", "lost")
    assert post(client, OLD) == "created"
    github.fail("PATCH", "comments", "lost")
    assert post(client, NEW) == "updated"
    assert github.bodies == [NEW]
    assert waits == [1, 1]


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("fault", [{"kind": "reset"}, {"kind": "hang"}, {"status": 500}, *NOT_GITHUBS])
def test_a_comment_that_was_not_created_is_created_after_the_comments_were_read_again(
    github: FakeGitHub, client: Client, fault: dict[str, str]
) -> None:
    github.fail("POST", "comments", **fault)  # type: ignore[arg-type]  # kinds of faults, by name
    assert post(client) == "created"
    assert github.bodies == [NEW]
    assert github.methods == ["GET", "POST", "GET", "POST"]


def test_a_success_that_shows_no_comment_is_none(github: FakeGitHub, client_with: Callable[[float], Client]) -> None:
    for method, existing in (("POST", []), ("PATCH", [OLD])):
        for body in existing:
            github.comment(body)
        github.fail(method, "comments", times=5, status=200, body="{}")
        with pytest.raises(GitHubError, match=r"shows no comment when asked to (write to|change its comment on) #7 of"):
            post(client_with(2))
        assert github.bodies == existing
        github.faults.clear()


def test_a_comment_of_another_job_meanwhile_is_updated(github: FakeGitHub, client: Client) -> None:
    comments = OwnComments(client, "o/r", BOT, 7)
    existing = comments.with_marker(MARKER)
    github.comment(OLD)
    github.fail("POST", "comments", status=502)
    assert comments.put(NEW, existing).startswith("updated ")
    assert github.bodies == [NEW]


# --- Whose token it is, and issues ---


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
