"""A comparison's or a run's figures -> one comment of a pull request, with pictures, as long as GitHub takes it.

The figures may come from a job that ran a pull request's code. Nothing of them is text to be posted as it is: they are
checked and read with limits here, the comment is made from them by harness.report.github, which escapes every name, and
its commands by harness.github.posting.
"""

import base64
import glob
import hashlib
import json
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

from harness.compare.pairs import TOOLCHAIN_PREFIX
from harness.errors import GitHubError, RunError, UsageError
from harness.github.comments import Comment, OwnComments, marker_of, own_login
from harness.github.event import Event, pull_request_of
from harness.github_api import Client, Purpose
from harness.metrics import LATENCY, TIMED
from harness.plots.pictures import files_of_comment, published
from harness.records.comparison import Comparison, Row, SideFacts
from harness.report.github import portable_comparison, render_comment
from harness.report.page import Picture
from harness.report.pages import Links
from harness.report.run_report import Report, build_report
from harness.store.files import read_document
from harness.store.folders import COMPARISON
from harness.store.run_directory import load_run

_NAME = r"[A-Za-z0-9_][A-Za-z0-9_.+-]*"
_ID = re.compile(_NAME)
_SUITE = re.compile(rf"{_NAME}(?:/{_NAME})*\.toml")
_RELEASE = re.compile(r"[0-9][0-9A-Za-z.-]{0,60}")  # Of the package index, which has no label of somebody's own
_COMMIT = re.compile(r"[0-9a-f]{40}")
# What harness.compare.rows says of a side's module, but for the flags that follow.
_MODULE = re.compile(r"# (?:base|head): (?:module [0-9a-f]{12}|no module|has no such case|was never compiled)")


def comparison_with_own_commands(comparison: Comparison) -> Comparison:
    """The comparison as a comment has it."""
    portable = portable_comparison(comparison)
    command = _comparing(portable)
    # Whether lines of shell prepare each tree, of which an artifact may bring none.
    prepares = any(word.partition("=")[0] == "--prepare" for word in comparison.command)
    return replace(
        portable,
        id=_id(portable.id),
        base=replace(portable.base, suite=_argument(portable.base.suite)),
        head=replace(portable.head, suite=_argument(portable.head.suite)),
        rows=tuple(replace(row, repro=_repeating(row, command, prepares)) for row in portable.rows),
        command=command,
        explained=tuple(replace(each, explanation=_id(each.explanation)) for each in portable.explained),
    )


def report_with_own_commands(report: Report) -> Report:
    """A run's report as a comment has it."""
    header = report.header
    versions = dict.fromkeys(version for section in report.sections for version in section.toolchains)
    releases = list(versions) if any(word.startswith("--toolchain") for word in header.command) else []
    is_plain = _SUITE.fullmatch(header.suite) and all(map(_RELEASE.fullmatch, releases))
    options = [word for release in releases for word in ("--toolchain", release)]
    command = ("harness", "run", header.suite, *options) if is_plain else ()
    sections = (
        replace(section, rows=tuple(replace(row, repro=_of_case(command, row.case)) for row in section.rows))
        for section in report.sections
    )
    header = replace(
        header,
        id=_id(header.id),
        suite=_argument(header.suite),
        command=command,
        # A fleet's steps say --fleet, and whoever pastes one would join whatever has that address.
        settings={name: value for name, value in header.settings.items() if name != "fleet"},
    )
    return replace(report, run=replace(report.run, header=header), sections=tuple(sections))


def _comparing(comparison: Comparison) -> tuple[str, ...]:
    """The command that compares both sides again; () where one of them cannot be named."""
    if comparison.within:
        run = _id(comparison.head.run)
        return ("harness", "compare", "--within", f"results/{run}") if run else ()
    sides = [_side(side) for side in (comparison.base, comparison.head)]
    suite: tuple[str, ...] = ()
    if not all(side.startswith("results/") for side in sides):
        suite = ("--suite", comparison.head.suite)
    if not all(sides) or (suite and not _SUITE.fullmatch(suite[1])):
        return ()
    return ("harness", "compare", *sides, *suite)


def _side(side: SideFacts) -> str:
    if _COMMIT.fullmatch(side.commit):
        return side.commit
    if side.label.startswith(TOOLCHAIN_PREFIX):
        return side.label if _RELEASE.fullmatch(side.label.removeprefix(TOOLCHAIN_PREFIX)) else ""
    return f"results/{side.run}" if _ID.fullmatch(side.run) else ""


