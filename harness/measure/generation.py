"""[Build] -> [Round]: one generation, in fresh processes, with its turns in balanced orders."""

import contextlib
import itertools
import random
import tempfile
import time
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from harness.measure.session import Group, Loadable, Settings, WorkerDied, WorkerRefused, WorkerSession
from harness.records.run import Account, Failure, Lost, Round, Turn


def load_order(cases: Sequence[str], seed: str) -> tuple[str, ...]:
    """A generation's random order of loading: what is loaded first may be several times slower in every process."""
    return next(balanced_orders(cases, f"load/{seed}"))


def balanced_orders(cases: Sequence[str], seed: str) -> Iterator[tuple[str, ...]]:
    """Endless orders in pairs: a random one, then the same backwards, so that a steady drift slows all alike."""
    generator = random.Random(seed)  # noqa: S311 (an order, not a secret)
    while True:
        order = list(cases)
        generator.shuffle(order)
        yield tuple(order)
        yield tuple(reversed(order))


# A calibration makes about this many calls where each is long; short ones do not come near the limit.
_CALIBRATION_CALLS = 5
# Cases whose turns would differ by less than this factor get turns of the same number of calls.
_ALIKE = 1.5
# Where a group has several workers, the first turn after a change from one to another is slower by some 12 us (1.2 to
# 1.4 % of a turn of 1 ms, here), since the other process had the core and its caches. That would be held against the
# worker with fewer cases, so every turn then comes after calls of its own that are not timed, except where calls take
# so long that it makes no difference.
_WARM_NS = 300_000
_WARM_BELOW_NS = 10_000_000
# Where an earlier generation has told how many calls fill a turn, a worker is warmed up for so long, or by one call.
_WARM_UP_NS = 3_000_000
# Calls that take longer are not warmed up again at all where they run on the thread that calls: what the first call of
# a process does besides is to map its pages, on both sides, which is little beside a tenth of a second.
_UNWARMED_NS = 1e8


class Calibration(NamedTuple):
    """What is known of a case, maybe by an earlier generation: calls of one turn, and what one call takes."""

    calls: int
    per_call_ns: float


# Is what a later call of a case gave, in these .npy files, still right? A failure says what is not.
CheckOutputs = Callable[[str, Sequence[Path]], Failure | None]


def measure_generation(
    group: Group,
    generation: int,
    settings: Settings,
    *,
    first_round: int = 0,
    check: CheckOutputs | None = None,
    known: Mapping[str, Calibration] | None = None,
) -> Iterator[Round | Lost]:
    """Run one generation of a group; rounds come as they end, lost cases as they are noticed.

    A case that does not load, that fails `check` once it is warm, or at which a worker dies, is lost; the others go on
    in fresh workers. Nothing is timed while the caller holds a yielded value. `known` is what an earlier one told.
    """
    cases = {case.name: case for case in group.cases}
    numbers = itertools.count(first_round)
    deadline_s = settings.seconds
    while cases:
        try:
            for item in _rounds(group, cases, generation, settings, numbers, deadline_s, check, known or {}):
                if isinstance(item, Lost):
                    cases.pop(item.case)
                else:
                    deadline_s -= sum(turn.wall_ns for turn in item.turns) / 1e9
                yield item
        except WorkerDied as died:
            for name in [died.case] if died.case in cases else list(cases):
                cases.pop(name)
                yield Lost(case=name, generation=generation, failure=Failure.of(died))
        else:
            return


