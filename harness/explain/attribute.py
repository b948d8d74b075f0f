"""Two sides of a case -> what each part of them takes, and which parts differ.

A generation is one of the case's latency, measured side by side as a comparison does, and what a call of either side
spends where, in fresh processes too. All rows share the generations: the latency is one row, each part that both sides
have is another, and the engine of comparisons decides them together, with its looks, its correction for their number
and its confirmation.
"""

import math
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TypeAlias

import numpy as np

from harness.compare.engine import BASE, HEAD, Generation, OnBeyond, Outcome, Task, decide
from harness.compare.samplers import MeasurementPolicy, Module, latency_task
from harness.errors import CaseError
from harness.explain.isolated_timing import AloneTurns
from harness.explain.parts import Counterparts, match_parts
from harness.explain.profile import Profile, ProfiledTurns, Unprofiled, can_profile
from harness.explain.summary_sentence import enumerated
from harness.ir.differences import Executable
from harness.records.comparison import Verdict
from harness.records.explanation import Elsewhere, Method, Part
from harness.text import plural

# The row of the case: parts are called by what they do.
LATENCY_ROW = "the whole case"
# A profile that makes calls longer by more than this share is said.
_HEAVY_PROFILE = 0.2

# Of base's program and of head's, in any order; those that no call dispatches are left out.
Executables: TypeAlias = tuple[Sequence[Executable], Sequence[Executable]]
# Profiles of base and of head, in generation 0, 1, ...
Turns: TypeAlias = Callable[[int], tuple[Profile, Profile]]


@dataclass(frozen=True, kw_only=True)
class Sampled:
    """One generation of both sides."""

    latency: Generation  # Without any profile
    base: Profile
    head: Profile
    seconds: float  # Wall time of all of it


@dataclass(frozen=True, kw_only=True)
class Attribution:
    """Where the time of a case goes on two sides."""

    method: Method
    latency: Outcome  # The row of the case
    # As records have them, without what differs in the code; those that change the latency most come first. On each
    # side, parts, `device_ns` and `host_ns` add up to what `sides_ns` says of the latency.
    parts: tuple[Part, ...]
    base_elsewhere: Elsewhere
    head_elsewhere: Elsewhere
    generations: tuple[Sampled, ...]  # All that were measured
    notes: tuple[str, ...] = ()  # What bears on all of it, in plain words


# What was measured of a generation in an earlier stretch, or what is measured now.
Once: TypeAlias = Callable[[Method, int, Callable[[], Sampled]], Sampled]


class Generations:
    """Generations that several rows share: each is measured once, in order; one that fails is the last."""

    def __init__(self, measure: Callable[[int], Sampled]) -> None:
        self._measure = measure
        self._failure: CaseError | None = None
        self.taken: list[Sampled] = []

    def __call__(self, number: int) -> Sampled:
        """Generation 0, 1, ..."""
        while len(self.taken) <= number:
            if self._failure is not None:
                raise self._failure
            try:
                self.taken.append(self._measure(len(self.taken)))
            except CaseError as error:
                self._failure = error
        return self.taken[number]


def attribute(
    modules: tuple[Module, Module],
    executables: Executables,
    policy: MeasurementPolicy,
    folder: Path,
    *,
    once: Once,
    on_beyond: OnBeyond,
) -> Attribution:
    """Measure base and head, and judge each part."""
    base, head = modules
    task = latency_task(LATENCY_ROW, base, head, policy)

    def judged(method: Method, turns: Turns) -> Attribution:
        def measure(number: int) -> Sampled:
            started = time.monotonic()
            latency, profiles = task.sample(number), turns(number)
            seconds = time.monotonic() - started
            return Sampled(latency=latency, base=profiles[0], head=profiles[1], seconds=seconds)

        generations = Generations(lambda number: once(method, number, partial(measure, number)))
        parts = parts_of(executables, generations(0))
        return judge_parts(parts, generations, task, method=method, on_beyond=on_beyond)

    notes: tuple[str, ...] = ()
    if all(can_profile(module.loadable.toolchain) for module in modules):
        try:
            return judged("profile", ProfiledTurns(base, head, folder / "profiles", policy.limits))
        except Unprofiled as error:
            notes = (f"the runtime has no profile of {', '.join(head.case.uris)}: {error}",)
    found = judged("alone", AloneTurns(base, head, executables, folder / "alone", policy))
    return replace(found, notes=(*notes, *found.notes))


