"""Other tools' rules, on arrays whose answer can be worked out by hand."""

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


LATER = [one + 10 for one in STEADY]
TEN, SHIFTED = side(STEADY, STEADY), {factor: side(*[scaled(factor)] * 2) for factor in (0.8, 1.09, 1.15)}
# Medians 17 % apart, but the ranks are mixed.
WIDE = side(np.linspace(50, 200, 10).tolist(), np.linspace(60, 180, 10).tolist())
OF_THREE = side(*([100 + place] * 3 for place in (0, 1, 2))), side(*([101.3 + place] * 3 for place in (0, 1, 2)))
ONE_PER_CENT = {shift: side(*([99.0 + shift + place] for place in (0, 1, 2))) for shift in (0, 1, 2)}
ALONE = side([1.0]), side([2.0])


@pytest.mark.parametrize(
    ("rule", "base", "head", "answer"),
    [
        *(
            (rule, side(STEADY), side(scaled(factor)), answer)
            for rule, low in ((golden_minimum, 0), (old_threshold, -1))
            for factor, answer in ((1.0, 0), (1.099, 0), (1.101, 1), (0.901, 0), (0.899, low))
        ),
        (compare_py, side(STEADY), side(STEADY), 0),
        (compare_py, side(STEADY), side(LATER), 1),  # a shift that a process brought
        (compare_py, side(LATER), side(STEADY), -1),
        # Values of a process are no independent ones: t = 3.2 with 16 degrees of freedom, or 1.6 with 4.
        (pyperf_student, *OF_THREE, 1),
        (welch_processes, *OF_THREE, 0),
        (asv_continuous, TEN, SHIFTED[1.15], 1),  # it needs both a difference and a factor
        (asv_continuous, TEN, SHIFTED[0.8], -1),
        (asv_continuous, TEN, SHIFTED[1.09], 0),
        (asv_sensitive, TEN, SHIFTED[1.09], 1),
        (asv_continuous, TEN, WIDE, 0),
        (hyperfine, ONE_PER_CENT[0], ONE_PER_CENT[1], 0),  # it takes standard deviations for the error
        (hyperfine, ONE_PER_CENT[0], ONE_PER_CENT[2], 1),
        (hyperfine, ONE_PER_CENT[2], ONE_PER_CENT[0], -1),
        *((rule, *ALONE, 0) for rule in (compare_py, welch_processes, hyperfine)),
    ],
)
def test_what_a_rule_answers(
    rule: Callable[[Samples, Samples], int], base: Samples, head: Samples, answer: int
) -> None:
    assert rule(base, head) == answer


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
