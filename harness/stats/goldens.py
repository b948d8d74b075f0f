"""How often IREE's own gate fails with nothing wrong: the shortest of ten calls of one process, below golden x factor.

Processes differ more than the calls of one do, so generations are what is counted, and few of them tell little.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from harness.stats.intervals import CONFIDENCE, Estimate, paired_mean, rate_bounds, ratio_of
from harness.stats.pairing import FloatArray

REPETITIONS = 10
FALSE_ALARMS = 0.01  # What a proposed factor allows


@dataclass(frozen=True, kw_only=True)
class Golden:
    """A time to hold a program against, and what the gate makes of this machine's own noise."""

    golden_ns: float  # The geometric mean over generations of the shortest of ten
    low_ns: float | None  # Of its interval; None of one generation. high_ns likewise.
    high_ns: float | None
    generations: int
    false_alarms: float  # The share of processes that the gate fails
    at_most: float  # The upper end of that share's interval
    factor: float | None  # With which it fails FALSE_ALARMS of them; None of one generation


def golden_of(generations: Sequence[FloatArray], factor: float) -> Golden:
    """From what calls took in each generation, one at least, in the order in which they ran."""
    from scipy.special import stdtrit  # scipy.stats takes a second to import

    # Of each ten calls in a row, the first after the last: a slow stretch slows all ten.
    windows = [np.min([np.roll(ns, -step) for step in range(REPETITIONS)], axis=0) for ns in generations]
    logs, number = [np.log(shortest) for shortest in windows], len(windows)
    means = np.array([each.mean() for each in logs])
    golden = Estimate(where=paired_mean(means, confidence=CONFIDENCE), confidence=CONFIDENCE, rounds=0)
    alarms = sum(float((each > golden.where.centre + math.log(factor)).mean()) for each in logs)
    proposed = None
    if golden.low is not None:
        # What a process to come does not exceed: by its likes, and as these are few by their spread as a normal one.
        spread = math.hypot(means.std(ddof=1) * math.sqrt(1 + 1 / number), np.mean([each.std() for each in logs]))
        seen = np.quantile(np.concatenate(logs), 1 - FALSE_ALARMS, method="higher") - golden.where.centre
        above = max(float(seen), float(stdtrit(number - 1, 1 - FALSE_ALARMS)) * spread)
        proposed = math.ceil(ratio_of(above) * 1000) / 1000
    return Golden(
        golden_ns=golden.ratio,
        low_ns=golden.low,
        high_ns=golden.high,
        generations=number,
        false_alarms=alarms / number,
        at_most=rate_bounds(math.ceil(alarms - 1e-9), number)[1],
        factor=proposed,
    )