def _repeating(row: Row, command: tuple[str, ...], prepares: bool) -> tuple[str, ...]:
    """The command that repeats a row, and what each side's module was; timed rows alone have any."""
    if row.metric not in TIMED:
        return ()
    more = ["--controls", "1"] if row.control else []
    more += [] if row.metric == LATENCY.name else ["--metric", row.metric]
    modules = [found[0] for line in row.repro if (found := _MODULE.match(line))]
    note = " # and --prepare, as the workflow has it" if prepares else ""
    lines = [f"{line}{note}" for line in _of_case(command, row.case, *more)]
    return (*lines, *modules) if lines else ()


def _of_case(command: tuple[str, ...], case: str, *more: str) -> tuple[str, ...]:
    if not command or not case.isprintable() or not case[:1].isalnum():
        return ()
    return (shlex.join([*command, "--filter", glob.escape(case), *more]),)


def _argument(path: str) -> str:
    """A path that no command takes for an option or a file of options."""
    return f"./{path}" if path.startswith(("-", "@")) else path


def _id(name: str) -> str:
    """The name of a folder in results/; none where it would lead elsewhere."""
    return name if _ID.fullmatch(name) else ""


Figures = Comparison | Report

_COMPARISON_BYTES = 128 * 2**20
_RUN_BYTES = 1024 * 2**20
# A suite's names have at most 100 each, of which a case's has four.
_NAME_CHARACTERS = 4_000
_TEXT_CHARACTERS = 100_000  # A flag may be a pass pipeline


def read_figures(path: Path) -> Figures:
    """Those of a comparison's folder or its comparison.json, or of a run's folder where there was no base."""
    folder = path.parent if path.name == COMPARISON.file else path
    file = folder / COMPARISON.file
    if (folder / "run.json").is_file() and not file.exists():
        return report_with_own_commands(_report(folder))
    if file.is_symlink():
        raise RunError(f"{file}: is a link; give the comparison's own folder")
    if not file.is_file():
        raise RunError(f"{folder}: holds neither {COMPARISON.file} nor run.json; give what `harness compare` made")
    document = read_document(file, _COMPARISON_BYTES)
    comparison = COMPARISON.load(folder)
    if (longest := max(map(len, _texts(json.loads(document))), default=0)) > _TEXT_CHARACTERS:
        raise RunError(f"{file}: has a text of {longest:,} characters, which no harness writes; compare again")
    return comparison_with_own_commands(comparison)


