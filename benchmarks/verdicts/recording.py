"""Streams of generations, measured as `harness compare` measures them, one JSON line each."""

from __future__ import annotations

import gzip
import json
import multiprocessing
import os
import random
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Literal

import numpy as np
from pydantic import TypeAdapter

from benchmarks.verdicts.programs import Workload, prepare, workloads
from benchmarks.verdicts.waiting import Wait, waiting_pair
from harness.compare.engine import BASE, HEAD, Generation
from harness.compare.samplers import GENERATION_S, LONG_ROUND_S, LatencySampler, summarise_generation
from harness.measure import Group, Loadable, Settings, last_core
from harness.measure.session import only_one_measures
from harness.records.run import Account, Round, Turn
from harness.stats.pairing import FloatArray, tabulate_rounds, taken_share
from harness.toolchain import Toolchain

CHUNK = 8

# What else computes meanwhile: one process that computes for half a second and rests for half a second on the first
# core; two on each core, all the time; one on each core, for between 0.2 and 2 s, and likewise resting.
Company = Literal["", "a hog", "two hogs a core", "hogs that come and go"]


@dataclass(frozen=True, kw_only=True)
class Stream:
    """One pair of modules, and how many generations of it to record.

    Attributes:
        slowdown: Of the head, as a share; 0: both sides are the same module.
        company: What else computes on the machine meanwhile.
        wait: What the head does that much longer for, instead of computing; None: it computes.
    """

    workload: str
    slowdown: float
    generations: int
    company: Company = ""
    wait: Wait | None = None

    @property
    def name(self) -> str:
        """`loop +3 %`, `loop A/A beside a hog`, `loop +3 % (sleep)`."""
        change = f"+{self.slowdown * 100:g} %" if self.slowdown else "A/A"
        waits = f" ({self.wait})" if self.wait else ""
        return f"{self.workload} {change}{waits}{f' beside {self.company}' if self.company else ''}"


@dataclass(frozen=True, kw_only=True)
class Side:
    """One side's turns in a generation, one figure a round, as harness.records.run has them of a turn; None: not known.

    The rule that chooses the clock is not applied here, so a changed rule can be played back too.
    """

    calls: tuple[int, ...]
    wall_ns: tuple[int, ...]
    cpu_ns: tuple[int, ...]
    thread_ns: tuple[int | None, ...]
    delayed_ns: tuple[int | None, ...]
    voluntary: tuple[int | None, ...]
    throttled: tuple[int | None, ...]

    def turns(self, case: str, *, on_calling_thread: bool, accounts: bool) -> list[Turn]:
        """The turns, with their accounts or without."""
        columns = zip(self.thread_ns, self.delayed_ns, self.voluntary, self.throttled, strict=True)
        told = [
            Account(
                on_calling_thread=on_calling_thread,
                thread_ns=thread_ns,
                delayed_ns=delayed_ns,
                voluntary=voluntary,
                throttled=throttled,
            )
            if accounts
            else None
            for thread_ns, delayed_ns, voluntary, throttled in columns
        ]
        return [
            Turn(case=case, calls=calls, wall_ns=wall_ns, cpu_ns=cpu_ns, account=account)
            for calls, wall_ns, cpu_ns, account in zip(self.calls, self.wall_ns, self.cpu_ns, told, strict=True)
        ]

    @property
    def ns(self) -> FloatArray:
        """Wall nanoseconds of a call in each round."""
        ns: FloatArray = np.array(self.wall_ns) / np.array(self.calls)
        return ns


@dataclass(frozen=True, kw_only=True)
class Recorded:
    """One recorded generation.

    Attributes:
        seconds: Wall time, workers' start and loading included.
        load: The machine's load average over the last minute.
        on_calling_thread: Whether the device computes on the thread that calls.
        head_first: Whether the head had its turn first, by round.
        accounts: Whether the turns' accounts count; else wall time decides.
    """

    stream: str
    number: int
    started_unix: float
    seconds: float
    load: float
    on_calling_thread: bool
    head_first: tuple[bool, ...]
    base: Side
    head: Side
    accounts: bool = True

    @property
    def rounds(self) -> list[Round]:
        """As the harness's worker gave them."""
        base, head = (
            side.turns(name, on_calling_thread=self.on_calling_thread, accounts=self.accounts)
            for name, side in ((BASE, self.base), (HEAD, self.head))
        )
        return [
            Round(
                group="",
                generation=0,
                round=number,
                started_unix_ns=0,
                turns=(base[number], head[number])[:: -1 if head_first else 1],
            )
            for number, head_first in enumerate(self.head_first)
        ]

    @cached_property
    def generation(self) -> Generation:
        """As the harness's sampler gives it."""
        return summarise_generation(self.rounds, self.seconds)

    @cached_property
    def by_wall_time(self) -> Recorded:
        """The same turns without their accounts, so that wall time decides."""
        return replace(self, accounts=False)

    @cached_property
    def sides(self) -> tuple[FloatArray, FloatArray]:
        """Nanoseconds of a call of base and head in each round, by the clock that compares them."""
        ((head, base, *_),) = tabulate_rounds(self.rounds).sides(HEAD, BASE)
        return base, head

    @property
    def own_share(self) -> float:
        """Share of the rounds that are compared by own time."""
        return self.generation.by_own_time / len(self.head_first)

    @cached_property
    def taken(self) -> tuple[float | None, ...]:
        """Share of each round's time that other processes took, the mean of its two turns; None: not known."""
        shares = [[taken_share(turn) for turn in one.turns] for one in self.rounds]
        return tuple(None if None in pair else sum(map(float, pair)) / 2 for pair in shares)  # type: ignore[arg-type]


