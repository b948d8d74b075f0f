"""The order of turns: random, balanced, and the same for the same seed."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence


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