def _rounds(
    group: Group,
    cases: Mapping[str, Loadable],
    generation: int,
    settings: Settings,
    numbers: Iterator[int],
    seconds: float,
    check: CheckOutputs | None,
    known: Mapping[str, Calibration],
) -> Iterator[Round | Lost]:
    with contextlib.ExitStack() as stack:
        workers: dict[Hashable, WorkerSession] = {}
        dead: dict[Hashable, Failure] = {}  # Of homes whose workers did not open, or died before they loaded anything
        ready: dict[str, Calibration] = {}
        lost = []
        # All or none: a first call costs more than others, and would be found on the side that was not warmed up.
        are_known = all(name in known for name in cases)
        are_long = (
            group.on_calling_thread and are_known and all(known[name].per_call_ns >= _UNWARMED_NS for name in cases)
        )
        limit_s = _CALIBRATION_CALLS * settings.call_limit_s
        for case in cases.values():
            if case.home not in workers:
                workers[case.home] = stack.enter_context(case.worker(group, settings.call_limit_s))
        # All are open before the first is loaded, since a calibration beside their start would be too long.
        for case in cases.values():
            if case.home not in dead and (failure := _open(workers, case, group, settings, stack)) is not None:
                dead[case.home] = failure
        for case in cases.values():
            if case.home in dead:
                lost.append(Lost(case=case.name, generation=generation, failure=dead[case.home]))
                continue
            try:
                worker = workers[case.home]
                worker.ask(op="load", case=case.name, **case.request())
                if not are_known:
                    target_ns = settings.target_turn_ns
                    answer = worker.ask(op="calibrate", case=case.name, target_ns=target_ns, limit_s=limit_s)
                    made = Calibration(int(answer["calls"]), float(answer["per_call_ns"]))
                else:
                    made = known[case.name]
                    if not are_long:
                        warm_up = max(1, int(_WARM_UP_NS / max(1.0, made.per_call_ns)))
                        worker.ask(op="warm", case=case.name, calls=warm_up, limit_s=limit_s)
                wrong = _check_outputs(worker, case.name, check) if check is not None else None
                if wrong is None:
                    ready[case.name] = made
            except WorkerRefused as refused:
                wrong = Failure.of(refused)
            except WorkerDied as died:
                if died.case:
                    raise
                wrong = dead[case.home] = Failure.of(died)
            if wrong is not None:
                lost.append(Lost(case=case.name, generation=generation, failure=wrong))
        yield from lost
        if not ready:
            return
        calls = _alike({name: made.calls for name, made in ready.items()})
        several = len({cases[name].home for name in ready}) > 1
        warm = {
            name: max(1, int(_WARM_NS / max(1.0, made.per_call_ns)))
            for name, made in ready.items()
            if several and made.per_call_ns < _WARM_BELOW_NS
        }
        started = time.monotonic()
        for position, order in enumerate(_orders(group.name, generation, settings, ready)):
            if position >= settings.least_rounds and position % 2 == 0 and time.monotonic() - started >= seconds:
                return
            planned = [(workers[cases[name].home], name, calls[name]) for name in order]
            began, turns = _turns(planned, warm, settings.call_limit_s)
            number = next(numbers)
            yield Round(group=group.name, generation=generation, round=number, started_unix_ns=began, turns=turns)


def _open(
    workers: dict[Hashable, WorkerSession],
    case: Loadable,
    group: Group,
    settings: Settings,
    stack: contextlib.ExitStack,
) -> Failure | None:
    """Wait for a case's worker; one that dies is started once more, since that may be no case's fault."""
    for is_last in (False, True):
        try:
            workers[case.home].wait_until_open()
        except WorkerRefused as refused:
            return Failure.of(refused)
        except WorkerDied as died:
            if is_last:
                return Failure.of(died)
            workers[case.home] = stack.enter_context(case.worker(group, settings.call_limit_s))
        else:
            break
    return None


def _orders(
    group: str, generation: int, settings: Settings, ready: Mapping[str, Calibration]
) -> Iterable[tuple[str, ...]]:
    """Orders of the generation's rounds; of one with a single long round the one before backwards, or a new one."""
    round_s = sum(made.calls * made.per_call_ns for made in ready.values()) / 1e9
    if settings.long_round_s is None or round_s <= settings.long_round_s:
        return balanced_orders(tuple(ready), f"{settings.seed}/{group}/{generation}")
    pair = balanced_orders(tuple(sorted(ready)), f"{settings.seed}/{group}/pair {generation // 2}")
    return itertools.islice(pair, generation % 2, generation % 2 + 1)


def _check_outputs(worker: WorkerSession, case: str, check: CheckOutputs) -> Failure | None:
    """Whether one more call gives what it should; what this runtime cannot bring to the host is not asked about."""
    with tempfile.TemporaryDirectory(prefix="harness-outputs-") as folder:
        try:
            answer = worker.ask(op="outputs", case=case, folder=folder)
        except WorkerRefused:
            return None
        return check(case, [Path(folder) / f"output{position}.npy" for position in range(int(answer["outputs"]))])


def _alike(calls: Mapping[str, int]) -> dict[str, int]:
    """The same number of calls for cases of nearly the same speed, so that what a turn costs once weighs alike."""
    most = max(calls.values())
    return {name: most if _ALIKE * count >= most else count for name, count in calls.items()}


def _turns(
    order: Sequence[tuple[WorkerSession, str, int]], warm: Mapping[str, int], limit_s: float
) -> tuple[int, tuple[Turn, ...]]:
    """When a round began, and its turns; neighbours in one worker go in one request, so that nothing comes between."""
    answers = []
    for worker, stretch in itertools.groupby(order, key=lambda turn: turn[0]):
        asked = [(name, calls) for _, name, calls in stretch]
        warmed = {name: warm[name] for name, _ in asked if name in warm}
        limit = limit_s * (len(asked) + len(warmed))
        try:
            answers.append(worker.ask(op="round", turns=asked, warm=warmed, limit_s=limit))
        except WorkerRefused as refused:
            # A call that worked while warming up fails now: its context is not to be trusted.
            raise WorkerDied(str(refused), "", worker.at_work_on()) from None
    turns = (turn for answer in answers for turn in answer["turns"])
    made = tuple(Turn(**{**turn, "account": Account(**turn["account"])}) for turn in turns)
    return int(answers[0]["started_unix_ns"]), made
