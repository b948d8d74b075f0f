"""Cases that fail, work again or are new: what a history says of them, and how it is shown."""

from __future__ import annotations

import csv
import io
import itertools
import json
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.cli import run_command_line
from harness.history.failures import CaseNews, case_news
from harness.history.open import History, open_history
from harness.records.run import Failure, Run
from tests.history.made import compacted, make_night, night_id

Ask = Callable[..., tuple[int, str, str]]

TILED = "net/tiled@cpu"
WHY = Failure(stage="compile", message="iree-compile exited with 1: cannot tile", stderr="error")


def failing(run: Run, names: Collection[str] = (f"{TILED}:3.13.0",)) -> Run:
    """The run, but these cases do not compile."""
    return replace(
        run,
        builds=tuple(
            replace(one, failure=WHY, module_sha256=None, sizes=None, statistics=None) if one.case in names else one
            for one in run.builds
        ),
        rounds=tuple(
            replace(one, turns=tuple(turn for turn in one.turns if turn.case not in names)) for one in run.rounds
        ),
    )


def planning(run: Run, without: str) -> Run:
    """The run of a suite that does not have these cases."""
    cases = tuple(case for case in run.header.cases if without not in case.name)
    kept = {case.name for case in cases}
    return replace(
        run,
        header=replace(run.header, cases=cases),
        builds=tuple(one for one in run.builds if one.case in kept),
        rounds=tuple(replace(one, turns=tuple(turn for turn in one.turns if turn.case in kept)) for one in run.rounds),
    )


def nights(fates: str) -> list[Run]:
    """A run a letter: `.` all is well, `x` tiled fails under the newest toolchain, `-` it is not planned."""
    made: dict[str, Callable[[Run], Run]] = {
        ".": lambda run: run,
        "x": failing,
        "-": lambda run: planning(run, "tiled"),
    }
    return [made[fate](make_night(night, generations=2, rounds=2)) for night, fate in enumerate(fates)]


def told(results: Path, fates: str, last: int = 3) -> list[tuple[str, str, int, bool]]:
    compacted(results, nights(fates))
    with open_history(str(results)) as history:
        news = case_news(history, last)
    assert {one.case for one in news} <= {TILED}
    return [(one.state, one.since, one.runs, one.recent) for one in news]


@pytest.mark.parametrize(
    ("fates", "found"),
    [
        ("......", []),
        (".xxxxx", [("fails", night_id(1), 5, False)]),
        ("xxxxxx", [("fails", night_id(0), 6, False)]),
        (".x.xxx", [("fails", night_id(3), 3, True)]),
        (".....x", [("fails", night_id(5), 1, True)]),
        ("x", [("fails", night_id(0), 1, True)]),
        (".xx...", [("works again", night_id(3), 3, True)]),
        (".x....", []),  # it works for longer than the last three runs
        ("---...", [("new", night_id(3), 3, True)]),
        ("--....", []),
        ("----xx", [("fails", night_id(4), 2, True)]),
        (".xxxx-", []),  # its suite does not have it any more
        (".x-xxx", [("fails", night_id(1), 4, False)]),
        ("..", []),  # of a history's first run nothing is new
    ],
)
def test_what_became_of_a_case(tmp_path: Path, fates: str, found: list[tuple[str, str, int, bool]]) -> None:
    assert told(tmp_path, fates) == found


def test_where_and_why_it_fails_is_that_of_its_last_run(tmp_path: Path) -> None:
    first, *others = nights("xxx")
    reason = replace(WHY, message="another reason")
    first = replace(first, builds=tuple(replace(one, failure=reason) if one.failure else one for one in first.builds))
    compacted(tmp_path, [first, *others])
    with open_history(str(tmp_path)) as history:
        (news,) = case_news(history, 10)
    assert (news.suite, news.case, news.toolchain) == ("nightly", TILED, "3.13.0")
    assert (news.stage, news.message) == ("compile", WHY.message)
    assert news.started.startswith("2026-01-01T02:00")


def test_a_case_that_never_came_is_missing_and_fails(tmp_path: Path) -> None:
    good, bad = nights("..")
    rounds = tuple(replace(one, turns=tuple(t for t in one.turns if TILED not in t.case)) for one in bad.rounds)
    compacted(tmp_path, [good, replace(bad, rounds=rounds)])
    with open_history(str(tmp_path)) as history:
        (news,) = case_news(history, 10)
    assert (news.state, news.since, news.stage) == ("fails", night_id(1), "")


def test_the_reference_may_fail_and_unfinished_runs_say_nothing(tmp_path: Path) -> None:
    good, bad = nights(".x")
    compacted(tmp_path, [failing(good, [f"{TILED}:3.12.0"])])
    with open_history(str(tmp_path)) as history:
        assert case_news(history, 10) == []
    compacted(tmp_path, [replace(bad, finished=False)])
    with open_history(str(tmp_path)) as history:
        assert case_news(history, 10) == []


