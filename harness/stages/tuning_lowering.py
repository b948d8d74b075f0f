"""The dispatches of a form that make up most of its time, taken out -> lowering configurations, raced -> winners.

Each dispatch is a program of its own, which runs it again and again. Configurations come in rounds: first those that
its shape and the vector unit suggest, then the neighbours of the best so far, until none of them is better. Equal code
is raced once. What another model's search has found for the same code is taken over.
"""

from __future__ import annotations

import math
import re
import shutil
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from harness.compare.samplers import Module
from harness.compile.request import MODULE_FILE
from harness.errors import CaseError
from harness.explain.isolated_timing import own_flags
from harness.explain.profile import can_profile, profile_module, time_module
from harness.files import file_sha256
from harness.measure import LoadableModule
from harness.records.tuning import Tried, TunedDispatch
from harness.rewrites.host import VectorUnit
from harness.stages.options import RunOptions
from harness.stages.tune_underway import TuneUnderway, digest
from harness.stages.tuning_changes import TAKEN_BY_ONE, Form, of_race
from harness.tune.dispatches import Compiled, Dispatch, Refused, compile_candidate, loadable, take_out, why_inert
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
class Lowered:
    """What the search for configurations came to."""

    dispatches: tuple[TunedDispatch, ...] = ()  # Those that were looked at, the longest first
    winners: Mapping[str, Winner] = field(default_factory=dict)  # By name of the dispatch
    covered: float = 0.0  # The share of the dispatches' time that these make up
    note: str = ""  # Why there is nothing, where there is nothing


@dataclass(frozen=True, kw_only=True)
class _Contender:
    """A configuration that is compiled; None is the compiler's own."""

    loadable: LoadableModule
    code: str
    configuration: Configuration | None = None


class LoweringSearch:
    """The search for lowering configurations of one form."""

    def __init__(
        self, underway: TuneUnderway, form: Form, known: Mapping[str, Mapping[str, Any]], until_s: float
    ) -> None:
        self._underway, self._form, self._known, self._until_s = underway, form, known, until_s
        self._folder = underway.directory.path / _FOLDER
        self._module = form.compiled.module
        self._won: list[Configuration] = []
        self.candidates = 0

    def search(self) -> Lowered:
        """Tune dispatches, the longest first."""
        underway = self._underway
        if underway.target.on.backend != _BACKEND:
            return Lowered(note=f"tile sizes are searched for {_BACKEND}, not for {underway.target.on.backend}")
        if not can_profile(underway.target.toolchain):
            return Lowered(note=f"IREE {underway.target.toolchain.version} has no profile of dispatches; 3.12 has one")
        if underway.spent_s >= self._until_s:
            return Lowered(note=OUT_OF_TIME)
        try:
            taken = self._taken_out()
            if not taken:
                return Lowered(note="the program has no dispatches, so there is nothing to tune in it")
            dispatch_ns = underway.remember("dispatches", f"profile/{digest([self._form.code])}", self._profile)
        except CaseError as error:
            return Lowered(note=f"its dispatches cannot be taken out: {error}")
        total_ns = math.fsum(dispatch_ns.values()) or 1.0
        shares = {
            each.name: math.fsum(dispatch_ns.get(place, 0.0) for place in each.places) / total_ns for each in taken
        }
        tuned: list[TunedDispatch] = []
        winners: dict[str, Winner] = {}
        covered = 0.0
        by_share = sorted(taken, key=lambda each: -shares[each.name])
        hot = []
        for each in by_share:
            if covered >= _COVERED or shares[each.name] < _LEAST_SHARE:
                break
            covered += shares[each.name]
            hot.append(each)
        underway.progress.stage(f"Dispatches of {underway.target.model}", len(hot))
        for place, each in enumerate(hot):
            ahead = math.fsum(shares[other.name] for other in hot[place:] if other.root is not None) or 1.0
            seconds = (self._until_s - underway.spent_s) * shares[each.name] / ahead
            found, winner = self._tuned(each, shares[each.name], seconds)
            tuned.append(found)
            if winner is not None:
                winners[each.name] = winner
            underway.progress.step(each.operation)
        return Lowered(dispatches=tuple(tuned), winners=winners, covered=covered)

    def _profile(self) -> dict[str, float]:
        folder = self._folder / "profile"
        shutil.rmtree(folder, ignore_errors=True)  # what a search that was killed has left
        limits = self._underway.limits
        with self._underway.alone():
            call_ns = time_module(self._module, folder, _PROFILE_S, limits)
            return dict(profile_module(self._module, folder, _PROFILE_S, limits, call_ns=call_ns).dispatch_ns)

    def _taken_out(self) -> Sequence[Dispatch]:
        taken: list[Sequence[Dispatch]] = []

        def take() -> int:
            taken.append(take_out(self._module, self._programs_folder(), self._underway.limits))
            return len(taken[0])

        self._underway.remember("dispatches", f"taken-out/{digest([self._form.code])}", take)
        if not taken:  # an earlier stretch took them out
            take()
        return taken[0]

    def _programs_folder(self) -> Path:
        folder = self._folder / "programs"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        return folder

    # --- one dispatch ---

    def _tuned(self, dispatch: Dispatch, share: float, seconds: float) -> tuple[TunedDispatch, Winner | None]:
        underway = self._underway
        found = TunedDispatch(
            name=dispatch.name, operation=dispatch.operation, places=len(dispatch.places), share=share
        )
        root = dispatch.root
        if root is None:
            return replace(found, reason=dispatch.why), None
        found = replace(found, own=Configuration(pipeline=root.pipeline, tiles=root.tiles).text)
        key = key_of(dispatch, self._module)
        # Remembered, since a search that goes on raced it already, whatever others have found in the meantime.
        kept = underway.remember("dispatches", f"known/{key}", lambda: self._known.get(key, {}))
        if kept:
            configuration = _configuration_of(kept)
            known = replace(found, known_from=kept["model"], alone=kept["alone"])
            if configuration is None:
                return replace(known, reason=_NOTHING_BETTER), None
            winner = Winner(dispatch=dispatch, root=root, configuration=configuration)
            return replace(known, chosen=configuration.text), winner
        if seconds < _LEAST_SECONDS:
            return replace(found, reason=OUT_OF_TIME), None
        try:
            race = _Rounds(underway, self._module, dispatch, root, key, self._folder / key)
            race.run(underway.spent_s + seconds, self._won)
        except CaseError as error:
            return replace(found, reason=f"it cannot be timed alone: {error}"), None
        self.candidates += sum(each.generations > 0 for each in race.tried.values())
        best = race.best if race.ratio < _WORTH else None
        value = {
            "model": underway.target.model,
            "compiler": underway.target.toolchain.compiler_sha256,
            "alone": None if best is None else race.ratio,
            "pipeline": "" if best is None else best.pipeline,
            "tiles": {} if best is None else {level: list(sizes) for level, sizes in best.tiles.items()},
        }
        before = underway.directory.remembered(f"{WINNER}{key}")
        if before is None or before.value != value:  # a longer budget finds more
            underway.directory.remember(f"{WINNER}{key}", value, 0.0)
        found = replace(found, tried=tuple(race.tried.values()))
        self._won += [best] if best is not None else []
        if best is None:
            return replace(found, reason=_NOTHING_BETTER), None
        return replace(found, chosen=best.text, alone=race.ratio), Winner(
            dispatch=dispatch, root=root, configuration=best
        )


