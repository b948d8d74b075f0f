"""Rows that go on after an interruption come to the same as rows that were never interrupted."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from harness.compare.engine import Generation, Outcome, StoppedEarly, Task, decide
from harness.compare.remeasure import _going_on, to_measure
from harness.errors import CaseError, NoHost, RunError
from harness.store.work_directory import Begun, ComparisonDirectory
from tests.compare.runs import a_build, a_case
from tests.compare.scripted import EQUAL, NOISY, SLOWER, Step, a_task, crash, generations

BEGUN = Begun(created="", machine="", options={}, command=())
ROWS: dict[str, Sequence[Step]] = {
    "equal": generations(*EQUAL),
    "slower": generations(*SLOWER),
    "noisy": generations(*NOISY),
    "crashes": [*generations(0.0, 0.1), crash()],
}


def a_work(code: str = "head") -> Any:
    case = a_case()
    base, head = (SimpleNamespace(case=case, build=a_build(case, of)) for of in ("base", code))
    return SimpleNamespace(base=base, head=head)


def interrupted_after(task: Task, steps: int, counted: itertools.count[int]) -> Task:
    def sample(number: int) -> Generation:
        if next(counted) == steps:
            raise KeyboardInterrupt
        steps_of = ROWS[task.name]
        step = steps_of[number % len(steps_of)]
        if isinstance(step, CaseError):
            raise step
        return step

    return replace(task, sample=sample)


def outcomes(directory: ComparisonDirectory, stop_after: int = -1) -> list[Outcome]:
    counted = itertools.count()
    tasks = [interrupted_after(a_task(name, steps), stop_after, counted) for name, steps in ROWS.items()]
    with directory:
        return list(decide([_going_on(task, "latency", a_work(), directory) for task in tasks]))


def a_directory(results: Path) -> ComparisonDirectory:
    return ComparisonDirectory.create(results, "small", datetime(2026, 1, 1, tzinfo=timezone.utc), BEGUN)


def test_wherever_it_is_stopped_the_rows_come_to_the_same(tmp_path: Path) -> None:
    whole = outcomes(a_directory(tmp_path / "whole"))
    assert [outcome.decision for outcome in whole] == ["unchanged", "regressed", "inconclusive", "failed"]
    total = sum(len(outcome.generations) for outcome in whole)
    for first, second in [(0, 3), (1, 1), (2, 20), (3, 5), (total // 2, 1), (total - 1, 0)]:
        directory = a_directory(tmp_path / f"{first}-{second}")
        for stretch in (first, second):
            with pytest.raises(StoppedEarly):
                outcomes(directory, stretch)
            directory = ComparisonDirectory.resume(directory.path) if stretch else a_directory(tmp_path / "anew")
        assert outcomes(directory) == whole


def test_generations_of_other_modules_are_refused(tmp_path: Path) -> None:
    directory = a_directory(tmp_path)
    with directory:
        _going_on(a_task("equal", ROWS["equal"]), "latency", a_work(), directory).sample(0)
    with ComparisonDirectory.resume(directory.path) as again, pytest.raises(RunError) as caught:
        _going_on(a_task("equal", ROWS["equal"]), "latency", a_work("another"), again)
    assert str(caught.value) == (
        f"{directory.path}: equal was measured with other modules than its runs have now; begin the comparison again"
    )


def test_a_row_without_a_host_has_another_chance_when_it_goes_on(tmp_path: Path) -> None:
    directory = a_directory(tmp_path)
    with directory, pytest.raises(NoHost):
        _going_on(a_task("row", [NoHost("measure", "ash: it has gone")]), "latency", a_work(), directory).sample(0)
    with ComparisonDirectory.resume(directory.path) as again:
        assert _going_on(a_task("row", generations(0.1)), "latency", a_work(), again).sample(0).log_ratio == 0.1


def test_what_is_to_be_measured_in_a_sentence() -> None:
    quick, slow = (a_task(name, generations(*EQUAL), budget_s=16) for name in ("quick", "slow"))
    sentence, planned_s = to_measure({"latency": [quick, slow], "compile-time": [slow]})
    assert sentence == (
        "To measure: latencies of 2 rows for up to 16 s each, compile times of 1 row for up to 16 s each; up to 50 s, "
        "and longer where a difference is confirmed, or is plain and calls take long"
    )
    assert planned_s == {"Compare": 32, "Compile times": 16}
    assert to_measure({"latency": [quick, slow], "compile-time": []}, abreast=2)[1] == {"Compare": 16}
