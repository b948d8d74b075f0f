"""Streams of generations, measured as `harness compare` measures them, one JSON line each."""

from __future__ import annotations

import gzip
import json
import math
import multiprocessing
import os
import random
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import repeat
from pathlib import Path
from typing import Any, Literal

import numpy as np

from benchmarks.verdicts.programs import Workload, prepare, workloads
from benchmarks.verdicts.waiting import Wait, waiting_pair
from harness.compare.engine import BASE, HEAD, Generation
from harness.compare.samplers import GENERATION_S, LONG_ROUND_S, LatencySampler, summarise_generation
from harness.measure import Group, Loadable, Settings
from harness.measure.alone import only_one_measures
from harness.records.run import Account, Round, Turn
from harness.stats.own_time import own_ns, taken_share
from harness.stats.pairing import FloatArray
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
class Recorded:
    """One recorded generation.

    Attributes:
        seconds: Wall time, workers' start and loading included.
        base_ns: One call of the base in each round; head_ns likewise.
        head_first: Whether the head had its turn first, by round.
        base_own_ns: Own time of a call of the base in each round, None where it has none; () of old recordings.
        taken: Share of each round's time that other processes took (harness.stats.own_time), the mean of its two turns;
            None where the system does not tell.
        load: The machine's load average over the last minute.
    """

    stream: str
    number: int
    started_unix: float
    seconds: float
    load: float
    base_ns: tuple[float, ...]
    head_ns: tuple[float, ...]
    head_first: tuple[bool, ...]
    base_own_ns: tuple[float | None, ...] = ()
    head_own_ns: tuple[float | None, ...] = ()
    taken: tuple[float | None, ...] = ()

    def generation(self) -> Generation:
        """As the harness's sampler gives it."""
        own = zip(self.base_own_ns, self.head_own_ns, strict=True) if self.base_own_ns else repeat((None, None))
        rounds = [
            Round(group="", generation=0, round=number, started_unix_ns=0, turns=turns)
            for number, turns in enumerate(map(_turns, self.base_ns, self.head_ns, self.head_first, own))
        ]
        return summarise_generation(rounds, self.seconds)

    @property
    def by_wall_time(self) -> Recorded:
        """The same turns without their own time, so that wall time decides."""
        return replace(self, base_own_ns=(), head_own_ns=())

    @property
    def sides(self) -> tuple[FloatArray, FloatArray]:
        """Nanoseconds of a call of base and head in each round, by the clock that compares them."""
        wall = [np.array(self.base_ns), np.array(self.head_ns)]
        if not self.base_own_ns:
            return wall[0], wall[1]
        own = [np.array(side, dtype=np.float64) for side in (self.base_own_ns, self.head_own_ns)]
        both = np.isfinite(own[0]) & np.isfinite(own[1])
        return np.where(both, own[0], wall[0]), np.where(both, own[1], wall[1])

    @property
    def own_share(self) -> float:
        """Share of the rounds that are compared by own time."""
        pairs = list(zip(self.base_own_ns, self.head_own_ns, strict=True))
        return sum(None not in pair for pair in pairs) / len(self.base_ns)


def _turns(base: float, head: float, head_first: bool, own: tuple[float | None, float | None]) -> tuple[Turn, Turn]:
    first, second = _turn(BASE, base, own[0]), _turn(HEAD, head, own[1])
    return (second, first) if head_first else (first, second)


def _turn(case: str, ns: float, own: float | None) -> Turn:
    account = None if own is None else Account(on_calling_thread=True, thread_ns=round(1000 * own), voluntary=0)
    return Turn(case=case, calls=1000, wall_ns=round(1000 * ns), cpu_ns=round(1000 * (own or 0)), account=account)


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
            with only_one_measures(print), _Company(stream.company), gzip.open(path, "at") as file:
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
                fields: Mapping[str, Any] = json.loads(line)
                lists = {name: tuple(value) for name, value in fields.items() if isinstance(value, list)}
                yield Recorded(**{**fields, **lists})
        except (EOFError, ValueError):
            return


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
            cpus=frozenset({max(os.sched_getaffinity(0))}) if workload.pin else None,
        )
        settings = Settings(seconds=GENERATION_S, long_round_s=LONG_ROUND_S)
        self._sample = LatencySampler(group, settings, self._rounds.append)

    def take(self, number: int) -> Recorded:
        self._rounds.clear()
        started, load = time.time(), os.getloadavg()[0]
        generation = self._sample(number)
        times = [{turn.case: turn.wall_ns / turn.calls for turn in one.turns} for one in self._rounds]
        own = [{turn.case: _known(own_ns(turn) / turn.calls) for turn in one.turns} for one in self._rounds]
        return Recorded(
            stream=self._stream.name,
            number=number,
            started_unix=round(started, 2),
            seconds=round(generation.seconds, 4),
            load=round(load, 2),
            base_ns=tuple(round(one[BASE], 2) for one in times),
            head_ns=tuple(round(one[HEAD], 2) for one in times),
            head_first=tuple(one.turns[0].case == HEAD for one in self._rounds),
            base_own_ns=tuple(one[BASE] for one in own),
            head_own_ns=tuple(one[HEAD] for one in own),
            taken=tuple(map(_taken, self._rounds)),
        )


def _known(ns: float) -> float | None:
    return round(ns, 2) if math.isfinite(ns) else None


def _taken(measured: Round) -> float | None:
    shares = [share for turn in measured.turns if (share := taken_share(turn)) is not None]
    return round(sum(shares) / len(shares), 4) if shares else None


class _Company:
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
