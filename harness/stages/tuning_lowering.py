"""The dispatches of a form that make up most of its time, taken out -> lowering configurations, raced -> winners.

Each dispatch is a program of its own, which runs it again and again. Configurations come in rounds: first those that
its shape and the vector unit suggest, then the neighbours of the best so far, until none of them is better. Equal code
is raced once.
"""

import math
import re
import shutil
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from harness.compare.samplers import Module
from harness.compile.iree_compile import MODULE_FILE
from harness.errors import CaseError
from harness.explain.isolated_timing import as_loadable
from harness.explain.profile import can_profile, profile_module, time_module
from harness.records.tuning import Tried, TunedDispatch
from harness.rewrites.targets import VectorUnit
from harness.stages.options import RunOptions
from harness.stages.tune_session import Form, Racer, TuneSession, digest
from harness.stages.tuning_changes import of_race
from harness.tune.dispatches import Compiled, Dispatch, Refused, compile_candidate, take_out
from harness.tune.tiles import Configuration, Root, first_configurations, fitting, neighbours, spec_of

# Dispatches are tuned until those that are left make up so little of the time.
_COVERED = 0.9
_LEAST_SHARE = 0.005
# Configurations of a dispatch's first round, and of each later one.
_FIRST, _NEXT = 24, 12
# Less is not worth an entry of a spec.
_WORTH = 0.98
_PROFILE_S = 0.5
_LEAST_SECONDS = 4.0
# A configuration that compiles so many times as long as the compiler's own unrolls without end, and is refused.
_COMPILES, _LEAST_COMPILE_S = 10.0, 10.0
# Of a dispatch's seconds, what the compile of one configuration may take; at least twice what the compiler's own takes.
_TAKEN_BY_ONE = 0.1
# The one whose configurations a spec gives as tile sizes of loops.
_BACKEND = "llvm-cpu"
_FOLDER, OWN = "dispatches", "own"
OUT_OF_TIME = "the time for dispatches was over"
_NOTHING_BETTER = "nothing was better than the compiler's own"
_VECTOR_BYTES = re.compile(r"native_vector_size = (\d+)")


@dataclass(frozen=True, kw_only=True)
class Winner:
    """A configuration that made a dispatch faster alone."""

    dispatch: Dispatch
    root: Root
    configuration: Configuration


