"""One comment, found by its marker and its author, created once and updated in place."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from harness.errors import GitHubError
from harness.github.client import Client
from harness.github.comments import own_comments, own_login, put
from harness.github.values import Posted, comments_of, issues_of, repository_named
from tests.github.conftest import Waits
from tests.github.fake_github import BOT, FakeGitHub

THREAD = comments_of(repository_named("o/r"), 7)
MARKER = "<!--harness comparison: suites/esrgan.toml-->"
OLD, NEW = f"{MARKER}\n\nold\n", f"{MARKER}\n\nnew\n"


def post(client: Client, body: str = NEW) -> Posted:
    return put(client, THREAD, body, BOT, own_comments(client, THREAD, MARKER, BOT))


def bodies(github: FakeGitHub) -> list[str]:
    return [comment["body"] for comment in github.comments]


def test_the_first_time_it_is_created(github: FakeGitHub, client: Client) -> None:
    posted = post(client)
    assert (posted.outcome, posted.url) == ("created", github.comments[0]["html_url"])
    assert bodies(github) == [NEW]


def test_the_next_time_it_is_updated_in_place(github: FakeGitHub, client: Client) -> None:
    github.comment("a person's")
    github.comment(OLD)
    posted = post(client)
    assert posted.outcome == "updated"
    assert bodies(github) == ["a person's", NEW]


@pytest.mark.parametrize("there", [NEW, NEW.strip(), NEW.replace("\n", "\r\n")])
def test_what_is_there_already_is_not_sent(github: FakeGitHub, client: Client, there: str) -> None:
    github.comment(there)
    assert post(client).outcome == "unchanged"
    assert github.sent("POST", "PATCH") == []


def test_it_is_found_on_the_third_page(github: FakeGitHub, client: Client) -> None:
    github.page_size = 3
    for number in range(7):
        github.comment(f"word {number}", login="somebody")
    github.comment(OLD)
    assert post(client).outcome == "updated"
    assert len(github.sent("GET")) == 3


@pytest.mark.parametrize("login", ["mallory", "github-actions", "GITHUB-ACTIONS[BOT]x", ""])
def test_somebody_elses_comment_is_never_changed_whatever_it_quotes(
    github: FakeGitHub, client: Client, login: str
) -> None:
    github.comment(OLD, login=login)
    assert post(client).outcome == "created"
    assert bodies(github) == [OLD, NEW]


@pytest.mark.parametrize(
    "body",
    [
        f"> {OLD}",
        f"As was said:\n{OLD}",
        "<!--harness comparison: suites/other.toml-->\n\nof another suite",
        "<!--harness report: suites/esrgan.toml-->\n\nof a run",
        f"{MARKER} and more",
        "",
    ],
)
def test_ones_own_other_comments_stay(github: FakeGitHub, client: Client, body: str) -> None:
    github.comment(body)
    assert post(client).outcome == "created"
    assert bodies(github)[0] == body


def test_a_comment_without_author_or_text_is_passed_over(github: FakeGitHub, client: Client) -> None:
    github.comments += [{"id": 1, "body": None, "user": None}, {"id": "x", "body": OLD, "user": {"login": BOT}}, {}]
    assert post(client).outcome == "created"


def test_of_duplicates_the_newest_is_kept_up_to_date_and_the_user_is_told(github: FakeGitHub, client: Client) -> None:
    github.comment(OLD)
    github.comment(OLD)
    posted = post(client)
    assert bodies(github) == [OLD, NEW]
    (note,) = posted.notes
    assert note == (
        "#7 of o/r has 2 comments of this suite; the newest is kept up to date, delete "
        f"{github.comments[0]['html_url']}"
    )


# --- Where it is not known whether a comment was created ---


def test_a_comment_that_was_created_without_an_answer_is_not_created_again(
    github: FakeGitHub, client: Client, waits: Waits
) -> None:
    github.fail("POST", "comments", "lost")
    posted = post(client)
    assert (posted.outcome, posted.url) == ("created", github.comments[0]["html_url"])
    assert bodies(github) == [NEW]
    assert waits.seconds == [1]


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize(
    "fault",
    [
        {"kind": "reset"},
        {"kind": "hang"},
        {"status": 500},
        {"status": 502},
        {"status": 201, "body": "<html>"},
        {"status": 200, "body": "{}"},
        {"status": 204, "body": ""},
    ],
)
def test_a_comment_that_was_not_created_is_created_after_another_look(
    github: FakeGitHub, client: Client, fault: dict[str, str]
) -> None:
    github.fail("POST", "comments", **fault)  # type: ignore[arg-type]  # kinds of faults, by name
    assert post(client).outcome == "created"
    assert bodies(github) == [NEW]
    assert [line.partition(" ")[0] for line in github.sent()] == ["GET", "POST", "GET", "POST"]


@pytest.mark.parametrize(("status", "text"), [(200, "{}"), (204, ""), (201, "[]")])
@pytest.mark.parametrize("there", [[], [OLD]])
def test_a_success_that_shows_no_comment_is_none(
    github: FakeGitHub, client_with: Callable[[float], Client], there: list[str], status: int, text: str
) -> None:
    for body in there:
        github.comment(body)
    for _ in range(5):
        github.fail("PATCH" if there else "POST", "comments", status=status, body=text)
    with pytest.raises(GitHubError, match=r"shows no comment when asked to (write to|change its comment on) #7 of o/r"):
        post(client_with(2))
    assert bodies(github) == there


def test_an_address_is_shown_on_one_line(github: FakeGitHub, client: Client) -> None:
    made = '{"id": 1, "user": {"login": "x"}, "body": "", "html_url": "http://x/\\n::error::y\\u001b[31m"}'
    github.fail("POST", "comments", status=201, body=made)
    assert post(client).url == "http://x/ ::error::y"


def test_a_comment_of_another_job_meanwhile_is_updated(github: FakeGitHub, client: Client) -> None:
    found = own_comments(client, THREAD, MARKER, BOT)
    github.comment(OLD)
    github.fail("POST", "comments", status=502)
    assert put(client, THREAD, NEW, BOT, found).outcome == "updated"
    assert bodies(github) == [NEW]


def test_creating_ends_with_patience(github: FakeGitHub, client_with: Callable[[float], Client], waits: Waits) -> None:
    for _ in range(10):
        github.fail("POST", "comments", status=500)
    with pytest.raises(GitHubError, match="answered 500 when asked to write to #7 of o/r"):
        post(client_with(8))
    assert waits.seconds == [1, 2, 4]
    assert bodies(github) == []


def test_changing_twice_is_changing_once(github: FakeGitHub, client: Client) -> None:
    github.comment(OLD)
    github.fail("PATCH", "comments", "lost")
    assert post(client).outcome == "updated"
    assert bodies(github) == [NEW]


def test_without_the_permission_the_sentence_names_it(github: FakeGitHub, client: Client) -> None:
    github.fail("POST", "comments", status=403, body='{"message": "Resource not accessible by integration"}')
    with pytest.raises(GitHubError) as caught:
        post(client)
    assert str(caught.value).endswith(
        "answers 403 (Resource not accessible by integration): it does not let this token write to #7 of o/r; give the "
        "workflow's job `permissions: pull-requests: write`, or take another token"
    )


# --- Whose token it is ---


def test_a_persons_token_says_whose_it_is(github: FakeGitHub, client: Client) -> None:
    github.login = "ada"
    assert own_login(client) == "ada"


def test_a_workflows_token_may_not_say(client: Client) -> None:
    assert own_login(client) == BOT


def test_a_wrong_token_is_said_at_once(github: FakeGitHub, client: Client) -> None:
    github.fail("GET", "user", status=401, body='{"message": "Bad credentials"}')
    with pytest.raises(GitHubError, match=r"answers 401 \(Bad credentials\): the token is wrong or has expired"):
        own_login(client)


# --- Issues ---


def test_an_issue_is_found_among_pull_requests_and_updated(github: FakeGitHub, client: Client) -> None:
    github.issues.append({"number": 3, "body": OLD, "user": {"login": BOT}, "pull_request": {}})
    issues = issues_of(repository_named("o/r"))
    first = put(client, issues, OLD, BOT, own_comments(client, issues, MARKER, BOT), title="Compiler changes")
    again = put(client, issues, NEW, BOT, own_comments(client, issues, MARKER, BOT), title="Compiler changes")
    assert (first.outcome, again.outcome) == ("created", "updated")
    assert [issue["body"] for issue in github.issues] == [OLD, NEW]
    query = github.requests[0].query
    assert (query["state"], query["creator"]) == ("open", BOT)
