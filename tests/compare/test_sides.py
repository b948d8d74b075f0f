"""What a user may call a side, and that everything that can be wrong with it is told before anything takes long."""

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from harness.compare import sides as sides_module
from harness.compare.commits import Commit
from harness.compare.options import CompareOptions
from harness.compare.pairs import Side, is_toolchain, pair_runs
from harness.compare.sides import (
    describe_toolchains,
    remarks_on,
    require_comparable,
    require_two,
    side_facts,
    toolchains_here,
    what_is_named,
)
from harness.errors import HarnessError, RunError, UsageError
from harness.records.run import HostRecord, Placed
from harness.report.units import side_names
from harness.stages import session
from harness.stages.comparing import ComparisonSession
from harness.store.run_directory import RunDirectory
from harness.toolchain import Toolchain
from tests.builders import a_toolchain, commit, git, make_header
from tests.compare.runs import TOOLCHAIN, a_case, a_side


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every release is here at once; what was asked for, in order."""
    asked: list[str] = []

    def get(versions: Sequence[str], **_: object) -> tuple[Toolchain, ...]:
        asked.extend(versions)
        return tuple(a_toolchain(version.removeprefix("iree==")) for version in versions)

    for module in (sides_module, session):
        monkeypatch.setattr(module, "get_toolchains", get)
    return asked


def a_run(folder: Path, name: str) -> str:
    with RunDirectory.create(folder, replace(make_header(), id=name)) as directory:
        return str(directory.path)


def resolved(folder: Path, *sides: str, suite: Path | None = None) -> None:
    """Sides with something wrong, which are refused before any run is made."""
    base, head = (what_is_named(side, folder) for side in sides)
    ComparisonSession(CompareOptions(results=folder, suite=suite)).resolve((base, head))


def message(error: type[HarnessError], function: Callable[..., object], *arguments: object) -> str:
    with pytest.raises(error) as caught:
        function(*arguments)
    return str(caught.value)


# --- Two of them ---


def test_sides_come_by_position_then_as_toolchains_in_this_order() -> None:
    assert require_two(["a", "b"], [], None) == ("a", "b")
    assert require_two(["a"], ["3.12.0"], None) == ("a", "iree==3.12.0")
    assert require_two([], ["3.12.0", "iree==3.13.0"], None) == ("iree==3.12.0", "iree==3.13.0")
    assert not is_toolchain("results/iree==3.12.0")
    assert require_two([], [], Path("results/x")) == ("results/x", "results/x")
    assert message(UsageError, require_two, ["a"], ["3.12.0"], Path("results/x")) == (
        "--within results/x compares the variants of that run; leave out a, iree==3.12.0"
    )


def test_nothing_is_installed_before_what_it_is_for_is_known(installed: list[str], tmp_path: Path) -> None:
    assert message(UsageError, resolved, tmp_path, "iree==3.12.0", "iree==3.13.0") == (
        "sides without a run are compared on a suite; give one, as in --suite suites/x.toml"
    )
    base = a_run(tmp_path, "base")
    nowhere = f"{base}/nowhere"
    assert "there is no such folder" in message(RunError, resolved, tmp_path, "iree==3.12.0", nowhere)
    assert message(UsageError, resolved, tmp_path, base, f"{tmp_path}/./base") == (
        f"{base} is given twice; --within {base} takes its variants as sides"
    )
    assert installed == []


# --- As commits ---


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two commits on main, of which the second one alone has new.toml; results/ has the run `base`."""
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    folder = tmp_path / "repository"
    folder.mkdir()
    git(folder, "init", "--quiet")
    commit(folder, "First", x_toml="x")
    commit(folder, "Second", new_toml="x")
    a_run(folder / "results", "base")
    monkeypatch.chdir(folder)
    return folder


