"""Rounds -> how one program's time compares with another's."""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.plugins.recorded import Round, by_generation, engine_of


@dataclass(frozen=True, kw_only=True)
class Ratio:
    """One program's time over another's, below 1 where it is faster.

    Attributes:
        centre: Median over generations, of which each is the median of its rounds' log ratios.
        low: The generation with the smallest; high: with the largest.
        ahead: Generations in which it is faster.
        rounds: Rounds in which both had a turn.
        rounds_ahead: Those of them in which it is faster.
    """

    centre: float
    low: float
    high: float
    ahead: int
    generations: int
    rounds_ahead: int
    rounds: int


def compare(rounds: Sequence[Round], program: str, other: str) -> Ratio | None:
    """Compare two programs of a group; None where no round has both."""
    logs = [
        [math.log(one.ns[program] / one.ns[other]) for one in generation if program in one.ns and other in one.ns]
        for generation in by_generation(rounds)
    ]
    medians = [statistics.median(generation) for generation in logs if generation]
    if not medians:
        return None
    every = [value for generation in logs for value in generation]
    return Ratio(
        centre=math.exp(statistics.median(medians)),
        low=math.exp(min(medians)),
        high=math.exp(max(medians)),
        ahead=sum(value < 0 for value in medians),
        generations=len(medians),
        rounds_ahead=sum(value < 0 for value in every),
        rounds=len(every),
    )


def median_ns(rounds: Sequence[Round], program: str) -> float:
    """Median over generations of the median over rounds, as ratios are."""
    times = [[one.ns[program] for one in generation if program in one.ns] for generation in by_generation(rounds)]
    return statistics.median([statistics.median(one) for one in times if one])


def programs(rounds: Sequence[Round]) -> list[str]:
    """All programs that were measured, by name."""
    return sorted({name for one in rounds for name in one.ns})


def fastest(rounds: Sequence[Round], engine: str) -> str | None:
    """The engine's program with the smallest median, which stands for the engine; None where it was not measured."""
    own = [name for name in programs(rounds) if engine_of(name) == engine]
    return min(own, key=lambda name: median_ns(rounds, name), default=None)
