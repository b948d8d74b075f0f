"""Toolchains that GitHub's CI built: the wheels of a pull request, a run, a commit or main, each fetched once.

A word leads to a commit, the commit to a workflow run that kept wheels for this platform, and those to a folder of the
cache, which is a toolchain as any folder of wheels is, see harness.toolchain.own. Wheels of a pull request are a
stranger's code: in a workflow they are refused where a token is.
"""

import itertools
import json
import os
import platform
import re
import shutil
import time
import zipfile
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Annotated, TypeVar
from urllib.parse import quote

from pydantic import AliasPath, BaseModel, Field, ValidationError

from harness.cache import YOUNG_S, cache_root, environments_root, held, read_memo, write_memo
from harness.errors import GitHubError, ToolchainError
from harness.files import FOLDER_LIMIT_BYTES
from harness.github_api import API, Client, Purpose, api_address, repository_named, token_of
from harness.process import TOKENS
from harness.scratch import scratch_folder
from harness.text import plural, shown
from harness.toolchain.find import LABEL_FILE, bytes_below
from harness.toolchain.own import DAMAGED, WHEELS, own_named

# Of the wheels of CI that are kept and the environments that were made of anybody's wheels.
LIMIT_BYTES = 10 * 10**9

REPOSITORY = "iree-org/iree"
_WORD = re.compile(
    r"(?:(?P<repository>.+)#)?"
    r"(?:pr:(?P<pull>[1-9]\d{0,11})(?P<base>~base)?|run:(?P<run>[1-9]\d{0,17})|commit:(?P<commit>[0-9a-f]{7,40})|main)"
)
# As IREE's workflows name what they keep (build_tools/pkgci/setup_venv.py).
_ARTIFACT = f"{platform.system().lower()}_{platform.machine()}_release_packages"
_WHEEL = re.compile(rf"(?:{'|'.join(WHEELS)})-[A-Za-z0-9_.+!-]+\.whl")
# Who starts such a run may write to its repository; a pull request's is started by whoever opens it.
_OWN_EVENTS = frozenset({"push", "schedule", "workflow_dispatch"})
# The newest come first, and all of a name expire at about one age, but what somebody took away.
_MOST_EXPIRED = 100
_MEMO, _NEEDS = "artifact.json", "actions: read"


class Kept(BaseModel):
    """Wheels in the cache."""

    repository: str
    commit: str
    run: int
    event: str
    folder: Path = Field(exclude=True)


def kept_wheels() -> list[Kept]:
    """All wheels of CI that are in the cache, those first that were used last."""
    memos = sorted(_root().glob(f"*/{_MEMO}"), key=lambda memo: -memo.stat().st_mtime)
    return [Kept(**facts, folder=memo.parent) for memo in memos if (facts := read_memo(memo))]


def _root() -> Path:
    return cache_root() / "toolchains" / "fetched"


def is_fetched(text: str) -> bool:
    """Whether a word for a toolchain means wheels of CI."""
    return _WORD.fullmatch(text.strip().removeprefix("iree==")) is not None


def fetched_named(text: str, on_install: Callable[[str], None], option: str) -> str:
    """The label of the toolchain that a word means, fetched where it is not in the cache; or why there is none."""
    word = _Word(text.strip().removeprefix("iree=="), option, on_install)
    here = (kept for kept in kept_wheels() if word.commit and kept.repository == word.repository)
    try:
        kept = next((kept for kept in here if kept.commit.startswith(word.commit)), None) or word.wheels()
    except GitHubError as error:
        raise word.wrong(str(error)) from None
    word.require_trusted(kept.event)
    (place,) = (path for path in kept.folder.iterdir() if path.is_dir())
    of = f", built by run {kept.run} of commit {kept.commit[:10]}"
    label = own_named(place, lambda said: on_install(f"{said.replace(str(place), word.text)}{of}"), option)
    write_memo(kept.folder / _MEMO, kept.model_dump())  # which is used now
    return label


def commits_with_wheels(repository: str, good: str, bad: str, say: Callable[[str], None]) -> dict[str, bool]:
    """The commits from good to bad, the oldest first, and whether CI kept wheels of each for this platform.

    Good and bad are commits or branches; of merges the first parents count. `commit:SHA` names the wheels of one.
    """
    github = _Word(f"{repository}#main", "the commits of", say)
    path, what = f"compare/{quote(good)}...{quote(bad)}", f"list the commits from {good} to {bad}"
    compared = next(github.read(_Comparison, f"{path}?per_page=1", what))
    if compared.status not in ("ahead", "identical"):
        raise GitHubError(f"{repository}: {good} is no ancestor of {bad}; give an older good commit")
    parents = {commit.sha: commit.parent for commit in github.read(_Commit, path, what, "commits")}
    line, sha = list[str](), next(reversed(parents), "")
    while sha in parents:
        line.append(sha)
        sha = parents[sha]
    line = [compared.base, *reversed(line)]
    say(f"Asking {repository} which of {plural(len(line), 'commit')} have wheels ...")
    missing, expired = set(line), 0
    for artifact in github.read(_Artifact, "actions/artifacts", "list its artifacts", "artifacts", name=_ARTIFACT):
        expired += artifact.expired
        if not missing or expired == _MOST_EXPIRED:
            break
        missing -= set() if artifact.expired else {artifact.commit}
    return {sha: sha not in missing for sha in line}