def test_a_run_comes_before_a_commit_and_what_is_both_is_refused(repository: Path) -> None:
    """A branch may be called as a run is, as what its name begins with, or as `latest`."""
    results = Path("results")
    for word in ("base", "results/base", "./results/base", "bas"):
        assert what_is_named(word, results) == Path("results/base")
    assert what_is_named("iree==3.12.0", results) == "iree==3.12.0"
    for word in ("pr:7", "run:7", "o/r#main", "pr:0"):
        assert what_is_named(word, results) == f"iree=={word}"
    program = repository / "builds" / "one" / "iree-compile"
    program.parent.mkdir(parents=True)
    program.touch()
    for word in ("builds/one", "builds/newest"):
        assert what_is_named(word, results) == f"iree=={word}"
    for branch in ("base", "ba", "results/base", "latest"):
        git(repository, "branch", branch)
        named = what_is_named(f"commit:{branch}", results)
        assert isinstance(named, Commit)
        assert (named.name, named.subject) == (f"commit:{branch}", "Second")
    for word in ("base", "ba", "results/base"):
        assert message(UsageError, what_is_named, word, results) == (
            f"{word} is a run and a commit; say ./results/base or commit:{word}"
        )
    assert what_is_named("./results/base", results) == Path("results/base")
    assert isinstance(what_is_named("latest", results), Commit)  # there is no run that it could mean
    a_run(repository / "results", "20260101-000000-small")
    assert "is a run and a commit" in message(UsageError, what_is_named, "latest", results)


def test_what_is_neither_says_what_there_could_be(repository: Path) -> None:
    (repository / "main").mkdir()  # a folder that is no run
    assert isinstance(what_is_named("main", Path("results")), Commit)
    assert message(UsageError, what_is_named, "nowhere", Path("results")) == (
        "nowhere: there is no such run in results, no such folder here, and this repository has no such commit; `git "
        "fetch origin` gets those that the origin has"
    )
    assert message(UsageError, what_is_named, "latst", Path("results")).endswith('; did you mean "latest"?')
    a_run(repository / "results", "base-2")
    assert message(UsageError, what_is_named, "bas", Path("results")).startswith(
        "bas: begins the names of base, base-2 "
    )


NOT_THERE = "new.toml is not there in the {} FIRST; `harness run new.toml` measures it alone where it is there"


@pytest.mark.parametrize(
    ("base", "head", "suite", "sentence"),
    [
        ("main", "HEAD", "x.toml", "main and HEAD are one commit, SECOND; give two"),
        ("HEAD~1", "main", "new.toml", NOT_THERE.format("base")),
        ("iree==3.13.0", "HEAD~1", "new.toml", NOT_THERE.format("head")),
    ],
)
def test_what_is_wrong_with_commits_is_said_before_anything_is_made(
    repository: Path, base: str, head: str, suite: str, sentence: str, installed: list[str]
) -> None:
    for word, name in (("FIRST", "HEAD~1"), ("SECOND", "HEAD")):
        sentence = sentence.replace(word, git(repository, "rev-parse", "--short=12", name))
    with pytest.raises(UsageError) as caught:
        resolved(repository / "results", base, head, suite=Path(suite))
    assert str(caught.value) == sentence
    assert installed == []


# --- Their toolchains here ---


@pytest.mark.parametrize("wrong", ["base", "head"])
def test_either_side_may_be_of_another_build_of_the_same_release(wrong: str, installed: list[str]) -> None:
    other = replace(TOOLCHAIN, compiler_sha256="dd" * 32)
    sides = [
        a_side(a_case(), label=name, toolchains=[other if name == wrong else TOOLCHAIN]) for name in ("base", "head")
    ]
    said: list[str] = []
    here = toolchains_here(sides, said.append)
    assert [toolchain.compiler_is_gone for toolchain in here.values()] == [name == wrong for name in ("base", "head")]
    assert {toolchain.compiler_sha256 for toolchain in here.values()} == {"cc" * 32, "dd" * 32}
    assert said == ["IREE 0.0.0: its compiler was built again since, and its modules run on the runtime of 0.0.0"]
    assert remarks_on(sides, here) == tuple(said)


