"""`harness compare --explain`: the largest regressions are explained, and one that cannot be costs no other."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.compare.comparison import plan_comparison
from harness.compare.options import CompareOptions
from harness.compare.pairs import Pair
from harness.errors import CaseError
from harness.process import Limits
from harness.records.comparison import Comparison
from harness.stages import explained_rows
from harness.stages.explained_rows import MOST_ROWS, explain_regressions
from harness.stages.explaining import Found, Terms
from harness.stats.rule import Rule
from harness.store.kinds import EXPLANATION
from tests.builders import Notes
from tests.compare.runs import a_case, a_side
from tests.report.builders import make_comparison, make_timed
from tests.report.explanations import make_explanation

TERMS = Terms(rule=Rule(floor=0.01), budget_s=1.0, cap_s=1.0, seed=0, call_limit_s=1.0, limits=Limits())
CASES = [a_case(f"v{number}", baseline=number == 0) for number in range(MOST_ROWS + 2)]


def compared(*ratios: float) -> Comparison:
    """A comparison in which the first cases regressed by so much."""
    rows = [make_timed(case.name, 1.0, ratio, "regressed") for case, ratio in zip(CASES, ratios, strict=False)]
    return make_comparison([*rows, make_timed(CASES[-1].name, 1.0, 0.5, "improved")])


def explain(
    comparison: Comparison, results: Path, notes: Notes, monkeypatch: pytest.MonkeyPatch, failing: str = ""
) -> Any:
    def explain_pair(pair: Pair, *_: object, within: bool, **__: object) -> Found:
        assert not within
        if pair.name == failing:
            raise CaseError("ir", "its IR cannot be had")
        return Found(explanation=replace(make_explanation(), case=pair.name), is_stopped=pair.name == "stopped")

    monkeypatch.setattr(explained_rows, "explain_pair", explain_pair)
    base = a_side(*CASES, label="results/base", code={case.name: "old" for case in CASES})
    plan = plan_comparison(base, a_side(*CASES, label="results/head"), CompareOptions())
    return explain_regressions(comparison, plan, {}, TERMS, results, notes)


def test_the_largest_come_first_and_each_is_kept(tmp_path: Path, notes: Notes, monkeypatch: pytest.MonkeyPatch) -> None:
    explained, said = explain(compared(1.1, 1.3), tmp_path, notes, monkeypatch)
    assert [each.case for each in explained] == ["net/v1@cpu", "net/v0@cpu"]
    assert said == ()
    for each in explained:
        assert EXPLANATION.load(tmp_path / each.explanation).case == each.case
        assert len(each.parts) == 3 and each.left_out == 1


def test_of_many_some_are_left(tmp_path: Path, notes: Notes, monkeypatch: pytest.MonkeyPatch) -> None:
    explained, said = explain(compared(*[1.1] * (MOST_ROWS + 1)), tmp_path, notes, monkeypatch)
    assert len(explained) == MOST_ROWS
    assert said == ("1 regression less large is not explained; `harness explain` does that",)


def test_one_that_cannot_be_explained_says_why(tmp_path: Path, notes: Notes, monkeypatch: pytest.MonkeyPatch) -> None:
    explained, _ = explain(compared(1.3, 1.1), tmp_path, notes, monkeypatch, failing="net/v0@cpu")
    assert explained[0].sentence == "It cannot be explained: its IR cannot be had."
    assert explained[1].parts
    assert "net/v0@cpu cannot be explained: its IR cannot be had" in notes.lines


@pytest.fixture
def notes() -> Notes:
    return Notes()