def wheels_in_cache() -> list[tuple[float, Path]]:
    """The folders that have one limit together, and when each was last used: wheels of CI, and environments of any."""
    marks = (*_root().glob(f"*/{_MEMO}"), *environments_root().glob(f"*/{LABEL_FILE}"))
    return sorted(((mark.stat().st_mtime, mark.parent) for mark in marks), reverse=True)


def trim_wheels() -> None:
    """Delete those that were not used for longest; none of the last day."""
    size = 0
    for used_s, folder in wheels_in_cache():
        size += bytes_below(folder)
        if size > LIMIT_BYTES and time.time() - used_s > YOUNG_S:
            shutil.rmtree(folder, ignore_errors=True)


# --- What GitHub says, as far as it is read ---

_Sha = Annotated[str, Field(pattern="^[0-9a-f]{40}$")]


class _Commit(BaseModel):
    sha: _Sha
    parent: str = Field("", validation_alias=AliasPath("parents", 0, "sha"))


class _Pull(BaseModel):
    head: _Sha = Field(validation_alias=AliasPath("head", "sha"))
    branch: str = Field(validation_alias=AliasPath("base", "ref"))  # Into which it goes


class _Comparison(BaseModel):
    status: str
    base: _Sha = Field(validation_alias=AliasPath("base_commit", "sha"))
    merge_base: _Sha = Field(validation_alias=AliasPath("merge_base_commit", "sha"))


class _Run(BaseModel):
    id: int
    head_sha: _Sha
    event: str
    status: str | None
    conclusion: str | None
    path: str  # Of its workflow


class _Artifact(BaseModel):
    id: int
    name: str
    size_in_bytes: int
    expired: bool
    expires_at: datetime | None
    commit: str | None = Field(None, validation_alias=AliasPath("workflow_run", "head_sha"))


_Read = TypeVar("_Read", bound=BaseModel)


