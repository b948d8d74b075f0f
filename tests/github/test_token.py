"""The token goes to the API's host in a header, and nowhere else."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.errors import GitHubError, UsageError
from harness.github import transport
from harness.github.client import Client
from harness.github.refusals import Purpose
from harness.github.transport import Transport, api_address, token_of
from tests.github.conftest import TOKEN, Waits
from tests.github.fake_github import FakeGitHub, serve

PURPOSE = Purpose(what="look", needs="contents: read")


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeGitHub]:
    """Another host; it takes the place of one with a certificate."""
    state = FakeGitHub()
    server = serve(state)
    yield state
    server.shutdown()
    server.server_close()


def redirect(github: FakeGitHub, method: str, to: str, status: int = 307) -> None:
    github.fail(method, "/repos", status=status, headers={"Location": to}, body="")


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_renamed_repository_is_followed_with_the_token(github: FakeGitHub, client: Client, status: int) -> None:
    redirect(github, "GET", "/repos/o/r/issues/7/comments", status)
    assert client.get("repos/old/name/issues/7/comments", PURPOSE) == []
    assert github.requests[1].headers["authorization"] == f"Bearer {TOKEN}"


def test_what_is_sent_stays_what_it_was_through_a_redirect(github: FakeGitHub, client: Client) -> None:
    redirect(github, "POST", "/repos/o/r/issues/7/comments")
    client.send("POST", "repos/old/name/issues/7/comments", PURPOSE, {"body": "text"})
    assert [comment["body"] for comment in github.comments] == ["text"]


def test_another_host_is_read_without_the_token(
    github: FakeGitHub, elsewhere: FakeGitHub, monkeypatch: pytest.MonkeyPatch, client: Client
) -> None:
    monkeypatch.setattr(transport, "_is_secure", lambda _: True)
    redirect(github, "GET", f"{elsewhere.url}/repos/o/r/issues/7/comments")
    assert client.get("repos/o/r/issues/7/comments", PURPOSE) == []
    (request,) = elsewhere.requests
    assert "authorization" not in request.headers


def test_nothing_is_posted_to_another_host(github: FakeGitHub, elsewhere: FakeGitHub, client: Client) -> None:
    redirect(github, "POST", f"{elsewhere.url}/repos/o/r/issues/7/comments")
    with pytest.raises(GitHubError, match="sends the request on to another host"):
        client.send("POST", "repos/o/r/issues/7/comments", PURPOSE, {"body": "text"})
    assert elsewhere.requests == []


def test_a_circle_of_redirects_ends(github: FakeGitHub, client: Client) -> None:
    for _ in range(20):
        redirect(github, "GET", "/repos/o/r/issues/7/comments")
    with pytest.raises(GitHubError, match="in a circle"):
        client.get("repos/o/r/issues/7/comments", PURPOSE)


def test_a_netrc_file_does_not_take_its_place(
    github: FakeGitHub, client: Client, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "netrc"
    file.write_text("machine 127.0.0.1 login somebody password secret\n")
    monkeypatch.setenv("NETRC", str(file))
    client.get("repos/o/r/issues/7/comments", PURPOSE)
    assert github.requests[0].headers["authorization"] == f"Bearer {TOKEN}"


def test_without_a_token_requests_are_anonymous(github: FakeGitHub, waits: Waits) -> None:
    Client(Transport(github.url, None), patience_s=0, say=print, clock=waits.clock()).get(
        "repos/o/r/issues/7/comments", PURPOSE
    )
    assert "authorization" not in github.requests[0].headers


def test_no_message_shows_it(github: FakeGitHub, client: Client, said: list[str]) -> None:
    github.fail("GET", "/repos", status=403, body=f'{{"message": "bad token {TOKEN}"}}')
    with pytest.raises(GitHubError) as caught:
        client.get("repos/o/r/issues/7/comments", PURPOSE)
    assert TOKEN not in str(caught.value)
    assert "bad token ***" in str(caught.value)


@pytest.mark.parametrize("text", ["two words", "line\nline", "caf\u00e9", "nul\x00"])
def test_what_is_no_token_is_refused_without_showing_it(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        token_of({"GITHUB_TOKEN": text})
    assert text.split()[0] not in str(caught.value)


def test_space_around_it_is_taken_off() -> None:
    assert token_of({"GITHUB_TOKEN": f" {TOKEN}\n"}) == TOKEN
    assert token_of({"GITHUB_TOKEN": " "}) is None
    assert token_of({}) is None


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("http://api.github.com", "is not https"),
        ("http://localhost.example.com", "is not https"),
        ("ftp://api.github.com", "is not https"),
        ("api.github.com", "is no address"),
        ("https://", "is no address"),
        ("https://user:secret@api.github.com", "is no address"),
        ("https://api.github.com?x=1", "is no address"),
        ("https://[", "is no address"),
        ("https://api.github.com:x", "is no address"),
        ("https://api.github.com/\n", "is no address"),
    ],
)
def test_where_no_token_may_go(url: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        api_address(url)


@pytest.mark.parametrize("url", ["https://api.github.com", "https://ghe.example/api/v3/", "http://localhost:8000"])
def test_where_it_may(url: str) -> None:
    assert api_address(url) == url.rstrip("/")
