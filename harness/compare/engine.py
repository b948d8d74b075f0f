"""Rows that are measured until each is decided, the budget ends, or nothing more can be learnt.

The engine knows neither workers nor compilers: a task's `sample` gives one generation at a time, and the rule in
harness.stats judges. So the same code decides real rows, compile times, recorded generations that a benchmark plays
back, and a test's scripted ones.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Literal

import numpy as np

from harness.errors import CaseError
from harness.records.run import Failure
from harness.stats.intervals import Estimate, Location
from harness.stats.pairing import FloatArray
from harness.stats.rule import (
    CONFIRMING_LOOKS,
    Rule,
    Standing,
    adjust_p,
    combine_p,
    confirmation_p,
    confirmation_size,
    generations_needed,
    plan_looks,
    standing,
    take_look,
)

# What the two sides of a row are called, in its rounds too.
BASE, HEAD = "base", "head"

Decision = Literal["regressed", "improved", "unchanged", "inconclusive", "failed"]


@dataclass(frozen=True, kw_only=True)
class Generation:
    """What one generation of a row gave."""

    log_ratio: float | None  # Its robust log(head / base); None where it has no usable round
    base: float | None  # What one call (or compile) of the base took, in the row's unit; None without a usable turn
    head: float | None  # The same of the head
    rounds: int  # Pairs of turns behind it
    seconds: float  # Wall time, starting and loading included
    by_own_time: int = 0  # How many of the rounds are compared by own time, see harness.stats.pairing
    taken: float | None = None  # The share of its turns' time that other processes took; None: not known
    host: str = ""  # Where it was measured; "": here


@dataclass(frozen=True, kw_only=True)
class Task:
    """A row to be decided."""

    name: str  # Unique in the comparison
    # Measures generation 0, 1, ... in fresh processes; a CaseError says that a side cannot be measured, and the row has
    # failed.
    sample: Callable[[int], Generation]
    rule: Rule
    # Wall seconds of looking, for as many generations as the engine takes at most; confirming what was found comes on
    # top, with as many generations again, or twice as many where the first ones do not tell
    budget_s: float
    # Wall seconds for a row whose first generations differ plainly, where its budget has no room for a verdict
    cap_s: float = 0.0
    noise: float = 0.0  # The smallest change that this machine was found to see, as a share; 0: not known


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What became of a row."""

    name: str
    decision: Decision
    reason: str  # Why it is what it is, in plain words
    estimate: Estimate | None = None  # Over all its generations, confirmation included; None without any
    # Corrected for looks and for the number of rows, and combined with that of the confirmation where it holds; None
    # without generations
    p: float | None = None
    generations: tuple[Generation, ...] = ()  # All that were measured, in order
    confirming: int = 0  # How many of them, the last ones, were the confirmation
    lacked_time: bool = False  # Whether it differs plainly, and only time was lacking to call it changed
    failure: Failure | None = None


# More would hardly sharpen a verdict: with noise of 1 % the interval is then 0.2 % wide. The means of all pairs fit in
# memory, and a row whose generations take no time by the clock has an end too.
MOST_GENERATIONS = 1000

# A row differs plainly where each of its generations lies so many times further from zero than the floor, and so many
# times than what this machine was found to see at all, and where none lies more than so many times as far as another.
_FLOORS = 10.0
_SEEN = 2.0
_APART = 2.0