def judge_parts(
    parts: Iterable[Counterparts],
    generations: Generations,
    like: Task,
    *,
    method: Method,
    on_beyond: OnBeyond = lambda _sentence: None,
) -> Attribution:
    """Judge the whole case and each part over generations that they share."""
    first = generations(0)
    seen: Counter[str] = Counter()
    rows: dict[str, Counterparts] = {}
    for part in parts:  # a number tells those apart that do the same
        seen[part.operation] += 1
        rows[part.operation + (f" #{seen[part.operation]}" if seen[part.operation] > 1 else "")] = part

    def whole(number: int) -> Generation:
        return replace(generations(number).latency, seconds=generations(number).seconds)

    tasks = [replace(like, name=LATENCY_ROW, sample=whole)]
    tasks += [
        replace(like, name=name, sample=partial(_part_of, generations, part))
        for name, part in rows.items()
        if part.base and part.head and _is_timed(part, first)
    ]
    by_name = {each.name: each for each in decide(tasks, on_beyond=on_beyond)}
    taken = generations.taken
    records = [_record(part, by_name.get(name), taken) for name, part in rows.items()]
    latency = by_name[LATENCY_ROW]
    calls = sides_ns(latency) or (
        _median(each.base.call_ns for each in taken),
        _median(each.head.call_ns for each in taken),
    )
    of_base = [(each.base, each.latency.base if method == "profile" else None) for each in taken]
    of_head = [(each.head, each.latency.head if method == "profile" else None) for each in taken]
    base_elsewhere = _elsewhere(calls[0] - math.fsum(part.base_ns for part in records), of_base)
    head_elsewhere = _elsewhere(calls[1] - math.fsum(part.head_ns for part in records), of_head)
    return Attribution(
        method=method,
        latency=latency,
        parts=tuple(sorted(records, key=lambda part: -abs(part.change_ns))),
        base_elsewhere=base_elsewhere,
        head_elsewhere=head_elsewhere,
        generations=tuple(taken),
        notes=tuple(_notes(taken[-1], base_elsewhere, head_elsewhere)),
    )


def parts_of(executables: Executables, first: Sampled) -> tuple[Counterparts, ...]:
    """The dispatches of both programs that a call has, as parts."""
    return match_parts(_ran(BASE, executables[0], first.base), _ran(HEAD, executables[1], first.head))


def _ran(side: str, executables: Sequence[Executable], profile: Profile) -> tuple[Executable, ...]:
    """The executables that a call dispatches, in the order of their first dispatch."""
    known = {executable.name: executable for executable in executables}
    if unknown := next((name for name in profile.dispatch_ns if name not in known), None):
        raise CaseError(
            "measure",
            f"the profile of the {side}'s module names a dispatch {unknown!r}, which is none of its "
            f"{plural(len(known), 'executable')}; compile the case again",
        )
    return tuple(known[name] for name in profile.dispatch_ns)


def _is_timed(part: Counterparts, sampled: Sampled) -> bool:
    sides = ((part.base, sampled.base), (part.head, sampled.head))
    return not any(each.name in profile.untimed for executables, profile in sides for each in executables)


# --- rows ---


def _part_of(generations: Generations, part: Counterparts, number: int) -> Generation:
    sampled = generations(number)
    base, head = _part_ns(part, sampled)
    whole = _is_timed(part, sampled)
    return Generation(
        log_ratio=math.log(head / base) if whole and base > 0 and head > 0 else None,
        base=base,
        head=head,
        rounds=min(sampled.base.calls, sampled.head.calls),
        seconds=sampled.seconds,
    )


