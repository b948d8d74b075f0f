"""A comparison once both sides have their runs: what its rows may use, and how its regressions are explained."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from harness.compare.comparison import Plan, plan_comparison
from harness.compare.options import CompareOptions
from harness.compare.remeasure import RowBench
from harness.errors import CaseError, Interrupted, UsageError
from harness.records.comparison import Row
from harness.records.explanation import Explanation
from harness.stages import comparing, explaining
from harness.stages.comparing import MOST_ROWS, ComparisonSession, compare_sides, explain_regressions
from harness.stages.explaining import AskedPair
from harness.stages.options import RunOptions
from harness.stages.run import Executor
from harness.store.folders import EXPLANATION
from tests.builders import Notes
from tests.compare.runs import a_case, a_side
from tests.report.builders import make_comparison, make_timed
from tests.report.explanations import make_explanation

CASES = [a_case(f"v{number}", baseline=number == 0) for number in range(MOST_ROWS + 2)]


@pytest.mark.parametrize("fleet", ["", "tls://bench:8786"])
def test_compiles_may_take_most_of_this_machines_memory_and_on_a_fleet_what_each_host_gives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fleet: str
) -> None:
    given: list[int | None] = []

    def stop(_: Plan, bench: RowBench) -> list[Row]:
        given.append(bench.limits.memory_bytes)
        raise Interrupted("by the user")

    monkeypatch.setattr(comparing, "remeasure", stop)
    side = a_side(a_case())
    with pytest.raises(Interrupted), ComparisonSession(CompareOptions(results=tmp_path)) as session:
        session.executor = cast("Executor", SimpleNamespace(address=fleet, rows=lambda *_: None))
        compare_sides(side, side, {}, session)
    assert given == [None if fleet else RunOptions().compile_limits.memory_bytes]


def test_a_pattern_that_matches_no_case_is_refused() -> None:
    side, options = a_side(a_case()), CompareOptions(patterns=("nothing*",))
    with pytest.raises(UsageError, match=r"--filter nothing\* matches no case of the comparison, such as net/"):
        plan_comparison(side, a_side(a_case(), label="results/head"), options)


def test_the_largest_regressions_are_explained_and_kept_and_one_that_cannot_be_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def explain(asked: AskedPair, *_: object, **__: object) -> Explanation:
        assert not asked.within
        if asked.pair.name == "net/v2@cpu":
            raise CaseError("ir", "its IR cannot be had")
        return replace(make_explanation(), case=asked.pair.name)

    monkeypatch.setattr(explaining, "explain_pair", explain)
    session = ComparisonSession(CompareOptions(results=tmp_path))
    session.progress = notes = Notes()
    regressed = [make_timed(case.name, 1.0, 1.1 + number / 10, "regressed") for number, case in enumerate(CASES[:-1])]
    comparison = make_comparison([*regressed, make_timed(CASES[-1].name, 1.0, 0.5, "improved")])
    base = a_side(*CASES, label="results/base", code={case.name: "old" for case in CASES})
    plan = plan_comparison(base, a_side(*CASES, label="results/head"), CompareOptions())
    explained, said = explain_regressions(comparison, plan, {}, session)
    assert [each.case for each in explained] == [row.case for row in regressed[: -MOST_ROWS - 1 : -1]]
    assert said == ("1 regression less large is not explained; `harness explain` does that",)
    for each in explained:
        if each.case == "net/v2@cpu":
            assert each.sentence == "It cannot be explained: its IR cannot be had."
        else:
            assert EXPLANATION.load(tmp_path / each.explanation).case == each.case
            assert len(each.parts) == 3 and each.left_out == 1
    assert "net/v2@cpu cannot be explained: its IR cannot be had" in notes.lines
