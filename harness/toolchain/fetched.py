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
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, TypeVar
from urllib.parse import quote

from pydantic import Field, TypeAdapter, ValidationError

from harness.cache import YOUNG_S, cache_root, environments_root, held, read_memo, write_memo
from harness.errors import GitHubError, ToolchainError
from harness.files import FOLDER_LIMIT_BYTES
from harness.process import TOKENS
from harness.scratch import scratch_folder
from harness.text import plural, shown, such_as
from harness.toolchain.find import bytes_below, environment_folder
from harness.toolchain.own import WHEELS, own_named

REPOSITORY = "iree-org/iree"
# Of the wheels that are kept, with the environments that were made of them.
LIMIT_BYTES = 10 * 10**9

_LIKE = re.compile(r"(?:[\w.-]+/[\w.-]+#.*|(?:pr|run|commit):.*|main)(?:~base)?")
_WORD = re.compile(
    r"(?:(?P<repository>[^#]+)#)?"
    r"(?:pr:(?P<pull>[1-9]\d{0,11})(?P<base>~base)?|run:(?P<run>[1-9]\d{0,17})|commit:(?P<commit>[0-9a-f]{7,40})|main)"
)
_HOW = (
    "write pr:24701, pr:24701~base, run:11977414405, commit:2b05c5dbb2 or main, of another repository OWNER/REPO#main"
)
# As IREE's workflows name what they keep (build_tools/pkgci/setup_venv.py).
_ARTIFACT = f"{platform.system().lower()}_{platform.machine()}_release_packages"
# Who starts such a run may write to the repository; a pull request's is started by whoever opens it.
_OWN_EVENTS = frozenset({"push", "schedule", "workflow_dispatch"})
_PATIENCE_S = 120.0
_MOST_RUNS = 30
_MEMO = "artifact.json"
_WHEEL = re.compile(rf"({'|'.join(WHEELS)})-[A-Za-z0-9_.+!-]+\.whl")
_Read = TypeVar("_Read")


# --- What GitHub says, as far as it is read ---

_Sha = Annotated[str, Field(pattern="^[0-9a-f]{40}$")]


@dataclass(frozen=True, kw_only=True)
class _Commit:
    sha: _Sha
    ref: str = ""  # The branch that it is the tip of
    parents: tuple["_Commit", ...] = ()


@dataclass(frozen=True, kw_only=True)
class _Pull:
    head: _Commit
    base: _Commit
    merged: bool = False


@dataclass(frozen=True, kw_only=True)
class _Comparison:
    status: str
    behind_by: int
    base_commit: _Commit
    merge_base_commit: _Commit


@dataclass(frozen=True, kw_only=True)
class _Run:
    id: int
    head_sha: _Sha
    event: str
    status: str | None = None
    conclusion: str | None = None
    path: str = ""  # Of its workflow

    @property
    def told(self) -> str:
        """`run 11977414405 (failure)`."""
        state = shown(self.conclusion or self.status or "success").replace("_", " ")
        return f"run {self.id}" if state == "success" else f"run {self.id} ({state})"


@dataclass(frozen=True, kw_only=True)
class _Source:
    head_sha: str | None = None


@dataclass(frozen=True, kw_only=True)
class _Artifact:
    id: int
    name: str
    size_in_bytes: int
    expired: bool
    expires_at: datetime | None = None
    workflow_run: _Source | None = None


# --- What a user says ---


@dataclass(frozen=True, kw_only=True)
class _Word:
    """What a user calls wheels of CI."""

    text: str
    option: str
    repository: str
    pull: str | None
    base: bool
    run: str | None
    commit: str | None

    def wrong(self, why: str) -> ToolchainError:
        """Why it names no toolchain."""
        return ToolchainError(f"{self.option} {self.text}: {why}")

    def name(self, commit: str) -> str:
        """What the folder of its wheels is called, and so its toolchain."""
        if self.pull is None or self.base:
            return commit[:10]
        of_fork = "" if self.repository == REPOSITORY else f"{self.repository.partition('/')[0]}."
        return f"{of_fork}pr.{self.pull}"


@dataclass(frozen=True, kw_only=True)
class Kept:
    """Wheels in the cache."""

    folder: Path
    commit: str
    run: int
    event: str
    used_s: float  # When they were last, in Unix time
    label: str  # Of the toolchain; "" where they are of none for this machine

    @property
    def wheels(self) -> Path:
        """The folder with the pair."""
        return next(path for path in self.folder.iterdir() if path.is_dir())

    @property
    def folders(self) -> tuple[Path, ...]:
        """All that is theirs."""
        return (self.folder, *((environment_folder(environments_root(), self.label),) if self.label else ()))

    @property
    def disk_bytes(self) -> int:
        """What all of that takes."""
        return sum(map(bytes_below, self.folders))


