"""Pictures on a branch of their own, linked by commit."""

from __future__ import annotations

import base64
from collections.abc import Callable
from dataclasses import replace

import pytest

from harness.errors import GitHubError, UsageError
from harness.github.client import Client
from harness.github.pictures import Shelf, already_there, branch_named, publish, server_of
from harness.github.values import Comment, repository_named
from tests.github.conftest import Waits
from tests.github.fake_github import FakeGitHub

SHELF = Shelf(
    repository=repository_named("o/r"),
    branch="harness-pictures",
    server="https://github.com",
    folder="pr-7/0123456789ab",
)
FILES = {"forest-light.png": b"\x89PNG light", "forest-dark.png": b"\x89PNG dark"}
PATHS = {f"{SHELF.folder}/{name}" for name in FILES}


def test_the_first_time_a_branch_without_parents_is_made(github: FakeGitHub, client: Client) -> None:
    commit = publish(client, SHELF, FILES)
    assert github.branches == {"harness-pictures": commit}
    assert github.objects[commit]["parents"] == []
    files = github.files("harness-pictures")
    assert files.keys() == PATHS
    light = github.objects[files["pr-7/0123456789ab/forest-light.png"]]
    assert base64.b64decode(light["content"]) == FILES["forest-light.png"]


def test_later_pictures_join_the_others(github: FakeGitHub, client: Client) -> None:
    first = publish(client, SHELF, FILES)
    second = publish(client, replace(SHELF, folder="pr-8/ba9876543210"), FILES)
    assert github.objects[second]["parents"] == [first]
    assert len(github.files("harness-pictures")) == 4


def test_they_are_linked_by_the_commit_that_has_them(client: Client) -> None:
    commit = publish(client, SHELF, FILES)
    assert SHELF.url(commit, "forest-light.png") == (
        f"https://github.com/o/r/raw/{commit}/pr-7/0123456789ab/forest-light.png"
    )


@pytest.mark.parametrize("races", [1, 3])
def test_where_another_job_was_faster_they_are_added_to_its_commit(
    github: FakeGitHub, client: Client, waits: Waits, races: int
) -> None:
    github.commit_to("harness-pictures", "pr-1/a/forest-light.png")
    for race in range(races):
        path = f"pr-9/{race}/forest-light.png"
        github.fail("PATCH", "refs", "first", do=lambda path=path: github.commit_to("harness-pictures", path))
    said: list[str] = []
    publish(client, SHELF, FILES, say=said.append)
    files = github.files("harness-pictures")
    assert files.keys() == PATHS | {"pr-1/a/forest-light.png", *(f"pr-9/{n}/forest-light.png" for n in range(races))}
    assert said == ["branch harness-pictures has moved on meanwhile; adding the pictures again"] * races


def test_where_two_jobs_make_the_branch_both_are_kept(github: FakeGitHub, client: Client) -> None:
    other = "pr-1/a/forest-light.png"
    github.fail("POST", "refs", "first", do=lambda: github.commit_to("harness-pictures", other))
    publish(client, SHELF, FILES)
    assert github.files("harness-pictures").keys() == {*PATHS, other}


def test_a_race_without_end_is_given_up(github: FakeGitHub, client: Client) -> None:
    github.commit_to("harness-pictures", "x")
    for _ in range(10):
        github.fail("PATCH", "refs", status=422, body='{"message": "Update is not a fast forward"}')
    with pytest.raises(GitHubError, match=r"Update is not a fast forward"):
        publish(client, SHELF, FILES)
    assert sum(line.startswith("PATCH") for line in github.sent()) == 6


def test_a_branch_that_was_moved_without_an_answer(github: FakeGitHub, client: Client) -> None:
    github.commit_to("harness-pictures", "x")
    github.fail("PATCH", "refs", "lost")
    publish(client, SHELF, FILES)
    assert github.files("harness-pictures").keys() == {*PATHS, "x"}


def test_without_the_permission_the_sentence_names_it(github: FakeGitHub, client: Client) -> None:
    github.fail("POST", "blobs", status=403, body='{"message": "Resource not accessible by integration"}')
    with pytest.raises(GitHubError, match=r"keep forest-light\.png; .* `permissions: contents: write`"):
        publish(client, SHELF, FILES)


def test_an_answer_without_a_hash_is_not_githubs(github: FakeGitHub, client: Client) -> None:
    github.fail("POST", "blobs", status=201, body='{"sha": "../../etc"}')
    with pytest.raises(GitHubError, match="without the hash"):
        publish(client, SHELF, FILES)


# --- Pictures that are there already ---


def commented(body: str) -> list[Comment]:
    return [Comment(number=1, body=body, login="github-actions[bot]", url="")]


@pytest.mark.parametrize(
    ("body", "found"),
    [
        (f"![plot]({SHELF.url('a' * 40, 'forest-light.png')})", True),
        (f"![plot]({replace(SHELF, folder='pr-7/other').url('a' * 40, 'forest-light.png')})", False),
        (f"![plot]({replace(SHELF, folder='pr-8/0123456789ab').url('a' * 40, 'forest-light.png')})", False),
        (f"![plot]({SHELF.url('main', 'forest-light.png')})", False),
        ("no pictures", False),
    ],
)
def test_the_same_data_has_the_same_pictures(body: str, found: bool) -> None:
    assert already_there(SHELF, commented(body)) == ("a" * 40 if found else None)


# --- Names and places ---


@pytest.mark.parametrize("name", ["harness-pictures", "ci/pictures", "v1.2_x"])
def test_names_of_branches(name: str) -> None:
    assert branch_named(name) == name


@pytest.mark.parametrize(
    "name", ["", "-x", "a b", "a..b", "a/", "/a", "a//b", "x.lock", "a~1", "a:b", "a\nb", "x" * 300]
)
def test_what_is_no_name_of_a_branch(name: str) -> None:
    with pytest.raises(UsageError, match=r"is no name of a branch; harness-pictures is one"):
        branch_named(name)


@pytest.mark.parametrize(
    ("api", "server"),
    [("https://api.github.com", "https://github.com"), ("https://ghe.example/api/v3", "https://ghe.example")],
)
def test_where_people_see_a_repository(api: str, server: str) -> None:
    assert server_of(api) == server


def test_patience_is_the_clients(github: FakeGitHub, client_with: Callable[[float], Client]) -> None:
    github.commit_to("harness-pictures", "x")
    github.fail("PATCH", "refs", status=422, body='{"message": "Update is not a fast forward"}')
    with pytest.raises(GitHubError, match="fast forward"):
        publish(client_with(0), SHELF, FILES)
