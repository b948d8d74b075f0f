"""Wheels that GitHub's CI built, by a pull request, a run, a commit or main, and why there are none."""

import io
import os
import time
import zipfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from harness.cache import environments_root
from harness.errors import ToolchainError, UsageError
from harness.toolchain import fetched, release_named, releases_named
from harness.toolchain.fetched import commits_with_wheels, kept_wheels
from harness.toolchain.find import LABEL_FILE, bytes_below
from tests.fakes.fake_wheels import REVISION, write_wheels
from tests.github import conftest
from tests.github.conftest import NOON, TOKEN
from tests.github.fake_github import FakeGitHub, running_github

ONE, TWO, THREE = (digit * 40 for digit in "abc")
HEAD = "d" * 40
ARTIFACT = fetched._ARTIFACT
waits = conftest.waits


def zipped(files: Mapping[str, bytes], method: int = zipfile.ZIP_STORED) -> bytes:
    """An archive of these files."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", method) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return stream.getvalue()


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    folder = write_wheels(tmp_path_factory.mktemp("wheels"), "9.8.0.dev0")
    return zipped({wheel.name: wheel.read_bytes() for wheel in folder.glob("*.whl")})


@pytest.fixture
def github(wheels: bytes, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeGitHub]:
    """Three commits on main and a pull request that began at the first; the newest run of main has failed."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1,localhost")
    monkeypatch.setenv("GITHUB_TOKEN", TOKEN)
    monkeypatch.delenv("GITHUB_ACTIONS", raising=False)
    with running_github() as github:
        monkeypatch.setenv("GITHUB_API_URL", github.url)
        github.commits, github.branch_of = [ONE, TWO, THREE], {HEAD: ONE}
        github.pull(7, HEAD, owner="somebody")
        for sha, event in ((ONE, "push"), (TWO, "push"), (HEAD, "pull_request")):
            github.kept(github.ran(sha, event=event), ARTIFACT, wheels)
            github.ran(sha, event=event, path="lint.yml")
        github.kept(github.ran(THREE, conclusion="failure"), ARTIFACT, wheels)
        yield github


@pytest.mark.parametrize(
    ("word", "name", "commit", "run"),
    [
        ("pr:7", "pr.7", HEAD, 7),
        ("other/iree#pr:7", "other.pr.7", HEAD, 7),
        ("iree==pr:7~base", ONE[:10], ONE, 1),
        ("run:7", HEAD[:10], HEAD, 7),
        (f"commit:{TWO[:8]}", TWO[:10], TWO, 4),
        ("main", TWO[:10], TWO, 4),  # the newest that is green
        (f"commit:{THREE}", THREE[:10], THREE, 10),
    ],
)
def test_a_word_leads_to_wheels_that_are_a_toolchain(
    github: FakeGitHub, word: str, name: str, commit: str, run: int
) -> None:
    said: list[str] = []
    (label,) = releases_named([word], said.append)
    assert label.startswith(f"9.8.0.dev0+local.{name}.")
    built = f"built by run {run} of commit {commit[:10]}"
    assert said[-1] == f"{word.removeprefix('iree==')} is {label}, commit {REVISION[:10]}, {built}"
    assert {request.path.split("/")[2] for request in github.requests if request.path.startswith("/repos")} == {
        "other" if word.startswith("other") else "iree-org"
    }
    to_storage = [request for request in github.requests if request.path.startswith("/storage")]
    assert len(to_storage) == 1
    assert not {"authorization", "x-github-api-version"} & to_storage[0].headers.keys()
    assert "harness" not in to_storage[0].headers["user-agent"]


def test_what_was_fetched_is_not_fetched_again_and_a_commit_needs_no_network(
    github: FakeGitHub, waits: list[float]
) -> None:
    label = release_named("pr:7", print)
    before = len(github.requests)
    assert release_named("pr:7", print) == label, "the head may have moved"
    asked = [request.path for request in github.requests[before:]]
    assert asked
    assert not [path for path in asked if "zip" in path or "storage" in path]
    github.fail("GET", "/", "reset", times=100)
    before = len(github.requests)
    assert release_named(f"commit:{HEAD[:9]}", print) == label
    assert len(github.requests) == before
    with pytest.raises(ToolchainError, match=r"--toolchain pr:7: 127\.0\.0\.1:\d+ could not be reached, "):
        release_named("pr:7", print)


