"""The dispatches of a form that make up most of its time, taken out -> lowering configurations, raced -> winners.

Each dispatch is a program of its own, which runs it again and again. Configurations come in rounds: first those that
its shape and the vector unit suggest, then the neighbours of the best so far, until none of them is better. Equal code
is raced once. What another model's search has found for the same code is taken over.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from harness.errors import CaseError
from harness.explain.profile import can_profile, profile_module, time_module
from harness.measure import LoadableModule
from harness.records.tuning import Tried, TunedDispatch
from harness.stages.options import RunOptions
from harness.stages.tune_underway import TuneUnderway
from harness.stages.tuning_changes import Form, of_race
from harness.tune.dispatches import Alone, Dispatch, Refused, compile_candidate, own_code, program_call, take_out
from harness.tune.roots import Root
from harness.tune.spec import spec_of
from harness.tune.tiles import Configuration, first_configurations, neighbours

# Dispatches are tuned until those that are left make up so little of the time.
_COVERED = 0.9
_LEAST_SHARE = 0.005
# Configurations of a dispatch's first round, and of each later one.
_FIRST, _NEXT = 24, 12
# Less is not worth an entry of a spec.
_WORTH = 0.98
_PROFILE_S = 0.5
_LEAST_SECONDS = 4.0
_FOLDER = "dispatches"
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
    """What the search for configurations came to.

    Attributes:
        dispatches: Those that were looked at, the longest first.
        winners: By name of the dispatch.
        covered: The share of the dispatches' time that these make up.
        note: Why there is nothing, where there is nothing.
    """

    dispatches: tuple[TunedDispatch, ...] = ()
    winners: Mapping[str, Winner] = field(default_factory=dict)
    covered: float = 0.0
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class _Contender:
    """A configuration, compiled; None is the compiler's own."""

    configuration: Configuration | None
    loadable: LoadableModule


