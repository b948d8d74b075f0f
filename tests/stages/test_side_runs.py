"""The runs of a comparison's sides: each commit's suite in its own tree, and what is said where one cannot be run."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from harness.compare.commits import require_commit
from harness.compare.options import CompareOptions
from harness.errors import Interrupted, PlaceGone, UsageError
from harness.stages import side_runs
from harness.stages.comparing import Underway
from harness.stages.options import RunOptions
from harness.stages.side_runs import SideRuns
from tests.builders import Notes, commit, git

SUITE = Path("../suites/small.toml")


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
def runs(notes: Notes, repository: Path) -> Iterator[Callable[..., SideRuns]]:
    with ExitStack() as trees:
        command = ("harness", "compare", "main", "HEAD")
        yield lambda **options: SideRuns(
            underway=Underway(CompareOptions(**options), command=command), progress=notes, trees=trees
        )


def pretend(monkeypatch: pytest.MonkeyPatch, function: Callable[[RunOptions], Path]) -> None:
    def run_suite(options: RunOptions, *_: object, purpose: str, **__: object) -> Path:
        assert purpose == "compare"  # which the history leaves out
        return function(options)

    monkeypatch.setattr(side_runs, "run_suite", run_suite)


def test_a_suite_is_run_where_its_commit_has_it_and_kept_where_the_user_is(
    runs: Callable[..., SideRuns], notes: Notes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HARNESS_CACHE", "a-cache")
    here, seen = Path.cwd(), []

    def look(options: RunOptions) -> Path:
        assert options.suite is not None
        assert (options.measure, options.patterns) == (False, ("x/*",))
        seen.append((options.suite, options.suite.read_text(), options.results, os.environ["HARNESS_CACHE"]))
        return options.results / "run"

    pretend(monkeypatch, look)
    maker = runs(patterns=("x/*",))
    for name, which in (("HEAD~1", "base"), ("HEAD", "head")):
        path, root = maker.of_commit(SUITE, require_commit(name), which)
        assert path == here / "results/run"
        assert (root / SUITE).resolve().read_text() == seen[-1][1]  # its weights are read there later
        assert Path.cwd() == here
    cache = str(here / "a-cache")
    assert seen == [(SUITE, "old", here / "results", cache), (SUITE, "new", here / "results", cache)]
    assert os.environ["HARNESS_CACHE"] == "a-cache"
    first, second = (require_commit(name).short for name in ("HEAD~1", "HEAD"))
    assert notes.lines == [f"The base is {first}: First", f"The head is {second}: Second"]


def test_changes_that_are_in_no_commit_are_not_compared(
    runs: Callable[..., SideRuns], repository: Path, notes: Notes, monkeypatch: pytest.MonkeyPatch
) -> None:
    pretend(monkeypatch, lambda options: options.results)
    (repository / "suites/small.toml").write_text("changed")
    runs().of_commit(SUITE, require_commit("HEAD"), "head")
    assert notes.lines[0] == (
        "HEAD is compared as it was committed; changes of the working folder since are in no commit"
    )


def test_what_is_wrong_with_a_side_names_it(
    runs: Callable[..., SideRuns], repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: RunOptions) -> Path:
        raise UsageError("suites/small.toml: there is no file ../models/x.mlir beside the suite; check the path")

    def stop(_: RunOptions) -> Path:
        raise Interrupted("interrupted; go on with `harness run --resume x`")

    git(repository, "update-index", "--add", "--cacheinfo", f"160000,{git(repository, 'rev-parse', 'HEAD')},models")
    git(repository, "commit", "--quiet", "--message", "Third")
    pretend(monkeypatch, fail)
    short = require_commit("HEAD").short
    with pytest.raises(UsageError) as caught:
        runs().of_commit(SUITE, require_commit("HEAD"), "base")
    assert str(caught.value) == (
        f"the base {short}: suites/small.toml: there is no file ../models/x.mlir beside the suite; check the path; "
        "models is a submodule, which is empty in the tree of a commit: compare runs of two checkouts"
    )
    pretend(monkeypatch, stop)
    with pytest.raises(Interrupted) as stopped:
        runs().of_commit(SUITE, require_commit("HEAD"), "head")
    assert str(stopped.value) == "interrupted"  # since the run had not begun


def test_who_works_in_a_folder_that_is_none_in_a_commit(runs: Callable[..., SideRuns], repository: Path) -> None:
    found = require_commit("HEAD")
    with pytest.raises(
        UsageError, match=r"the base \w+: suites/small.toml is no folder there; call it from the top of"
    ):
        runs().of_commit(SUITE, replace(found, below=Path("suites/small.toml")), "base")


# --- Prepared trees ---


def test_a_tree_is_prepared_with_this_python_and_run_by_a_harness_of_its_own(
    runs: Callable[..., SideRuns], notes: Notes, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = (
        "import json, os, sys; said = [open('../prepared').read(), os.environ['HARNESS_PURPOSE'], *sys.argv[1:]];"
        "sys.stderr.write(' '.join(said) + '\\n\\n');"
        "print(json.dumps({'run': {'id': 'an-id'}})); sys.exit(3)"
    )
    monkeypatch.setattr(side_runs, "_HARNESS", program)
    maker = runs(
        patterns=("x/*", "y"),
        wait=False,
        prepare="cat ../suites/small.toml > ../prepared\necho done\ncommand -v python >&2",
    )
    path, _ = maker.of_commit(SUITE, require_commit("HEAD~1"), "base")
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
    runs: Callable[..., SideRuns], monkeypatch: pytest.MonkeyPatch, prepare: str, program: str, sentence: str
) -> None:
    monkeypatch.setattr(side_runs, "_HARNESS", program)
    found = require_commit("HEAD")
    with pytest.raises(UsageError) as caught:
        runs(prepare=prepare).of_commit(SUITE, found, "head")
    assert str(caught.value) == f"the head {found.short}: {sentence}"


@pytest.mark.parametrize("prepare", [None, "true"])
def test_where_a_sides_fleet_has_gone_the_comparison_goes_on(
    runs: Callable[..., SideRuns], monkeypatch: pytest.MonkeyPatch, prepare: str | None
) -> None:
    def gone(_: RunOptions) -> Path:
        raise PlaceGone("tls://bench:8786: the scheduler has gone", "harness run --resume x")

    said = str(PlaceGone("tls://bench:8786: the scheduler has gone", "harness run --resume x"))
    monkeypatch.setattr(side_runs, "_HARNESS", f"import sys; sys.exit({f'harness: {said}'!r})")
    pretend(monkeypatch, gone)
    maker = runs(prepare=prepare, fleet="tls://bench:8786")
    with pytest.raises(PlaceGone) as caught:
        maker.of_commit(SUITE, require_commit("HEAD"), "base")
    assert str(caught.value) == (
        "tls://bench:8786: the scheduler has gone; what has arrived is kept: go on with `harness compare main HEAD`"
    )


def test_who_stops_it_in_a_prepared_tree_stops_all_of_it(
    runs: Callable[..., SideRuns], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(side_runs, "_HARNESS", "import sys; sys.exit(130)")
    with pytest.raises(Interrupted, match="interrupted"):
        runs(prepare="true").of_commit(SUITE, require_commit("HEAD"), "head")
