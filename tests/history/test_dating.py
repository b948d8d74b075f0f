"""Steps of a history whose release is searched: within a budget, once, and gone on with in the next night."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.errors import SuiteError
from harness.history import dating
from harness.history.bisects import Question
from harness.history.dating import Dated, date_steps
from harness.progress import Silent
from harness.records.bisection import Bisection, FoundStep, Trial
from harness.report.bisect_page import bisect_json
from harness.stages.options import BisectOptions
from harness.store.files import adapter
from harness.store.search_directory import BegunBisect, BisectDirectory

QUESTION = Question(suite="x.toml", case="net/stock@cpu", metric="latency", good="3.11.0", bad="3.13.0")
SIZE = Trial(base="3.12.0", head="3.13.0", floor=0.01, verdict="regressed", ratio=1.4, ci_low=1.3, ci_high=1.5)
FOUND = Bisection(
    id="a-bisect",
    created="",
    suite="x.toml",
    case="net/stock@cpu",
    metric="latency",
    unit="ns",
    floor=0.01,
    over="releases",
    ends=("3.11.0", "3.13.0"),
    positions=(),
    trials=(SIZE,),
    steps=(FoundStep(before="3.12.0", after="3.13.0", size=SIZE),),
)
ANSWER = "Since 3.13.0: latency 1.400 [1.300, 1.500] times that of 3.12.0."


class Searches:
    """Bisects that find what they are told, and keep it as real ones do.

    Attributes:
        asked: The options of each.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.asked: list[BisectOptions] = []
        self.finds: Bisection | Exception = FOUND
        monkeypatch.setattr(dating, "environment_here", lambda: {"machine": {"id": "this"}})
        monkeypatch.setattr(dating, "underway_of", self._begin)
        monkeypatch.setattr(dating, "bisected", self._search)

    def _begin(self, options: BisectOptions, command: Sequence[str], _: Silent) -> BisectDirectory:
        self.asked.append(options)
        if options.resume is not None:
            return BisectDirectory.resume(options.resume)
        kept: dict[str, Any] = adapter(BisectOptions).dump_python(options, mode="json")
        begun = BegunBisect(
            created="2026-11-22T03:50:12+00:00", machine="this", noise=0.0, options=kept, command=tuple(command)
        )
        return BisectDirectory.create(options.results, "x", begun)

    def _search(self, directory: BisectDirectory) -> Bisection:
        if isinstance(self.finds, Exception):
            raise self.finds
        with directory:
            if self.finds.finished:
                directory.finish(bisect_json(self.finds), "")
        return self.finds


@pytest.fixture
def searches(monkeypatch: pytest.MonkeyPatch) -> Searches:
    return Searches(monkeypatch)


def dated(folder: Path, *questions: Question, budget_s: float = 60) -> list[Dated]:
    return list(date_steps(questions, budget_s, folder, Silent()))


def test_what_one_night_found_is_read_in_the_next(searches: Searches, tmp_path: Path) -> None:
    expected = [Dated(question=QUESTION, answer=ANSWER, is_final=True)]
    assert dated(tmp_path, QUESTION) == expected
    assert dated(tmp_path, QUESTION, budget_s=0) == expected
    (asked,) = searches.asked
    assert (asked.chosen, asked.good, asked.bad, asked.pre) == (
        (Path("x.toml"), QUESTION.case),
        "3.11.0",
        "3.13.0",
        False,
    )
    assert asked.budget == pytest.approx(60, abs=10)
    other = replace(QUESTION, good="3.10.0")
    assert dated(tmp_path, other, budget_s=0) == [Dated(question=other)]


def test_a_search_without_time_to_end_goes_on_in_the_next_night(searches: Searches, tmp_path: Path) -> None:
    searches.finds = replace(FOUND, steps=(), finished=False)
    (found,) = dated(tmp_path, QUESTION)
    assert (found.answer[:15], found.is_final) == ("It is not known", False)
    searches.finds = FOUND
    assert dated(tmp_path, QUESTION)[0].answer == ANSWER
    assert searches.asked[1].resume == next(tmp_path.iterdir())


def test_what_cannot_be_searched_says_why_and_the_others_go_on(searches: Searches, tmp_path: Path) -> None:
    searches.finds = SuiteError("x.toml: is not there; write it")
    first = dated(tmp_path / "one", QUESTION, replace(QUESTION, case="net/tiled@cpu"))
    assert [found.answer for found in first] == ["It cannot be searched: x.toml: is not there; write it."] * 2