def drop(github: FakeGitHub, *events: str) -> None:
    """Only runs of these events are there."""
    github.runs = [run for run in github.runs if run["event"] in events]


def still_building(github: FakeGitHub) -> None:
    drop(github)
    github.ran(HEAD, event="pull_request", conclusion=None)


def other_platforms(github: FakeGitHub) -> None:
    drop(github)
    run = github.ran(HEAD, conclusion="failure")
    for name in ("windows_x86_64_release_packages", "pkgci-logs"):
        github.kept(run, name)


def expired(github: FakeGitHub) -> None:
    for artifact in github.artifacts:
        artifact["expired"] = True


def of_another_kind(archive: bytes) -> Callable[[FakeGitHub], None]:
    def change(github: FakeGitHub) -> None:
        drop(github)
        github.kept(github.ran(HEAD), ARTIFACT, archive)

    return change


def fault(path: str, status: int, **more: Any) -> Callable[[FakeGitHub], None]:
    return lambda github: github.fail("GET", path, status=status, times=100, **more)


@pytest.mark.parametrize(
    ("spoil", "sentence"),
    [
        (drop, "no workflow of iree-org/iree has run for commit dddddddddd yet; wait for its CI, or give another"),
        (still_building, "run 12 still builds commit dddddddddd; ask again when it has"),
        (other_platforms, f"run 12 (failure) kept no {ARTIFACT}, and has only pkgci-logs, windows_x86_64_rel"),
        (expired, "its wheels have expired on 2026-05-03; give a newer commit, or a folder with a build of it"),
        (fault("/zip", 410), "answers 410 (it is broken): it no longer has that, which has expired; give a newer"),
        (lambda _: os.environ.pop("GITHUB_TOKEN"), "only for a token; set GITHUB_TOKEN to one that may read"),
        (fault("/pulls", 401), "the token is wrong or has expired; set GITHUB_TOKEN to one that holds"),
        (fault("/zip", 403), "does not let this token fetch"),
        (fault("/pulls", 404), "cannot read pull request 7 of iree-org/iree: there is no such thing, or the token may"),
        (fault("/pulls", 200, body="{}"), "gives another answer than GitHub when asked to read pull request 7"),
        (fault("/storage", 503), f"when asked to fetch {ARTIFACT} of iree-org/iree, which answers 503"),
        (fault("/storage", 302, headers={"Location": "https://evil.example"}), "which answers 302; try again later"),
        (of_another_kind(zipped({"../iree_base_compiler-1.whl": b""})), "holds no wheels of IREE (../iree_base_comp"),
        (of_another_kind(zipped({"readme": b""})), "holds no wheels of IREE (readme); give another commit"),
        (of_another_kind(b"PK"), "cannot be unpacked (File is not a zip file); give another commit"),
        (of_another_kind(zipped({"iree_base_compiler-9-cp27-cp27m-any.whl": b""})), "cp27m-any.whl is not for"),
    ],
)  # fmt: skip
@pytest.mark.usefixtures("waits")
def test_why_there_are_no_wheels(github: FakeGitHub, spoil: Callable[[FakeGitHub], object], sentence: str) -> None:
    spoil(github)
    with pytest.raises(ToolchainError) as caught:
        release_named("pr:7", print, "--good")
    assert sentence in str(caught.value)
    assert TOKEN not in str(caught.value)
    assert "sig=" not in str(caught.value)


def test_a_limit_is_waited_for_and_given_up_with_the_time_of_its_end(github: FakeGitHub, waits: list[float]) -> None:
    github.limit("GET", "/pulls", Retry_After="20")
    assert release_named("pr:7", print)
    assert waits == [20]
    github.limit("GET", "/pulls", X_RateLimit_Remaining="0", X_RateLimit_Reset=f"{NOON + 3600:.0f}")
    with pytest.raises(ToolchainError, match="until 09:00 UTC, longer than is waited; try again then"):
        release_named("pr:7", print)


