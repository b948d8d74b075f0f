"""Commits as sides: which commit of a repository a word means, its tree in a folder of its own, and what lies between.

A tree is a worktree of git's below the cache folder, as long as its process lives: what a killed one leaves, the next
one takes away. Git runs no hook for it. What else happens in a tree is what the suite in it makes happen.
"""

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from harness import process
from harness.cache import cache_root
from harness.errors import UsageError
from harness.scratch import scratch_folder, sweep
from harness.text import one_line, shown

COMMIT_PREFIX = "commit:"
# Enough for messages; commands have all digits, so that another clone can fetch the commit by them.
_DIGITS = 12
_SETTINGS = (
    *("-c", f"core.hooksPath={os.devnull}"),
    *("-c", "core.fsmonitor=false"),
    *("-c", "submodule.recurse=false"),
    *("-c", "log.showSignature=false"),
)
_ENVIRONMENT = {"GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}


@dataclass(frozen=True, kw_only=True)
class Commit:
    """A commit of a repository: of that in which the command is called, unless another is given."""

    name: str  # What the user calls it: `main`, `HEAD~3`, its hash
    sha: str  # All 40 digits, or 64
    subject: str  # The first line of its message
    root: Path  # Top folder of the user's own tree
    below: Path  # The working folder, from there

    @property
    def short(self) -> str:
        """The first digits, as messages have them."""
        return self.sha[:_DIGITS]


def find_commit(name: str, repo: Path | None = None) -> Commit | None:
    """The commit that git knows by this name; None where it knows none, or the working folder is in no repository."""
    found = _said("rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}", folder=repo)
    where = _said("rev-parse", "--show-toplevel", "--show-prefix", folder=repo)
    if found is None or where is None:
        return None
    sha = found.split()[-1]  # some releases of git print --end-of-options before it
    root, below = where.split("\n")[:2]
    subject = shown(_said("log", "-1", "--format=%s", sha, "--", folder=repo) or "")
    return Commit(name=name, sha=sha, subject=subject, root=Path(root).resolve(), below=Path(below))


def require_commit(name: str, repo: Path | None = None) -> Commit:
    """The commit that git knows by this name."""
    if (commit := find_commit(name, repo)) is None:
        raise UsageError(f"{shown(name)}: {how_to_have(repo)}")
    return commit


def commits_from(first: Commit, last: Commit) -> dict[str, str]:
    """The subjects of the commits from one to another, both included, by their hashes: first parents, oldest first."""
    if _said("merge-base", "--is-ancestor", first.sha, last.sha, folder=first.root) is None:
        raise UsageError(f"{last.name} does not follow {first.name} in {first.root}; give commits of which it does")
    span = f"{first.sha}..{last.sha}"
    said = _said("log", "--first-parent", "--reverse", "--format=%H %s", span, "--", folder=first.root) or ""
    lines = [line.partition(" ") for line in said.splitlines()]
    return {first.sha: first.subject} | {sha: shown(subject) for sha, _, subject in lines}


def how_to_have(repo: Path | None = None) -> str:
    """Why there is no commit of a name, and what to do about it, as the end of a sentence."""
    where = _git("rev-parse", "--show-toplevel", "--is-shallow-repository", folder=repo)
    if where is None:
        return "commits are compared with git, which is not installed; install it, or compare runs"
    if not where.ok:
        how = "call it from a checkout of the commits" if repo is None else "give one of the commits as --repo"
        return f"git finds no repository here ({_last_line(where.stderr)}); {how}"
    if where.stdout.split()[-1] == "true":
        return "this clone is shallow and has no such commit; `git fetch --unshallow` gets the older ones"
    return "this repository has no such commit; `git fetch origin` gets those that the origin has"


def suite_below(suite: Path, commit: Commit) -> str:
    """A suite's path from the top of the repository, with slashes."""
    place = suite.parent.resolve() / suite.name
    if not place.is_relative_to(commit.root):
        raise UsageError(
            f"--suite {suite}: lies outside {commit.root}, the repository whose commits are compared; give a suite "
            "that they have"
        )
    return place.relative_to(commit.root).as_posix()


def has_file(commit: Commit, path: str) -> bool:
    """Whether a commit has this file, by its path from the top of the repository."""
    return _said("cat-file", "-e", f"{commit.sha}:{path}", folder=commit.root) is not None


def is_changed(commit: Commit) -> bool:
    """Whether the commit is the one that is checked out, and files of it were changed since."""
    head = _said("rev-parse", "HEAD", folder=commit.root) or ""
    changes = _said("status", "--porcelain", "--untracked-files=no", folder=commit.root) or ""
    return head.strip() == commit.sha and bool(changes.strip())


@contextmanager
def tree_of(commit: Commit) -> Iterator[Path]:
    """The commit's tree in a folder of its own, which is removed at the end."""
    parent = cache_root() / "worktrees"
    with ExitStack() as folders:
        try:
            parent.mkdir(parents=True, exist_ok=True)
            sweep(parent)
            folder = folders.enter_context(scratch_folder(parent))
        except OSError as error:
            sentence = f"{parent}: cannot be written ({error.strerror}); make room or set HARNESS_CACHE"
            raise UsageError(sentence) from None
        _forget_swept(commit.root, parent)
        tree = folder / commit.short
        try:
            added = _git("worktree", "add", "--quiet", "--force", "--detach", str(tree), commit.sha, folder=commit.root)
            if added is None or not added.ok:
                reason = _last_line(added.stderr) if added is not None else "git is not installed"
                raise UsageError(
                    f"git cannot lay out the tree of {commit.short} ({reason}); see `git worktree add --detach ../tree "
                    f"{commit.short}`"
                )
            yield tree
        finally:
            _git("worktree", "remove", "--force", str(tree), folder=commit.root)


def _forget_swept(root: Path, parent: Path) -> None:
    """Have git forget the worktrees of killed harnesses, whose folders were swept; of no other worktrees."""
    for line in (_said("worktree", "list", "--porcelain", folder=root) or "").splitlines():
        path = Path(line.removeprefix("worktree "))
        if line.startswith("worktree ") and path.is_relative_to(parent.resolve()) and not path.exists():
            _git("worktree", "remove", "--force", str(path), folder=root)


def _git(*arguments: str, folder: Path | None = None) -> process.Finished | None:
    """How a command of git ended; None where there is no git."""
    try:
        return process.run(["git", *_SETTINGS, *arguments], cwd=folder, env=_ENVIRONMENT)
    except (OSError, ValueError):  # ValueError: a name with a zero byte
        return None


def _said(*arguments: str, folder: Path | None = None) -> str | None:
    """What a command of git printed that worked."""
    ended = _git(*arguments, folder=folder)
    return ended.stdout if ended is not None and ended.ok else None


def _last_line(text: str) -> str:
    lines = text.strip().splitlines()
    return one_line(lines[-1]) if lines else "it does not say why"
