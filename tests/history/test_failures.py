"""Cases that fail, work again or are new, by what became of them each night."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any, cast

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.history.failures import CaseNews, case_news
from harness.history.open import History
from harness.records.run import Failure, Run
from tests.history.made import InMemory, make_night, night_id

TILED = "net/tiled@cpu"
WHY = Failure(stage="compile", message="iree-compile exited with 1: cannot tile", stderr="error")


def failing(run: Run, names: Collection[str] = (f"{TILED}:3.13.0",), why: Failure = WHY) -> Run:
    """The run, but these cases do not compile."""
    return replace(
        run,
        builds=tuple(
            replace(build, failure=why, module_sha256=None, sizes=None, statistics=None)
            if build.case in names
            else build
            for build in run.builds
        ),
        rounds=tuple(
            replace(timed, turns=tuple(turn for turn in timed.turns if turn.case not in names)) for timed in run.rounds
        ),
    )


def night(number: int) -> Run:
    return make_night(number, generations=2, rounds=2)


def news_of(*runs: Run) -> list[CaseNews]:
    return case_news(InMemory(runs), 10)


def test_where_and_why_a_case_fails_is_that_of_its_last_run() -> None:
    other = replace(WHY, message="another reason")

    (news,) = news_of(failing(night(0), why=other), failing(night(1)), failing(night(2)))

    assert (news.suite, news.case, news.toolchain) == ("nightly", TILED, "3.13.0")
    assert (news.state, news.since, news.runs, news.recent) == ("fails", night_id(0), 3, True)
    assert (news.stage, news.message) == ("compile", WHY.message)
    assert news.started.startswith("2026-01-01T02:00")


def test_a_case_that_never_came_is_missing_and_fails() -> None:
    bad = night(1)
    rounds = [
        replace(timed, turns=tuple(turn for turn in timed.turns if TILED not in turn.case)) for timed in bad.rounds
    ]

    (news,) = news_of(night(0), replace(bad, rounds=tuple(rounds)))

    assert (news.state, news.since, news.stage, news.message) == ("fails", night_id(1), "", "")


def test_the_reference_may_fail_and_unfinished_runs_say_nothing() -> None:
    assert news_of(failing(night(0), [f"{TILED}:3.12.0"])) == []
    assert news_of(night(0), replace(failing(night(1)), finished=False)) == []


_STATUS = {".": "measured", "x": "failed", "s": "skipped", "e": "expected failure"}


class Nights:
    """A history of one suite with a letter for what became of a case each night; `-`: it is not planned."""

    def __init__(self, fates: Sequence[str]) -> None:
        runs = range(len(fates[0]))
        self._database = duckdb.connect()
        self._database.execute(
            """
            CREATE TABLE runs (run TEXT, suite TEXT, machine_class TEXT, started TEXT, finished BOOL, clock TEXT);
            CREATE TABLE cases (run TEXT, "case" TEXT, "role" TEXT, toolchain TEXT, status TEXT, stage TEXT,
                                message TEXT)
            """
        )
        self._database.executemany(
            "INSERT INTO runs VALUES (?, 'nightly', 'AMD EPYC', ?, true, '')",
            [[f"run{number}", f"2026-01-{number + 1:02}"] for number in runs],
        )
        rows = [
            [f"run{number}", str(place), _STATUS[fate[number]]]
            for place, fate in enumerate(fates)
            for number in runs
            if fate[number] != "-"
        ]
        if rows:
            self._database.executemany("INSERT INTO cases VALUES (?, ?, 'newest', '3.13.0', ?, '', '')", rows)

    def query(self, sql: str) -> Any:
        """As of a history."""
        return self._database.execute(sql).df()

    def news(self, last: int) -> list[CaseNews]:
        """What became of the cases."""
        return case_news(cast("History", self), last)


@pytest.mark.parametrize(
    ("fate", "found"),
    [
        ("......", []),
        (".xxxxx", [("fails", "run1", 5, False)]),
        ("xxxxxx", [("fails", "run0", 6, False)]),
        (".x.xxx", [("fails", "run3", 3, True)]),
        (".....x", [("fails", "run5", 1, True)]),
        ("x", [("fails", "run0", 1, True)]),
        (".xx...", [("works again", "run3", 3, True)]),
        (".xxeee", []),  # an expected failure is none, and does not work either
        (".x....", []),  # it works for longer than the last three runs
        ("---...", [("new", "run3", 3, True)]),
        ("--....", []),
        ("----xx", [("fails", "run4", 2, True)]),
        (".xxxx-", []),  # its suite does not have it any more
        (".x-xxx", [("fails", "run1", 4, False)]),
        ("..", []),  # of a history's first run nothing is new
    ],
)
def test_what_became_of_a_case(fate: str, found: list[tuple[str, str, int, bool]]) -> None:
    assert [(news.state, news.since, news.runs, news.recent) for news in Nights([fate]).news(3)] == found


def expected(fate: str, last: int) -> tuple[str, str, int] | None:
    """The same in plain Python: state, since and runs of one case."""
    planned = [(number, letter) for number, letter in enumerate(fate) if letter in ".x"]
    if not planned or planned[-1][0] != len(fate) - 1:
        return None
    streak = list(itertools.takewhile(lambda entry: entry[1] == planned[-1][1], reversed(planned)))
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
    news = Nights(fates).news(last)
    wanted = {str(place): found for place, fate in enumerate(fates) if (found := expected(fate, last)) is not None}
    assert {case.case: (case.state, case.since, case.runs) for case in news} == wanted


def a_case(**changes: Any) -> CaseNews:
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
    return CaseNews(**{**facts, **changes})