def _part_ns(part: Counterparts, sampled: Sampled) -> tuple[float, float]:
    base = math.fsum(sampled.base.dispatch_ns.get(each.name, 0.0) for each in part.base)
    head = math.fsum(sampled.head.dispatch_ns.get(each.name, 0.0) for each in part.head)
    return base, head


# --- records ---


def sides_ns(outcome: Outcome) -> tuple[float, float] | None:
    """What base and head of a row take: medians over its generations, which differ by the ratio that was judged."""
    known = [(each.base, each.head) for each in outcome.generations if each.base is not None and each.head is not None]
    if not known:
        return None
    return _as_judged(_median(base for base, _ in known), _median(head for _, head in known), outcome)


def _as_judged(base_ns: float, head_ns: float, outcome: Outcome) -> tuple[float, float]:
    if outcome.estimate is None or min(base_ns, head_ns) <= 0:
        return base_ns, head_ns
    middle, half = math.sqrt(base_ns * head_ns), math.sqrt(outcome.estimate.ratio)
    return middle / half, middle * half


def _record(part: Counterparts, outcome: Outcome | None, taken: Sequence[Sampled]) -> Part:
    """A part with its figures; without an outcome it is of one side, or its time is not known."""
    is_timed = all(_is_timed(part, sampled) for sampled in taken)
    times = [_part_ns(part, sampled) for sampled in taken] if is_timed else []
    one_sided: Verdict = "missing" if part.base else "new"
    record = Part(
        base=tuple(each.name for each in part.base),
        head=tuple(each.name for each in part.head),
        matched_by=part.matched_by,
        operation=part.operation,
        base_ns=_median(base for base, _ in times),
        head_ns=_median(head for _, head in times),
        verdict="inconclusive" if part.base and part.head else one_sided,
        generations=len(taken),
        is_timed=is_timed,
    )
    if outcome is None or not is_timed:
        return record
    record = replace(record, verdict=outcome.decision, p=outcome.p, generations=len(outcome.generations))
    if (estimate := outcome.estimate) is None:
        return record
    base_ns, head_ns = _as_judged(record.base_ns, record.head_ns, outcome)
    record = replace(record, base_ns=base_ns, head_ns=head_ns, ratio=estimate.ratio)
    return replace(record, ci_low=estimate.low, ci_high=estimate.high)


def _elsewhere(left_ns: float, taken: Sequence[tuple[Profile, float | None]]) -> Elsewhere:
    """What is left of a side's call, by its profiles and what a call took beside each without one."""
    operations = dict.fromkeys(operation for profile, _ in taken for operation in profile.device_ns)
    device_ns = {name: _median(profile.device_ns.get(name, 0.0) for profile, _ in taken) for name in operations}
    return Elsewhere(
        device_ns=device_ns,
        host_ns=left_ns - math.fsum(device_ns.values()),
        profiled_ratio=_median(profile.call_ns / plain_ns for profile, plain_ns in taken if plain_ns) or 1.0,
    )


def _notes(last: Sampled, base: Elsewhere, head: Elsewhere) -> Iterable[str]:
    for side, profile, elsewhere in ((BASE, last.base, base), (HEAD, last.head, head)):
        if elsewhere.profiled_ratio > 1 + _HEAVY_PROFILE:
            yield (
                f"with the profile a call of the {side} takes {elsewhere.profiled_ratio:.2f} times as long as without "
                "it; short dispatches look longer than they are"
            )
        if profile.untimed:
            alike: dict[str, list[str]] = {}
            for name, why in profile.untimed.items():
                alike.setdefault(why, []).append(name)
            named = "; ".join(f"{enumerated(names)} ({why})" for why, names in alike.items())
            of_all = plural(len(profile.dispatch_ns), "dispatch", "dispatches")
            yield f"not timed of {of_all} of the {side}: {named}"


def _median(values: Iterable[float]) -> float:
    present = list(values)
    return float(np.median(present)) if present else 0.0
