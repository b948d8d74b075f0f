"""Recordings that are made up, so that what has to come of them is known."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from benchmarks.verdicts.recording import Recorded

Script = Callable[..., tuple[Recorded, ...]]


def scripted(
    stream: str = "loop A/A",
    *,
    generations: int = 60,
    change: float = 0.0,
    spread: float = 0.002,
    rounds: int = 4,
    seconds: float = 0.5,
    preempted: float = 0.0,
    has_own_time: bool = True,
    seed: int = 0,
) -> tuple[Recorded, ...]:
    """A stream whose generations differ normally by `spread`, and whose head takes (1 + change) times as long.

    Args:
        preempted: What other processes took of a turn, at most, as a share of its own time; 0: own time is not known.
        has_own_time: Whether own time is known of preempted turns; else only what was taken is.
    """
    random = np.random.default_rng(seed)
    made = []
    for number in range(generations):
        shift = math.log1p(change) + random.normal(0, spread)
        base = 1e6 * np.exp(random.normal(0, 0.001, rounds))
        head = base * math.exp(shift)
        own = (tuple(base.tolist()), tuple(head.tolist())) if preempted and has_own_time else ((), ())
        factors = 1 + random.uniform(0, preempted, (2, rounds))
        base, head = base * factors[0], head * factors[1]
        made.append(
            Recorded(
                stream=stream,
                number=number,
                started_unix=1.75e9 + number * seconds,
                seconds=seconds,
                load=0.5 + number % 3,
                base_ns=tuple(base.tolist()),
                head_ns=tuple(head.tolist()),
                head_first=tuple(place % 2 == 1 for place in range(rounds)),
                base_own_ns=own[0],
                head_own_ns=own[1],
                taken=tuple((1 - 1 / factors).mean(axis=0).tolist()) if preempted else (),
            )
        )
    return tuple(made)


@pytest.fixture
def script() -> Script:
    return scripted
