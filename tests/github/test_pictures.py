"""Pictures on a branch of their own, linked by commit."""

from __future__ import annotations

import base64
from dataclasses import replace

import pytest

from harness.errors import GitHubError, UsageError
from harness.github.api import Client
from harness.github.pictures import Shelf, branch_named, publish
from tests.github.fake_github import FakeGitHub

BRANCH = "harness-pictures"
SHELF = Shelf(repository="o/r", branch=BRANCH, server="https://github.com", folder="pr-7/0123456789ab")
FILES = {"forest-light.png": b"\x89PNG light", "forest-dark.png": b"\x89PNG dark"}
PATHS = {f"{SHELF.folder}/{name}" for name in FILES}


def test_a_branch_without_parents_is_made_and_later_pictures_join_it(github: FakeGitHub, client: Client) -> None:
    first = publish(client, SHELF, FILES)
    assert github.branches == {BRANCH: first}
    assert github.objects[first]["parents"] == []
    files = github.files(BRANCH)
    assert files.keys() == PATHS
    light = github.objects[files["pr-7/0123456789ab/forest-light.png"]]
    assert base64.b64decode(light["content"]) == FILES["forest-light.png"]

    second = publish(client, replace(SHELF, folder="pr-8/ba9876543210"), FILES)
    assert github.objects[second]["parents"] == [first]
    assert len(github.files(BRANCH)) == 4


@pytest.mark.parametrize("races", [1, 3])
def test_where_another_job_was_faster_they_are_added_to_its_commit(
    github: FakeGitHub, client: Client, sentences: list[str], races: int
) -> None:
    github.commit_to(BRANCH, "pr-1/a/forest-light.png")
    others = {f"pr-9/{race}/forest-light.png" for race in range(races)}
    for path in others:
        github.fail("PATCH", "refs", "first", do=lambda path=path: github.commit_to(BRANCH, path))
    publish(client, SHELF, FILES)
    assert github.files(BRANCH).keys() == PATHS | others | {"pr-1/a/forest-light.png"}
    moved = [sentence for sentence in sentences if "has moved on" in sentence]
    assert moved == [f"branch {BRANCH} has moved on meanwhile; adding the pictures again"] * races


@pytest.mark.parametrize(
    ("fault", "sentence"),
    [
        ({"status": 403}, r"keep forest-light\.png; .* `permissions: contents: write`"),
        ({"status": 201, "body": '{"sha": "../../etc"}'}, "answers without the hash of what was sent"),
        ({"status": 201, "body": "[]"}, "answers without the hash of what was sent"),
    ],
)
def test_pictures_that_are_not_taken(github: FakeGitHub, client: Client, fault: dict[str, str], sentence: str) -> None:
    github.fail("POST", "blobs", **fault)  # type: ignore[arg-type]  # a fault's fields, by name
    with pytest.raises(GitHubError, match=sentence):
        publish(client, SHELF, FILES)


@pytest.mark.parametrize(
    "name", ["", "-x", "a b", "a..b", "a/", "/a", "a//b", "x.lock", "a~1", "a:b", "a\nb", "x" * 300]
)
def test_names_that_no_branch_has(name: str) -> None:
    with pytest.raises(UsageError, match=r"is no name of a branch; harness-pictures is one"):
        branch_named(name)