def _texts(value: Any) -> Iterator[str]:
    """Each is looked through and written many times in a comment."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for member in value.values() if isinstance(value, dict) else value:
            yield from _texts(member)


def _report(folder: Path) -> Report:
    entries = list(folder.iterdir())
    if any(entry.is_symlink() for entry in entries):
        raise RunError(f"{folder}: holds links; give a run's own folder")
    if sum(entry.stat().st_size for entry in entries if not entry.is_dir()) > _RUN_BYTES:
        raise RunError(f"{folder}: is larger than {_RUN_BYTES >> 20} MiB; post a run of fewer cases")
    try:
        run = load_run(folder)
        names = (name for case in run.header.cases for name in (case.name, case.model, case.variant, case.device))
        if (longest := max(map(len, names), default=0)) > _NAME_CHARACTERS:
            raise RunError(f"{folder}: has a name of {longest:,} characters, which no suite has; make the run again")
        return build_report(run)
    except RecursionError:
        raise RunError(f"{folder}: is damaged; take the run from a backup") from None


# --- Pictures on a branch of their own, through GitHub's Git data API: a comment cannot carry files ---
#
# Each pull request's pictures lie at `pr-<number>/<12 digits of them>/`, and are linked by the commit that added them,
# so that a link shows the same picture for ever. https://docs.github.com/rest/git has the API.

_ATTEMPTS = 6
# What a branch may be called is git's affair (git-check-ref-format); this is a safe part of it.
_BRANCH = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9][A-Za-z0-9._-]*)*")


def branch_named(name: str) -> str:
    """A name for the branch of pictures."""
    if not _BRANCH.fullmatch(name) or ".." in name or name.endswith((".lock", ".")) or len(name) > 200:
        raise UsageError(f"--images-branch {name[:100]!r}: is no name of a branch; harness-pictures is one")
    return name


def publish(client: Client, repository: str, branch: str, folder: str, files: Mapping[str, bytes]) -> str:
    """Add pictures to the branch, which is made where it does not exist, without parents; the commit that has them."""
    git, quoted = f"repos/{repository}/git", quote(branch)

    def make(kind: str, what: str, document: Any) -> str:
        return _sha(client.send("POST", f"{git}/{kind}", _purpose(what), document), client)

    entries = []
    for name, content in files.items():
        blob = {"content": base64.b64encode(content).decode(), "encoding": "base64"}
        sha = make("blobs", f"keep {name}", blob)
        entries.append({"path": f"{folder}/{name}", "mode": "100644", "type": "blob", "sha": sha})
    for attempt in range(_ATTEMPTS):
        tip = _tip(client, f"{git}/ref/heads/{quoted}", branch)
        tree: dict[str, Any] = {"tree": entries}
        if tip:
            commit_of_tip = client.get(f"{git}/commits/{tip}", _purpose("read a commit of pictures"))
            tree["base_tree"] = _sha(commit_of_tip, client, "tree")
        document = {
            "message": f"Pictures of {folder}",
            "tree": make("trees", "keep a tree of pictures", tree),
            "parents": [tip] if tip else [],
        }
        commit = make("commits", "commit pictures", document)
        purpose = _purpose(f"move branch {branch}")
        try:
            if tip:
                client.send("PATCH", f"{git}/refs/heads/{quoted}", purpose, {"sha": commit, "force": False})
            else:
                client.send("POST", f"{git}/refs", purpose, {"ref": f"refs/heads/{branch}", "sha": commit})
            return commit
        except GitHubError as error:
            if error.status not in (409, 422) or attempt + 1 == _ATTEMPTS:
                raise
            client.say(f"branch {branch} has moved on meanwhile; adding the pictures again")
            client.pause(error, attempt)
    raise AssertionError("the last attempt returns or raises")


def _tip(client: Client, path: str, branch: str) -> str | None:
    try:
        return _sha(client.get(path, _purpose(f"read branch {branch}")), client, "object")
    except GitHubError as error:
        if error.status == 404:
            return None
        raise


def _purpose(what: str) -> Purpose:
    return Purpose(what=what, needs="contents: write")


def _sha(document: Any, client: Client, key: str = "") -> str:
    """The hash in an answer, or in what it has at a key."""
    part = document.get(key) if key and isinstance(document, dict) else document
    sha = part.get("sha") if isinstance(part, dict) else None
    if not isinstance(sha, str) or not re.fullmatch(r"[0-9a-f]{40,64}", sha):
        raise GitHubError(f"{client.host}: answers without the hash of what was sent; check $GITHUB_API_URL")
    return sha


# --- Posting ---


@dataclass(frozen=True, kw_only=True)
class Destination:
    """Where a comment goes and what it links to."""

    repository: str
    target: int | Event  # Number of the pull request, or the event that leads to it
    links: Links
    server: str  # Where people see the repository
    author: str | None = None  # Login of the token's owner; None: GitHub is asked
    images_branch: str | None = None  # Branch for pictures
    images_url: str = ""  # Where somebody else publishes the pictures; "" for nowhere, without a slash at its end


def post(figures: Figures, destination: Destination, client: Client) -> str:
    """Find, update or create the comment."""
    links, repository, number = destination.links, destination.repository, destination.target
    if isinstance(number, Event):
        found = pull_request_of(number, client, repository)
        if isinstance(found, str):
            return found
        number = found
    comments = OwnComments(client, repository, destination.author or own_login(client), number)
    existing = comments.with_marker(marker_of(render_comment(figures, links=links)))
    pictures = _pictures(figures, destination, number, existing, client)
    return comments.put(render_comment(figures, pictures=pictures, links=links), existing)


def _pictures(
    figures: Figures, destination: Destination, number: int, existing: list[Comment], client: Client
) -> Sequence[Picture]:
    """By their addresses; on a branch by those in the commit that has them."""
    if destination.images_url:
        return published(figures, lambda name: f"{destination.images_url}/{name}")
    repository, branch = destination.repository, destination.images_branch
    if branch is None or not (files := files_of_comment(figures)):
        return ()
    folder = f"pr-{number}/{hashlib.sha256(b''.join(files.values())).hexdigest()[:12]}"
    place = f"{destination.server}/{repository}/raw"  # which follows the reader's right to see the repository
    shown = re.compile(rf"{re.escape(place)}/([0-9a-f]{{40}})/{re.escape(folder)}/")
    commits = [match[1] for comment in existing if (match := shown.search(comment.body))]
    try:
        commit = commits[-1] if commits else publish(client, repository, branch, folder, files)
    except GitHubError as error:
        client.say(f"{error}; the comment goes without pictures")  # it has a plot of text
        return ()
    return published(figures, lambda name: f"{place}/{commit}/{folder}/{name}")
