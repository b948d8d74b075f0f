"""Rounds -> arrays: what one call of each case took, and how two cases compare within the same round.

Two cases are compared only inside a round, where their turns follow each other within milliseconds: whatever slows the
machine for longer than that (a neighbour, a change of frequency) slows both, and drops out of their ratio. Taking the
median of such ratios is two to three times tighter than the ratio of two medians.

Own time is what a turn took by the clock, less the time for which its thread could have run and had no core. It stands
in for wall time where a device computes on the thread that calls, by the rule of docs/statistics.md. Two turns never go
by two clocks, and the choice treats both alike: so equal programs stay exchangeable, and the test there stays exact.
"""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from harness.records.run import Account, Round, Turn

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]
_TOO_LARGE = 1 << 63
_WALL, _ON_CORE, _UNDELAYED, _PLACE = range(4)  # what is known of a case's turns in a round


@dataclass(frozen=True, kw_only=True, eq=False)
class Ratios:
    """How two cases compare in the rounds of one generation."""

    # log(case / baseline) of each round, by the clock that compares its two turns (own time where that is known)
    logs: FloatArray
    case_first: BoolArray  # Whether the case had its turn before the baseline in that round
    by_own_time: int = 0  # How many of the rounds are compared by own time

    @property
    def centre(self) -> float:
        """The generation's one sample: the mean of two medians, one over rounds of either order."""
        # Whoever comes second finds caches as the other left them: two heaps, between which one median would jump.
        orders = [self.logs[self.case_first], self.logs[~self.case_first]]
        return float(np.mean([np.median(logs) for logs in orders if logs.size]))


@dataclass(frozen=True, kw_only=True, eq=False)
class GroupTimes:
    """Every turn of one group of cases."""

    columns: Mapping[str, int]  # Each case's, the last axis of the arrays
    # By number, ascending, of shape (rounds, 4, cases): nanoseconds per call of wall time, of CPU time where no turn
    # gave its core away, of wall time less waits for a core, each NaN where a case has none; and the place of the
    # case's turn in its round, from 0
    generations: Mapping[int, FloatArray]
    taken: Mapping[str, float]  # By case, where it is known: the share of its turns' time that other processes took
    unusable: Mapping[str, int]  # By case: turns whose time or number of calls was not above zero

    def _turns_of(self, case: str) -> Iterable[FloatArray]:
        """Of shape (rounds, 4) for each generation."""
        column = self.columns.get(case)
        return () if column is None else (times[:, :, column] for times in self.generations.values())

    def ns_per_call(self, case: str) -> tuple[FloatArray, ...]:
        """What one call took in each round, for each generation that measured the case."""
        return _finite(times[:, _WALL] for times in self._turns_of(case))

    def own_ns_per_call(self, case: str) -> tuple[FloatArray, ...]:
        """The same of own time; () of a case that has none."""
        both = ((times[:, _ON_CORE], times[:, _UNDELAYED]) for times in self._turns_of(case))
        return _finite(np.where(np.isfinite(on_core), on_core, undelayed) for on_core, undelayed in both)

    def medians(self, case: str) -> FloatArray:
        """The median over rounds of what one call took; shape (generations that measured the case,)."""
        return np.array([np.median(ns) for ns in self.ns_per_call(case)], dtype=np.float64)

    def rounds(self, case: str) -> int:
        """In how many rounds, over all generations, the case was measured."""
        return sum(ns.size for ns in self.ns_per_call(case))

    def log_ratios(self, case: str, baseline: str) -> tuple[Ratios, ...]:
        """log(case / baseline) in each round that has both, for each generation that has such a round."""
        found = []
        for above, below, is_own, case_first in self.sides(case, baseline):
            logs = np.log(above) - np.log(below)
            usable = np.isfinite(logs)
            if usable.any():
                by_own_time = int(is_own[usable].sum())
                found.append(Ratios(logs=logs[usable], case_first=case_first[usable], by_own_time=by_own_time))
        return tuple(found)

    def sides(self, case: str, baseline: str) -> Iterator[tuple[FloatArray, FloatArray, BoolArray, BoolArray]]:
        """Nanoseconds per call of both by one clock in each round, whether that is own time, and who came first."""
        for above, below in zip(self._turns_of(case), self._turns_of(baseline), strict=False):
            known = [np.isfinite(above[:, clock]) & np.isfinite(below[:, clock]) for clock in (_ON_CORE, _UNDELAYED)]
            clocks, rounds = np.select(known, [_ON_CORE, _UNDELAYED], default=_WALL), np.arange(len(above))
            yield above[rounds, clocks], below[rounds, clocks], clocks != _WALL, above[:, _PLACE] < below[:, _PLACE]