@dataclass
class _Row:
    task: Task
    rule: Rule
    generations: list[Generation] = field(default_factory=list)
    looks: tuple[int, ...] = ()
    next_look: int = 0
    look: Location | None = None
    needed: int = 0
    least: int = 0
    least_until_s: float = math.inf
    lacked_time: bool = False
    best: dict[bool, float] = field(default_factory=dict)
    state: Standing = "open"
    found: int | None = None
    confirmed: bool = False
    confirmation_p: float = 1.0
    failure: Failure | None = None

    @property
    def confirming(self) -> int:
        return 0 if self.found is None else len(self.generations) - self.found

    @property
    def seconds(self) -> float:
        return sum(generation.seconds for generation in self.generations)

    @property
    def price(self) -> float:
        """Wall seconds of a generation: the mean but for the first one, whose caches are cold."""
        paid = [generation.seconds for generation in self.generations]
        warm = paid[1:] or paid
        return sum(warm) / len(warm)

    @property
    def has_room(self) -> bool:
        """Whether one more generation ends within the budget, or is needed to say anything at all."""
        size = len(self.generations)
        if size < self.least and self.seconds < self.least_until_s:
            return True
        return size < MOST_GENERATIONS and self.seconds + self.price <= self.task.budget_s

    @property
    def is_plain(self) -> bool:
        """Whether it is far from zero, beside how its generations differ, the floor and the noise here."""
        # Only sizes count, and equal programs are as likely on either side: going on for that makes no false alarm.
        sizes = np.abs(self.ratios())
        if sizes.size < len(self.generations):
            return False
        least = max(_FLOORS * math.log1p(self.rule.floor), _SEEN * math.log1p(self.task.noise))
        return bool(sizes.min() >= least and sizes.max() <= _APART * sizes.min())

    @property
    def p(self) -> float:
        """Of the plainest look on the side on which the row lies now."""
        return 1.0 if self.look is None else self.best.get(self.look.centre > 0, 1.0)

    @property
    def wants_more(self) -> bool:
        return self.failure is None and self.state == "open" and self.next_look < max(1, len(self.looks))

    def ratios(self, start: int = 0) -> FloatArray:
        logs = (generation.log_ratio for generation in self.generations[start:])
        return np.array([log for log in logs if log is not None])

    def take_look(self, *, confirming: bool = False) -> Location:
        return take_look(self.ratios(), looks=len(self.looks), rule=self.rule, confirming=confirming)


OnSample = Callable[[str, Generation], None]
OnPass = Callable[[Sequence[str]], None]
# Gets a sentence about a row that goes on beyond its budget.
OnBeyond = Callable[[str], None]
# Does what there is to do for rows, by their names, and returns once all of it is done. It may do it at the same time,
# in threads: no row asks what another one has come to.
Together = Callable[[Mapping[str, Callable[[], None]]], None]


def in_turn(todo: Mapping[str, Callable[[], None]]) -> None:
    """One row after the other, as on a machine where nothing else may run beside what is timed."""
    for act in todo.values():
        act()


# Why a row of an interrupted comparison is not decided.
STOPPED = "it was interrupted before it was decided"


class StoppedEarly(KeyboardInterrupt):
    """The user stopped measuring; `outcomes` say what there is: what was found and not confirmed is not decided."""

    def __init__(self, outcomes: Sequence[Outcome]) -> None:
        super().__init__()
        self.outcomes = tuple(outcomes)


def decide(
    tasks: Sequence[Task],
    on_sample: OnSample = lambda _name, _generation: None,
    on_pass: OnPass = lambda _names: None,
    on_beyond: OnBeyond = lambda _sentence: None,
    together: Together = in_turn,
) -> Iterator[Outcome]:
    """Decide all rows together; outcomes come at the end, in the order of the tasks.

    Look by look over all rows that are still open, so that each row's generations are spread over the comparison and
    not over one stretch of the machine's weather. Rows that were found to differ are confirmed when all looking is
    over, in fresh processes. A row depends on its generations alone, so interrupted ones go on where they were.
    """
    rows = [_Row(task=task, rule=task.rule) for task in tasks]
    try:
        while pending := [row for row in rows if row.wants_more]:
            together(
                {row.task.name: partial(_go_to_next_look, row, len(rows), on_sample, on_beyond) for row in pending}
            )
            for row, p in zip(rows, _adjusted(rows), strict=True):
                if row.state == "open" and row.look is not None and row.failure is None:
                    alpha = max(row.rule.alpha, row.rule.plain_alpha if row.is_plain else 0.0)
                    row.state = standing(row.look, differs=bool(p <= alpha), floor=row.rule.floor)
            on_pass([row.task.name for row in rows if row.wants_more or row.state in ("higher", "lower")])
        found = {row.task.name: row for row in rows if row.state in ("higher", "lower")}

        def confirm(name: str) -> None:
            _confirm(found[name], on_sample)
            del found[name]
            on_pass(list(found))

        together({name: partial(confirm, name) for name in found})
    except KeyboardInterrupt:
        raise StoppedEarly([_stopped(row, float(p)) for row, p in zip(rows, _adjusted(rows), strict=True)]) from None
    for row, p in zip(rows, _adjusted(rows), strict=True):
        yield _outcome(row, float(p))


