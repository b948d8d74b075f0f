"""The order of turns: random, balanced, and the same for the same seed."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence


def load_order(cases: Sequence[str], seed: str) -> tuple[str, ...]:
    """The order in which a generation's cases are loaded: random, another one in each generation.

    What is loaded first finds the heap as the process began with it, and where its buffers then lie is much the same
    in every process: a case that is always loaded first can be several times slower than its equal in all of them.
    """
    generator = random.Random(f"load/{seed}")  # noqa: S311 (an order, not a secret)
    order = list(cases)
    generator.shuffle(order)
    return tuple(order)


def balanced_orders(cases: Sequence[str], seed: str) -> Iterator[tuple[str, ...]]:
    """Endless orders of one turn each, in pairs: a random order, then the same backwards (ABBA for two cases).

    Within a pair every case has the same mean position, so a machine that drifts steadily through the pair slows all
    cases alike; drawing each pair anew keeps neighbours from being always the same.
    """
    generator = random.Random(seed)  # noqa: S311 (an order, not a secret)
    while True:
        order = list(cases)
        generator.shuffle(order)
        yield tuple(order)
        yield tuple(reversed(order))
