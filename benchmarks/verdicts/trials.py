"""Recorded generations, played back through the harness's own engine: what it would have said, and when."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from benchmarks.verdicts.recording import Recorded
from harness.compare.engine import Generation, Outcome, Task, decide
from harness.compare.options import CompareOptions
from harness.stats.intervals import rate_bounds
from harness.stats.rule import CONFIRMING_LOOKS, Rule

Streams = Mapping[str, tuple[Recorded, ...]]

# Seconds of a row, where a table does not say otherwise.
BUDGET_S = 15.0
# Overlapping trials start so many generations apart.
STEP = 4
# A stream with fewer starts of which the longest trial fits begins them wherever the shortest does.
LEAST_STARTS = 5
# As `harness compare` has it where a user says nothing else, on a machine without a selfcheck.
ROW_CAP_S = CompareOptions().row_cap

REGRESSED, IMPROVED = "regressed", "improved"


@dataclass(frozen=True, kw_only=True)
class Trials:
    """What became of one stream's trials.

    Attributes:
        outcomes: One for each trial that came to its end; one row each.
        left_out: Trials that would have read past the stream's end.
        disjoint: To how many trials without a generation in common the outcomes amount.
    """

    outcomes: tuple[Outcome, ...]
    left_out: int
    disjoint: float

    @property
    def size(self) -> int:
        """Trials that came to their end."""
        return len(self.outcomes)

    @property
    def started(self) -> int:
        """All of them; those that ran out of generations are counted as not found."""
        return self.size + self.left_out

    @property
    def long_enough(self) -> Trials:
        """Those with as many generations as a row needs to be called anything."""
        least = Rule().first_look
        return replace(self, outcomes=tuple(one for one in self.outcomes if len(one.generations) >= least))

    def count(self, *decisions: str) -> int:
        """Trials with one of these verdicts."""
        return sum(one.decision in decisions for one in self.outcomes)

    def found(self, *, within_s: float = math.inf) -> int:
        """Trials that were called regressed, confirmation included, in so many seconds."""
        return sum(one.decision == REGRESSED and seconds_of(one) <= within_s for one in self.outcomes)

    @property
    def unconfirmed(self) -> int:
        """Trials in which something was found first and then not confirmed."""
        return sum(one.confirming > 0 and one.decision not in (REGRESSED, IMPROVED) for one in self.outcomes)

    @property
    def false_alarms(self) -> int:
        """Trials that were called changed."""
        return self.count(REGRESSED, IMPROVED)

    @property
    def bounds(self) -> tuple[float, float]:
        """Exact binomial interval of the rate of false alarms; only for trials that share nothing."""
        return rate_bounds(self.false_alarms, self.size)

    @property
    def seconds(self) -> float:
        """Mean over trials, confirmation included."""
        return float(np.mean([seconds_of(one) for one in self.outcomes])) if self.outcomes else math.nan

    @property
    def estimate(self) -> float:
        """Median over trials of the estimated change, as a share."""
        ratios = [one.estimate.where.centre for one in self.outcomes if one.estimate is not None]
        return math.expm1(float(np.median(ratios))) if ratios else math.nan


class RanOutError(Exception):
    """A trial asks for more generations than were recorded."""


def _play_back(generations: Sequence[Generation], start: int, number: int) -> Generation:
    """The recorded generation that stands for generation `number` of a trial that begins at `start`."""
    if start + number >= len(generations):
        raise RanOutError
    return generations[start + number]


def by_stream(recording: Iterable[Recorded]) -> dict[str, tuple[Recorded, ...]]:
    """The generations of each stream, in order."""
    found: dict[str, list[Recorded]] = {}
    for one in recording:
        found.setdefault(one.stream, []).append(one)
    return {name: tuple(sorted(several, key=lambda one: one.number)) for name, several in found.items()}


def as_sampled(stream: Iterable[Recorded]) -> tuple[Generation, ...]:
    """As the harness's sampler gave them."""
    return tuple(one.generation for one in stream)


def slowed(generations: Iterable[Generation], share: float) -> tuple[Generation, ...]:
    """The same generations, had the head taken (1 + share) times as long in every turn."""
    return tuple(
        replace(
            one,
            log_ratio=None if one.log_ratio is None else one.log_ratio + math.log1p(share),
            head=None if one.head is None else one.head * (1 + share),
        )
        for one in generations
    )


def play(
    generations: Sequence[Generation], *, budget_s: float, floor: float = 0.01, start: int = 0, cap_s: float = ROW_CAP_S
) -> Outcome:
    """Decide one row from the generations that follow `start`, with their seconds as they were recorded.

    Raises:
        RanOutError: There are fewer than the row needs.
    """
    sample = partial(_play_back, generations, start)
    task = Task(name=f"{start}", sample=sample, rule=Rule(floor=floor), budget_s=budget_s, cap_s=cap_s)
    (outcome,) = decide([task])
    return outcome


