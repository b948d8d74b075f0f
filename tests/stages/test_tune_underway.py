"""What a search remembers, and for what it asks anew."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.records.bisection import Trial
from harness.stages import tune_underway
from harness.stages.tune_underway import TuneUnderway
from harness.stats.rule import Rule
from tests.stages.tuned import Scripted


@pytest.fixture
def underway(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Scripted]:
    with Scripted(tmp_path, monkeypatch) as begun:
        yield begun


def test_a_race_is_played_back_where_the_same_race_and_not_where_others_do(underway: Scripted) -> None:
    underway.ms = {"--a": 0.5, "--b": 0.4}
    a, b = underway.form("a", "--a"), underway.form("b", "--b")

    def leader(**contenders: object) -> str:
        return underway.race("whole", contenders, "a", stage="race", seconds=10.0).leader

    leader(a=a)
    generations = len(underway.raced)
    assert leader(a=a, b=b) == "b", "a longer budget lets others into a race of the same name"
    generations, before = len(underway.raced), generations
    assert generations > before
    assert leader(a=a, b=b) == "b"
    assert leader(a=a, b=underway.form("b", "--slow")) == "a", "another program of the same name"
    assert generations < len(underway.raced)


def test_what_is_confirmed_is_a_program_and_not_its_name(underway: Scripted, monkeypatch: pytest.MonkeyPatch) -> None:
    ratios = iter((0.5, 0.9))

    def tried(*_: object) -> Trial:
        return Trial(base="", head="", floor=0.01, verdict="improved", ratio=next(ratios))

    monkeypatch.setattr(tune_underway, "try_pair", tried)

    def ratio(*flags: str) -> float | None:
        head, start = (underway.form(name, *more).compiled for name, more in (("with-spec", flags), ("start", ())))
        return TuneUnderway.confirm(underway, head, start, Rule(), 1.0).ratio

    assert [ratio("--a"), ratio("--a"), ratio("--b")] == [0.5, 0.5, 0.9]
