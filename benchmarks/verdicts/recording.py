"""Streams of generations, measured as `harness compare` measures them, one JSON line each."""

from __future__ import annotations

import gzip
import json
import multiprocessing
import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.verdicts.programs import Workload, prepare, workloads
from harness.compare.engine import BASE, HEAD, Generation
from harness.compare.samplers import GENERATION_S, LatencySampler, summarise_generation
from harness.measure import Group, Settings
from harness.measure.alone import only_one_measures
from harness.records.run import Round, Turn
from harness.toolchain import Toolchain

CHUNK = 8


@dataclass(frozen=True, kw_only=True)
class Stream:
    """One pair of modules, and how many generations of it to record.

    Attributes:
        slowdown: Of the head, as a share; 0: both sides are the same module.
        hog: Whether something else keeps another core busy, on and off, meanwhile.
    """

    workload: str
    slowdown: float
    generations: int
    hog: bool = False

    @property
    def name(self) -> str:
        """`loop +3 %`, `loop A/A beside a hog`."""
        change = f"+{self.slowdown * 100:g} %" if self.slowdown else "A/A"
        return f"{self.workload} {change}{' beside a hog' if self.hog else ''}"


@dataclass(frozen=True, kw_only=True)
class Recorded:
    """One recorded generation.

    Attributes:
        seconds: Wall time, workers' start and loading included.
        base_ns: One call of the base in each round; head_ns likewise.
        head_first: Whether the head had its turn first, by round.
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

    def generation(self) -> Generation:
        """As the harness's sampler gives it."""
        rounds = [
            Round(group="", generation=0, round=number, started_unix_ns=0, turns=turns)
            for number, turns in enumerate(map(_turns, self.base_ns, self.head_ns, self.head_first))
        ]
        return summarise_generation(rounds, self.seconds)


def _turns(base: float, head: float, head_first: bool) -> tuple[Turn, Turn]:
    first = Turn(case=BASE, calls=1000, wall_ns=round(1000 * base), cpu_ns=0)
    second = Turn(case=HEAD, calls=1000, wall_ns=round(1000 * head), cpu_ns=0)
    return (second, first) if head_first else (first, second)


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
            with only_one_measures(print), _Hog(enabled=stream.hog), gzip.open(path, "at") as file:
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
        group = Group(
            name=stream.name,
            uri=workload.uri,
            cases=(prepare(workload, 0.0, BASE, toolchain), prepare(workload, stream.slowdown, HEAD, toolchain)),
            cpus=frozenset({max(os.sched_getaffinity(0))}) if workload.pin else None,
        )
        self._sample = LatencySampler(group, Settings(seconds=GENERATION_S), self._rounds.append)

    def take(self, number: int) -> Recorded:
        self._rounds.clear()
        started, load = time.time(), os.getloadavg()[0]
        generation = self._sample(number)
        times = [{turn.case: turn.wall_ns / turn.calls for turn in one.turns} for one in self._rounds]
        return Recorded(
            stream=self._stream.name,
            number=number,
            started_unix=round(started, 2),
            seconds=round(generation.seconds, 4),
            load=round(load, 2),
            base_ns=tuple(round(one[BASE], 2) for one in times),
            head_ns=tuple(round(one[HEAD], 2) for one in times),
            head_first=tuple(one.turns[0].case == HEAD for one in self._rounds),
        )


class _Hog:
    """A process that computes for half a second and rests for half a second, on the first core."""

    def __init__(self, *, enabled: bool) -> None:
        self._process = multiprocessing.Process(target=_hog, daemon=True) if enabled else None

    def __enter__(self) -> None:
        if self._process is not None:
            self._process.start()

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.join()


def _hog() -> None:
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    while True:
        until = time.monotonic() + 0.5
        while time.monotonic() < until:
            sum(range(10_000))
        time.sleep(0.5)
