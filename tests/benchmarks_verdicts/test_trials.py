"""Playing back reads what was recorded, in order, once, and never past its end."""

import pytest

from benchmarks.verdicts.recorded_runs import count
from benchmarks.verdicts.trials import (
    as_sampled,
    overlapping_starts,
    play_disjoint,
    play_overlapping,
)
from tests.benchmarks_verdicts.conftest import Script


def test_disjoint_trials_share_no_generation_and_use_all(script: Script) -> None:
    generations = as_sampled(script(generations=60))
    trials = play_disjoint(generations, budget_s=15)
    used = [one for outcome in trials.outcomes for one in outcome.generations]
    assert tuple(used) == generations[: len(used)]
    assert trials.size == 7  # of eight generations each; the last four are too few
    assert trials.left_out == 1
    assert trials.false_alarms == 0
    assert trials.bounds == pytest.approx((0.0, 1 - 0.05 ** (1 / 7)))


def test_overlapping_trials_start_only_where_the_longest_fits(script: Script) -> None:
    generations = as_sampled(script(generations=84, change=0.05))
    starts = overlapping_starts(generations, budget_s=10)
    assert list(starts) == [0, 4, 8, 12, 16, 20]  # 20 generations and one, three times
    trials = play_overlapping(generations, budget_s=10)
    assert (trials.size, trials.left_out) == (6, 0)
    assert trials.found() == 6
    assert trials.found(within_s=8.0) == 6
    assert trials.found(within_s=7.9) == 0
    assert trials.disjoint == 84 / 16 < trials.size
    assert trials.estimate == pytest.approx(0.05, abs=0.002)


def test_runs_judged_together_have_fewer_false_alarms_than_rows_judged_alone() -> None:
    alone, together = (count(20, 5, 0.2, together=way, runs=60) for way in (False, True))
    assert together.alarms < alone.alarms
    assert together.alarms <= 0.05
    assert together.found > 0.85
