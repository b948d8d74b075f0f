"""Generations of a run: what is lost while they are timed, and what a timeout takes along."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from harness.measure import Calibration, Group, Settings
from harness.process import PAST_TIME
from harness.records.case import Case
from harness.records.run import Failure, Lost, Round, Turn
from harness.stages import measure as room
from harness.stages.measure import measure_stage
from tests.builders import make_case
from tests.stages.conftest import UnderWay

STOCK, FAST, TILED = (make_case(variant) for variant in ("stock", "fast", "tiled"))
ELSEWHERE = make_case("tiled", device="gpu")
HANGS = Failure(stage="measure", message=f"the worker {PAST_TIME} 1 s while it was at work on net/fast@cpu")
CRASHES = Failure(stage="measure", message="the worker was ended by SIGSEGV while it was at work on net/fast@cpu")


class Measuring:
    """The measure stage with a script: in which generation fast is lost, after how many rounds, and why."""

    def __init__(self, under_way: UnderWay, monkeypatch: pytest.MonkeyPatch) -> None:
        self.groups: list[tuple[str, ...]] = []
        self.seconds: list[float] = []
        self.known: list[tuple[str, ...]] = []
        self.lost: tuple[int, int, Failure] = (99, 0, CRASHES)
        self._under_way = under_way
        under_way.directory.header.settings["seed"] = 0
        monkeypatch.setattr(room, "measure_generation", self._measure)
        monkeypatch.setattr(room, "distinct", list)
        monkeypatch.setattr(
            room, "_group", lambda name, members: SimpleNamespace(name=name, cases=[item.case for item in members])
        )

    def _measure(
        self, group: Group, generation: int, limits: Settings, *, known: Mapping[str, Calibration] | None, **_: object
    ) -> Iterator[Round | Lost]:
        self.seconds.append(limits.seconds)
        self.known.append(tuple(known or ()))
        cases: list[Any] = sorted(group.cases, key=lambda case: case.name)
        self.groups.append(tuple(case.variant for case in cases))
        for number in range(2):
            if self.lost[:2] == (generation, number) and FAST in cases:
                cases.remove(FAST)
                yield Lost(case=FAST.name, generation=generation, failure=self.lost[2])
            turns = tuple(Turn(case=case.name, calls=1, wall_ns=1, cpu_ns=1) for case in cases)
            yield Round(group=group.name, generation=generation, round=number, started_unix_ns=0, turns=turns)

    def run(self, *cases: Case, keep_going: bool = False, groups_elsewhere: int = 0) -> dict[str, str]:
        """What is lost, and why."""
        context = self._under_way.context(cases, keep_going=keep_going)
        context = replace(context, prepared=replace(context.prepared, groups_elsewhere=groups_elsewhere))
        runnable: Any = [SimpleNamespace(case=case) for case in cases]
        measure_stage(context, runnable)
        return {record.case: record.failure.message for record in self._under_way.run.lost}


@pytest.fixture
def measuring(under_way: UnderWay, monkeypatch: pytest.MonkeyPatch) -> Measuring:
    return Measuring(under_way, monkeypatch)


def test_a_timeout_takes_along_what_had_no_turn_yet(measuring: Measuring, under_way: UnderWay) -> None:
    measuring.lost = (0, 0, HANGS)
    lost = measuring.run(STOCK, FAST, TILED, ELSEWHERE)
    assert list(lost) == [FAST.name, STOCK.name, TILED.name]
    assert lost[TILED.name].startswith("not tried, since net/fast@cpu timed out; give it more with --call-timeout")
    assert under_way.notes.lines == [f"Failed (measure): net/fast@cpu: {HANGS.message}; 2 cases fail with it"]
    assert measuring.groups == [("fast", "stock", "tiled"), *[("tiled",)] * 3]  # and the other device goes on


@pytest.mark.parametrize(
    ("lost", "keep_going"),
    [((0, 1, HANGS), False), ((1, 0, HANGS), False), ((0, 0, CRASHES), False), ((0, 0, HANGS), True)],
)
def test_what_has_been_timed_goes_on_and_so_does_all_where_one_only_crashes_or_the_user_wants_them_all(
    measuring: Measuring, lost: tuple[int, int, Failure], keep_going: bool
) -> None:
    measuring.lost = lost
    assert list(measuring.run(STOCK, FAST, TILED, keep_going=keep_going)) == [FAST.name]
    assert measuring.groups[-1] == ("stock", "tiled")


def test_later_generations_know_what_the_first_one_told_of_each_case(measuring: Measuring) -> None:
    measuring.run(STOCK, TILED)
    assert measuring.known == [(), (STOCK.name, TILED.name), (STOCK.name, TILED.name)]


def test_a_shard_gives_its_groups_the_seconds_that_they_have_in_the_whole_run(measuring: Measuring) -> None:
    measuring.run(STOCK)
    whole = measuring.seconds.pop()
    measuring.run(STOCK, groups_elsewhere=2)
    assert measuring.seconds.pop() == pytest.approx(whole / 3)
