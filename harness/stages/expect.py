"""What a run has to do, and how long pieces of that kind took in earlier runs of the same results folder."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from harness.cache import cache_root
from harness.compile import BuildCache
from harness.compile.request import cache_key
from harness.errors import HarnessError
from harness.machine.identity import processor_identity
from harness.measure import Settings
from harness.models.materialize import ModelArtifact
from harness.records.case import Case
from harness.records.run import Failure, Round, Run
from harness.remaining import Piece, Remaining
from harness.stages.build import request_for
from harness.stages.context import COMPILE, IR, MEASURE, REFERENCE, VERIFY, Context
from harness.stages.count import kept_counts
from harness.store.folders import folder_names
from harness.store.run_directory import load_rounds, load_run
from harness.text import plural

# So many of the newest runs are looked at.
_MOST_RUNS = 20
# Loading a case and starting its share of a worker, where no earlier run says it.
_LOADING_S = 0.5
_BARRIER_S = 30.0

# What is known of it, such as `compile`, and of what: a cache key, a case's id, or a model's hash.
_Key = tuple[str, str]


class Earlier:
    """What pieces of work took in earlier runs, in seconds."""

    def __init__(self) -> None:
        self._seconds: dict[_Key, list[float]] = {}

    def add(self, kind: str, keys: Iterable[str], seconds: float) -> None:
        """A piece of a kind took so long; keys say what it was, from the most exact one on."""
        for key in keys:
            self._seconds.setdefault((kind, key), []).append(seconds)

    def find(self, kind: str, keys: Iterable[str]) -> float | None:
        """The median of the pieces that are most alike; None where there is none."""
        for key in keys:
            if (kind, key) in self._seconds:
                return statistics.median(self._seconds[kind, key])
        return None

    def add_run(self, run: Run) -> None:
        """What compiles, checks and iree-benchmark-module took in a run."""
        cases = {case.name: case for case in run.header.cases}
        models = {model.name: model.mlir_sha256 for model in run.header.models}
        for build in run.builds:
            if build.compile_ns is not None and (case := cases.get(build.case)):
                self.add("compile", (build.cache_key, case.id, models.get(case.model, "")), build.compile_ns / 1e9)
        for kind, records in (("check", run.checks), ("reference", run.references)):
            for record in records:
                if record.wall_ns is not None and (case := cases.get(record.case)):
                    self.add(kind, (case.id, models.get(case.model, "")), record.wall_ns / 1e9)

    def add_rounds(self, run: Run, rounds: Iterable[Round]) -> None:
        """What a turn of each case took, and loading it: its share of the time between two generations."""
        ids = {case.name: case.id for case in run.header.cases}
        ended_ns = None
        for generation in _generations(rounds):
            for timed in generation:
                for turn in timed.turns:
                    self.add("turn", (ids.get(turn.case, ""),), turn.wall_ns / 1e9)
            first, last = generation[0], generation[-1]
            between_s = 0.0 if ended_ns is None else (first.started_unix_ns - ended_ns) / 1e9
            if 0 < between_s < _BARRIER_S:  # else something else came between them
                for turn in first.turns:
                    self.add("load", (ids.get(turn.case, ""),), between_s / len(first.turns))
            ended_ns = last.started_unix_ns + sum(turn.wall_ns for turn in last.turns)


def _generations(rounds: Iterable[Round]) -> Iterator[list[Round]]:
    """Rounds of one generation of a group after another, in the order of time."""
    in_order = sorted(rounds, key=lambda timed: timed.started_unix_ns)
    for _, generation in itertools.groupby(in_order, key=lambda timed: (timed.group, timed.generation)):
        yield list(generation)


def earlier_runs(results: Path, models: Iterable[str], but: Path) -> Earlier:
    """What the newest runs of a results folder say of these models; of the newest alone what a generation costs."""
    wanted, earlier, is_timed = set(models), Earlier(), False
    for name in list(reversed(folder_names(results, "run")))[:_MOST_RUNS]:
        if name == but.name:
            continue
        try:
            run = load_run(results / name, rounds=False)
            if not wanted & {model.mlir_sha256 for model in run.header.models}:
                continue
            earlier.add_run(run)
            if not is_timed and (rounds := load_rounds(results / name)):
                earlier.add_rounds(run, rounds)
                is_timed = True
        except HarnessError:  # a damaged run says nothing
            continue
    return earlier


@dataclass(frozen=True, kw_only=True)
class Expected:
    """What a run has to do."""

    pieces: tuple[Piece, ...]
    compiles: int  # That are not in the cache
    cases: int  # That these are for
    cached: int  # Compiles that are in the cache
    checks: int
    measure_s: float  # Of timed rounds
    at_once: Mapping[str, int] = field(default_factory=dict)

    @property
    def remaining(self) -> Remaining:
        """As it is before the first piece."""
        return Remaining(self.pieces, self.at_once)

    @property
    def sentence(self) -> str:
        """What is to be done, and how long that should take."""
        remarks = [f"for {self.cases:,} cases"] if self.cases != self.compiles else []
        remarks += [f"{self.cached:,} more {'is' if self.cached == 1 else 'are'} in the cache"] if self.cached else []
        compiles = plural(self.compiles, "compile")
        parts = [f"{compiles} ({', '.join(remarks)})" if remarks else compiles] if self.compiles or remarks else []
        parts += [plural(self.checks, "check")] if self.checks else []
        parts += [f"{self.measure_s:.0f} s of timed rounds"] if self.measure_s else []
        todo = f"To do: {', '.join(parts) or 'nothing more'}"
        left = self.remaining.left()
        unknown = self._unknown()
        if not unknown:
            return f"{todo}; {left.words}" if left.words else todo
        known = f"{left.words}, and " if left.words else ""
        return f"{todo}; {known}no earlier run here says how long {unknown} take"

    def _unknown(self) -> str:
        """`the compiles and 2 of the checks`."""
        words = []
        for stage, noun in ((COMPILE, "compiles"), (VERIFY, "checks")):
            of = [piece for piece in self.pieces if piece.stage == stage]
            unknown = sum(piece.seconds is None for piece in of)
            if unknown:
                words.append(f"the {noun}" if unknown == len(of) else f"{unknown} of the {noun}")
        return " and ".join(words)


def expect(context: Context, artifacts: Mapping[str, ModelArtifact | Failure], earlier: Earlier) -> Expected:
    """The pieces of work of a run that begins or goes on."""
    prepared, options, done = context.prepared, context.options, context.done
    made = {name: artifact for name, artifact in artifacts.items() if isinstance(artifact, ModelArtifact)}
    cases = [case for case in prepared.cases if case.skip is None and case.model in made]
    failed = {build.case for build in done.builds.values() if build.failure is not None}
    failed |= {check.case for check in done.checks.values() if check.failure is not None}
    cases = [case for case in cases if case.name not in failed and case.name not in done.lost]
    compiles, sharing, cached = _compiles(context, cases, made, earlier)
    pieces = list(compiles)
    checks = [case for case in cases if case.name not in done.checks and (options.measure or case.peer is None)]
    pieces += [_piece(VERIFY, "check", case, made, earlier) for case in checks]
    asked = [case for case in cases if case.peer is None and case.name not in done.references]
    asked = asked if context.with_reference else []
    pieces += [_piece(REFERENCE, "reference", case, made, earlier) for case in asked]
    measure_s = 0.0
    if options.measure:
        measured, measure_s = _measuring(context, cases, earlier)
        pieces += measured
    return Expected(
        pieces=tuple(pieces),
        compiles=sum(piece.stage == COMPILE for piece in compiles),
        cases=sharing,
        cached=cached,
        checks=len(checks),
        measure_s=measure_s,
        at_once={COMPILE: options.compilers, IR: options.compilers},
    )


def _piece(stage: str, kind: str, case: Case, made: Mapping[str, ModelArtifact], earlier: Earlier) -> Piece:
    seconds = earlier.find(kind, (case.id, made[case.model].sha256))
    return Piece(stage=stage, name=case.name, seconds=seconds)


def _compiles(
    context: Context, cases: Sequence[Case], made: Mapping[str, ModelArtifact], earlier: Earlier
) -> tuple[list[Piece], int, int]:
    """Compiles, and the countings of IR, each of which is another compile."""
    cache = BuildCache(cache_root())
    host_cpu = processor_identity(context.directory.header.environment)
    suite = context.prepared.suite
    pieces: list[Piece] = []
    seen: set[str] = set()
    sharing = cached = 0
    for case in cases:
        if case.peer is not None:
            continue
        request = request_for(context.prepared, case, made[case.model], host_cpu, context.options.compile_limits)
        key = cache_key(request)
        found = cache.find(key, case.name)
        sharing += found is None
        if key in seen:
            continue
        seen.add(key)
        cached += found is not None and case.name not in context.done.builds
        seconds = earlier.find("compile", (key, case.id, made[case.model].sha256))
        if found is not None and found.compile_ns is not None:
            seconds = found.compile_ns / 1e9
        if found is None:
            pieces.append(Piece(stage=COMPILE, name=case.name, seconds=seconds))
        if suite.ir and case.name not in context.done.ir and not kept_counts(key).is_file():
            pieces.append(Piece(stage=IR, name=case.name, seconds=seconds))
    return pieces, sharing, cached


def _measuring(context: Context, cases: Sequence[Case], earlier: Earlier) -> tuple[list[Piece], float]:
    """A piece for each generation of each group, and how many seconds of timed rounds they have."""
    settings = context.directory.header.settings
    generations = int(settings["generations"])
    groups: dict[str, list[Case]] = {}
    for case in cases:
        groups.setdefault(case.group, []).append(case)
    share_s = float(settings["budget_s"]) / (generations * max(1, len(groups) + context.prepared.groups_elsewhere))
    pieces, measure_s = [], 0.0
    for generation in range(generations):
        for name, members in groups.items():
            left_s = share_s - context.done.generations.get((name, generation), (0.0, 0))[0]
            if left_s <= 0:
                continue
            round_s = sum(earlier.find("turn", (case.id,)) or 0.0 for case in members)
            loading_s = sum(earlier.find("load", (case.id,)) or _LOADING_S for case in members)
            timed_s = max(left_s, Settings(seconds=0.0).least_rounds * round_s)
            pieces.append(Piece(stage=MEASURE, name=name, seconds=timed_s + loading_s))
            measure_s += left_s
    return pieces, measure_s
