"""What the client does when GitHub is slow, broken, or refuses."""

from __future__ import annotations

import json
import math
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import GitHubError
from harness.github.client import Client, next_page
from harness.github.refusals import Purpose, limit_wait_s, message_of
from harness.github.transport import Answer
from tests.github.conftest import NOON, TOKEN, Waits
from tests.github.fake_github import FakeGitHub

LIST = "repos/o/r/issues/7/comments"
NUMBERS = (st.floats() | st.integers()).map(str)
PURPOSE = Purpose(what="read the comments of #7", needs="pull-requests: write")

# --- Limits ---


def test_a_rate_limit_that_says_how_long_is_waited_for(github: FakeGitHub, client: Client, waits: Waits) -> None:
    github.limit("GET", LIST, Retry_After="17")
    assert client.get(LIST, PURPOSE) == []
    assert waits.seconds == [17]


def test_an_exhausted_rate_limit_is_waited_for_until_it_ends(
    github: FakeGitHub, client: Client, waits: Waits, said: list[str]
) -> None:
    github.limit("GET", LIST, X_RateLimit_Remaining="0", X_RateLimit_Reset=f"{NOON + 90:.0f}")
    assert client.get(LIST, PURPOSE) == []
    assert waits.seconds == [91]  # a second more, since clocks differ
    (sentence,) = said
    assert sentence.endswith("limits how often it may be asked; again in 91 s (waited 0 of 300 s)")


def test_a_secondary_rate_limit_without_headers_is_waited_for_a_minute_then_two(
    github: FakeGitHub, client: Client, waits: Waits
) -> None:
    github.limit("GET", LIST)
    github.limit("GET", LIST, status=429)
    assert client.get(LIST, PURPOSE) == []
    assert waits.seconds == [60, 120]


@pytest.mark.parametrize("header", ["soon", "-5", "nan", "1e999"])
def test_a_limit_of_no_sensible_length_is_waited_for_a_minute(
    github: FakeGitHub, client: Client, waits: Waits, header: str
) -> None:
    github.limit("GET", LIST, Retry_After=header)
    assert client.get(LIST, PURPOSE) == []
    assert waits.seconds == [60]


def test_a_limit_longer_than_patience_is_said_at_once(github: FakeGitHub, client: Client, waits: Waits) -> None:
    github.limit("GET", LIST, X_RateLimit_Remaining="0", X_RateLimit_Reset=f"{NOON + 3599:.0f}")
    with pytest.raises(GitHubError) as caught:
        client.get(LIST, PURPOSE)
    assert "until 09:00 UTC, for 3600 s, longer than is waited" in str(caught.value)
    assert str(caught.value).endswith("post again then, or give --patience 3600")
    assert waits.seconds == []


# --- Servers that fail ---


def test_a_server_that_fails_is_asked_again_after_growing_pauses(
    github: FakeGitHub, client: Client, waits: Waits, said: list[str]
) -> None:
    for status in (500, 502, 503, 504):
        github.fail("GET", LIST, status=status)
    github.fail("GET", LIST, "reset")
    assert client.get(LIST, PURPOSE) == []
    assert waits.seconds == [1, 2, 4, 8, 16]
    assert said[1].endswith("answered 502 when asked to read the comments of #7; again in 2 s (waited 1 of 300 s)")


@pytest.mark.usefixtures("impatient")
def test_a_server_that_says_nothing_is_asked_again(github: FakeGitHub, client: Client, waits: Waits) -> None:
    github.fail("GET", LIST, "hang")
    assert client.get(LIST, PURPOSE) == []
    assert waits.seconds == [1]


def test_patience_ends(github: FakeGitHub, client_with: Callable[[float], Client], waits: Waits) -> None:
    for _ in range(10):
        github.fail("GET", LIST, status=502)
    with pytest.raises(GitHubError, match=r"answered 502 when asked to read .* post again later, or give a longer"):
        client_with(10).get(LIST, PURPOSE)
    assert waits.seconds == [1, 2, 4]  # eight more would be fifteen
    assert len(github.requests) == 4


def test_patience_is_shared_by_all_requests(
    github: FakeGitHub, client_with: Callable[[float], Client], waits: Waits
) -> None:
    impatient = client_with(100)
    github.limit("GET", LIST, Retry_After="80")
    impatient.get(LIST, PURPOSE)
    github.limit("GET", LIST, Retry_After="30")
    with pytest.raises(GitHubError, match="--patience 110"):
        impatient.get(LIST, PURPOSE)


