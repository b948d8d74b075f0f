"""Comparisons and explanations under way: the runs of their sides, each made once, and how they go on."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from harness.cache import write_atomically
from harness.compare.commits import require_commit
from harness.compare.options import CompareOptions
from harness.errors import HarnessError, Interrupted, PlaceGone, RunError, UsageError
from harness.stages import options as options_of_stages
from harness.stages import session as sides_session
from harness.stages.comparing import ComparisonSession, begun_comparison
from harness.stages.options import ExplainOptions, RunOptions, TuneOptions
from harness.stages.session import begun_now
from harness.store.files import FINISHED_FILE
from harness.store.run_directory import RunDirectory
from tests.builders import Notes, commit, git, make_header

SUITE = Path("../suites/small.toml")
FLEET = "tls://bench:8786"
Begin = Callable[..., ComparisonSession]


@pytest.mark.parametrize(
    ("command", "kept"),
    [
        ("explain latest --within --variant st", "explain latest --within --variant st"),
        ("compare st latest st --filter st", "compare own latest st --filter st"),
        (
            "compare --no-wait latest --toolchain=st",
            "compare --no-wait latest --toolchain=own",
        ),
        ("bisect st --case st --good st --skip st", "bisect st --case st --good own --skip own"),
        ("run st st --toolchain st", "run st st --toolchain own"),
    ],
)
def test_only_words_for_toolchains_are_kept_as_labels(command: str, kept: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder st that is a toolchain is here."""
    for module in (options_of_stages, sides_session):
        monkeypatch.setattr(module, "in_public", lambda word: "own" if word == "st" else word)
    options = ExplainOptions(("st", "latest"), variant="st", case="st")
    begun = begun_now(options, ("harness", *command.split()))
    assert begun.command == ("harness", *kept.split())
    assert [begun.options[name] for name in ("words", "variant", "case")] == [["own", "latest"], "st", "st"]
    assert begun_now(TuneOptions(toolchain="st", start="st"), ()).options["toolchain"] == "own"


