"""Recordings that are made up, so that what has to come of them is known."""

import math
from collections.abc import Callable

import numpy as np
import pytest

from benchmarks.verdicts.recording import Recorded, Side
from harness.stats.pairing import FloatArray

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
        factors = 1 + random.uniform(0, preempted, (2, rounds))
        made.append(
            Recorded(
                stream=stream,
                number=number,
                started_unix=1.75e9 + number * seconds,
                seconds=seconds,
                load=0.5 + number % 3,
                on_calling_thread=has_own_time,
                head_first=tuple(place % 2 == 1 for place in range(rounds)),
                base=side(base, factors[0], told=preempted > 0),
                head=side(head, factors[1], told=preempted > 0),
            )
        )
    return tuple(made)


def side(own_ns: FloatArray, factors: FloatArray | float = 1.0, *, told: bool = False) -> Side:
    """Turns of ten calls that take so long, times what other processes made of it, which accounts tell or do not."""
    own, wall = (np.rint(10 * ns).astype(int) for ns in (own_ns, own_ns * factors))
    unknown = (None,) * own.size
    return Side(
        calls=(10,) * own.size,
        wall_ns=tuple(wall.tolist()),
        cpu_ns=tuple(own.tolist()),
        thread_ns=tuple(own.tolist()) if told else unknown,
        delayed_ns=tuple((wall - own).tolist()) if told else unknown,
        voluntary=(0,) * own.size if told else unknown,
        throttled=(0,) * own.size,
    )


@pytest.fixture
def script() -> Script:
    return scripted