def test_nobody_there(waits: Waits, github: FakeGitHub, client_with: Callable[[float], Client]) -> None:
    from harness.github.transport import Transport

    client = Client(Transport("http://127.0.0.1:9", TOKEN), patience_s=0, say=print, clock=waits.clock())
    with pytest.raises(GitHubError, match=r"127\.0\.0\.1:9 could not be reached"):
        client.get(LIST, PURPOSE)


def test_what_must_not_be_done_twice_is_not_repeated(github: FakeGitHub, client: Client) -> None:
    github.fail("POST", LIST, "lost")
    with pytest.raises(GitHubError) as caught:
        client.send("POST", LIST, PURPOSE, {"body": "once"}, repeatable=False)
    assert caught.value.uncertain
    assert [comment["body"] for comment in github.comments] == ["once"]


def test_a_rate_limit_did_nothing_so_that_is_repeated(github: FakeGitHub, client: Client) -> None:
    github.limit("POST", LIST, Retry_After="2")
    client.send("POST", LIST, PURPOSE, {"body": "once"}, repeatable=False)
    assert [comment["body"] for comment in github.comments] == ["once"]


# --- Refusals ---


@pytest.mark.parametrize(
    ("status", "says"),
    [
        (401, r"answers 401 \(it is broken\): the token is wrong or has expired; set GITHUB_TOKEN to one that holds"),
        (403, r"it does not let this token read the comments of #7; give .* `permissions: pull-requests: write`"),
        (404, r"it cannot read the comments of #7: there is no such thing, or the token may not see it; check --repo"),
        (410, r"that is gone or switched off"),
        (422, r"it cannot read the comments of #7 as it was sent"),
        (418, r"answers 418 \(it is broken\): so it did not read the comments of #7"),
    ],
)
def test_a_refusal_is_one_sentence_and_not_repeated(
    github: FakeGitHub, client: Client, waits: Waits, status: int, says: str
) -> None:
    github.fail("GET", LIST, status=status)
    with pytest.raises(GitHubError, match=says) as caught:
        client.get(LIST, PURPOSE)
    assert caught.value.status == status
    assert "\n" not in str(caught.value)
    assert waits.seconds == []


@pytest.mark.parametrize(
    "body", ["", "<html>", "[]", '{"message": 7}', '{"message": "a\\nb\\u001b[31m"}', "[" * 100_000, "\ufeff\x00"]
)
def test_whatever_the_refusal_says_it_stays_one_sentence(github: FakeGitHub, client: Client, body: str) -> None:
    github.fail("GET", LIST, status=403, body=body)
    with pytest.raises(GitHubError) as caught:
        client.get(LIST, PURPOSE)
    assert "\n" not in str(caught.value)
    assert "\x1b" not in str(caught.value)
    assert "`permissions: pull-requests: write`" in str(caught.value)


@given(
    st.dictionaries(
        st.sampled_from(["retry-after", "x-ratelimit-remaining", "x-ratelimit-reset"]), st.text() | NUMBERS
    ),
    st.integers(0, 100),
)
def test_a_wait_is_a_time_whatever_the_headers_say(headers: dict[str, str], attempt: int) -> None:
    answer = Answer(status=429, headers=headers, body=b"")
    assert 1 <= limit_wait_s(answer, NOON, attempt) < math.inf


@given(
    st.binary()
    | st.text().map(lambda text: json.dumps({"message": text, "errors": [text, {"message": text}]}).encode())
)
def test_what_an_answer_says_is_one_short_line(body: bytes) -> None:
    said = message_of(Answer(status=403, headers={}, body=body))
    assert len(said) <= 300
    assert len(said.splitlines()) <= 1


@pytest.mark.parametrize("body", ["<html>welcome</html>", "{", "[" * 100_000])
def test_an_answer_that_is_not_json_is_not_githubs(github: FakeGitHub, client: Client, body: str) -> None:
    github.fail("GET", LIST, status=200, body=body)
    with pytest.raises(GitHubError, match="answers something that is not JSON; check --api-url"):
        client.get(LIST, PURPOSE)


# --- Pages ---