class _Word:
    """What a user calls wheels of CI, and what GitHub says of them."""

    def __init__(self, text: str, option: str, say: Callable[[str], None]) -> None:
        self.text, self.option, self.say = text, option, say
        found = _WORD.fullmatch(text)
        assert found is not None  # noqa: S101 (is_fetched said so)
        if text == "main" and Path(text).exists():
            raise self.wrong(f"is a branch, and a file or folder here; write {REPOSITORY}#main, or ./main")
        self.repository = repository_named((found["repository"] or REPOSITORY).lower(), option)
        self.pull, self.base, self.run, self.commit = found.group("pull", "base", "run", "commit")
        self.token = token_of(os.environ)
        address = api_address(os.environ.get("GITHUB_API_URL") or API, "GITHUB_API_URL")
        self._client = Client(address, self.token, patience_s=120, say=say)

    def wrong(self, why: str) -> ToolchainError:
        """Why it names no toolchain."""
        return ToolchainError(f"{self.option} {shown(self.text)}: {why}")

    def require_trusted(self, event: str) -> None:
        """Refuse a stranger's code where it could take a workflow's token."""
        tokens = sorted(name for name, value in os.environ.items() if value and TOKENS.fullmatch(name))
        trusted = self.repository in (REPOSITORY, os.environ.get("GITHUB_REPOSITORY", "").lower())
        if tokens and os.environ.get("GITHUB_ACTIONS") == "true" and not (trusted and event in _OWN_EVENTS):
            raise self.wrong(
                f"is a stranger's code, which could take this job's token ({tokens[0]}); fetch the wheels in one "
                "job, and give their folder to another without a token, as docs/running.md shows"
            )

    def wheels(self) -> Kept:
        """The wheels, fetched where they are not here."""
        run, artifact = self._chosen(self._runs())
        self.require_trusted(run.event)
        folder = _root() / str(artifact.id)
        try:
            folder.parent.mkdir(parents=True, exist_ok=True)
            with held(folder.parent / ".lock", lambda: self.say("Another harness fetches wheels of CI ...")):
                if not (folder / _MEMO).is_file():
                    self._fetch(run, artifact, folder)
                    trim_wheels()
        except OSError as error:
            advice = "make room or set HARNESS_CACHE to another folder"
            raise ToolchainError(f"{folder}: cannot be written ({error.strerror}); {advice}") from None
        return next(kept for kept in kept_wheels() if kept.folder == folder)

    def _runs(self) -> list[_Run]:
        """The runs that may have kept them, the likeliest first."""
        if self.run:
            return [*self.read(_Run, f"actions/runs/{self.run}", f"read run {self.run}")]
        query = {"branch": "main", "event": "push", "status": "success"}  # a fork's branch may be called main too
        if self.pull:
            pull = next(self.read(_Pull, f"pulls/{self.pull}", f"read pull request {self.pull}"))
            path, what = f"compare/{quote(pull.branch)}...{pull.head}", f"find the base of pull request {self.pull}"
            query = {"head_sha": next(self.read(_Comparison, path, what)).merge_base if self.base else pull.head}
        elif self.commit:
            query = {"head_sha": next(self.read(_Commit, f"commits/{self.commit}", f"read commit {self.commit}")).sha}
        runs = self.read(_Run, "actions/runs", "list the runs of workflows", "workflow_runs", **query)
        newest = itertools.islice(runs, 100)
        likely = sorted(newest, key=lambda run: (run.event not in _OWN_EVENTS, "pkg" not in run.path))
        if not likely:
            of = f"for commit {query['head_sha'][:10]} yet" if "head_sha" in query else "on main with success"
            raise self.wrong(f"no workflow of {self.repository} has run {of}; wait for its CI, or give another commit")
        return likely

    def _chosen(self, runs: Sequence[_Run]) -> tuple[_Run, _Artifact]:
        """The newest wheels for this platform that are still there, and the run that built them."""
        others, dates = set[str](), list[datetime | None]()
        for run in runs:
            path, what = f"actions/runs/{run.id}/artifacts", f"list what run {run.id} kept"
            for artifact in self.read(_Artifact, path, what, "artifacts"):
                if artifact.name != _ARTIFACT:
                    others.add(shown(artifact.name))
                elif artifact.expired:
                    dates.append(artifact.expires_at)
                else:
                    return run, artifact
        if dates:
            when = max((f" on {date:%Y-%m-%d}" for date in dates if date), default="")
            raise self.wrong(f"its wheels have expired{when}; give a newer commit, or a folder with a build of it")
        if going := next((run for run in runs if run.status != "completed"), None):
            raise self.wrong(f"run {going.id} still builds commit {going.head_sha[:10]}; ask again when it has")
        why = f"run {runs[0].id} ({shown(runs[0].conclusion or '')}) kept no {_ARTIFACT}"
        has = f"has only {', '.join(sorted(others)[:8])}" if others else "has nothing"
        raise self.wrong(f"{why}, and {has}; give another commit, or a folder with a build of it")

    def _fetch(self, run: _Run, artifact: _Artifact, folder: Path) -> None:
        if self.token is None:
            raise self.wrong("GitHub gives wheels only for a token; set GITHUB_TOKEN to one that may read Actions")
        size = f"{artifact.size_in_bytes / 1e6:,.0f} MB"
        self.say(f"Fetching {_ARTIFACT} ({size}), commit {run.head_sha[:10]} of {self.repository}, run {run.id} ...")
        with scratch_folder(folder.parent, ".fetching-") as scratch:
            archive, made = scratch / "wheels.zip", scratch / "made"
            owner = "" if self.repository == REPOSITORY else f"{self.repository.partition('/')[0]}."
            # What the folder is called, and so the toolchain.
            wheels = made / (f"{owner}pr.{self.pull}" if self.pull and not self.base else run.head_sha[:10])
            wheels.mkdir(parents=True)
            path = f"repos/{self.repository}/actions/artifacts/{artifact.id}/zip"
            purpose = Purpose(what=f"fetch {_ARTIFACT} of {self.repository}", needs=_NEEDS)
            self._client.download(path, purpose, archive, FOLDER_LIMIT_BYTES)
            self._unpack(archive, wheels)
            facts = {"repository": self.repository, "commit": run.head_sha, "run": run.id, "event": run.event}
            (made / _MEMO).write_text(json.dumps(facts))
            made.rename(folder)

    def read(self, kind: type[_Read], path: str, what: str, key: str = "", **query: str) -> Iterator[_Read]:
        """What the repository has at a path; with a key, the items of a list."""
        path, purpose = f"repos/{self.repository}/{path}", Purpose(what=f"{what} of {self.repository}", needs=_NEEDS)
        try:
            for answer in self._client.pages(path, purpose, query, key) if key else [self._client.get(path, purpose)]:
                yield kind.model_validate(answer)
        except ValidationError:
            wrong = f"gives another answer than GitHub when asked to {what}; check $GITHUB_API_URL"
            raise GitHubError(f"{self._client.host} {wrong}") from None

    def _unpack(self, archive: Path, folder: Path) -> None:
        """Take the wheels of a pair out of an archive."""
        try:
            with zipfile.ZipFile(archive) as zipped:
                entries = zipped.infolist()
                # None of these names leads out of the folder, and what is read of an entry ends where it says.
                wheels = [entry for entry in entries if _WHEEL.fullmatch(entry.filename)]
                if not wheels:
                    holds = ", ".join(shown(entry.filename) for entry in entries[:5]) or "nothing"
                    raise self.wrong(f"what CI kept holds no wheels of IREE ({holds}); give another commit")
                if (size := sum(entry.file_size for entry in wheels)) > FOLDER_LIMIT_BYTES:
                    raise self.wrong(
                        f"its wheels are {size / 1e6:,.0f} MB when unpacked, too much; give another commit"
                    )
                zipped.extractall(folder, wheels)
        except DAMAGED as error:
            raise self.wrong(f"what CI kept cannot be unpacked ({shown(str(error))}); give another commit") from None