def is_fetched(text: str) -> bool:
    """Whether a word means wheels of CI, rightly written or not."""
    return _LIKE.fullmatch(text.strip().removeprefix("iree==")) is not None


def fetched_named(text: str, on_install: Callable[[str], None], option: str) -> str:
    """The label of the toolchain that a word means, fetched where it is not in the cache.

    Raises:
        ToolchainError: GitHub has no such wheels, or none for this machine; the message says which there are.
    """
    word = _word(text.strip().removeprefix("iree=="), option)
    kept = _here(word.repository, word.commit) if word.commit is not None else None
    if kept is None:
        try:
            kept = _Repository(word.repository, on_install).wheels_of(word)
        except GitHubError as error:
            raise word.wrong(f"{error}{_instead(word)}") from None
    else:
        _require_trusted(word, kept.event)
    facts = f", commit {kept.commit[:10]} of run {kept.run}"
    place = kept.wheels
    label = own_named(place, lambda said: on_install(f"{said.replace(str(place), word.text)}{facts}"), option)
    write_memo(kept.folder / _MEMO, {"commit": kept.commit, "run": kept.run, "event": kept.event, "label": label})
    _trim()
    return label


def commits_with_wheels(repository: str, good: str, bad: str, say: Callable[[str], None]) -> tuple[str, ...]:
    """The commits from good to bad of which CI kept wheels for this platform, by the first parents, the oldest first.

    Each is named by `commit:SHA`. Good and bad are commits or branches, and are there whether or not they have wheels.

    Raises:
        GitHubError: GitHub does not know them, or good is no ancestor of bad.
    """
    return _Repository(repository, say).commits_with_wheels(good, bad)


def kept_wheels() -> tuple[Kept, ...]:
    """All wheels of CI in the cache, those first that were used last."""
    found = []
    for memo in _root().glob(f"*/*/{_MEMO}"):
        facts, used_s = read_memo(memo), memo.stat().st_mtime
        if isinstance(facts, dict):
            found.append(Kept(folder=memo.parent, used_s=used_s, **facts))
    return tuple(sorted(found, key=lambda kept: kept.used_s, reverse=True))


def _root() -> Path:
    return cache_root() / "toolchains" / "fetched"


def _home(repository: str) -> Path:
    return _root() / repository.lower().replace("/", "+")


def _word(text: str, option: str) -> _Word:
    found = _WORD.fullmatch(text)
    if found is None:
        raise ToolchainError(f"{option} {shown(text)}: names no wheels of CI; {_HOW}")
    if text == "main" and Path(text).exists():
        raise ToolchainError(
            f"{option} main: is a folder here and a branch of {REPOSITORY}; write ./main or {REPOSITORY}#main"
        )
    from harness.github_api import repository_named

    repository = repository_named(found["repository"] or REPOSITORY, option)
    return _Word(
        text=text,
        option=option,
        repository=repository,
        pull=found["pull"],
        base=found["base"] is not None,
        run=found["run"],
        commit=found["commit"],
    )


def _here(repository: str, commit: str) -> Kept | None:
    """The wheels of a commit that are in the cache."""
    home = _home(repository)
    found = [kept for kept in kept_wheels() if kept.folder.parent == home and kept.commit.startswith(commit)]
    return found[0] if len({kept.commit for kept in found}) == 1 else None


def _instead(word: _Word) -> str:
    home = _home(word.repository)
    commits = dict.fromkeys(f"commit:{kept.commit[:10]}" for kept in kept_wheels() if kept.folder.parent == home)
    return f"; what is in the cache needs no network{such_as([*commits])}" if commits else ""


def _require_trusted(word: _Word, event: str) -> None:
    """Refuse a stranger's code where a workflow's token could be taken by it."""
    tokens = sorted(name for name in TOKENS if os.environ.get(name))
    if tokens and os.environ.get("GITHUB_ACTIONS") == "true" and event not in _OWN_EVENTS:
        raise word.wrong(
            f"is a pull request's code, and this job has a token ({tokens[0]}) that it could take; fetch the wheels in "
            "a job of their own, and give their folder to a job without a token, as docs/running.md shows"
        )


def _trim() -> None:
    """Delete the wheels that were not used for longest, with their environments; none of the last day."""
    size = 0
    for kept in kept_wheels():
        size += kept.disk_bytes
        if size > LIMIT_BYTES and time.time() - kept.used_s > YOUNG_S:
            for folder in kept.folders:
                shutil.rmtree(folder, ignore_errors=True)