def test_what_is_remarkable_of_a_toolchain_stands_behind_it() -> None:
    record = replace(TOOLCHAIN, revision="12" * 20, remarks=("a debug build", "measured through the runtime of 1.0.0"))
    side = a_side(a_case(), toolchains=[record])
    said = "0.0.0 (1212121212, a debug build, measured through the runtime of 1.0.0)"
    assert describe_toolchains(side.run.header) == (said,)
    assert remarks_on([side], {}) == tuple(f"IREE 0.0.0: {remark}" for remark in record.remarks)
    facts = side_facts(side, "base")
    assert side_names(facts, replace(facts, toolchains=("1.0.0",))) == ("IREE 0.0.0", "IREE 1.0.0")


# --- Machines ---

MACHINE = {"id": "3f2a91c04b7e", "virtual": True, "system": "Linux", "distribution": "Debian GNU/Linux 12"}
OTHER = {**MACHINE, "id": "0123456789ab", "virtual": False}
CPU = {"model": "a processor", "usable_cores": 2}
A_GPU = {"devices": {"cpu": "a GPU"}}
UNKNOWN = "whether results/base and results/head were measured on one machine is not known"


def a_host(label: str, *, machine: dict[str, Any] = MACHINE, **environment: dict[str, Any]) -> Side:
    return a_side(a_case(), label=label, environment={"machine": machine, "cpu": CPU, **environment})


@pytest.mark.parametrize(
    ("base", "head", "sentence"),
    [
        (
            {},
            {"machine": OTHER},
            "results/base and results/head were measured on different machines (machine 3f2a91c04b7e (virtual), a "
            "processor, 2 cores, Debian GNU/Linux 12; machine 0123456789ab, a processor, 2 cores, Debian GNU/Linux 12)",
        ),
        ({}, {"machine": {}}, UNKNOWN),
        ({"machine": {}}, {"machine": {}}, UNKNOWN),
        (
            A_GPU,
            {"devices": {"cpu": "another GPU"}},
            "device cpu was a GPU in results/base and another GPU in results/head",
        ),
        (A_GPU, {}, "device cpu was a GPU in results/base and not there in results/head"),
    ],
)
def test_recorded_numbers_of_other_machines_or_devices_are_compared_only_where_that_is_asked_for(
    base: dict[str, Any], head: dict[str, Any], sentence: str
) -> None:
    sides = a_host("results/base", **base), a_host("results/head", **head)
    pairs = pair_runs(*sides)
    with pytest.raises(UsageError) as caught:
        require_comparable(*sides, pairs, across_hosts=False)
    assert str(caught.value) == (
        f"{sentence}; measure both on one machine, or give --across-hosts to compare them all the same"
    )
    require_comparable(*sides, pairs, across_hosts=True)


def on_hosts(label: str, *hosts: str) -> Side:
    """Three groups, each measured on one of these hosts, which are machines of their own."""
    placed = tuple(Placed(group=f"m{place}@cpu", host=host) for place, host in enumerate(hosts))
    run = replace(
        a_side(*(a_case(model=f"m{place}") for place in range(len(hosts))), label=label).run,
        hosts=tuple(
            HostRecord(name=host, environment={"machine": {"id": host}, "devices": {"cpu": host}})
            for host in sorted(set(hosts))
        ),
        placed=placed,
    )
    return Side(run, label)


def test_of_several_hosts_it_is_that_of_each_case_that_counts() -> None:
    base, head = on_hosts("results/base", "ash", "elm", "elm"), on_hosts("results/head", "ash", "elm", "ash")
    pairs = pair_runs(base, head)
    require_comparable(base, head, pairs[:2], across_hosts=False)
    require_comparable(base, head, pairs, across_hosts=True)
    assert message(UsageError, partial(require_comparable, base, head, pairs, across_hosts=False)) == (
        "the two sides of m2/stock@cpu (results/base and results/head) were measured on different machines (machine "
        "elm; machine ash); measure both on one machine, or give --across-hosts to compare them all the same; --filter "
        "chooses cases"
    )
    assert side_facts(base, "base").machine == "ash: machine ash; elm: machine elm"
