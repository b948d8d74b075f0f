"""Recordings that are made up, so that what has to come of them is known."""

import math
from collections.abc import Callable

import numpy as np
import pytest

from benchmarks.verdicts.recording import Recorded, Side
from harness.stats.pairing import FloatArray

Script = Callable[..., tuple[Recorded, ...]]


def scripted(
    *, generations: int = 60, change: float = 0.0, spread: float = 0.002, rounds: int = 4
) -> tuple[Recorded, ...]:
    """A stream whose generations differ normally by `spread`, and whose head takes (1 + change) times as long."""
    random = np.random.default_rng(0)
    made = []
    for number in range(generations):
        shift = math.log1p(change) + random.normal(0, spread)
        base = 1e6 * np.exp(random.normal(0, 0.001, rounds))
        made.append(
            Recorded(
                stream="loop A/A",
                number=number,
                started_unix=1.75e9 + number * 0.5,
                seconds=0.5,
                load=0.5,
                on_calling_thread=True,
                head_first=tuple(place % 2 == 1 for place in range(rounds)),
                base=side(base),
                head=side(base * math.exp(shift)),
            )
        )
    return tuple(made)


def side(call_ns: FloatArray) -> Side:
    """Turns of ten calls that take so long, of which nobody took anything."""
    wall, unknown = tuple(np.rint(10 * call_ns).astype(int).tolist()), (None,) * call_ns.size
    return Side(
        calls=(10,) * call_ns.size,
        wall_ns=wall,
        cpu_ns=wall,
        thread_ns=unknown,
        delayed_ns=unknown,
        voluntary=unknown,
        throttled=(0,) * call_ns.size,
    )


@pytest.fixture
def script() -> Script:
    return scripted
