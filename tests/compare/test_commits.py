"""Commits of a repository as sides: what they are called, and their trees, which nothing of the repository runs in."""

import os
import shutil
from pathlib import Path

import pytest

from harness.cache import cache_root
from harness.compare.commits import Commit, find_commit, has_file, require_commit, suite_below, tree_of
from harness.errors import UsageError
from tests.builders import commit, git


@pytest.fixture(scope="module")
def _made_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("repository")
    git(folder, "init", "--quiet")
    commit(folder, "First", suites__small_toml="old\n")
    git(folder, "tag", "v1")
    commit(folder, "Second \x1b[31m", suites__small_toml="new\n", suites__other_toml="new\n")
    return folder


@pytest.fixture
def repository(_made_once: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two commits on main, the first one tagged v1; the working folder is the top of it."""
    monkeypatch.chdir(_made_once)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    return _made_once


def worktrees(repository: Path) -> int:
    return git(repository, "worktree", "list").count("\n") + 1


def test_what_git_calls_a_commit(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = (git(repository, "rev-parse", name) for name in ("v1", "main"))
    for name in ("v1", "HEAD~1", first, first[:7], "refs/tags/v1"):
        found = require_commit(name)
        assert (found.name, found.sha, found.subject) == (name, first, "First")
        assert (found.root, found.below) == (repository.resolve(), Path())
    monkeypatch.chdir(repository / "suites")
    found = require_commit("main")
    assert (found.sha, found.short, found.below) == (second, second[:12], Path("suites"))
    assert found.subject.isprintable()
    for name in ("nothing", "--all", "", "v1..main", "main^{tree}", "HEAD~2", "a\0b", "results/latest"):
        assert find_commit(name) is None


def test_why_there_is_no_such_commit(repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def why(name: str) -> str:
        with pytest.raises(UsageError) as caught:
            require_commit(name)
        return str(caught.value)

    assert "; `git fetch origin` gets those that the origin has" in why("nothing")
    git(tmp_path, "clone", "--quiet", "--depth", "1", f"file://{repository}", "shallow")
    monkeypatch.chdir(tmp_path / "shallow")
    assert "`git fetch --unshallow` gets the older ones" in why("HEAD~1")
    monkeypatch.chdir(tmp_path)
    assert "git finds no repository here (fatal: not a git repository" in why("main")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "which is not installed; install it, or compare runs" in why("main")


def test_a_suite_is_found_by_its_path_from_anywhere_in_the_repository(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, new = require_commit("v1"), require_commit("main")
    assert suite_below(repository / "suites/other.toml", new) == "suites/other.toml"
    monkeypatch.chdir(repository / "suites")
    assert suite_below(Path("other.toml"), new) == "suites/other.toml"
    assert (has_file(old, "suites/other.toml"), has_file(new, "suites/other.toml")) == (False, True)
    with pytest.raises(UsageError, match=r"lies outside .*, the repository whose commits are compared"):
        suite_below(tmp_path / "x.toml", new)


def test_a_tree_is_as_the_commit_has_it_and_goes_away_and_no_hook_runs_in_it(repository: Path) -> None:
    hook = repository / ".git/hooks/post-checkout"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\ntouch $(git rev-parse --git-common-dir)/harmed\n")
    hook.chmod(0o755)
    with pytest.raises(KeyboardInterrupt), tree_of(require_commit("v1")) as tree:
        assert (tree / "suites/small.toml").read_text() == "old\n"
        assert worktrees(repository) == 2
        assert tree.is_relative_to(cache_root())
        raise KeyboardInterrupt
    assert (tree.exists(), worktrees(repository)) == (False, 1)
    assert not (repository / ".git/harmed").exists()
    git(repository, "worktree", "add", "--quiet", "--detach", "tree")
    assert (repository / ".git/harmed").exists()  # so it would have been seen
    git(repository, "worktree", "remove", "--force", "tree")
    hook.unlink()


def test_what_a_killed_harness_left_is_forgotten_and_no_other_tree(repository: Path, tmp_path: Path) -> None:
    for place in (cache_root() / "worktrees/killed/abc", tmp_path / "elsewhere"):
        git(repository, "worktree", "add", "--quiet", "--detach", str(place))
        shutil.rmtree(place)
    assert worktrees(repository) == 3
    with tree_of(require_commit("main")):
        listed = git(repository, "worktree", "list")
    assert ("/killed/" in listed, "/elsewhere" in listed) == (False, True)
    git(repository, "worktree", "prune")


def test_a_tree_that_cannot_be_laid_out(repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = require_commit("main")
    gone = Commit(name="x", sha="0" * 40, subject="", root=found.root, below=found.below)
    with pytest.raises(UsageError, match=r"git cannot lay out the tree of 000000000000 \(fatal: .*\); see `git worktr"):
        tree_of(gone).__enter__()
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path / "file"))
    with pytest.raises(UsageError, match=r"file/worktrees: cannot be written \(Not a directory\); make room or set"):
        tree_of(found).__enter__()