class LoweringSearch:
    """The search for lowering configurations of one form, and what it came to."""

    def __init__(self, session: TuneSession, form: Form, until_s: float) -> None:
        self._session, self._form, self._until_s = session, form, until_s
        self._folder, self._module = session.directory.path / _FOLDER, form.module
        self._won: list[Configuration] = []
        self.dispatches: list[TunedDispatch] = []  # Those that were looked at, the longest first
        self.winners: dict[str, Winner] = {}  # By name of the dispatch
        self.covered, self.candidates = 0.0, 0  # The share of time of the dispatches; configurations that were raced
        self.note = ""  # Why there is nothing, where there is nothing

    def search(self) -> None:
        """Tune dispatches, the longest first."""
        session = self._session
        target, version = session.target, session.target.toolchain.version
        if target.device.backend != _BACKEND:
            self.note = f"tile sizes are searched for {_BACKEND}, not for {target.device.backend}"
        elif not can_profile(target.toolchain):
            self.note = f"IREE {version} has no profile of dispatches; 3.12 has one"
        elif session.spent_s >= self._until_s:
            self.note = OUT_OF_TIME
        if self.note:
            return
        code = digest([self._form.code])
        try:
            taken = session.once("dispatches", f"taken-out/{code}", list[Dispatch], self._take_out)
            ns = session.once("dispatches", f"profile/{code}", dict[str, float], self._profile) if taken else {}
        except CaseError as error:
            self.note = f"its dispatches cannot be taken out: {error}"
            return
        if not taken:
            self.note = "the program has no dispatches, so there is nothing to tune in it"
        total_ns = math.fsum(ns.values()) or 1.0
        shares = {each.name: math.fsum(ns.get(place, 0.0) for place in each.places) / total_ns for each in taken}
        hot: list[Dispatch] = []
        for each in sorted(taken, key=lambda each: -shares[each.name]):
            if self.covered < _COVERED and shares[each.name] >= _LEAST_SHARE:
                self.covered += shares[each.name]
                hot.append(each)
        session.progress.stage(f"Dispatches of {target.model}", len(hot))
        for place, each in enumerate(hot):
            ahead = math.fsum(shares[other.name] for other in hot[place:] if other.root is not None) or 1.0
            seconds = (self._until_s - session.spent_s) * shares[each.name] / ahead
            self.dispatches.append(self._tuned(each, shares[each.name], seconds))
            session.progress.step(each.operation)

    def _take_out(self) -> list[Dispatch]:
        return [*take_out(self._module, _emptied(self._folder / "programs"), self._session.limits)]

    def _profile(self) -> dict[str, float]:
        folder, limits = _emptied(self._folder / "profile"), self._session.limits
        with self._session.alone():
            call_ns = time_module(self._module, folder, _PROFILE_S, limits)
            return dict(profile_module(self._module, folder, _PROFILE_S, limits, call_ns=call_ns).dispatch_ns)

    def _tuned(self, dispatch: Dispatch, share: float, seconds: float) -> TunedDispatch:
        """What became of a dispatch; what is faster than the compiler's own configuration is kept."""
        session, root = self._session, dispatch.root
        found = TunedDispatch(
            name=dispatch.name, operation=dispatch.operation, places=len(dispatch.places), share=share
        )
        if root is None:
            return replace(found, reason=dispatch.why)
        found = replace(found, own=Configuration(pipeline=root.pipeline, tiles=root.tiles).text)
        if seconds < _LEAST_SECONDS:
            return replace(found, reason=OUT_OF_TIME)
        key = digest([self._form.code, dispatch.key])
        try:
            race = _Rounds(session, self._module, dispatch, root, key, self._folder / key)
            race.run(session.spent_s + seconds, self._won)
        except CaseError as error:
            return replace(found, reason=f"it cannot be timed alone: {error}")
        self.candidates += sum(each.generations > 0 for each in race.tried.values())
        found = replace(found, tried=tuple(race.tried.values()))
        if race.best is None or race.ratio >= _WORTH:
            return replace(found, reason=_NOTHING_BETTER)
        self._won.append(race.best)
        self.winners[dispatch.name] = Winner(dispatch=dispatch, root=root, configuration=race.best)
        return replace(found, alone=race.ratio, chosen=race.best.text)


@dataclass(frozen=True, kw_only=True)
class _Own:
    """The compiler's own code of a dispatch."""

    compiled: Compiled
    seconds: float  # What it takes to compile
    batch: int  # How often a call runs it