def _plan(row: _Row, rows: int, on_sample: OnSample, on_beyond: OnBeyond) -> bool:
    """Measure what tells how many generations there is room for, or a plain change needs; False: the row failed."""
    task = row.task
    if not _sample(row, on_sample):
        return False
    dear = task.budget_s / 2 < row.seconds < task.budget_s  # the first one may be; the second tells
    plain = row.is_plain and row.seconds < task.cap_s
    if len(row.generations) == 1 and (dear or plain or row.has_room) and not _sample(row, on_sample):
        return False
    left = (task.budget_s - row.seconds) / max(row.price, 1e-9)
    most = max(int(min(len(row.generations) + left, MOST_GENERATIONS)), 1)
    row.needed = generations_needed(rows, row.rule)
    if row.needed > most >= row.rule.first_look:
        most = row.least = row.needed
    row.looks = plan_looks(most, row.rule)
    # Where generations get dearer, as many as one look needs would not be enough for those that are planned.
    row.needed = max(row.needed, generations_needed(rows, row.rule, looks=len(row.looks)))
    if row.needed > most:
        _go_beyond_the_budget(row, on_beyond)
    return True


def _go_beyond_the_budget(row: _Row, on_beyond: OnBeyond) -> bool:
    """Give a row that differs plainly as many generations as a verdict needs; whether the cap has room for them."""
    task = row.task
    if not task.cap_s or len(row.generations) >= row.needed or not row.is_plain:
        return False
    row.lacked_time = row.least_until_s == task.cap_s or _seconds_needed(row) > task.cap_s
    if row.lacked_time:
        return False
    row.least, row.least_until_s = row.needed, task.cap_s
    if row.next_look == 0:
        row.looks = plan_looks(row.needed, row.rule)
    on_beyond(
        f"{task.name} differs {_fold(row.ratios())}, so it goes on beyond its {task.budget_s:g} s: a verdict takes "
        f"about {_seconds_needed(row):.0f} s (--row-cap {task.cap_s:g})"
    )
    return True


def _seconds_needed(row: _Row) -> float:
    more = row.needed - len(row.generations) + confirmation_size(row.needed, row.rule)
    return row.seconds + more * row.price


def _fold(ratios: FloatArray) -> str:
    return f"{math.exp(float(np.median(np.abs(ratios)))):.1f}-fold"


def _go_to_next_look(row: _Row, rows: int, on_sample: OnSample, on_beyond: OnBeyond) -> None:
    if not row.looks and not _plan(row, rows, on_sample, on_beyond):
        return
    while len(row.generations) < row.looks[row.next_look]:
        if not row.has_room and not _go_beyond_the_budget(row, on_beyond):
            row.next_look = len(row.looks) - 1  # generations got dearer: this is the last look there is time for
            break
        if not _sample(row, on_sample):
            return
    while row.next_look == len(row.looks) - 1 and (row.has_room or _go_beyond_the_budget(row, on_beyond)):
        if not _sample(row, on_sample):  # they got cheaper, or it needs more
            return
    row.next_look += 1
    if row.ratios().size:
        row.look = row.take_look()
        side = row.look.centre > 0
        row.best[side] = min(row.best.get(side, 1.0), row.look.p)


