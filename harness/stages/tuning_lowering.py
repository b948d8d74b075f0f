"""The dispatches of a form that make up most of its time, taken out -> lowering configurations, raced -> winners.

Each dispatch is a program of its own, which runs it again and again. Configurations come in rounds: first those that
its shape and the vector unit suggest, then the neighbours of the best so far, until none of them is better. Equal code
is raced once. What another model's search has found for the same code is taken over.
"""

import math
import re
import shutil
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from harness.compare.samplers import Module
from harness.compile.request import MODULE_FILE
from harness.errors import CaseError
from harness.explain.isolated_timing import as_loadable, own_flags
from harness.explain.profile import can_profile, profile_module, time_module
from harness.files import file_sha256
from harness.records.tuning import Tried, TunedDispatch
from harness.rewrites.targets import VectorUnit
from harness.stages.options import RunOptions
from harness.stages.tune_session import Form, Racer, TuneSession, digest
from harness.stages.tuning_changes import TAKEN_BY_ONE, of_race
from harness.store.files import adapter
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
# The one whose configurations a spec gives as tile sizes of loops.
_BACKEND = "llvm-cpu"
_FOLDER, OWN = "dispatches", "own"
OUT_OF_TIME = "the time for dispatches was over"
_NOTHING_BETTER = "nothing was better than the compiler's own"
_VECTOR_BYTES = re.compile(r"native_vector_size = (\d+)")
# What is remembered of a dispatch's winner has this key and the dispatch's own.
WINNER = "winner/"


@dataclass(frozen=True, kw_only=True)
class Winner:
    """A configuration that made a dispatch faster alone."""

    dispatch: Dispatch
    root: Root
    configuration: Configuration


@dataclass(frozen=True, kw_only=True)
class KnownWinner:
    """The same, as it is remembered for the searches of other models."""

    model: str  # Whose search found it
    compiler: str  # SHA-256 of the compiler
    alone: float | None  # Its time divided by that of the compiler's own configuration; None: nothing was better
    configuration: Configuration | None


class LoweringSearch:
    """The search for lowering configurations of one form, and what it came to.

    Attributes:
        dispatches: Those that were looked at, the longest first.
        winners: By name of the dispatch.
        covered: The share of the dispatches' time that these make up.
        note: Why there is nothing, where there is nothing.
        candidates: How many configurations were raced.
    """

    def __init__(self, session: TuneSession, form: Form, known: Mapping[str, KnownWinner], until_s: float) -> None:
        self._session, self._form, self._known, self._until_s = session, form, known, until_s
        self._folder, self._module = session.directory.path / _FOLDER, form.module
        self._won: list[Configuration] = []
        self.dispatches: list[TunedDispatch] = []
        self.winners: dict[str, Winner] = {}
        self.covered, self.note, self.candidates = 0.0, "", 0

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
        try:
            taken = self._taken_out()
            key = f"profile/{digest([self._form.code])}"
            ns = session.once("dispatches", key, dict[str, float], self._profile) if taken else {}
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
            found, best = self._tuned(each, shares[each.name], seconds)
            self.dispatches.append(found)
            if best is not None and each.root is not None:
                self.winners[each.name] = Winner(dispatch=each, root=each.root, configuration=best)
            session.progress.step(each.operation)

    def _profile(self) -> dict[str, float]:
        folder = _emptied(self._folder / "profile")  # of what a search that was killed has left
        limits = self._session.limits
        with self._session.alone():
            call_ns = time_module(self._module, folder, _PROFILE_S, limits)
            return dict(profile_module(self._module, folder, _PROFILE_S, limits, call_ns=call_ns).dispatch_ns)

    def _taken_out(self) -> list[Dispatch]:
        def take() -> list[Dispatch]:
            folder = _emptied(self._folder / "programs")
            folder.mkdir(parents=True)
            return [*take_out(self._module, folder, self._session.limits)]

        key = f"taken-out/{digest([self._form.code])}"
        taken = self._session.once("dispatches", key, list[Dispatch], take)
        is_here = all(each.program is None or each.program.is_file() for each in taken)
        return taken if is_here else take()

    # --- one dispatch ---

    def _tuned(self, dispatch: Dispatch, share: float, seconds: float) -> tuple[TunedDispatch, Configuration | None]:
        """What became of a dispatch, and the configuration that is faster than the compiler's own, if one is."""
        session = self._session
        found = TunedDispatch(
            name=dispatch.name, operation=dispatch.operation, places=len(dispatch.places), share=share
        )
        root = dispatch.root
        if root is None:
            return replace(found, reason=dispatch.why), None
        found = replace(found, own=Configuration(pipeline=root.pipeline, tiles=root.tiles).text)
        key = key_of(dispatch, self._module)
        # Remembered, since a search that goes on raced it already, whatever others have found in the meantime.
        known = [self._known[key]] if key in self._known else []
        if kept := session.once("dispatches", f"known/{key}", list[KnownWinner], lambda: known):
            best = kept[0].configuration
            found = replace(found, known_from=kept[0].model, alone=kept[0].alone)
        elif seconds < _LEAST_SECONDS:
            return replace(found, reason=OUT_OF_TIME), None
        else:
            try:
                race = _Rounds(session, self._module, dispatch, root, key, self._folder / key)
                race.run(session.spent_s + seconds, self._won)
            except CaseError as error:
                return replace(found, reason=f"it cannot be timed alone: {error}"), None
            self.candidates += sum(each.generations > 0 for each in race.tried.values())
            best = race.best if race.ratio < _WORTH else None
            found = replace(found, tried=tuple(race.tried.values()), alone=None if best is None else race.ratio)
            self._remember(key, best, found.alone)
            self._won += [] if best is None else [best]
        if best is None:
            return replace(found, reason=_NOTHING_BETTER), None
        return replace(found, chosen=best.text), best

    def _remember(self, key: str, best: Configuration | None, alone: float | None) -> None:
        """What the searches of other models may take over."""
        directory, target = self._session.directory, self._session.target
        compiler = target.toolchain.compiler_sha256
        winner = KnownWinner(model=target.model, compiler=compiler, alone=alone, configuration=best)
        value = adapter(KnownWinner).dump_python(winner, mode="json")
        before = directory.remembered(f"{WINNER}{key}")
        if before is None or before.value != value:  # a longer budget finds more
            directory.remember(f"{WINNER}{key}", value, 0.0)