class _Rounds:
    """Rounds of configurations of one dispatch, each round raced beside the best of those before."""

    def __init__(
        self, session: TuneSession, module: Module, dispatch: Dispatch, root: Root, key: str, folder: Path
    ) -> None:
        self._session, self._module, self._key, self._folder = session, module, key, folder
        self._dispatch, self._root, self._unit = dispatch, root, _vector_unit(dispatch)
        self._compilers, self._limits = RunOptions().compilers, session.limits
        self.best: Configuration | None = None  # None: the compiler's own
        self.ratio = 1.0  # The best one's time divided by that of the compiler's own
        self.tried: dict[str, Tried] = {}  # By text
        own = session.once("dispatches", f"own/{key}", _Own, self._prepare)
        self._own_s, self._batch = own.seconds, own.batch
        self._names_by_code = {own.compiled.sha256: OWN}
        self._leader, self._leading = OWN, self._racer(OWN, OWN, own.compiled)

    def _prepare(self) -> _Own:
        started = time.monotonic()
        own = self._compile(None, OWN)
        seconds = time.monotonic() - started
        if isinstance(own, Refused):
            raise CaseError("measure", own.reason)
        _, batch = as_loadable(OWN, self._module, own.module, self._dispatch.function, self._session.limits)
        return _Own(compiled=own, seconds=seconds, batch=batch)

    def _racer(self, name: str, folder: str, compiled: Compiled) -> Racer:
        module = self._folder / folder / MODULE_FILE  # wherever the search's folder is now
        function, limits = self._dispatch.function, self._session.limits
        called, _ = as_loadable(name, self._module, module, function, limits, batch=self._batch)
        return Racer(called, compiled.sha256)

    def run(self, until_s: float, won: Sequence[Configuration]) -> None:
        """Race rounds until no neighbour of the best is better, or the search's clock says so."""
        taken_by_one_s = max(_TAKEN_BY_ONE * (until_s - self._session.spent_s), 2 * self._own_s)
        most_s = max(_LEAST_COMPILE_S, _COMPILES * self._own_s)
        self._limits = replace(self._limits, seconds=min(most_s, taken_by_one_s))
        first = (*fitting(self._root, won, self._unit), *first_configurations(self._root, self._unit))
        waiting = list({each.text: each for each in first}.values())
        number = 0
        while waiting and (not number or self._session.spent_s < until_s):
            size = _NEXT if number else _FIRST
            batch, waiting = waiting[:size], waiting[size:]
            number += 1
            better = self._better(number, batch, until_s)
            if better is not None:
                near = {each.text: each for each in (*neighbours(self._root, better, self._unit), *waiting)}
                waiting = [each for text, each in near.items() if text not in self.tried]

    def _better(self, number: int, batch: Sequence[Configuration], until_s: float) -> Configuration | None:
        """The configuration of a round that is better than the best so far, which it then is."""
        racers = self._racers(batch)
        if not racers:
            return None
        raced = self._session.race(
            f"{self._dispatch.operation}, round {number}",
            {self._leader: self._leading, **racers},
            self._leader,
            stage="dispatches",
            seconds=max(0.0, until_s - self._session.spent_s),
            log_ratio=math.log(self.ratio),
        )
        for name in racers:
            self.tried[name] = of_race(self.tried[name], raced)
        if raced.leader == self._leader:
            return None
        if self._leader in self.tried:
            self.tried[self._leader] = replace(self.tried[self._leader], standing="lost")
        self._leader, self._leading = raced.leader, racers[raced.leader]
        self.best = next(each for each in batch if each.text == raced.leader)
        self.ratio = self.tried[raced.leader].ratio or self.ratio
        return self.best

    def _racers(self, batch: Sequence[Configuration]) -> dict[str, Racer]:
        """The configurations of a round that have code of their own, compiled, by their text."""
        asked = digest([each.text for each in batch])
        folders = [f"{asked}-{place}" for place in range(len(batch))]

        def compile_all() -> list[Compiled | Refused]:
            with ThreadPoolExecutor(self._compilers) as pool:
                return list(pool.map(self._compile, batch, folders))

        key = f"compiled/{self._key}/{asked}"
        answers = self._session.once("dispatches", key, list[Compiled | Refused], compile_all)
        racers: dict[str, Racer] = {}
        for folder, configuration, compiled in zip(folders, batch, answers, strict=True):
            name = configuration.text
            tried = Tried(name=name, parts=(name,), standing="lost")
            if isinstance(compiled, Refused):
                tried = replace(tried, standing="failed", reason=compiled.reason)
            elif not compiled.matched:
                tried = replace(tried, standing="failed", reason="its spec recognises no operation of the dispatch")
            elif (twin := self._names_by_code.setdefault(compiled.sha256, name)) != name:
                why = "it comes to the compiler's own code" if twin == OWN else f"gives the code of {twin}"
                tried = replace(tried, standing="inert", reason=why)
            else:
                racers[name] = self._racer(name, folder, compiled)
            self.tried[name] = tried
        return racers

    def _compile(self, configuration: Configuration | None, name: str) -> Compiled | Refused:
        spec = None if configuration is None else spec_of([(self._root, configuration)])
        return compile_candidate(self._dispatch, spec, self._module, self._folder / name, self._limits)


def _emptied(folder: Path) -> Path:
    """A folder without what a search that was killed has left."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def _vector_unit(dispatch: Dispatch) -> VectorUnit:
    """That of the processor that the program is compiled for, as its text says."""
    text = dispatch.program.read_text(errors="replace") if dispatch.program is not None else ""
    found = _VECTOR_BYTES.search(text)
    many = "+avx512f" in text or "aarch64" in text
    return VectorUnit(vector_bytes=int(found[1]) if found else 16, registers=32 if many else 16)