def _sample(row: _Row, on_sample: OnSample) -> bool:
    """Measure one generation more; False where the row failed."""
    try:
        generation = row.task.sample(len(row.generations))
    except CaseError as error:
        row.failure = Failure(stage=error.stage, message=str(error), stderr=error.stderr)
        return False
    row.generations.append(generation)
    on_sample(row.task.name, generation)
    return True


def _adjusted(rows: Sequence[_Row]) -> FloatArray:
    return adjust_p([row.p for row in rows])


def _confirm(row: _Row, on_sample: OnSample) -> None:
    rule, found = row.rule, len(row.generations)
    row.found = found
    direction: Literal["higher", "lower"] = "higher" if row.state == "higher" else "lower"
    for look in range(1, CONFIRMING_LOOKS + 1):
        while row.confirming < look * confirmation_size(found, rule):
            if not _sample(row, on_sample):
                return
        row.confirmation_p = confirmation_p(row.ratios(found), direction, rule)
        row.confirmed = row.confirmation_p <= rule.confirm_alpha
        if row.confirmed:
            break
    row.look = row.take_look(confirming=True)
    row.state = standing(row.look, differs=row.confirmed, floor=rule.floor)


def _outcome(row: _Row, adjusted_p: float) -> Outcome:
    decision, reason = _words(row)
    p = combine_p(adjusted_p, row.confirmation_p) if row.confirmed else adjusted_p
    estimate = None
    if row.look is not None:
        rounds = sum(generation.rounds for generation in row.generations)
        estimate = Estimate(where=row.look, confidence=row.task.rule.confidence, rounds=rounds)
    return Outcome(
        name=row.task.name,
        decision=decision,
        reason=reason,
        estimate=estimate,
        p=None if estimate is None else p,
        generations=tuple(row.generations),
        confirming=row.confirming,
        lacked_time=row.lacked_time and decision == "inconclusive",
        failure=row.failure,
    )


def _stopped(row: _Row, adjusted_p: float) -> Outcome:
    outcome = _outcome(row, adjusted_p)
    is_decided = row.failure is not None or row.state == "equal" or row.confirmed
    return outcome if is_decided else replace(outcome, decision="inconclusive", reason=STOPPED)


def _words(row: _Row) -> tuple[Decision, str]:
    floor = f"{row.rule.floor * 100:g} %"
    if row.failure is not None:
        return "failed", row.failure.message
    if row.look is None:
        return "inconclusive", "no generation has a turn that took any time by the clock"
    if row.state in ("higher", "lower"):
        word: Decision = "regressed" if row.state == "higher" else "improved"
        return word, f"confirmed in {row.confirming} fresh generations"
    if row.state == "equal":
        why = f"the interval lies within {floor}"
        if row.confirmed:
            return "unchanged", f"{why}; there is a difference, and it is smaller than that"
        return "unchanged", f"{why}; a difference that was found first did not repeat" if row.confirming else why
    return "inconclusive", _why_open(row, row.look, floor)


def _why_open(row: _Row, look: Location, floor: str) -> str:
    rule = row.rule
    if row.confirming and not row.confirmed:
        return f"a difference was found, but {row.confirming} fresh generations did not show it again"
    if row.lacked_time:
        return (
            f"it differs {_fold(row.ratios())}, and a verdict takes {row.needed} generations and as many to confirm "
            f"it, {_seconds_needed(row):.0f} s, where --row-cap allows {row.task.cap_s:g}"
        )
    if look.size < rule.first_look <= len(row.generations):
        return f"only {look.size} of {len(row.generations)} generations have a turn that took any time by the clock"
    if look.size < rule.first_look:
        need_s = math.ceil(rule.first_look * row.seconds / len(row.generations))
        return f"only {look.size} of the {rule.first_look} generations needed, which take {need_s} s"
    edge = math.log1p(rule.floor)
    if look.low > edge or look.high < -edge:
        return "it differs, but not so plainly that one of so many rows may be called changed; give it more time"
    if look.low > 0 or look.high < 0:
        return f"they probably differ; whether by more than {floor} is undecided, and more generations would tell"
    return f"the interval is wider than {floor} either way; more generations would narrow it"