class _Repository:
    """A repository on GitHub: its commits, its workflows' runs, and what they kept."""

    def __init__(self, name: str, say: Callable[[str], None]) -> None:
        from harness.github_api import API, Client, api_address, repository_named, token_of

        self.name, self._say, self._token = repository_named(name), say, token_of(os.environ)
        address = api_address(os.environ.get("GITHUB_API_URL") or API, "GITHUB_API_URL")
        self._client = Client(address, self._token, patience_s=_PATIENCE_S, say=say)

    def wheels_of(self, word: _Word) -> Kept:
        """The wheels that a word means, fetched where they are not here."""
        if word.pull is not None and not word.base:
            _require_trusted(word, "pull_request")
        run, artifact = self._choose(word, self._runs_of(word))
        _require_trusted(word, run.event)
        folder = _home(self.name) / str(artifact.id)
        try:
            folder.parent.mkdir(parents=True, exist_ok=True)
            with held(folder.parent / ".lock", lambda: self._say(f"Another harness fetches wheels of {self.name} ...")):
                if not (folder / _MEMO).is_file():
                    self._fetch(word, run, artifact, folder)
        except OSError as error:
            raise ToolchainError(
                f"{folder}: cannot be written ({error.strerror}); make room or set HARNESS_CACHE to another folder"
            ) from None
        return next(kept for kept in kept_wheels() if kept.folder == folder)

    def commits_with_wheels(self, good: str, bad: str) -> tuple[str, ...]:
        """See the function of this name."""
        path, what = f"compare/{quote(good)}...{quote(bad)}", f"list the commits from {good} to {bad}"
        compared = self._read(_Comparison, f"{path}?per_page=1", what)
        if compared.status not in ("ahead", "identical"):
            raise GitHubError(f"{self.name}: {good} is no ancestor of {bad}; give an older good commit")
        commits = {commit.sha: commit for commit in self._list(_Commit, path, what, "commits")}
        line, sha = [], next(reversed(commits), "")
        while sha in commits:
            line.append(sha)
            sha = commits[sha].parents[0].sha if commits[sha].parents else ""
        line = [compared.base_commit.sha, *reversed(line)]
        self._say(f"Asking {self.name} which of {plural(len(line), 'commit')} have wheels ...")
        missing = set(line)
        for artifact in self._list(_Artifact, "actions/artifacts", "list its artifacts", "artifacts", name=_ARTIFACT):
            if artifact.expired or not missing:  # the newest come first, and all of a name expire at one age
                break
            missing.discard((artifact.workflow_run and artifact.workflow_run.head_sha) or "")
        return tuple(sha for sha in line if sha not in missing)

    def _runs_of(self, word: _Word) -> Iterable[_Run]:
        """The runs that may have kept the wheels, the likeliest first."""
        if word.run is not None:
            return [self._read(_Run, f"actions/runs/{word.run}", f"read run {word.run}")]
        query = {"branch": "main", "event": "push", "status": "success"}  # a fork's branch may be called main too
        if word.pull is not None:
            query = {"head_sha": self._commit_of_pull(word.pull, base=word.base)}
        elif word.commit is not None:
            query = {"head_sha": self._read(_Commit, f"commits/{word.commit}", f"read commit {word.commit}").sha}
        runs = self._list(_Run, "actions/runs", "list the runs of its workflows", "workflow_runs", **query)
        found = sorted(
            itertools.islice(runs, 100), key=lambda run: (run.event not in _OWN_EVENTS, "pkg" not in run.path)
        )
        if not found:
            of = f"for commit {query['head_sha'][:10]} yet" if "head_sha" in query else "on main with success"
            raise word.wrong(f"no workflow of {self.name} has run {of}; wait for its CI, or give another commit")
        return found[:_MOST_RUNS]

    def _commit_of_pull(self, number: str, *, base: bool) -> str:
        pull = self._read(_Pull, f"pulls/{number}", f"read pull request {number}", "pull-requests: read")
        if not base:
            return pull.head.sha
        onto = pull.base.sha if pull.merged else pull.base.ref
        path = f"compare/{quote(onto)}...{pull.head.sha}"
        compared = self._read(_Comparison, path, f"find the merge base of pull request {number}")
        if compared.behind_by:
            behind = plural(compared.behind_by, "commit")
            self._say(
                f"Pull request {number} is {behind} behind {pull.base.ref}; CI builds it merged into that, so its "
                "wheels may hold some of them too"
            )
        return compared.merge_base_commit.sha

    def _choose(self, word: _Word, runs: Iterable[_Run]) -> tuple[_Run, _Artifact]:
        """The newest wheels for this platform that are still there, and the run that built them."""
        names, expired, going = set[str](), list[_Artifact](), list[_Run]()
        tried = []
        for run in runs:
            what = f"list what run {run.id} kept"
            kept = [*self._list(_Artifact, f"actions/runs/{run.id}/artifacts", what, "artifacts")]
            for artifact in sorted(kept, key=lambda artifact: -artifact.id):
                if artifact.name == _ARTIFACT and not artifact.expired:
                    return run, artifact
                (expired if artifact.name == _ARTIFACT else []).append(artifact)
            names |= {shown(artifact.name) for artifact in kept}
            going += [run] if run.status != "completed" else []
            tried.append(run)
        if expired:
            when = max((f" on {each.expires_at:%Y-%m-%d}" for each in expired if each.expires_at), default="")
            raise word.wrong(
                f"its wheels have expired{when}; give a newer commit, or a folder that holds a build of it"
            )
        if going:
            raise word.wrong(
                f"{going[0].told} is still building commit {going[0].head_sha[:10]}; ask again when it has"
            )
        has = (
            f"there {'are' if len(names) > 1 else 'is'} {', '.join(sorted(names)[:8])}" if names else "it kept nothing"
        )
        raise word.wrong(
            f"{tried[0].told} kept no {_ARTIFACT}; {has}; give another commit, or a folder with a build of it"
        )

    def _fetch(self, word: _Word, run: _Run, artifact: _Artifact, folder: Path) -> None:
        if self._token is None:
            raise word.wrong(
                "GitHub gives wheels of CI to nobody without a token; set GITHUB_TOKEN to one that may read Actions"
            )
        if artifact.size_in_bytes > FOLDER_LIMIT_BYTES:
            raise word.wrong(f"its wheels are {artifact.size_in_bytes / 1e9:.1f} GB, and more than 2 GB is not fetched")
        size = f"{artifact.size_in_bytes / 1e6:,.0f} MB"
        self._say(f"Fetching {_ARTIFACT} ({size}), commit {run.head_sha[:10]} of {self.name}, {run.told} ...")
        with scratch_folder(folder.parent, ".fetching-") as scratch:
            archive, made = scratch / "wheels.zip", scratch / "made"
            wheels = made / word.name(run.head_sha)
            wheels.mkdir(parents=True)
            purpose = self._purpose(f"fetch {_ARTIFACT} of run {run.id}")
            path = f"repos/{self.name}/actions/artifacts/{artifact.id}/zip"
            try:
                self._client.download(path, purpose, archive, FOLDER_LIMIT_BYTES)
            except GitHubError as error:
                if error.status == 410:
                    raise word.wrong("its wheels have just expired; give a newer commit") from None
                raise
            if why := _unpack(archive, wheels):
                raise word.wrong(f"{_ARTIFACT} of run {run.id} {why}; give another commit")
            facts = {"commit": run.head_sha, "run": run.id, "event": run.event, "label": ""}
            (made / _MEMO).write_text(json.dumps(facts))
            made.rename(folder)

    # --- Asking ---

    def _purpose(self, what: str, needs: str = "actions: read") -> Any:
        from harness.github_api import Purpose

        return Purpose(what=f"{what} of {self.name}", needs=needs)

    def _read(self, kind: type[_Read], path: str, what: str, needs: str = "contents: read") -> _Read:
        return self._checked(kind, self._client.get(f"repos/{self.name}/{path}", self._purpose(what, needs)), what)

    def _list(self, kind: type[_Read], path: str, what: str, key: str, **query: str) -> Iterator[_Read]:
        for item in self._client.pages(f"repos/{self.name}/{path}", self._purpose(what), query, key):
            yield self._checked(kind, item, what)

    def _checked(self, kind: type[_Read], answer: Any, what: str) -> _Read:
        try:
            return TypeAdapter(kind).validate_python(answer)
        except ValidationError:
            raise GitHubError(
                f"{self._client.host} gives another answer than GitHub when asked to {what}; check $GITHUB_API_URL"
            ) from None