def play_disjoint(generations: Sequence[Generation], *, budget_s: float, floor: float = 0.01) -> Trials:
    """Trials one after the other, each from where the one before stopped: independent, as binomial bounds need."""
    outcomes: list[Outcome] = []
    start = 0
    while start < len(generations):
        try:
            outcome = play(generations, budget_s=budget_s, floor=floor, start=start)
        except RanOutError:
            return Trials(outcomes=tuple(outcomes), left_out=1, disjoint=len(outcomes))
        outcomes.append(outcome)
        start += len(outcome.generations)
    return Trials(outcomes=tuple(outcomes), left_out=0, disjoint=len(outcomes))


def overlapping_starts(generations: Sequence[Generation], *, budget_s: float, step: int = STEP) -> range:
    """Where trials that overlap start: every few generations.

    Only where even a row that needs its whole budget and the longest confirmation fits, so that which trials are played
    does not depend on what they find. Where a stream has too little room for that, wherever the shortest verdict fits:
    a first look, and as many generations to confirm it.
    """
    if not generations:
        return range(0)
    mean_s = float(np.mean([one.seconds for one in generations]))
    longest = (1 + CONFIRMING_LOOKS) * max(math.ceil(budget_s / mean_s) + 1, Rule().first_look)
    whole = range(0, max(0, len(generations) - longest + 1), step)
    if len(whole) >= LEAST_STARTS:
        return whole
    return range(0, max(0, len(generations) - 2 * Rule().first_look + 1), step)


def play_overlapping(
    generations: Sequence[Generation],
    *,
    budget_s: float,
    floor: float = 0.01,
    cap_s: float = ROW_CAP_S,
    starts: Sequence[int] | None = None,
) -> Trials:
    """Trials from each of the starts; those that run out are left out, and the others are then those that ended early.

    Args:
        starts: As for another budget, where budgets are compared; by default as this one needs.
    """
    outcomes: list[Outcome] = []
    left_out = 0
    for start in overlapping_starts(generations, budget_s=budget_s) if starts is None else starts:
        try:
            outcomes.append(play(generations, budget_s=budget_s, floor=floor, start=start, cap_s=cap_s))
        except RanOutError:
            left_out += 1
    used = float(np.mean([len(one.generations) for one in outcomes])) if outcomes else 1.0
    return Trials(outcomes=tuple(outcomes), left_out=left_out, disjoint=min(len(outcomes), len(generations) / used))


@dataclass(frozen=True, kw_only=True)
class Together:
    """Comparisons of many rows at once, one row slowed or none.

    Attributes:
        comparisons: How many were played.
        dropped: How many ran out of generations, and count for nothing.
        with_false_alarm: Those with an equal row called changed.
        found: Those in which the slowed row was called regressed.
    """

    rows: int
    comparisons: int
    dropped: int
    with_false_alarm: int
    found: int


def rows_of(equal: Sequence[Sequence[Generation]], every: int) -> list[Sequence[Generation]]:
    """Streams cut into disjoint rows of so many generations."""
    return [stream[start : start + every] for stream in equal for start in range(0, len(stream) - every + 1, every)]


def play_together(
    equal: Sequence[Sequence[Generation]], *, rows: int, budget_s: float, share: float, every: int, draws: int = 40
) -> Together:
    """Comparisons of so many rows, whose p-values are corrected together; the first row's head is slowed by a share.

    Args:
        equal: Streams of modules against themselves, of which each comparison draws its rows at random.
        every: Generations that a row may use; has to hold its budget and its confirmation.
    """
    pool = rows_of(equal, every)
    generator = np.random.default_rng(0)
    alarms = found = comparisons = dropped = 0
    for _ in range(draws if len(pool) >= rows else 0):
        own = [pool[place] for place in generator.choice(len(pool), size=rows, replace=False)]
        own[0] = slowed(own[0], share)
        tasks = [
            Task(name=f"{place}", sample=partial(_play_back, one, 0), rule=Rule(), budget_s=budget_s, cap_s=ROW_CAP_S)
            for place, one in enumerate(own)
        ]
        try:
            outcomes = list(decide(tasks))
        except RanOutError:
            dropped += 1
            continue
        comparisons += 1
        found += outcomes[0].decision == REGRESSED
        alarms += any(one.decision in (REGRESSED, IMPROVED) for one in outcomes[1 if share else 0 :])
    return Together(rows=rows, comparisons=comparisons, dropped=dropped, with_false_alarm=alarms, found=found)


def seconds_of(outcome: Outcome) -> float:
    """Wall seconds of a row, confirmation included."""
    return sum(one.seconds for one in outcome.generations)
