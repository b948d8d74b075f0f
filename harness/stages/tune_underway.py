"""A search for one model on one device under way: what it has compiled, raced and confirmed, remembered as it goes.

A search is a function of its options and of what the compiler and the clock answered. Each answer is on disk before the
next question is asked, with the seconds that it took, and the only clock that decisions look at is the sum of these
seconds. So a search that was killed plays back what it knows, and goes on where it was.
"""

from __future__ import annotations

import hashlib
import json
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol, TypeVar

import tomli_w

from harness.bisect.trials import Place, try_pair
from harness.bisect.variants import CompileConfig
from harness.cache import cache_root
from harness.compare.pairs import Side, side_of
from harness.compare.samplers import MeasurementPolicy, Module, find_module, group_of, measured
from harness.compare.sides import noise_of
from harness.measure import Group, Known, LoadableModule, Settings
from harness.measure.alone import only_one_measures
from harness.measure.generation import load_order
from harness.metrics import LATENCY
from harness.process import Limits
from harness.progress import Progress, duration
from harness.records.bisection import Trial
from harness.records.case import Case
from harness.records.tuning import Moment
from harness.stages.ablating import joined_name, moved_model
from harness.stages.context import is_timeout
from harness.stages.options import RunOptions, TuneOptions, compile_limits
from harness.stages.prepare import unknown_to
from harness.stages.run import run_suite
from harness.stats import tabulate_rounds
from harness.stats.rule import Rule
from harness.store.evidence import find_failure
from harness.store.files import adapter
from harness.store.run_directory import HEADER_FILE, RunDirectory, load_run
from harness.store.search_directory import SUITES_FOLDER, TuneDirectory
from harness.suite.load import Device, Suite
from harness.suite.schema import SuiteFile
from harness.suite.toml_file import read_toml
from harness.text import plural
from harness.toolchain import Toolchain
from harness.toolchain.host_cpu import environment_here
from harness.toolchain.tools import flag_name, merge_flags
from harness.tune.race import Race, RaceRule, RaceStanding

START = "start"
_RUNS_FOLDER = "runs"
# Of timed rounds in a generation, for each contender: a worker costs some tenths of a second to begin.
_SECONDS_EACH = 0.06
_LEAST_SECONDS = 0.25
# A round of all contenders that takes longer is the only one of its generation.
_LONG_ROUND_S = 0.5
# A candidate whose calls take so many times as long as the start's is stopped: it has lost.
_HOPELESS = 20.0
_LEAST_CALL_LIMIT_S, _LEAST_COMPILE_LIMIT_S = 10.0, 10.0
# A confirmation that differs plainly, and whose calls are long, may take so many times its budget.
_CAPS = 2.0
# Generations of a race, at most; what is not told apart then is as good.
_MOST_GENERATIONS = 8
RULE = RaceRule(most=_MOST_GENERATIONS)


Begun = TypeVar("Begun", bound="TuneUnderway")


@dataclass(frozen=True, kw_only=True)
class TuneTarget:
    """What is searched: one model of a suite on one device, from a variant on."""

    suite: Suite
    model: str
    device: str
    start: str
    config: CompileConfig  # The variant's flags and plugins
    toolchain: Toolchain

    @property
    def on(self) -> Device:
        """The device."""
        return next(device for device in self.suite.devices if device.name == self.device)


@dataclass(frozen=True, kw_only=True)
class Compiled:
    """A candidate that compiles and is right."""

    name: str
    config: CompileConfig
    place: Place
    module: Module
    code: str  # Hash of its module, and its run flags; equal ones run the same

    @property
    def loadable(self) -> LoadableModule:
        """As a worker calls it."""
        return replace(self.module.loadable, name=self.name)


class Timed(Protocol):
    """What can race."""

    @property
    def loadable(self) -> LoadableModule:
        """As a worker calls it."""
        ...

    @property
    def code(self) -> str:
        """Equal where equal code runs."""
        ...


@dataclass(frozen=True, kw_only=True)
class Untimed:
    """Why a candidate is not timed: it does not compile or run, in time if it is late, or its outputs are wrong."""

    reason: str
    wrong: bool
    late: bool = False