def _unpack(archive: Path, folder: Path) -> str:
    """Take the wheels of a pair out of an archive; "", or why not, as the end of a sentence."""
    try:
        with zipfile.ZipFile(archive) as zipped:
            entries = [entry for entry in zipped.infolist() if not entry.is_dir()]
            for entry in entries:
                path = PurePosixPath(entry.filename.replace("\\", "/"))
                if path.is_absolute() or ".." in path.parts or ":" in path.parts[0]:
                    return f"holds {shown(entry.filename)}, which leads out of its folder, and is not unpacked"
            wheels = [entry for entry in entries if _WHEEL.fullmatch(PurePosixPath(entry.filename).name)]
            if not wheels:
                holds = ", ".join(shown(entry.filename) for entry in entries[:5]) or "nothing"
                return f"holds no wheels of IREE ({holds})"
            # What is read of an entry ends where it says.
            if (size := sum(entry.file_size for entry in wheels)) > FOLDER_LIMIT_BYTES:
                return f"is {size / 1e9:.1f} GB when unpacked, and more than 2 GB is not"
            for entry in wheels:
                with zipped.open(entry) as packed, (folder / PurePosixPath(entry.filename).name).open("xb") as wheel:
                    shutil.copyfileobj(packed, wheel, 1 << 20)
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError) as error:
        return f"cannot be unpacked ({shown(str(error))})"
    return ""
