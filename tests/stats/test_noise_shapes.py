"""The rule keeps its promises on noise of many shapes; benchmarks/verdicts/noise_shapes.py simulates more of each."""

import math

import numpy as np
import pytest

from benchmarks.verdicts.noise_shapes import RULE, SHAPES, count_errors, gaussian, judge

TRIALS = 200


def at_most(rate: float, trials: int = TRIALS) -> float:
    """What a count of something that happens at this rate exceeds once in a thousand times."""
    return trials * rate + 3 * math.sqrt(trials * rate * (1 - rate))


@pytest.mark.parametrize("shape", SHAPES)
def test_errors_are_as_seldom_as_promised(shape: str) -> None:
    errors = count_errors(shape, TRIALS)
    assert errors.differing <= at_most(RULE.alpha)
    assert max(errors.missed, *errors.missed_at_stop, errors.called_equal) <= at_most(1 - RULE.confidence)
    assert errors.flagged <= 2  # 0.1 are expected at most
    # One generation of eight that is far off can hide a change from a confirmation by eight; the row is left open.
    assert errors.found >= TRIALS * (0.85 if shape == "disturbed" else 0.95)
    assert errors.wrong == 0


def test_these_counts_would_catch_a_rule_that_looks_without_paying_for_it() -> None:
    base, head = gaussian(np.random.default_rng(1), 1000)
    free = [judge(samples, pay_for_looks=False) for samples in np.log(head) - np.log(base)]
    assert sum(any(look.p <= RULE.alpha for look in row.looks) for row in free) > at_most(RULE.alpha, 1000)