def test_a_list_is_read_to_its_last_page(github: FakeGitHub, client: Client) -> None:
    github.page_size = 2
    for number in range(5):
        github.comment(str(number))
    assert [item["body"] for item in client.pages(LIST, PURPOSE, {})] == ["0", "1", "2", "3", "4"]
    assert [request.query.get("page") for request in github.requests] == [None, "2", "3"]
    assert {request.headers["authorization"] for request in github.requests} == {f"Bearer {TOKEN}"}


def test_pages_that_lead_back_are_no_list(github: FakeGitHub, client: Client) -> None:
    """What is not seen in half a list would be created a second time."""
    link = {"Link": f'<{github.url}/{LIST}?page=2>; rel="next"'}
    for _ in range(5):
        github.fail("GET", LIST, status=200, headers=link, body='[{"id": 1}]')
    with pytest.raises(GitHubError, match="gives a list without end when asked to read the comments of #7"):
        list(client.pages(LIST, PURPOSE, {}))


def test_pages_without_end_are_no_list(github: FakeGitHub, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.github.client._MOST_PAGES", 5)
    for page in range(9):
        link = {"Link": f'<{github.url}/{LIST}?page={page + 2}>; rel="next"'}
        github.fail("GET", LIST, status=200, headers=link, body="[]")
    with pytest.raises(GitHubError, match="gives a list without end"):
        list(client.pages(LIST, PURPOSE, {}))
    assert len(github.requests) == 5


@pytest.mark.parametrize("address", ["http://localhost:{port}/p", "http://127.0.0.1:1/p", "ftp://127.0.0.1/p"])
def test_a_page_on_another_host_is_not_fetched_in_the_clear(github: FakeGitHub, client: Client, address: str) -> None:
    link = f'<{address.format(port=github.url.rpartition(":")[2])}>; rel="next"'
    github.fail("GET", LIST, status=200, headers={"Link": link}, body="[]")
    with pytest.raises(GitHubError, match="sends the request on to another host"):
        list(client.pages(LIST, PURPOSE, {}))
    assert len(github.requests) == 1


# --- Servers that do not come to an end ---


@pytest.mark.parametrize(
    "begun", ["HTTP/1.1 200 OK\r\nContent-Length: 60000\r\n\r\n", "HTTP/1.1 200 OK\r\nX-Header: ", "HTTP/1.1 2"]
)
def test_an_answer_in_drops_is_not_waited_for(
    github: FakeGitHub, client_with: Callable[[float], Client], monkeypatch: pytest.MonkeyPatch, begun: str
) -> None:
    """Every byte comes in time, and no answer does."""
    monkeypatch.setattr("harness.github.transport._ANSWER_S", 0.3)
    client = client_with(0)
    github.fail("GET", LIST, "drip", body=begun)
    with pytest.raises(GitHubError, match="did not finish its answer in time when asked to read the comments of #7"):
        client.get(LIST, PURPOSE)
    monkeypatch.setattr("harness.github.transport._ANSWER_S", 30)
    assert client.get(LIST, PURPOSE) == []


def test_a_list_that_is_none(github: FakeGitHub, client: Client) -> None:
    github.fail("GET", LIST, status=200, body="{}")
    with pytest.raises(GitHubError, match="gave no list when asked to read the comments of #7"):
        list(client.pages(LIST, PURPOSE, {}))


@pytest.mark.parametrize(
    ("link", "address"),
    [
        ("", ""),
        ('<https://x/a?page=2>; rel="next", <https://x/a?page=9>; rel="last"', "https://x/a?page=2"),
        ('<https://x/a?page=1>; rel="prev", <https://x/a?page=3>; rel="next"', "https://x/a?page=3"),
        ('<https://x/a?page=1>; rel="first"', ""),
        (";;,,<", ""),
    ],
)
def test_the_next_page(link: str, address: str) -> None:
    assert next_page(link) == address


@pytest.mark.parametrize(
    "header", [{"Retry_After": "1e308"}, {"X_RateLimit_Remaining": "0", "X_RateLimit_Reset": "1e99"}]
)
def test_a_limit_longer_than_any_patience_is_no_number_of_300_digits(
    github: FakeGitHub, client: Client, header: dict[str, str]
) -> None:
    github.limit("GET", LIST, 403, **header)
    with pytest.raises(GitHubError) as caught:
        client.get(LIST, PURPOSE)
    assert str(caught.value).endswith("(You have exceeded a rate limit) for more than 11 days; check --api-url")
