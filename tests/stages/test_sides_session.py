"""Comparisons and explanations under way: the runs of their sides, each made once, and how they go on."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.cache import write_atomically
from harness.compare.commits import require_commit
from harness.compare.options import CompareOptions
from harness.errors import Interrupted, PlaceGone, RunError, UsageError
from harness.stages import session as sides_session
from harness.stages.comparing import ComparisonSession, begun_comparison
from harness.stages.options import RunOptions
from harness.store.files import FINISHED_FILE
from harness.store.run_directory import RunDirectory
from tests.builders import Notes, commit, git, make_header

SUITE = Path("../suites/small.toml")
FLEET = "tls://bench:8786"
Made = Callable[[RunOptions], Path]


def pretend(monkeypatch: pytest.MonkeyPatch, function: Made) -> None:
    """Make runs of sides in another way."""

    def run_suite(options: RunOptions, *_: object, purpose: str, **__: object) -> Path:
        assert purpose == "compare"  # which the history leaves out
        return function(options)

    monkeypatch.setattr(sides_session, "run_suite", run_suite)


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
def begin(notes: Notes, repository: Path) -> Iterator[Callable[..., ComparisonSession]]:
    begun: list[ComparisonSession] = []

    def begin(**options: Any) -> ComparisonSession:
        begun.append(ComparisonSession(CompareOptions(**options), words=("compare", "main", "HEAD")))
        begun[-1].progress = notes
        return begun[-1]

    yield begin
    for session in begun:
        session.__exit__(None, None, None)


Begin = Callable[..., ComparisonSession]


def test_a_suite_is_run_where_its_commit_has_it_and_kept_where_the_user_is(
    begin: Begin, repository: Path, notes: Notes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HARNESS_CACHE", "a-cache")
    here, seen = Path.cwd(), []

    def look(options: RunOptions) -> Path:
        assert options.suite is not None
        assert (options.measure, options.patterns) == (False, ("x/*",))
        seen.append((options.suite, options.suite.read_text(), options.results, os.environ["HARNESS_CACHE"]))
        return options.results / "run"

    pretend(monkeypatch, look)
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


def test_what_is_wrong_with_a_side_names_it(begin: Begin, repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: RunOptions) -> Path:
        raise UsageError("suites/small.toml: there is no file ../models/x.mlir beside the suite; check the path")

    pretend(monkeypatch, fail)
    found = require_commit("HEAD")
    with pytest.raises(UsageError) as caught:
        begin().of_commit(SUITE, found, "base")
    assert str(caught.value) == (
        f"the base {found.short}: suites/small.toml: there is no file ../models/x.mlir beside the suite; check the path"
    )


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


@pytest.mark.parametrize(
    ("prepare", "program", "sentence"),
    [
        ("echo no such package >&2; exit 4", "", "--prepare exits with status 4: no such package"),
        ("false", "", "--prepare exits with status 1: it does not say why"),
        ("true", "import sys; sys.exit('harness: it is broken; mend it')", "it is broken; mend it"),
        ("true", "print('{}')", f"{SUITE} is a list of suites; give one of them"),
    ],
)
def test_a_tree_that_cannot_be_prepared_or_run(
    begin: Begin, monkeypatch: pytest.MonkeyPatch, prepare: str, program: str, sentence: str
) -> None:
    monkeypatch.setattr(sides_session, "_HARNESS", program)
    found = require_commit("HEAD")
    with pytest.raises(UsageError) as caught:
        begin(prepare=prepare).of_commit(SUITE, found, "head")
    assert str(caught.value) == f"the head {found.short}: {sentence}"


@pytest.mark.parametrize("prepare", [None, "true"])
def test_who_stops_a_side_or_its_fleet_stops_all_of_it(
    begin: Begin, monkeypatch: pytest.MonkeyPatch, prepare: str | None
) -> None:
    def gone(_: RunOptions) -> Path:
        raise PlaceGone(f"{FLEET}: the scheduler has gone", "harness run --resume x")

    def stop(_: RunOptions) -> Path:
        raise Interrupted("interrupted; go on with `harness run --resume x`")

    said = str(PlaceGone(f"{FLEET}: the scheduler has gone", "harness run --resume x"))
    for end, program, kind, sentence in (
        (
            gone,
            f"import sys; sys.exit({f'harness: {said}'!r})",
            PlaceGone,
            f"{FLEET}: the scheduler has gone; what has arrived is kept: go on with `harness compare main HEAD`",
        ),
        (stop, "import sys; sys.exit(130)", Interrupted, "interrupted"),  # since the run had not begun
    ):
        monkeypatch.setattr(sides_session, "_HARNESS", program)
        pretend(monkeypatch, end)
        with pytest.raises(kind) as caught:
            begin(prepare=prepare, fleet=FLEET).of_commit(SUITE, require_commit("HEAD"), "base")
        assert str(caught.value) == sentence


# --- going on ---


class Runs:
    """Runs of sides that are made without compiling: how each ends is written down."""

    def __init__(self, results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.results = results
        self.asked: list[Path | None] = []
        self.ends: list[BaseException | None] = []
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

    def stopped(self, *ends: BaseException | None, **options: Any) -> Path:
        """A comparison that is stopped once the runs of its sides have ended so; its folder."""
        self.ends = [*ends]
        chosen = CompareOptions(**{"results": self.results, **options})
        with pytest.raises(Interrupted), ComparisonSession(chosen, words=("compare",)) as session:
            make(session)
        (path,) = self.results.glob("*-compare")
        return path


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Runs:
    return Runs(tmp_path, monkeypatch)


STOPPED = Interrupted("by the user")


def make(session: ComparisonSession) -> None:
    for side in ("3.12.0", "3.13.0"):
        session.run_of_side(side, RunOptions(Path("suite.toml")))
    raise Interrupted(session.how_to_go_on)


def again(path: Path, **options: Any) -> ComparisonSession:
    going, folder = begun_comparison(CompareOptions(resume=path, **options))
    return ComparisonSession(going, folder=folder)


def test_sides_that_are_made_are_not_made_again(runs: Runs) -> None:
    path = runs.stopped(None, STOPPED, seed=7)
    runs.ends = [STOPPED, None]
    for _ in range(2):
        with pytest.raises(Interrupted) as caught, again(path) as session:
            make(session)
        assert str(caught.value) == f"interrupted; go on with `harness compare --resume {path}`"
    second = sorted(runs.results.glob("*-small*"))[1]
    assert runs.asked == [None, None, second, second]
    with again(path) as session:
        assert (session.options.seed, session.command) == (7, ("harness", "compare"))
        assert session.options.results == runs.results


def test_one_whose_hosts_have_gone_when_the_second_side_begins_is_kept(runs: Runs) -> None:
    class Executor:
        left = 1

        def following(self, _runs: object) -> Executor:
            if not self.left:
                raise PlaceGone(f"{FLEET}: no host has joined; start `harness fleet worker` on one")
            self.left -= 1
            return self

    runs.ends = [None]
    chosen = CompareOptions(results=runs.results, fleet=FLEET)
    with pytest.raises(PlaceGone) as caught, ComparisonSession(chosen) as session:
        session.executor = Executor()  # type: ignore[assignment]
        make(session)
    (path,) = runs.results.glob("*-compare")
    assert str(caught.value).endswith(f"what has arrived is kept: go on with `harness compare --resume {path}`")
    with again(path) as session:
        assert session.finished_run("3.12.0") is not None


def test_one_that_goes_on_takes_no_options_of_its_own(runs: Runs) -> None:
    path = runs.stopped(STOPPED)
    with pytest.raises(UsageError, match="goes on with the comparison's own settings; leave out within, seed"):
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