@dataclass(frozen=True, kw_only=True)
class _Own:
    """The compiler's own code of a dispatch."""

    compiled: Compiled
    seconds: float  # What it takes to compile
    batch: int  # How often a call runs it


class _Rounds:
    """Rounds of configurations of one dispatch, each round raced beside the best of those before.

    Attributes:
        best: Configuration so far; None: the compiler's own.
        ratio: Its time divided by that of the compiler's own.
        tried: All so far, by their text.
    """

    def __init__(
        self, session: TuneSession, module: Module, dispatch: Dispatch, root: Root, key: str, folder: Path
    ) -> None:
        self._session, self._module, self._key, self._folder = session, module, key, folder
        self._dispatch, self._root, self._unit = dispatch, root, _vector_unit(dispatch)
        self._compilers, self._limits = RunOptions().compilers, session.limits
        self.best: Configuration | None = None
        self.ratio = 1.0
        self.tried: dict[str, Tried] = {}
        own = session.once("dispatches", f"own/{key}", _Own, self._prepare)
        self._compile_s, self._batch = max(_LEAST_COMPILE_S, _COMPILES * own.seconds), own.batch
        self._own = self._found_again(None, OWN, own.compiled)
        self._names_by_code = {self._own.sha256: OWN}
        self._leader, self._leading = OWN, self._racer(self._own, OWN)

    def _prepare(self) -> _Own:
        started = time.monotonic()
        own = self._compile(None, OWN)
        seconds = time.monotonic() - started
        if isinstance(own, Refused):
            raise CaseError("measure", own.reason)
        _, batch = as_loadable(OWN, self._module, own.module, self._dispatch.function, self._session.limits)
        return _Own(compiled=own, seconds=seconds, batch=batch)

    def _racer(self, compiled: Compiled, name: str) -> Racer:
        function, limits = self._dispatch.function, self._session.limits
        called, _ = as_loadable(name, self._module, compiled.module, function, limits, batch=self._batch)
        return Racer(called, compiled.sha256)

    def run(self, until_s: float, won: Sequence[Configuration]) -> None:
        """Race rounds until no neighbour of the best is better, or the search's clock says so."""
        taken_by_one_s = max(TAKEN_BY_ONE * (until_s - self._session.spent_s), 2 * self._compile_s / _COMPILES)
        self._limits = replace(self._limits, seconds=min(self._compile_s, taken_by_one_s))
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

    # --- compiling ---

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
            tried = Tried(name=name, parts=(name,), standing="inert")
            if isinstance(compiled, Refused):
                self.tried[name] = replace(tried, standing="failed", reason=compiled.reason)
                continue
            twin = self._names_by_code.setdefault(compiled.sha256, name)
            if twin != name:
                why = "it comes to the compiler's own code" if twin == OWN else f"gives the code of {twin}"
                if not compiled.matched:
                    tried, why = replace(tried, standing="failed"), "its spec recognises no operation of the dispatch"
                self.tried[name] = replace(tried, reason=why)
                continue
            self.tried[name] = replace(tried, standing="lost")
            racers[name] = self._racer(self._found_again(configuration, folder, compiled), name)
        return racers

    def _found_again(self, configuration: Configuration | None, folder: str, compiled: Compiled) -> Compiled:
        """What was compiled, wherever the search's folder is now, and once more where somebody deleted it."""
        module = self._folder / folder / MODULE_FILE
        if not module.is_file():
            self._compile(configuration, folder)
        return replace(compiled, module=module)

    def _compile(self, configuration: Configuration | None, name: str) -> Compiled | Refused:
        spec = None if configuration is None else spec_of([(self._root, configuration)])
        return compile_candidate(self._dispatch, spec, self._module, self._folder / name, self._limits)


def _emptied(folder: Path) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    return folder


def key_of(dispatch: Dispatch, module: Module) -> str:
    """What is found for a dispatch is known by this: its code, and the flags and files that it is compiled with."""
    files = [file_sha256(file) for file in module.files]
    return digest([dispatch.key, *own_flags(module.build.command), *files])


def _vector_unit(dispatch: Dispatch) -> VectorUnit:
    """That of the processor that the program is compiled for, as its text says."""
    text = dispatch.program.read_text(errors="replace") if dispatch.program is not None else ""
    found = _VECTOR_BYTES.search(text)
    many = "+avx512f" in text or "aarch64" in text
    return VectorUnit(vector_bytes=int(found[1]) if found else 16, registers=32 if many else 16)