@dataclass(kw_only=True)
class Raced:
    """What a race came to."""

    standings: dict[str, RaceStanding]  # By name, each one's time divided by the reference's
    leader: str
    lost: dict[str, str] = field(default_factory=dict)  # Why some could not be timed at all, by name
    ns: dict[str, float] = field(default_factory=dict)


class TuneUnderway:
    """A search from its first compile to its answer. Use it as a context manager.

    Attributes:
        stages: Seconds by what they were spent on.
        moments: What was timed when.
        start_ns: What one of the start's calls takes; 0.0 until that is known.
        noise: The smallest change that this machine was found to see, as a share; 0: not known.
    """

    def __init__(self, options: TuneOptions, target: TuneTarget, directory: TuneDirectory, progress: Progress) -> None:
        self.options, self.target, self.directory, self.progress = options, target, directory, progress
        self.stages: dict[str, float] = {}
        self.moments: list[Moment] = []
        self.noise = noise_of(environment_here())
        self.start_ns = 0.0
        self._case: Case | None = None
        self._waited_s = 0.0
        self._is_beside_other = False

    def __enter__(self: Begun) -> Begun:
        self.directory.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self.directory.__exit__(*error)

    def begin_with(self, start: Compiled) -> None:
        """Set what all else is held against."""
        self._case = start.place.case

    @property
    def case(self) -> Case:
        """Of what the search started from."""
        assert self._case is not None  # noqa: S101 (begin_with comes first)
        return self._case

    # --- memory, and its clock ---

    @property
    def spent_s(self) -> float:
        """Seconds that everything took that was asked for so far, in this stretch or an earlier one."""
        return math.fsum(self.stages.values())

    @property
    def left_s(self) -> float:
        """Of the budget."""
        return self.options.budget - self.spent_s

    def remember(self, stage: str, key: str, make: Callable[[], Any]) -> Any:
        """What an earlier stretch knows under a key, or what is made now; a value of JSON."""
        kept = self.directory.remembered(key)
        if kept is None:
            started, waited_s = time.monotonic(), self._waited_s
            value = make()
            seconds = time.monotonic() - started - (self._waited_s - waited_s)
            kept = self.directory.remember(key, value, seconds)
        self.stages[stage] = self.stages.get(stage, 0.0) + kept.seconds
        self.progress.left(f"{duration(self.left_s)} of the budget" if self.left_s > 0 else "")
        return kept.value

    # --- whole programs ---

    @property
    def limits(self) -> Limits:
        """Of one compile: a search does not wait for a candidate until its budget is gone."""
        seconds = max(_LEAST_COMPILE_LIMIT_S, self.options.budget / 4)
        return compile_limits(min(self.options.compile_timeout_s, seconds), self.options.compile_memory_gib)

    def compile(
        self, batch: str, configs: Mapping[str, CompileConfig], seconds: float | None = None
    ) -> dict[str, Compiled | Untimed]:
        """Compile and check whole programs, those of a batch together; what is in the cache is not compiled again."""
        asked_for = [START, *configs]
        # A suite with a flag that the release does not know is refused as a whole.
        unknown = {name: reason for name, config in configs.items() if (reason := self._unknown_flag(config))}
        configs = {name: config for name, config in configs.items() if name not in unknown}
        text = tomli_w.dumps(self._suite(batch, {START: self.target.config, **configs}))
        asked = f"{batch}/{digest([text])}"  # another release has other flag sets
        # Also where it is known already: commands of the report name it, and a longer budget wrote another one there.
        suite = self.directory.write_suite(batch, text)
        make = partial(self._compiled_now, asked, suite, seconds or math.inf)
        run = Path(self.remember("compile", f"compiled/{asked}", lambda: str(make())))
        if not (run / HEADER_FILE).is_file():  # somebody deleted it
            run = make()
        side = side_of(load_run(run, rounds=False), batch, run)
        wanted = {START: self.target.config, **configs}
        found = {name: self._candidate(side, name, config) for name, config in wanted.items()}
        found |= {name: Untimed(reason=reason, wrong=False) for name, reason in unknown.items()}
        return {name: found[name] for name in asked_for}

    def _unknown_flag(self, config: CompileConfig) -> str:
        """Which flag the release's tools do not know, as a phrase; "": none."""
        flags = merge_flags(self.target.on.compile_flags, config.flags)
        for tool, flag in unknown_to(self.target.toolchain, flags, config.run_flags):
            return f"{tool} {self.target.toolchain.version} knows no flag --{flag_name(flag)}"
        return ""

    def _compiled_now(self, asked: str, suite: Path, seconds: float) -> Path:
        begun = self.directory.remembered(f"begun/{asked}")
        resume = Path(begun.value) if begun is not None and (Path(begun.value) / HEADER_FILE).is_file() else None
        options = RunOptions(
            suite,
            resume=resume,
            measure=False,
            results=self.directory.path / _RUNS_FOLDER,
            compile_timeout_s=min(seconds, self.limits.seconds or self.options.compile_timeout_s),
            compile_memory_gib=self.options.compile_memory_gib,
            # The start is called too, so nothing is stopped before it is known how long that takes.
            call_timeout_s=min(
                self.options.call_timeout_s, max(seconds, 2e-9 * self.start_ns) if self.start_ns else math.inf
            ),
            keep_going=True,
            wait=self.options.wait,
        )

        def keep(run: RunDirectory) -> None:
            self.directory.remember(f"begun/{asked}", str(run.path), 0.0)

        return run_suite(
            options,
            Quietly(self.progress),
            (self.target.toolchain,),
            purpose="tune",
            on_begin=keep,
            with_reference=False,
        )

    def _suite(self, batch: str, configs: Mapping[str, CompileConfig]) -> dict[str, Any]:
        """A suite of these variants; what the search started from is its baseline."""
        path = self.target.suite.path
        table, _ = read_toml(path, SuiteFile)
        content = table.model_dump(exclude_none=True, exclude_defaults=True)
        model, device = self.target.model, self.target.device
        own = {key: value for key, value in content["models"][model].items() if key != "expect"}
        return {
            "name": joined_name([table.name, "tune"]),
            "description": f"{model} on {device}: candidates {batch}",
            "baseline": START,
            "models": {model: moved_model(own, path, self.directory.path / SUITES_FOLDER)},
            "variants": {name: config.table() for name, config in configs.items()},
            "devices": {device: content["devices"][device]},
        }

    def _candidate(self, side: Side, name: str, config: CompileConfig) -> Compiled | Untimed:
        case = side.cases[f"{self.target.model}/{name}@{self.target.device}"]
        if case.skip is not None:
            return Untimed(reason=case.skip, wrong=False)
        failure = find_failure(case, side.evidence, timed=True)
        if failure is not None:
            return Untimed(reason=failure.message, wrong=failure.mismatch, late=is_timeout(failure))
        place = Place(name=name, side=side, case=case, toolchain=self.target.toolchain)
        module = find_module(side, case, self.target.toolchain, cache_root())
        code = " ".join((module.build.module_sha256 or "", *case.run_flags))
        return Compiled(name=name, config=config, place=place, module=module, code=code)

    # --- races ---

    def race(
        self,
        name: str,
        contenders: Mapping[str, Timed],
        reference: str,
        *,
        stage: str,
        seconds: float,
        least: int = 1,
    ) -> Raced:
        """Race contenders until the rest are as good as each other, or the seconds are over."""
        race = Race([*contenders], replace(RULE, least=least))
        raced = Raced(standings={}, leader=reference)
        known: dict[str, Known] = {}
        begun_s = self.spent_s
        while not race.generations or (not race.is_over and self.spent_s - begun_s < seconds):
            alive = [
                name for name in contenders if name == reference or (name in race.alive and name not in raced.lost)
            ]
            self.progress.step(f"{plural(len(alive), 'candidate')} in {name}", advance=0)
            racing = digest([reference, *(f"{each} {contenders[each].code}" for each in alive)])
            asked = f"race/{name}/{racing}/{race.generations}"
            group = group_of(name, self.case, [contenders[each].loadable for each in alive])
            number, before = race.generations, {each: known[each] for each in alive if each in known}
            answer = self.remember(stage, asked, partial(self._generation, group, reference, number, before))
            for each, (calls, ns) in answer["calls"].items():
                known[each] = Known(calls=calls, per_call_ns=ns)
                raced.ns[each] = ns
            raced.lost |= answer["lost"]
            race.add({each: answer["logs"].get(each) for each in alive})
            if reference in raced.lost:
                break
        raced.standings, raced.leader = race.standings(), race.leader or reference
        return raced

    def _generation(
        self, group: Group, reference: str, number: int, known: Mapping[str, Known]
    ) -> dict[str, dict[str, Any]]:
        """One generation: logarithms of ratios to the reference, calls of a turn, nanoseconds of a call, and losses."""
        names = [case.name for case in group.cases]
        order = load_order(names, f"{self.options.seed}/{group.name}/{number}")
        cases = {case.name: case for case in group.cases}
        settings = Settings(
            seconds=max(_LEAST_SECONDS, _SECONDS_EACH * len(names)),
            seed=self.options.seed,
            long_round_s=_LONG_ROUND_S,
            call_limit_s=self._call_limit_s(known.get(reference)),
        )
        with self.alone():
            shuffled = replace(group, cases=tuple(cases[name] for name in order))
            rounds, losses = measured(shuffled, number, settings, known)
        times = tabulate_rounds(rounds)
        logs = {name: found[0].centre for name in names if (found := times.log_ratios(name, reference))}
        turns = {turn.case: turn.calls for each in rounds for turn in each.turns}
        medians = {name: times.medians(name) for name in names}
        calls = {name: (turns[name], float(ns[0])) for name, ns in medians.items() if ns.size and name in turns}
        return {"logs": logs, "calls": calls, "lost": {loss.case: loss.failure.message for loss in losses}}

    @contextmanager
    def alone(self) -> Iterator[None]:
        """While nobody else measures on this machine; waiting for that is no part of the budget."""
        started = time.monotonic()
        with only_one_measures(self._note_other, wait=self.options.wait):
            self._waited_s += time.monotonic() - started
            yield

    def _note_other(self, text: str) -> None:
        """That another harness measures: once where this one measures beside it, which each generation would tell."""
        if self.options.wait or not self._is_beside_other:
            self.progress.note(text)
        self._is_beside_other = not self.options.wait

    def _call_limit_s(self, reference: Known | None) -> float:
        """Of one turn."""
        usual_ns = self.start_ns if reference is None else reference.per_call_ns
        hopeless_s = max(_LEAST_CALL_LIMIT_S, _HOPELESS * usual_ns / 1e9) if usual_ns else math.inf
        return min(self.options.call_timeout_s, hopeless_s)

    # --- confirmations ---

    def confirm(self, head: Compiled, base: Compiled, rule: Rule, budget_s: float) -> Trial:
        """One whole program beside another by the rule of comparisons, confirmed in fresh processes."""

        def confirmed() -> dict[str, Any]:
            policy = MeasurementPolicy(
                rule=rule,
                budget_s=budget_s,
                cap_s=_CAPS * budget_s,
                seed=self.options.seed,
                call_limit_s=self.options.call_timeout_s,
                limits=self.limits,
                noise=self.noise,
                wait=self.options.wait,
            )
            found = try_pair(base.place, head.place, LATENCY, policy, self.progress)
            value: dict[str, Any] = adapter(Trial).dump_python(found, mode="json")
            return value

        key = f"confirm/{base.name}/{head.name}/{digest([base.code, head.code])}"
        kept = self.remember("confirm", key, confirmed)
        trial: Trial = adapter(Trial).validate_python(kept)
        return replace(trial, head=head.name, base=base.name)


def digest(texts: Sequence[str]) -> str:
    """What some texts are known by in what is remembered: of other contents another piece of work is made."""
    return hashlib.sha256(json.dumps(texts).encode()).hexdigest()[:16]


class Quietly:
    """Reports what a run of candidates does, without its notes: that some of them fail is no news."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress

    def stage(self, title: str, total: int) -> None:
        """A new stage begins."""
        self._progress.stage(title, total)

    def step(self, text: str, advance: int = 1, seconds: float | None = None) -> None:
        """Steps are done."""
        self._progress.step(text, advance, seconds)

    def note(self, text: str) -> None:
        """Nothing."""

    def left(self, words: str) -> None:
        """Nothing: a batch is not all of the search."""