class _Rounds:
    """Rounds of configurations of one dispatch, each round raced beside the best of those before.

    Attributes:
        best: Configuration so far; None: the compiler's own.
        ratio: Its time divided by that of the compiler's own.
        tried: All so far, by their text.
    """

    def __init__(
        self, underway: TuneUnderway, module: Module, dispatch: Dispatch, root: Root, key: str, folder: Path
    ) -> None:
        self._underway, self._module, self._key, self._folder = underway, module, key, folder
        self._dispatch, self._root, self._unit = dispatch, root, _vector_unit(dispatch)
        self._compilers, self._limits = RunOptions().compilers, underway.limits
        self.best: Configuration | None = None
        self.ratio = 1.0
        self.tried: dict[str, Tried] = {}
        own = underway.remember("dispatches", f"own/{key}", self._prepare)
        if not self._module_of(OWN).is_file():  # an earlier stretch compiled it, and somebody deleted it
            self._compile(None, OWN)
        self._compile_s = max(_LEAST_COMPILE_S, _COMPILES * own["seconds"])
        self._own, self._batch = Compiled(module=self._module_of(OWN), sha256=own["sha256"]), own["batch"]
        self._names_by_code = {self._own.sha256: OWN}
        self._best_contender = _Contender(loadable=self._call(self._own, OWN), code=self._own.sha256)

    def _prepare(self) -> dict[str, Any]:
        """The compiler's own code; what it takes to compile, and how often a call runs it."""
        started = time.monotonic()
        own = self._compile(None, OWN)
        seconds = time.monotonic() - started
        if isinstance(own, Refused):
            raise CaseError("measure", own.reason)
        _, batch = loadable(self._dispatch, own, self._module, OWN, self._underway.limits)
        return {**_kept(own), "seconds": seconds, "batch": batch}

    def _call(self, compiled: Compiled, name: str) -> LoadableModule:
        return loadable(self._dispatch, compiled, self._module, name, self._underway.limits, batch=self._batch)[0]

    def run(self, until_s: float, won: Sequence[Configuration]) -> None:
        """Race rounds until no neighbour of the best is better, or the search's clock says so."""
        taken_by_one_s = max(TAKEN_BY_ONE * (until_s - self._underway.spent_s), 2 * self._compile_s / _COMPILES)
        self._limits = replace(self._limits, seconds=min(self._compile_s, taken_by_one_s))
        first = (*fitting(self._root, won, self._unit), *first_configurations(self._root, self._unit))
        waiting = list({each.text: each for each in first}.values())
        number = 0
        while waiting and (not number or self._underway.spent_s < until_s):
            size = _NEXT if number else _FIRST
            batch, waiting = waiting[:size], waiting[size:]
            if self._is_beaten(number, self._contenders(batch), until_s):
                assert self.best is not None  # noqa: S101 (the compiler's own does not beat itself)
                near = {each.text: each for each in (*neighbours(self._root, self.best, self._unit), *waiting)}
                waiting = [each for text, each in near.items() if text not in self.tried]
            number += 1

    def _is_beaten(self, number: int, contenders: Mapping[str, _Contender], until_s: float) -> bool:
        """Whether one of a round is better than the best so far, which it then is."""
        if not contenders:
            return False
        before = self._best_contender.loadable.name
        raced = self._underway.race(
            f"{self._dispatch.operation}, round {number + 1}",
            {before: self._best_contender, **contenders},
            before,
            stage="dispatches",
            seconds=max(0.0, until_s - self._underway.spent_s),
        )
        for name in contenders:
            self.tried[name] = of_race(self.tried[name], raced, name, math.log(self.ratio))
        if raced.leader == before:
            return False
        if self.best is not None:
            self.tried[self.best.text] = replace(self.tried[self.best.text], standing="lost")
        self._best_contender = contenders[raced.leader]
        self.best = self._best_contender.configuration
        self.ratio = self.tried[raced.leader].ratio or self.ratio
        return True

    # --- compiling ---

    def _contenders(self, batch: Sequence[Configuration]) -> dict[str, _Contender]:
        """The configurations of a round that have code of their own, compiled."""
        asked = digest([each.text for each in batch])
        names = [f"{asked}-{place}" for place in range(len(batch))]

        def compile_all() -> list[dict[str, Any]]:
            with ThreadPoolExecutor(self._compilers) as pool:
                return [_kept(each) for each in pool.map(self._compile, batch, names)]

        answers = self._underway.remember("dispatches", f"compiled/{self._key}/{asked}", compile_all)
        contenders: dict[str, _Contender] = {}
        for folder, configuration, kept in zip(names, batch, answers, strict=True):
            name, made = configuration.text, _made(kept, self._module_of(folder))
            tried = Tried(name=name, parts=(name,), standing="lost")
            if isinstance(made, Refused):
                self.tried[name] = replace(tried, standing="failed", reason=made.reason)
                continue
            twin = self._names_by_code.setdefault(made.sha256, name)
            if twin != name:
                why = why_inert(made, self._own) or f"gives the code of {twin}"
                self.tried[name] = replace(tried, standing="inert" if made.matched else "failed", reason=why)
                continue
            if not made.module.is_file():  # an earlier stretch compiled it, and somebody deleted it
                self._compile(configuration, folder)
            self.tried[name] = tried
            contenders[name] = _Contender(
                loadable=self._call(made, name), code=made.sha256, configuration=configuration
            )
        return contenders

    def _module_of(self, name: str) -> Path:
        """Where a candidate is compiled to; what is remembered does not say, since the folder may be moved."""
        return self._folder / name / MODULE_FILE

    def _compile(self, configuration: Configuration | None, name: str) -> Compiled | Refused:
        return compile_candidate(
            self._dispatch,
            None if configuration is None else spec_of([(self._root, configuration)]),
            self._module.loadable.toolchain,
            own_flags(self._module.build.command),
            self._folder / name,
            self._limits,
            files=self._module.files,
        )


def _kept(made: Compiled | Refused) -> dict[str, Any]:
    if isinstance(made, Refused):
        return {"refused": made.reason}
    return {"sha256": made.sha256, "matched": made.matched}


def _made(kept: Mapping[str, Any], module: Path) -> Compiled | Refused:
    if "refused" in kept:
        return Refused(reason=kept["refused"])
    return Compiled(module=module, sha256=kept["sha256"], matched=kept["matched"])


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


def _configuration_of(kept: Mapping[str, Any]) -> Configuration | None:
    """What a search has remembered of a winner; None: nothing was better than the compiler's own."""
    if not kept["pipeline"]:
        return None
    return Configuration(
        pipeline=kept["pipeline"], tiles={level: tuple(sizes) for level, sizes in kept["tiles"].items()}
    )
