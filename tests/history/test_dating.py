"""Which changes of a history a bisect over releases can date more closely, by which command, and its searches."""

from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from harness.errors import SuiteError
from harness.history import dating
from harness.history.dating import Dated, Question, date_steps, open_questions
from harness.history.events import ChangeEvent
from harness.history.series import RunFacts, Runs, usable_runs
from harness.progress import Progress
from harness.records.bisection import Bisection, FoundStep, Trial
from harness.report.data import document_of
from harness.stages.options import BisectOptions
from harness.store.files import adapter
from harness.store.work_directory import Begun, BisectDirectory
from tests.builders import make_bisection
from tests.history.made import InMemory, make_change, make_night

SUITE = "suites/nightly.toml"
RUNS = Runs(
    facts=tuple(
        RunFacts(run=run, suite_file=SUITE, toolchain=release, before=before)
        for run, release, before in (
            ("run23", "3.11.0", "3.11.0"),
            ("run24", "3.12.0", "3.11.0"),
            ("run25", "3.13.0", "3.12.0"),
            ("run26", "3.13.0", "3.13.0"),
            ("first", "3.13.0", ""),
        )
    )
)
COMMAND = f"harness bisect {SUITE} --case net/stock@cpu --good iree==3.12.0 --bad iree==3.13.0"


def event(*, recent: bool = True, **facts: Any) -> ChangeEvent:
    return ChangeEvent(changes=(make_change(**facts),), recent=recent)


def commands(*events: ChangeEvent) -> list[str]:
    return [question.command for question in open_questions(events, RUNS)]


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (event(), [COMMAND]),
        (event(metric="latency-vs-reference"), [COMMAND]),
        (event(metric="compile-time"), [f"{COMMAND} --metric compile-time"]),
        # It may have happened a run before the one in which it is seen.
        (event(first_bad="run26", earliest="run25", latest="run26"), [COMMAND]),
        (event(earliest="run23", latest="run24"), [COMMAND.replace("3.12.0", "3.11.0").replace("3.13.0", "3.12.0")]),
        (event(metric="something of later"), []),
        (event(recent=False), []),
        (event(cause="machine"), []),
        (event(kind="drift"), []),
        (event(peer="onnxruntime"), []),
        (event(role="reference"), []),
        (event(earliest="run26", latest="run26"), []),
        (event(earliest="first", latest="first"), []),
        (event(earliest="gone"), []),
    ],
)
def test_steps_that_came_with_another_release_have_a_command(found: ChangeEvent, expected: list[str]) -> None:
    assert commands(found) == expected


def test_each_command_is_there_once_and_not_many_and_first_of_what_fails() -> None:
    assert commands(event(), event(metric="latency-vs-baseline")) == [COMMAND]
    many = [event(case=f"net/v{number}@cpu", direction="faster") for number in range(9)]
    assert commands(*many, event())[0] == COMMAND
    assert len(commands(*many)) == 5
    # A run knows the release of the run before it.
    releases = [(3, "3.13.0"), (4, "3.13.0"), (5, "3.14.0")]
    nights = [make_night(night, toolchains=("3.12.0", newest), generations=1, rounds=1) for night, newest in releases]
    facts = usable_runs(InMemory(nights)).facts
    before = [("3.13.0", ""), ("3.13.0", "3.13.0"), ("3.14.0", "3.13.0")]
    assert [(each.toolchain, each.before) for each in facts] == before


# --- The searches themselves ---


QUESTION = Question(suite="x.toml", case="net/stock@cpu", metric="latency", good="3.11.0", bad="3.13.0")
SIZE = Trial(base="3.12.0", head="3.13.0", floor=0.01, verdict="regressed", ratio=1.4, ci_low=1.3, ci_high=1.5)
FOUND = make_bisection(
    suite="x.toml", case="net/stock@cpu", ends=("3.11.0", "3.13.0"), trials=(SIZE,),
    steps=(FoundStep(before="3.12.0", after="3.13.0", size=SIZE),),
)  # fmt: skip
ANSWER = "Since 3.13.0: latency 1.400 [1.300, 1.500] times that of 3.12.0."


@dataclass
class Searches:
    """Bisects that find what they are told; `asked` has the options of each."""

    finds: Bisection | Exception = FOUND
    asked: list[BisectOptions] = field(default_factory=list)

    def _session_of(self, options: BisectOptions, *_: object) -> SimpleNamespace:
        self.asked.append(options)
        return SimpleNamespace(run=self._run)

    def _run(self) -> Bisection:
        if isinstance(self.finds, Exception):
            raise self.finds
        return self.finds


@pytest.fixture
def searches(monkeypatch: pytest.MonkeyPatch) -> Searches:
    searches = Searches()
    monkeypatch.setattr(dating, "environment_here", lambda: {"machine": {"id": "this"}})
    monkeypatch.setattr(dating, "session_of", searches._session_of)
    return searches


def dated(folder: Path, *questions: Question, budget_s: float = 60) -> list[Dated]:
    return list(date_steps(questions, budget_s, folder, Progress()))


def test_a_search_goes_on_in_the_next_night_and_what_it_found_is_read_in_later_ones(
    searches: Searches, tmp_path: Path
) -> None:
    searches.finds = replace(FOUND, steps=(), finished=False)
    (found,) = dated(tmp_path, QUESTION)
    assert (found.answer[:15], found.is_final) == ("It is not known", False)
    (first,) = searches.asked
    assert first.chosen == (Path("x.toml"), QUESTION.case)
    assert first.budget == pytest.approx(60, abs=10)
    kept: dict[str, Any] = adapter(BisectOptions).dump_python(first, mode="json")
    begun = Begun(created="2026-11-22T03:50:12+00:00", machine="this", options=kept, command=())
    directory = BisectDirectory.create(tmp_path, "x", datetime.now(timezone.utc), begun)
    with directory:
        searches.finds = FOUND
        expected = [Dated(question=QUESTION, answer=ANSWER, is_final=True)]
        assert dated(tmp_path, QUESTION) == expected
        assert searches.asked[1].resume == directory.path
        directory.finish(document_of(FOUND).decode(), "")
    assert dated(tmp_path, QUESTION, budget_s=0) == expected
    other = replace(QUESTION, good="3.10.0")
    assert dated(tmp_path, other, budget_s=0) == [Dated(question=other)]
    assert len(searches.asked) == 2


def test_what_cannot_be_searched_says_why_and_the_others_go_on(searches: Searches, tmp_path: Path) -> None:
    searches.finds = SuiteError("x.toml: is not there; write it")
    first = dated(tmp_path / "one", QUESTION, replace(QUESTION, case="net/tiled@cpu"))
    assert [found.answer for found in first] == ["It cannot be searched: x.toml: is not there; write it."] * 2