@pytest.mark.parametrize(
    ("method", "sentence"),
    [(zipfile.ZIP_STORED, "which is more than 0 MB and is not fetched"), (zipfile.ZIP_DEFLATED, "0 MB when unpacked")],
)
def test_neither_an_archive_nor_what_is_in_it_is_beyond_a_limit(
    github: FakeGitHub, monkeypatch: pytest.MonkeyPatch, method: int, sentence: str
) -> None:
    of_another_kind(zipped({"iree_base_compiler-1-py3-none-any.whl": b"0" * 5000}, method))(github)
    monkeypatch.setattr(fetched, "FOLDER_LIMIT_BYTES", 4000)
    with pytest.raises(ToolchainError, match=sentence):
        release_named("pr:7", print)


@pytest.mark.parametrize("word", ["pr:x", "pr:7~top", "commit:HEAD", "run:", "-o/r#main", "main~base", "main"])
def test_a_word_that_is_none_or_may_be_a_folder_says_how_it_is_written(
    word: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("main").mkdir()
    with pytest.raises(UsageError, match=r"--bad .*(as in --bad pr:24701|write it as owner/name|#main, or \./main)"):
        release_named(word, print, "--bad")


def test_a_workflow_with_a_token_takes_no_strangers_code(github: FakeGitHub, monkeypatch: pytest.MonkeyPatch) -> None:
    release_named("pr:7", print)
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_REPOSITORY", "Mine/IREE")
    release_named("mine/iree#main", print)
    for word in ("pr:7", "run:7", f"commit:{HEAD}", "mine/iree#pr:7", "evil/iree#main", f"evil/iree#commit:{ONE}"):
        with pytest.raises(ToolchainError, match=r"which could take this job's token \(GITHUB_TOKEN\)"):
            release_named(word, print)
    release_named("main", print)
    monkeypatch.delenv("GITHUB_TOKEN")
    release_named(f"commit:{HEAD}", print)


def test_wheels_and_environments_keep_to_one_limit_and_the_oldest_go_first(
    github: FakeGitHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    environments = [environments_root() / f"iree-{name}" for name in ("a-release", "old", "young")]
    for environment in environments:
        environment.mkdir(parents=True)
        (environment / ("other" if environment.name == "iree-a-release" else LABEL_FILE)).write_text("x" * 100)
    os.utime(environments[1] / LABEL_FILE, (1, 1))
    for word in ("pr:7", f"commit:{ONE}"):
        release_named(word, print)
    for kept in kept_wheels():
        os.utime(kept.folder / "artifact.json", (time.time() - 90_000 - 1000 * (kept.commit == HEAD),) * 2)
    monkeypatch.setattr(fetched, "LIMIT_BYTES", sum(bytes_below(kept.folder) for kept in kept_wheels()) + 200)
    release_named("main", print)
    assert sorted(environments_root().glob("iree-*")) == [environments[0], environments[2]]
    assert {kept.commit for kept in kept_wheels()} == {TWO, ONE}


def test_commits_with_wheels_are_those_between_two_by_first_parents(
    github: FakeGitHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    github.page_size = 2
    assert commits_with_wheels("iree-org/iree", ONE[:7], "main", print) == dict.fromkeys((ONE, TWO, THREE), True)
    assert commits_with_wheels("iree-org/iree", TWO, TWO, print) == {TWO: True}
    github.artifacts[-2]["expired"] = True
    assert commits_with_wheels("iree-org/iree", ONE, THREE, print) == {ONE: True, TWO: False, THREE: True}
    monkeypatch.setattr(fetched, "_MOST_EXPIRED", 1)
    assert commits_with_wheels("iree-org/iree", ONE, THREE, print) == {ONE: False, TWO: False, THREE: True}
    with pytest.raises(UsageError, match="is no ancestor of"):
        commits_with_wheels("iree-org/iree", THREE, ONE, print)
