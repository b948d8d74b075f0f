"""Rounds -> what each case took, generation by generation; of many groups at once, in one pass over all their turns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from harness.records.run import Round
from harness.stats.pairing import FloatArray, usable

Integers = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class Medians:
    """What one case took by itself, whatever it is compared with.

    Attributes:
        ns: Per call, the median over rounds of each generation that measured the case.
        rounds: Behind them, over all generations.
    """

    ns: tuple[float, ...]
    rounds: int


def medians_by_case(rounds: Iterable[Round]) -> Mapping[tuple[str, str], Medians]:
    """By group and case: the same figures as those of `tabulate_rounds`, without its tables.

    A case with two turns in one round counts with their mean, and turns that cannot be divided are left out. Two runs
    of 10,000 cases have half a million turns in thousands of small groups, for which one sort takes less than tables.
    """
    known = list(rounds)
    generations = _ranks(one.generation for one in known)
    numbers = _ranks(one.round for one in known)
    span = len(generations) * len(numbers)
    codes: dict[tuple[str, str], int] = {}
    keys: list[int] = []  # of case, generation and round, in this order
    walls: list[int] = []
    calls: list[int] = []
    for one in known:
        group, place = one.group, generations[one.generation] * len(numbers) + numbers[one.round]
        for turn in one.turns:
            if usable(turn):
                name = (group, turn.case)
                if name not in codes:
                    codes[name] = len(codes)
                keys.append(codes[name] * span + place)
                walls.append(turn.wall_ns)
                calls.append(turn.calls)
    if not keys:
        return {}
    times = (np.array(values, dtype=np.float64) for values in (walls, calls))
    in_rounds, ns = _per_round(np.array(keys, dtype=np.int64), *times)
    in_generations = in_rounds // len(numbers)
    ns = ns[np.lexsort((ns, in_generations))]
    starts = _starts(in_generations)
    sizes = np.diff(starts, append=len(ns))
    medians = ((ns[starts + (sizes - 1) // 2] + ns[starts + sizes // 2]) / 2).tolist()
    firsts = _starts(in_generations[starts] // len(generations))
    lasts, counts = [*firsts[1:].tolist(), len(starts)], np.add.reduceat(sizes, firsts).tolist()
    return {
        name: Medians(ns=tuple(medians[first:last]), rounds=count)
        for name, first, last, count in zip(codes, firsts.tolist(), lasts, counts, strict=True)
    }


def _ranks(values: Iterable[int]) -> dict[int, int]:
    return {value: rank for rank, value in enumerate(sorted(set(values)))}


def _per_round(keys: Integers, walls: FloatArray, calls: FloatArray) -> tuple[Integers, FloatArray]:
    """The rounds of each case in order, and the nanoseconds per call of each."""
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    starts = _starts(keys)
    return keys[starts], np.add.reduceat(walls[order], starts) / np.add.reduceat(calls[order], starts)


def _starts(keys: Integers) -> Integers:
    """Where another key begins in sorted keys."""
    found: Integers = np.flatnonzero(np.append(True, keys[1:] != keys[:-1]))
    return found
