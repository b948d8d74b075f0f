"""A search and the runs after it -> what the tables say of it; pure."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from benchmarks.tune.searches import Search
from harness.compare.judge import Timings
from harness.compare.pairs import Side
from harness.machine.environment import describe_machine
from harness.records.case import Case
from harness.records.comparison import Row
from harness.records.run import Run
from harness.records.tuning import Tuning
from harness.stats.intervals import Estimate, estimate_ratio
from harness.store.evidence import find_failure


@dataclass(frozen=True, kw_only=True)
class Contender:
    """Something that was measured in the same rounds as the result of a search.

    Attributes:
        name: A variant, or the label of another engine.
        ns: Of a call; the median over generations.
        is_peer: Whether it is another engine.
        ratio: The result's time divided by its own; None for the result itself.
    """

    name: str
    ns: float
    is_peer: bool
    ratio: Estimate | None


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """A search that has ended, and what was measured of its result.

    Attributes:
        tuning: None: there was nothing to begin with, and `why` says why.
        head: The variant that it wrote, or what it began with where it wrote none.
        baseline: The suite's.
        contenders: Of the run beside it; () where there is none yet.
        failure: Why the result could not be timed there; "": it could.
        machine, started: Of that run.
        judged: Verdicts of `harness compare`, by the variant that the result was held against.
        again: The result's time divided by the baseline's when it was measured once more, by day, load and machine.
        lost_again: Why it could not be timed then, likewise.
    """

    search: Search
    tuning: Tuning | None
    why: str = ""
    head: str = ""
    baseline: str = ""
    contenders: tuple[Contender, ...] = ()
    failure: str = ""
    machine: str = ""
    started: str = ""
    judged: Mapping[str, Row] = field(default_factory=dict)
    again: Mapping[str, Estimate] = field(default_factory=dict)
    lost_again: Mapping[str, str] = field(default_factory=dict)

    @property
    def of_stock(self) -> float | None:
        """The result's time divided by the baseline's: 1 where nothing was found to be faster than that."""
        if self.tuning is not None and self.head == self.baseline:
            return 1.0
        stock = next((each for each in self.contenders if each.name == self.baseline), None)
        return stock.ratio.ratio if stock is not None and stock.ratio is not None else None

    @property
    def best_by_hand(self) -> Contender | None:
        """The fastest of the suite's own variants, the baseline left out."""
        own = [each for each in self._others if not each.is_peer and each.name != self.baseline]
        return min(own, key=lambda each: each.ns, default=None)

    @property
    def best_peer(self) -> Contender | None:
        """The fastest other engine."""
        return min((each for each in self._others if each.is_peer), key=lambda each: each.ns, default=None)

    @property
    def _others(self) -> list[Contender]:
        return [each for each in self.contenders if each.name != self.head]


def measured(run: Run, head: str) -> tuple[tuple[Contender, ...], str]:
    """All that a run has measured, beside `head`; and why it could not be timed, "" where it could."""
    side = Side(run, run.header.id)
    timings = Timings(side)
    cases = {case.variant: case for case in run.header.cases if case.skip is None}
    if head not in cases:
        return (), "it is not in the run"
    failure = find_failure(cases[head], side.evidence, timed=True)
    if failure is not None:
        return (), failure.message
    found = [_contender(case, cases[head], timings) for case in cases.values()]
    return tuple(each for each in found if each is not None), ""


def machine_of(run: Run) -> str:
    """Where a run was made, in words."""
    return describe_machine(run.header.environment)


def _contender(case: Case, head: Case, timings: Timings) -> Contender | None:
    medians = timings.medians(case)
    if not medians.size:
        return None
    ratio = None
    if case.name != head.name:
        times, names = timings.groups[head.group], [timings.timed(each).name for each in (head, case)]
        # Two variants of the same module were measured once.
        ratio = estimate_ratio(times.log_ratios(*names))
    return Contender(name=case.variant, ns=float(np.median(medians)), is_peer=case.peer is not None, ratio=ratio)


def geometric_mean(ratios: Sequence[float]) -> float:
    """Of at least one ratio."""
    return math.exp(math.fsum(map(math.log, ratios)) / len(ratios))


@dataclass(frozen=True, kw_only=True)
class Counts:
    """What became of all that searches tried, and of what they wrote.

    Attributes:
        changes: Of flags and plugins, alone and together; wrong: of them, those with other outputs than the start's.
        configurations: Of dispatches.
        winners: Configurations that won their dispatch's race; refuted: of them, those that the whole program dropped.
        written: Variants; wrong_written: of them, those with wrong outputs in a later run; slower_written: those that
            are not faster there than what the search began with.
    """

    searches: int
    changes: int
    inert: int
    failed: int
    wrong: int
    untried: int
    configurations: int
    winners: int
    refuted: int
    written: int
    wrong_written: int
    slower_written: int


def count(outcomes: Sequence[Outcome]) -> Counts:
    """Count over searches that have ended."""
    tunings = [each.tuning for each in outcomes if each.tuning is not None]
    changes = [tried for tuning in tunings for tried in (*tuning.singles, *tuning.combinations)]
    dispatches = [dispatch for tuning in tunings for dispatch in tuning.dispatches]
    winners = [dispatch for dispatch in dispatches if dispatch.chosen]
    written = [each for each in outcomes if each.tuning is not None and each.tuning.variant]
    return Counts(
        searches=len(tunings),
        changes=len(changes),
        inert=sum(tried.standing == "inert" for tried in changes),
        failed=sum(tried.standing == "failed" for tried in changes),
        wrong=sum(tried.standing == "wrong" for tried in changes),
        untried=sum(tried.standing == "untried" for tried in changes),
        configurations=sum(len(dispatch.tried) for dispatch in dispatches),
        winners=len(winners),
        refuted=sum(not dispatch.kept for dispatch in winners),
        written=len(written),
        wrong_written=sum(bool(each.failure) or bool(each.lost_again) for each in written),
        slower_written=sum(map(_is_slower, written)),
    )


def _is_slower(outcome: Outcome) -> bool:
    """Whether what was written is not faster in the later run than what the search began with."""
    start = outcome.tuning.start if outcome.tuning is not None else ""
    beside = next((each for each in outcome.contenders if each.name == start), None)
    return beside is not None and beside.ratio is not None and beside.ratio.ratio >= 1
