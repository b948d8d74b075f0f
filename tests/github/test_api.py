"""The client: what it does when GitHub is slow, broken, or refuses, and where it sends the token."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.errors import GitHubError, UsageError
from harness.github_api import Client, Purpose, api_address, repository_named, server_of, token_of
from tests.github.conftest import NOON, TOKEN
from tests.github.fake_github import FakeGitHub

LIST = "repos/o/r/issues/7/comments"
PURPOSE = Purpose(what="read the comments of #7", needs="pull-requests: write")


def error_of(client: Client) -> GitHubError:
    """What the client says of the list."""
    with pytest.raises(GitHubError) as caught:
        list(client.pages(LIST, PURPOSE, {}))
    assert "\n" not in str(caught.value)
    assert "\x1b" not in str(caught.value)
    return caught.value


@pytest.mark.parametrize(
    ("limits", "waited"),
    [
        ([{"Retry_After": "17"}], [17]),
        ([{"Retry_After": "0"}], [1]),
        # A second more, since clocks differ.
        ([{"X_RateLimit_Remaining": "0", "X_RateLimit_Reset": f"{NOON + 90:.0f}"}], [91]),
        # A secondary limit without headers, or with others: a minute, then two.
        ([{}, {"status": 429, "Retry_After": "soon"}], [60, 120]),
    ],
)
def test_a_rate_limit_is_waited_for(
    github: FakeGitHub, client: Client, waits: list[float], sentences: list[str], limits: Any, waited: list[float]
) -> None:
    for limit in limits:
        github.limit("GET", LIST, **limit)
    assert client.get(LIST, PURPOSE) == []
    assert waits == waited
    assert sentences[0].endswith(f"limits how often it may be asked; again in {waited[0]} s (waited 0 of 300 s)")
    github.limit("GET", LIST, Retry_After="3600")
    assert str(error_of(client)).endswith(f"until 09:{sum(waited) // 60:02} UTC, longer than is waited; try again then")


@pytest.mark.usefixtures("impatient")
def test_a_server_that_fails_is_asked_again_after_growing_pauses_until_patience_ends(
    github: FakeGitHub, client: Client, client_with: Callable[[float], Client], waits: list[float], sentences: list[str]
) -> None:
    github.fail("GET", LIST, status=502)
    github.fail("GET", LIST, "reset")
    github.fail("GET", LIST, "hang")
    assert client.get(LIST, PURPOSE) == []
    assert waits == [1, 2, 4]
    assert sentences[0].endswith("answered 502 when asked to read the comments of #7; again in 1 s (waited 0 of 300 s)")
    waits.clear()
    github.fail("GET", LIST, status=502, times=10)
    assert str(error_of(client_with(10))).endswith(
        "answered 502 when asked to read the comments of #7; try again later"
    )
    assert waits == [1, 2, 4]  # eight more would be fifteen


def test_what_must_not_be_done_twice_is_repeated_only_where_it_was_not_done(github: FakeGitHub, client: Client) -> None:
    github.limit("POST", LIST, Retry_After="2")
    github.fail("POST", LIST, "lost")
    with pytest.raises(GitHubError) as caught:
        client.send("POST", LIST, PURPOSE, {"body": "once"}, repeatable=False)
    assert caught.value.uncertain
    assert github.bodies == ["once"]


@pytest.mark.parametrize(
    ("fault", "sentence"),
    [
        ({"status": 401}, "answers 401 (it is broken): the token is wrong or has expired; set GITHUB_TOKEN to one"),
        ({"status": 403}, "does not let this token read the comments of #7; give the workflow's job `permissions: pul"),
        ({"status": 404}, "it cannot read the comments of #7: there is no such thing, or the token may not see it; "),
        ({"status": 418}, "answers 418 (it is broken): so it did not read the comments of #7"),
        *[
            ({"status": 403, "body": body}, "does not let this token")
            for body in ("<html>", "[]", '{"message": "a\\nb\\u001b[31m"}', "[" * 100_000)
        ],
        ({"status": 403, "body": f'{{"message": "bad {TOKEN}"}}'}, "answers 403 (bad ***): it does not"),
        ({"status": 200, "body": "<html>welcome</html>"}, "answers something that is not JSON; check $GITHUB_API_URL"),
        ({"status": 200, "body": "{}"}, "gave no list when asked to read the comments of #7"),
    ],
)
def test_a_refusal_is_one_sentence_and_not_repeated(
    github: FakeGitHub, client: Client, waits: list[float], fault: dict[str, Any], sentence: str
) -> None:
    github.fail("GET", LIST, **fault)
    error = error_of(client)
    assert sentence in str(error)
    assert TOKEN not in str(error)
    assert waits == []


def test_a_list_is_read_to_its_last_page_with_the_token_and_no_netrc_file_takes_its_place(
    github: FakeGitHub, client: Client, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login somebody password secret\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    github.page_size = 2
    for number in range(5):
        github.comment(str(number))
    assert [item["body"] for item in client.pages(LIST, PURPOSE, {})] == ["0", "1", "2", "3", "4"]
    assert {request.headers["authorization"] for request in github.requests} == {f"Bearer {TOKEN}"}
    Client(github.url, None, patience_s=0, say=print).get(LIST, PURPOSE)
    assert "authorization" not in github.requests[-1].headers


def test_a_renamed_repository_is_followed_with_the_token(github: FakeGitHub, client: Client) -> None:
    for status in (301, 307):
        github.fail("POST", "/repos", status=status, headers={"Location": f"/{LIST}"}, body="")
        client.send("POST", "repos/old/name/issues/7/comments", PURPOSE, {"body": "text"})
    assert {request.headers["authorization"] for request in github.requests} == {f"Bearer {TOKEN}"}
    assert github.bodies == ["text", "text"]


@pytest.mark.parametrize("address", ["http://localhost:{port}/p", "https://127.0.0.1:{port}/p"])
def test_nothing_is_sent_to_another_host(github: FakeGitHub, client: Client, address: str) -> None:
    elsewhere = address.format(port=github.url.rpartition(":")[2])
    github.fail("GET", LIST, status=200, headers={"Link": f'<{elsewhere}>; rel="next"'}, body='[{"id": 1}]')
    assert "sends the request on to another host" in str(error_of(client))
    for method in ("GET", "POST"):
        github.fail(method, "/repos", status=307, headers={"Location": elsewhere}, body="")
        with pytest.raises(GitHubError, match="sends the request on to another host"):
            client.send(method, LIST, PURPOSE, None)
    assert len(github.requests) == 3


@pytest.mark.parametrize(
    ("check", "values", "sentence"),
    [
        (lambda text: token_of({"GITHUB_TOKEN": text}), ["two words", "line\nline", "caf\u00e9", "nul\x00"],
         "GITHUB_TOKEN: holds spaces"),
        (api_address, ["http://api.github.com", "http://localhost.example.com"], "is not https"),
        (api_address, ["api.github.com", "https://[", "https://user:secret@api.github.com", "https://api.github.com/\n"],
         "is no address of an API"),
        (repository_named, ["o", "o/r/x", "../r", "o/..", "o/.", "o/r?x", "o r/x", "", "-o/r", "o/r\n"],
         "is no repository of GitHub; write it as owner/name"),
    ],
    ids=["tokens", "addresses that are read on the way", "no addresses", "no repositories"],
)  # fmt: skip
def test_what_is_given_is_checked(check: Callable[[str], object], values: list[str], sentence: str) -> None:
    for value in values:
        with pytest.raises(UsageError, match=sentence) as caught:
            check(value)
        assert "caf" not in str(caught.value)  # a token is not shown
    apis = ("https://api.github.com", "https://ghe.example/api/v3")
    assert list(map(server_of, apis)) == ["https://github.com", "https://ghe.example"]