class LoweringSearch:
    """The search for lowering configurations of one form.

    Args:
        known: What searches of other models have found, by the key of a dispatch: see `remembered_winners`.
        until_s: On the search's clock, when it has to be over.
    """

    def __init__(
        self, underway: TuneUnderway, form: Form, known: Mapping[str, Mapping[str, Any]], until_s: float
    ) -> None:
        self._underway, self._form, self._known, self._until_s = underway, form, known, until_s
        self._folder = underway.directory.path / _FOLDER
        self._module = form.compiled.module
        self._compilers = RunOptions().compilers
        self.candidates = 0

    def search(self) -> Lowered:
        """Tune dispatches, the longest first."""
        underway = self._underway
        if not can_profile(underway.sought.toolchain):
            return Lowered(note=f"IREE {underway.sought.toolchain.version} has no profile of dispatches; 3.12 has one")
        try:
            dispatch_ns = underway.remember("dispatches", f"profile/{self._form.name}", self._profile)
            taken = self._taken_out()
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
        underway.progress.stage(f"Dispatches of {underway.sought.model}", len(hot))
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
        limits = self._underway.limits
        call_ns = time_module(self._module, folder, _PROFILE_S, limits)
        return dict(profile_module(self._module, folder, _PROFILE_S, limits, call_ns=call_ns).dispatch_ns)

    def _taken_out(self) -> Sequence[Dispatch]:
        taken: list[Sequence[Dispatch]] = []

        def take() -> int:
            taken.append(take_out(self._module, self._folder / self._form.compiled.code[:16], self._underway.limits))
            return len(taken[0])

        self._underway.remember("dispatches", f"taken-out/{self._form.name}", take)
        if not taken:  # an earlier stretch took them out
            take()
        return taken[0]

    # --- one dispatch ---

    def _tuned(self, dispatch: Dispatch, share: float, seconds: float) -> tuple[TunedDispatch, Winner | None]:
        found = TunedDispatch(
            name=dispatch.name, operation=dispatch.operation, places=len(dispatch.places), share=share
        )
        root = dispatch.root
        if root is None:
            return replace(found, reason=dispatch.why), None
        found = replace(found, own=Configuration(pipeline=root.pipeline, tiles=root.tiles).text)
        kept = self._known.get(dispatch.key)
        if kept is not None:
            configuration = _configuration_of(kept)
            known = replace(found, known_from=kept["model"], alone=kept["alone"])
            if configuration is None:
                return replace(known, reason="nothing was better than the compiler's own"), None
            winner = Winner(dispatch=dispatch, root=root, configuration=configuration)
            return replace(known, chosen=configuration.text), winner
        if seconds < _LEAST_SECONDS:
            return replace(found, reason="the time for dispatches was over"), None
        try:
            configuration, alone, tried = self._raced(dispatch, root, self._underway.spent_s + seconds)
        except CaseError as error:
            return replace(found, reason=f"it cannot be timed alone: {error}"), None
        worth = configuration is not None and alone < _WORTH
        value = {
            "model": self._underway.sought.model,
            "compiler": self._underway.sought.toolchain.compiler_sha256,
            "alone": alone if worth else None,
            "pipeline": configuration.pipeline if worth and configuration else "",
            "tiles": dict(configuration.tiles) if worth and configuration else {},
        }
        self._underway.remember("dispatches", f"{WINNER}{dispatch.key}", lambda: value)
        found = replace(found, tried=tuple(tried), alone=alone if worth else None)
        if not worth or configuration is None:
            return replace(found, reason="nothing was better than the compiler's own"), None
        return replace(found, chosen=configuration.text), Winner(
            dispatch=dispatch, root=root, configuration=configuration
        )

    def _raced(self, dispatch: Dispatch, root: Root, until_s: float) -> tuple[Configuration | None, float, list[Tried]]:
        """The best configuration (None: the compiler's own), its time over that of the compiler's own, and all tried."""
        underway = self._underway
        own = own_code(dispatch, self._module, self._folder / dispatch.key, underway.limits)
        best = _Contender(configuration=None, loadable=program_call(dispatch, own, "own", self._module))
        best_name, best_log = "own", 0.0
        codes = {own.sha256: "own"}
        tried: dict[str, Tried] = {}
        waiting = list(first_configurations(root, dispatch.unit))
        number = 0
        while waiting and (underway.spent_s < until_s or not number):
            size = _NEXT if number else _FIRST
            batch, waiting = waiting[:size], waiting[size:]
            contenders = self._compiled(dispatch, root, number, batch, codes, tried)
            if contenders:
                raced = underway.race(
                    f"{dispatch.key[:12]}-{number}",
                    {best_name: best, **contenders},
                    best_name,
                    stage="dispatches",
                    seconds=max(0.0, until_s - underway.spent_s),
                )
                reference_log, leader = best_log, raced.leader
                for name in contenders:
                    tried[name] = of_race(tried[name], raced, name, reference_log)
                if leader != best_name and tried[leader].ratio is not None:
                    best, best_name, best_log = contenders[leader], leader, math.log(tried[leader].ratio or 1.0)
                    assert best.configuration is not None  # noqa: S101 (it is no "own")
                    near = neighbours(root, best.configuration, dispatch.unit)
                    waiting = [each for each in near if each.text not in tried]
            number += 1
        if best_name in tried:
            tried[best_name] = replace(tried[best_name], standing="best")
        return best.configuration, math.exp(best_log), list(tried.values())

    def _compiled(
        self,
        dispatch: Dispatch,
        root: Root,
        number: int,
        batch: Sequence[Configuration],
        codes: dict[str, str],
        tried: dict[str, Tried],
    ) -> dict[str, _Contender]:
        """Compile configurations of a round, and sort out those that are refused or have known code."""
        folder = self._folder / dispatch.key / f"round{number}"

        def compile_all() -> list[dict[str, str]]:
            with ThreadPoolExecutor(self._compilers) as pool:
                return list(pool.map(compile_one, range(len(batch))))

        def compile_one(place: int) -> dict[str, str]:
            spec = spec_of([(root, batch[place])])
            made = compile_candidate(dispatch, spec, self._module, folder / str(place), self._underway.limits)
            if isinstance(made, Refused):
                return {"refused": made.reason}
            return {"module": str(made.module), "sha256": made.sha256}

        made = self._underway.remember("dispatches", f"compiled/{dispatch.key}/{number}", compile_all)
        self.candidates += len(batch)
        contenders: dict[str, _Contender] = {}
        for configuration, answer in zip(batch, made, strict=True):
            name = configuration.text
            tried[name] = Tried(name=name, parts=(name,), standing="failed", reason=answer.get("refused", ""))
            if "refused" in answer:
                continue
            twin = codes.setdefault(answer["sha256"], name)
            if twin != name:
                same = "the compiler's own configuration" if twin == "own" else twin
                tried[name] = replace(tried[name], standing="inert", reason=f"gives the bytes of {same}")
                continue
            if not Path(answer["module"]).is_file():  # somebody deleted it
                compile_one(batch.index(configuration))
            tried[name] = replace(tried[name], standing="lost")
            compiled = Alone(module=Path(answer["module"]), sha256=answer["sha256"])
            contenders[name] = _Contender(
                configuration=configuration, loadable=program_call(dispatch, compiled, name, self._module)
            )
        return contenders


def _configuration_of(kept: Mapping[str, Any]) -> Configuration | None:
    """What a search has remembered of a winner; None: nothing was better than the compiler's own."""
    if not kept["pipeline"]:
        return None
    return Configuration(
        pipeline=kept["pipeline"], tiles={level: tuple(sizes) for level, sizes in kept["tiles"].items()}
    )