def tabulate_rounds(rounds: Iterable[Round]) -> GroupTimes:
    """Put the rounds of one group into arrays; a case has one turn in a round."""
    ordered = sorted(rounds, key=lambda measured: (measured.generation, measured.round))
    names = dict.fromkeys(turn.case for measured in ordered for turn in measured.turns)
    columns = {name: column for column, name in enumerate(names)}
    unusable: Counter[str] = Counter()
    generations = {
        number: np.array([_tabulate(measured, columns, unusable) for measured in members])
        for number, members in groupby(ordered, key=lambda measured: measured.generation)
    }
    shares: dict[str, list[float]] = {}
    for turn in (turn for measured in ordered for turn in measured.turns if usable(turn)):
        if (share := taken_share(turn)) is not None:
            shares.setdefault(turn.case, []).append(share)
    taken = {case: float(np.mean(values)) for case, values in shares.items()}
    return GroupTimes(columns=columns, generations=generations, taken=taken, unusable=dict(unusable))


def _tabulate(measured: Round, columns: Mapping[str, int], unusable: Counter[str]) -> list[list[float]]:
    """One round, of shape (4, cases)."""
    wall_ns, on_core, undelayed, places = table = [[math.nan] * len(columns) for _ in range(4)]
    for place, turn in enumerate(measured.turns):
        if not usable(turn):
            unusable[turn.case] += 1
            continue
        column = columns[turn.case]
        wall_ns[column] = turn.wall_ns / turn.calls
        on_core[column] = on_core_ns(turn) / turn.calls
        undelayed[column] = undelayed_ns(turn) / turn.calls
        places[column] = place
    return table


def counter_per_call(rounds: Iterable[Round], counter: str) -> dict[str, float]:
    """Median over a case's turns of one hardware event's count per call, for the cases that have it."""
    counts: dict[str, list[float]] = {}
    for turn in (turn for measured in rounds for turn in measured.turns):
        if counter in turn.counters and turn.calls > 0:
            counts.setdefault(turn.case, []).append(turn.counters[counter] / turn.calls)
    return {case: float(np.median(values)) for case, values in counts.items()}


def usable(turn: Turn) -> bool:
    """Whether a turn can be divided; what took centuries was not timed but damaged."""
    return 0 < turn.calls < _TOO_LARGE and 0 < turn.wall_ns < _TOO_LARGE


def _finite(generations: Iterable[FloatArray]) -> tuple[FloatArray, ...]:
    kept = (values[np.isfinite(values)] for values in generations)
    return tuple(values for values in kept if values.size)


# --- Own time ---

# By how much two clocks that are read one after the other may contradict each other: a share of what the thread did.
_TOLERANCE = 0.01
# And at least so much, since reading them takes some of it.
_TOLERANCE_NS = 5_000


def on_core_ns(turn: Turn) -> float:
    """CPU time of a turn that never gave its core away, in nanoseconds; NaN of any other, or where it is not known."""
    account = _of_one_thread(turn)
    return math.nan if account is None or account.thread_ns is None or account.voluntary else account.thread_ns


def undelayed_ns(turn: Turn) -> float:
    """Wall time of a turn without the time for which it was ready and had no core; NaN where that is not known."""
    account = _of_one_thread(turn)
    if account is None or account.thread_ns is None or account.delayed_ns is None:
        return math.nan
    return max(turn.wall_ns - account.delayed_ns, account.thread_ns)


def own_ns(turn: Turn) -> float:
    """What a turn took without what other processes took from it, in nanoseconds; NaN where that is not known."""
    on_core = on_core_ns(turn)
    return on_core if math.isfinite(on_core) else undelayed_ns(turn)


def taken_share(turn: Turn) -> float | None:
    """The share of a turn that other processes took: of its wall time, or of the core time its threads asked for.

    None where the system does not tell, or a quota stopped the turn. Threads of a device take 3 to 7 % from each other.
    """
    account = turn.account
    if account is None or account.throttled:
        return None
    own = own_ns(turn)
    if math.isfinite(own) and turn.wall_ns > 0:
        return max(0.0, 1 - own / turn.wall_ns)
    if account.on_calling_thread:  # what its other threads waited for is not known
        return None
    if account.delayed_ns is None or turn.cpu_ns + account.delayed_ns <= 0:
        return None
    return max(0.0, account.delayed_ns / (turn.cpu_ns + account.delayed_ns))


def _of_one_thread(turn: Turn) -> Account | None:
    """The account of a turn in which nothing but the calling thread mattered, as far as the kernel can say that."""
    account = turn.account
    if account is None or not account.on_calling_thread or account.throttled or account.voluntary is None:
        return None
    if account.thread_ns is None or account.thread_ns <= 0:
        return None
    slack_ns = max(_TOLERANCE * account.thread_ns, _TOLERANCE_NS)
    if account.thread_ns > turn.wall_ns + slack_ns or turn.cpu_ns - account.thread_ns > slack_ns:
        return None
    return account