# --- commits, each in its own tree ---


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two commits, and a user in a folder that only the second one has."""
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    git(tmp_path, "init", "--quiet")
    commit(tmp_path, "First", suites__small_toml="old")
    commit(tmp_path, "Second", suites__small_toml="new", sub__x_md="x")
    monkeypatch.chdir(tmp_path / "sub")
    return tmp_path


@pytest.fixture
def notes() -> Notes:
    return Notes()


@pytest.fixture
def begin(notes: Notes, repository: Path) -> Iterator[Begin]:
    with ExitStack() as stack:

        def begin(**options: Any) -> ComparisonSession:
            session = ComparisonSession(CompareOptions(**options), words=("compare", "main", "HEAD"))
            session.progress = notes
            return stack.enter_context(session)

        yield begin


def test_a_suite_is_run_where_its_commit_has_it_and_kept_where_the_user_is(
    begin: Begin, repository: Path, notes: Notes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HARNESS_CACHE", "a-cache")
    here, seen = Path.cwd(), []

    def look(options: RunOptions, *_: object, purpose: str, **__: object) -> Path:
        assert options.suite is not None
        assert (options.measure, options.patterns) == (False, ("x/*",))
        assert purpose == "compare"  # which the history leaves out
        seen.append((options.suite, options.suite.read_text(), options.results, os.environ["HARNESS_CACHE"]))
        return options.results / "run"

    monkeypatch.setattr(sides_session, "run_suite", look)
    (repository / "suites/small.toml").write_text("changed")
    session = begin(patterns=("x/*",))
    for name, which in (("HEAD~1", "base"), ("HEAD", "head")):
        path, root = session.of_commit(SUITE, require_commit(name), which)
        assert path == here / "results/run"
        assert (root / SUITE).resolve().read_text() == seen[-1][1]  # its weights are read there later
        assert Path.cwd() == here
    cache = str(here / "a-cache")
    assert seen == [(SUITE, "old", here / "results", cache), (SUITE, "new", here / "results", cache)]
    assert os.environ["HARNESS_CACHE"] == "a-cache"
    first, second = (require_commit(name).short for name in ("HEAD~1", "HEAD"))
    changed = "HEAD is compared as it was committed; changes of the working folder since are in no commit"
    assert notes.lines == [f"The base is {first}: First", changed, f"The head is {second}: Second"]


def test_a_tree_is_prepared_with_this_python_and_run_by_a_harness_of_its_own(
    begin: Begin, notes: Notes, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = (
        "import json, os, sys; said = [open('../prepared').read(), os.environ['HARNESS_PURPOSE'], *sys.argv[1:]];"
        "sys.stderr.write(' '.join(said) + '\\n\\n');"
        "print(json.dumps({'run': {'id': 'an-id'}})); sys.exit(3)"
    )
    monkeypatch.setattr(sides_session, "_HARNESS", program)
    prepare = "cat ../suites/small.toml > ../prepared\necho done\ncommand -v python >&2"
    session = begin(patterns=("x/*", "y"), wait=False, prepare=prepare)
    path, _ = session.of_commit(SUITE, require_commit("HEAD~1"), "base")
    assert path == Path("results/an-id")
    results = Path.cwd() / "results"
    assert notes.lines[1:] == [
        "done",
        f"{Path(sys.executable).parent}/python",
        f"old compare run {SUITE} --no-measure --format json --results {results} --compile-timeout 900 --no-wait "
        "--filter x/* --filter y",
    ]


def exits(words: str | int) -> str:
    """A harness in a tree of its own that ends with these last words, or with a status."""
    return f"import sys; sys.exit({words!r})"


GONE = f"{FLEET}: the scheduler has gone"
KEPT = f"{GONE}; what has arrived is kept: go on with `harness compare main HEAD`"
IN_TREE = exits(f"harness: {PlaceGone(GONE, 'harness run --resume x')}")


@pytest.mark.parametrize(
    ("prepare", "end", "kind", "sentence"),
    [
        (None, UsageError("small.toml: has no model"), UsageError, "SIDE: small.toml: has no model"),
        ("echo no such package >&2; exit 4", "", UsageError, "SIDE: --prepare exits with status 4: no such package"),
        ("false", "", UsageError, "SIDE: --prepare exits with status 1: it does not say why"),
        ("true", exits("harness: it is broken; mend it"), UsageError, "SIDE: it is broken; mend it"),
        ("true", "print('{}')", UsageError, f"SIDE: {SUITE} is a list of suites; give one of them"),
        (None, PlaceGone(GONE, "harness run --resume x"), PlaceGone, KEPT),
        ("true", IN_TREE, PlaceGone, KEPT),
        (None, Interrupted("interrupted; go on with `x`"), Interrupted, "interrupted"),  # the run had not begun
        ("true", exits(130), Interrupted, "interrupted"),
    ],
)
def test_a_side_that_fails_or_is_stopped_ends_all_of_it(
    begin: Begin,
    monkeypatch: pytest.MonkeyPatch,
    prepare: str | None,
    end: HarnessError | str,
    kind: type[HarnessError],
    sentence: str,
) -> None:
    if isinstance(end, str):
        monkeypatch.setattr(sides_session, "_HARNESS", end)
    else:
        monkeypatch.setattr(sides_session, "run_suite", Mock(side_effect=end))
    found = require_commit("HEAD")
    with pytest.raises(kind) as caught:
        begin(prepare=prepare, fleet=FLEET).of_commit(SUITE, found, "head")
    assert str(caught.value) == sentence.replace("SIDE", f"the head {found.short}")


# --- going on ---


class Runs:
    """Runs of sides that are made without compiling: how each ends is written down."""

    def __init__(self, results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.results = results
        self.asked: list[Path | None] = []
        self.ends: list[HarnessError | None] = []
        monkeypatch.setattr(sides_session, "run_suite", self._run)

    def _run(self, options: RunOptions, *_: object, on_begin: Callable[[RunDirectory], None], **__: Any) -> Path:
        self.asked.append(options.resume)
        if options.resume is None:
            directory = RunDirectory.create(self.results, make_header())
        else:
            directory = RunDirectory.resume(options.resume)[0]
        on_begin(directory)
        if (error := self.ends.pop(0)) is not None:
            raise error
        write_atomically(directory.path / FINISHED_FILE, b"{}")
        return directory.path

    def stopped(self, *ends: HarnessError | None, **options: Any) -> Path:
        """A comparison that is stopped where the runs of its sides have ended so; its folder."""
        self.ends = [*ends]
        session = ComparisonSession(CompareOptions(results=self.results, **options), words=("compare",))
        sentence = make(session)
        (path,) = self.results.glob("*-compare")
        assert sentence.endswith(f"go on with `harness compare --resume {path}`")
        return path


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Runs:
    return Runs(tmp_path, monkeypatch)


STOPPED = Interrupted("by the user")


def make(session: ComparisonSession) -> str:
    """Make both sides; what is said where that is stopped."""
    with pytest.raises((Interrupted, PlaceGone)) as caught, session:
        for side in ("3.12.0", "3.13.0"):
            session.run_of_side(side, RunOptions(Path("suite.toml")))
    return str(caught.value)


def again(path: Path, **options: Any) -> ComparisonSession:
    going, folder = begun_comparison(CompareOptions(resume=path, **options))
    return ComparisonSession(going, folder=folder)


def test_sides_that_are_made_are_not_made_again(runs: Runs) -> None:
    path = runs.stopped(None, PlaceGone(GONE, "x"), seed=7)
    runs.ends = [STOPPED]
    assert make(again(path)) == f"interrupted; go on with `harness compare --resume {path}`"
    second = sorted(runs.results.glob("*-small*"))[1]
    assert runs.asked == [None, None, second]
    runs.ends = [None]
    with again(path) as session:
        assert session.run_of_side("3.13.0", RunOptions(Path("suite.toml"))) == second
        assert [session.finished_run(side) is not None for side in ("3.12.0", "3.13.0")] == [True, True]
        assert (session.options.seed, session.command) == (7, ("harness", "compare"))
        assert session.options.results == runs.results


def test_one_that_goes_on_takes_no_options_of_its_own(runs: Runs) -> None:
    path = runs.stopped(STOPPED)
    with pytest.raises(UsageError, match="goes on with the comparison's own settings; leave out --within, --seed"):
        again(path, seed=1, within=Path("run"))
    with pytest.raises(RunError, match="one machine measured it; go on there, without --fleet"):
        again(path, fleet=FLEET)


def test_one_on_a_fleet_goes_on_there_wherever_its_scheduler_is(runs: Runs) -> None:
    path = runs.stopped(STOPPED, fleet=FLEET, seed=7)
    options = again(path, fleet="tls://other:1").options
    assert (again(path).options.fleet, options.fleet, options.seed) == (FLEET, "tls://other:1", 7)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("{", "", r"is damaged .*; begin the comparison again$"),
        ('"seed": 0', '"seed": "x"', "is damaged"),
        ('"machine": "', '"machine": "not ', "another machine"),
    ],
)
def test_what_cannot_go_on_says_why(runs: Runs, old: str, new: str, words: str) -> None:
    file = runs.stopped(STOPPED) / "unfinished.json"
    assert old in file.read_text()
    file.write_text(file.read_text().replace(old, new))
    with pytest.raises(RunError, match=words):
        again(file.parent)