def record(streams: Sequence[Stream], path: Path, toolchain: Toolchain) -> None:
    """Record all streams a few generations at a time, so that each is spread over the whole recording.

    What is already in the file is kept, and not recorded again. Between chunks other harnesses may measure.
    """
    known = workloads()
    done: dict[str, int] = {}
    if path.is_file():
        for one in read(path):
            done[one.stream] = max(done.get(one.stream, 0), one.number + 1)
    samplers = {stream.name: _Tap(known[stream.workload], stream, toolchain) for stream in streams}
    left = {stream.name: stream.generations - done.get(stream.name, 0) for stream in streams}
    total = max(1, sum(max(0, number) for number in left.values()))
    passes = max(-(-number // CHUNK) for number in left.values())
    recorded = 0
    for part in range(passes):
        for stream in streams:
            here = _share(left[stream.name], part, passes)
            if here <= 0:
                continue
            with only_one_measures(print), Hogs(stream.company), gzip.open(path, "at") as file:
                for _ in range(here):
                    one = samplers[stream.name].take(done.get(stream.name, 0))
                    done[stream.name] = one.number + 1
                    recorded += 1
                    file.write(json.dumps(asdict(one)) + "\n")
            sys.stderr.write(f"\r{recorded} of {total} generations, last {stream.name}          ")
            sys.stderr.flush()
    sys.stderr.write("\n")


def _share(total: int, part: int, parts: int) -> int:
    """How many of `total` fall to one of so many parts."""
    return max(0, total) * (part + 1) // parts - max(0, total) * part // parts


def read(path: Path) -> Iterator[Recorded]:
    """The generations of a recording, in the order they were recorded; a cut last line is left out."""
    with gzip.open(path, "rt") as file:
        try:
            for line in file:
                yield _ADAPTER.validate_json(line)
        except (EOFError, ValueError):
            return


_ADAPTER = TypeAdapter(Recorded)


class _Tap:
    """A sampler that keeps the rounds behind its samples."""

    def __init__(self, workload: Workload, stream: Stream, toolchain: Toolchain) -> None:
        self._stream = stream
        self._rounds: list[Round] = []
        base = prepare(workload, 0.0, BASE, toolchain)
        cases: tuple[Loadable, Loadable] = (base, prepare(workload, stream.slowdown, HEAD, toolchain))
        if stream.wait is not None:
            cases = waiting_pair(base, stream.wait, stream.slowdown)
        group = Group(
            name=stream.name,
            uri=workload.uri,
            cases=cases,
            cpus=last_core() if workload.pin else None,
        )
        settings = Settings(seconds=GENERATION_S, long_round_s=LONG_ROUND_S)
        self._sample = LatencySampler(group, settings, self._rounds.append)

    def take(self, number: int) -> Recorded:
        self._rounds.clear()
        started, load = time.time(), os.getloadavg()[0]
        generation = self._sample(number)
        turns = [{turn.case: turn for turn in one.turns} for one in self._rounds]
        accounts = [turn.account for one in turns for turn in one.values()]
        return Recorded(
            stream=self._stream.name,
            number=number,
            started_unix=round(started, 2),
            seconds=round(generation.seconds, 4),
            load=round(load, 2),
            on_calling_thread=all(account is not None and account.on_calling_thread for account in accounts),
            head_first=tuple(one.turns[0].case == HEAD for one in self._rounds),
            base=_side([one[BASE] for one in turns]),
            head=_side([one[HEAD] for one in turns]),
        )


def _side(turns: Sequence[Turn]) -> Side:
    def told(name: str) -> tuple[int | None, ...]:
        return tuple(getattr(turn.account, name, None) for turn in turns)

    return Side(
        calls=tuple(turn.calls for turn in turns),
        wall_ns=tuple(turn.wall_ns for turn in turns),
        cpu_ns=tuple(turn.cpu_ns for turn in turns),
        thread_ns=told("thread_ns"),
        delayed_ns=told("delayed_ns"),
        voluntary=told("voluntary"),
        throttled=told("throttled"),
    )


class Hogs:
    """The processes that compute meanwhile."""

    def __init__(self, company: Company) -> None:
        cores = sorted(os.sched_getaffinity(0))
        hogs: dict[Company, list[tuple[int, Company]]] = {
            "a hog": [(cores[0], company)],
            "two hogs a core": [(core, company) for core in cores for _ in range(2)],
            "hogs that come and go": [(core, company) for core in cores],
        }
        self._hogs = [
            multiprocessing.Process(target=_hog, args=(seed, *hog), daemon=True)
            for seed, hog in enumerate(hogs.get(company, []))
        ]

    def __enter__(self) -> None:
        for hog in self._hogs:
            hog.start()

    def __exit__(self, *_: object) -> None:
        for hog in self._hogs:
            hog.kill()
            hog.join()


def _hog(seed: int, core: int, company: Company) -> None:
    os.sched_setaffinity(0, {core})
    generator = random.Random(time.time_ns() + seed)  # noqa: S311 (pauses, not secrets)
    while True:
        half = 0.5 if company == "a hog" else generator.uniform(0.2, 2.0)
        until = time.monotonic() + half
        while time.monotonic() < until:
            sum(range(10_000))
        if company != "two hogs a core":
            time.sleep(0.5 if company == "a hog" else generator.uniform(0.2, 2.0))
