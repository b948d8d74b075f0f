"""Which compile times a comparison measures again."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timezone
from typing import Any

import pytest

from harness.compare.comparison import Plan, conclude, plan_comparison
from harness.compare.options import CompareOptions
from harness.compare.pairs import Side, side_of
from harness.records.case import Gate
from tests.compare.runs import a_case, a_side

NOW = datetime(2026, 1, 1, tzinfo=timezone.utc)
NAMES = ("a", "b", "equal")
GATE = Gate(name="slow", metric="compile-time", cases="net/b@*")


def a_plan(head_s: float, gates: tuple[Gate, ...] = (), **options: Any) -> Plan:
    """Of two cases whose code changed, and one whose runtime alone did; every base took 1 s to compile."""
    base, head = (
        with_times(a_side(*map(a_case, NAMES), label=label, code=code(label), gates=gates), seconds)
        for label, seconds in (("base", 1.0), ("head", head_s))
    )
    return plan_comparison(base, head, CompareOptions(**options))


def code(label: str) -> dict[str, str]:
    return {f"net/{name}@cpu": f"{name} {label}" for name in NAMES[:2]}


def with_times(side: Side, seconds: float) -> Side:
    builds = tuple(replace(build, compile_ns=int(seconds * 1e9)) for build in side.run.builds)
    return side_of(replace(side.run, builds=builds), side.label)


@pytest.mark.parametrize(
    ("head_s", "options", "compared"),
    [
        (1.9, {}, []),
        (2.0, {"row_budget": 24.0}, ["a", "b"]),  # eight compiles of either side
        (0.5, {"row_budget": 12.0}, ["a", "b"]),
        (2.0, {"row_budget": 23.0}, []),
        (2.0, {"row_budget": 1.0, "compile_budget": 24.0}, ["a", "b"]),
        (2.0, {"row_budget": 24.0, "compile_budget": 0.0}, []),
        (1.0, {"metric": "compile-time", "row_budget": 1.0}, ["a", "b"]),
        (1.0, {"metric": "compile-time", "compile_budget": 0.0}, []),
        (1.0, {"gates": (GATE,)}, ["b"]),
    ],
)
def test_those_that_are_asked_for_or_differ_plainly(
    head_s: float, options: dict[str, Any], compared: list[str]
) -> None:
    assert [pair.case.variant for pair in a_plan(head_s, **options).compiled] == compared


def test_those_that_would_take_too_long_are_told() -> None:
    def told(**options: Any) -> list[str]:
        made = conclude(a_plan(4.0, **options), (), {}, created=NOW)
        return [note for note in made.notes if note.startswith("Compile times")]

    assert told() == [
        "Compile times of 2 cases differ 2-fold or more in what the runs recorded, and take up to 40 s a row to "
        "compare: --compile-budget 40 (net/a@cpu, net/b@cpu)"
    ]
    assert told(compile_budget=40.0) == told(remeasure=False) == told(compile_budget=0.0) == []
