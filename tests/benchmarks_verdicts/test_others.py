"""Other tools' rules, on arrays whose answer can be worked out by hand."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from benchmarks.verdicts.others import (
    OTHERS,
    Samples,
    asv_continuous,
    asv_sensitive,
    compare_py,
    given,
    golden_minimum,
    hyperfine,
    old_threshold,
    pyperf_student,
    welch_processes,
)
from tests.benchmarks_verdicts.conftest import Script

STEADY = (100.0, 101.0, 102.0, 103.0, 104.0, 105.0, 106.0, 107.0, 108.0, 109.0)


def side(*processes: Sequence[float]) -> Samples:
    return Samples(processes=tuple(np.array(one, dtype=np.float64) for one in processes))


def scaled(factor: float, times: Sequence[float] = STEADY) -> list[float]:
    return [factor * one for one in times]


@pytest.mark.parametrize(
    ("rule", "factor", "answer"),
    [
        *((golden_minimum, factor, answer) for factor, answer in ((1.0, 0), (1.099, 0), (1.101, 1), (0.5, 0))),
        *((old_threshold, factor, answer) for factor, answer in ((1.0, 0), (1.099, 0), (1.101, 1))),
        *((old_threshold, factor, answer) for factor, answer in ((0.901, 0), (0.899, -1))),
    ],
)
def test_thresholds(rule: Callable[[Samples, Samples], int], factor: float, answer: int) -> None:
    assert rule(side(STEADY), side(scaled(factor))) == answer


def test_compare_py_is_sure_of_a_shift_that_a_process_brought() -> None:
    assert compare_py(side(STEADY), side(STEADY)) == 0
    assert compare_py(side(STEADY), side([one + 10 for one in STEADY])) == 1
    assert compare_py(side([one + 10 for one in STEADY]), side(STEADY)) == -1
    assert compare_py(side([1.0]), side([2.0])) == 0


def test_student_counts_values_of_a_process_as_independent_and_welch_does_not() -> None:
    base = side(*([100 + place] * 3 for place in (0, 1, 2)))
    head = side(*([101.3 + place] * 3 for place in (0, 1, 2)))
    assert pyperf_student(base, head) == 1  # t = 3.2 with 16 degrees of freedom
    assert welch_processes(base, head) == 0  # t = 1.6 with 4
    assert welch_processes(side([1.0]), side([2.0])) == 0


def test_asv_needs_both_a_difference_and_a_factor() -> None:
    base = side(STEADY, STEADY)
    assert asv_continuous(base, side(scaled(1.15), scaled(1.15))) == 1
    assert asv_continuous(base, side(scaled(0.8), scaled(0.8))) == -1
    assert asv_continuous(base, side(scaled(1.09), scaled(1.09))) == 0
    assert asv_sensitive(base, side(scaled(1.09), scaled(1.09))) == 1
    wide = side(np.linspace(50, 200, 10).tolist(), np.linspace(60, 180, 10).tolist())
    assert asv_continuous(base, wide) == 0  # medians 17 % apart, but the ranks are mixed


def test_hyperfine_takes_standard_deviations_for_the_error() -> None:
    base = side([99.0], [100.0], [101.0])  # 1 % each
    assert hyperfine(base, side([100.0], [101.0], [102.0])) == 0
    assert hyperfine(base, side([101.0], [102.0], [103.0])) == 1
    assert hyperfine(side([101.0], [102.0], [103.0]), base) == -1
    assert hyperfine(side([1.0]), side([2.0])) == 0


def test_sides_come_from_either_half_of_a_stretch_and_far_apart(script: Script) -> None:
    stretch = script(generations=5)
    base, head = given(stretch)
    assert [one.tolist() for one in base.processes] == [one.base.ns.tolist() for one in stretch[:2]]
    assert [one.tolist() for one in head.processes] == [one.head.ns.tolist() for one in stretch[:1:-1]]


@pytest.mark.parametrize("one", OTHERS, ids=lambda one: one.name)
def test_no_rule_finds_what_is_not_there_and_all_find_a_half(one: object, script: Script) -> None:
    rule = one.rule  # type: ignore[attr-defined]
    quiet = {"spread": 1e-6, "generations": 30, "rounds": 12}
    assert rule(*given(script(change=0.5, **quiet))) == 1
    again = Samples(processes=tuple(each.base.ns for each in script(**quiet)))
    assert rule(again, again) == 0