class Asked:
    """A history of one suite, out of what became of its cases each night: `s` is skipped, the others as in `nights`."""

    def __init__(self, fates: Sequence[str], runs: int) -> None:
        self._database = duckdb.connect()
        self._database.execute(
            "CREATE TABLE runs (run TEXT, suite TEXT, machine_class TEXT, started TEXT, finished BOOL, clock TEXT)"
        )
        self._database.execute(
            'CREATE TABLE cases (run TEXT, suite TEXT, "case" TEXT, "role" TEXT, toolchain TEXT, status TEXT, '
            "stage TEXT, message TEXT)"
        )
        for night in range(runs):
            facts = [f"run{night}", "nightly", "AMD EPYC", f"2026-01-{night + 1:02}", True, ""]
            self._database.execute("INSERT INTO runs VALUES (?, ?, ?, ?, ?, ?)", facts)
        words = {".": "measured", "x": "failed", "s": "skipped"}
        rows = [
            [f"run{night}", "nightly", str(place), "newest", "3.13.0", words[fate], "", ""]
            for place, one in enumerate(fates)
            for night, fate in enumerate(one)
            if fate != "-"
        ]
        if rows:
            self._database.executemany("INSERT INTO cases VALUES (?, ?, ?, ?, ?, ?, ?, ?)", rows)

    def query(self, sql: str) -> Any:
        """As of a history."""
        return self._database.execute(sql).df()


def expected(fate: str, last: int) -> tuple[str, str, int] | None:
    """The same in plain Python: state, since and runs of one case."""
    planned = [(night, one) for night, one in enumerate(fate) if one in ".x"]
    if not planned or planned[-1][0] != len(fate) - 1:
        return None
    streak = list(itertools.takewhile(lambda one: one[1] == planned[-1][1], reversed(planned)))
    since, recent = streak[-1][0], streak[-1][0] >= len(fate) - last
    if planned[-1][1] == "x":
        return "fails", f"run{since}", len(streak)
    if not recent or since == 0:
        return None
    return ("new" if len(streak) == len(planned) else "works again"), f"run{since}", len(streak)


@settings(max_examples=25, deadline=None)
@given(
    st.integers(1, 6).flatmap(lambda n: st.lists(st.text(".x-s", min_size=n, max_size=n), min_size=1, max_size=30)),
    st.integers(1, 4),
)
def test_any_course_of_nights(fates: list[str], last: int) -> None:
    found = case_news(cast("History", Asked(fates, len(fates[0]))), last)
    wanted = {str(place): told for place, fate in enumerate(fates) if (told := expected(fate, last)) is not None}
    assert {one.case: (one.state, one.since, one.runs) for one in found} == wanted


def a_case(**given: Any) -> CaseNews:
    facts: dict[str, Any] = {
        "state": "fails",
        "suite": "nightly",
        "case": TILED,
        "machine_class": "AMD EPYC, 2 cores",
        "since": "run07",
        "started": "2026-01-08T02:00:00+00:00",
        "toolchain": "3.13.0",
        "runs": 3,
        "stage": "compile",
        "message": WHY.message,
        "recent": True,
    }
    return CaseNews(**{**facts, **given})


@pytest.fixture
def ask(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Ask:
    monkeypatch.setenv("COLUMNS", "160")

    def asking(*arguments: object) -> tuple[int, str, str]:
        status = run_command_line(["history", *map(str, arguments)])
        said = capsys.readouterr()
        return status, said.out, said.err

    return asking


def test_the_command_tells_failures_first_and_exits_with_3(ask: Ask, tmp_path: Path) -> None:
    compacted(tmp_path, nights("..xx"))
    begins = f"1 case fails: {TILED} since {night_id(2)} (3.13.0): compile: "
    for options in ([], ["--changes"]):
        status, out, _ = ask(tmp_path, *options)
        assert status == (3 if options else 0)
        assert out.startswith(begins)
        assert "Cases that fail\n" in out
    assert ask(tmp_path, "--changes", "--last", 1)[0] == 0  # it failed before
    assert ask(tmp_path, "--changes", "--format", "markdown")[1].startswith("**1 case fails: ")


def test_other_programs_get_them_too(ask: Ask, tmp_path: Path) -> None:
    compacted(tmp_path, nights("..xx"))
    for options, key in ([], "suites"), (["--changes"], "changes"):
        document = json.loads(ask(tmp_path, *options, "--format", "json")[1])
        (case,) = document["cases"]
        assert (case["state"], case["case"], case["since"], case["recent"]) == ("fails", TILED, night_id(2), True)
        assert key in document
    _, out, said = ask(tmp_path, "--format", "csv")
    assert [row["failing"] for row in csv.DictReader(io.StringIO(out))] == ["1"]
    assert "1 case fails: " in said
