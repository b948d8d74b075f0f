"""A search for one model on one device: what it has compiled, raced and confirmed, remembered as it goes.

A search is a function of its options and of what the compiler and the clock answered. Each answer is on disk before the
next question is asked, with the seconds that it took, and the only clock that decisions look at is the sum of these
seconds. So a search that was killed plays back what it knows, and goes on where it was.
"""

import hashlib
import json
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import NamedTuple, TypeVar

from harness.bisect.trials import Place, try_pair
from harness.bisect.variants import CompileConfig
from harness.compare.pairs import Side
from harness.compare.samplers import Module, find_module, group_of, measured
from harness.compare.sides import noise_of
from harness.measure import Calibration, Group, LoadableModule, Settings
from harness.measure.generation import load_order
from harness.measure.session import only_one_measures
from harness.metrics import LATENCY
from harness.process import Limits
from harness.progress import Progress, duration
from harness.records.bisection import Trial
from harness.records.case import Case
from harness.records.tuning import TimedCandidate
from harness.stages.derived_suites import derived_suite
from harness.stages.options import TuneOptions, compile_limits
from harness.stages.prepare import is_timeout, unknown_to
from harness.stages.run import run_suite
from harness.stages.session import policy_of, unmeasured
from harness.stats.pairing import tabulate_rounds
from harness.stats.rule import Rule
from harness.store.evidence import find_failure
from harness.store.files import parsed
from harness.store.run_directory import load_run
from harness.store.work_directory import RECORD_FILE, SUITES_FOLDER, TuneDirectory
from harness.suite.load import Device, Suite
from harness.text import plural
from harness.toolchain import Toolchain
from harness.toolchain.host_cpu import environment_here
from harness.toolchain.tools import flag_name, merge_flags
from harness.tune.changes import PRICE, Change
from harness.tune.race import Race, RaceRule, RaceStanding

_T = TypeVar("_T")

START = "start"
_RUNS_FOLDER = "runs"
# Of timed rounds in a generation, for each contender: a worker costs some tenths of a second to begin.
_SECONDS_EACH, _LEAST_SECONDS = 0.06, 0.25
# A round of all contenders that takes longer is the only one of its generation.
_LONG_ROUND_S = 0.5
# A candidate whose calls take so many times as long as the start's is stopped: it has lost.
_HOPELESS = 20.0
_LEAST_CALL_LIMIT_S, _LEAST_COMPILE_LIMIT_S = 10.0, 10.0
# A confirmation that differs plainly, and whose calls are long, may take so many times its budget.
_CAPS = 2.0
# What is not told apart after eight generations is as good.
RULE = RaceRule(most=8)


@dataclass(frozen=True, kw_only=True)
class TuneTarget:
    """What is searched: one model of a suite on one device, from a variant on."""

    suite: Suite
    model: str
    device: Device
    start: str
    config: CompileConfig  # The variant's flags and plugins
    toolchain: Toolchain

    @property
    def name(self) -> str:
        """As its folder is called, and as it is told."""
        return f"{self.model}@{self.device.name}"

    def case(self, variant: str) -> str:
        """The name of the model's case with a variant."""
        return f"{self.model}/{variant}@{self.device.name}"


class Racer(NamedTuple):
    """What can race."""

    loadable: LoadableModule
    code: str  # Equal where equal code runs


@dataclass(frozen=True, kw_only=True)
class Form:
    """The whole program with some changes, which compiles and is right."""

    name: str  # As the suite of its batch has it
    config: CompileConfig
    place: Place
    module: Module
    code: str  # Hash of its module, and its run flags; equal ones run the same
    changes: tuple[Change, ...] = ()
    log_ratio: float = 0.0  # log(its time / the start's), as far as races tell

    @property
    def racer(self) -> Racer:
        """As it races."""
        return Racer(replace(self.module.loadable, name=self.name), self.code)

    @property
    def price(self) -> float:
        """By which forms are ranked: of two that are as fast, the simpler one is better."""
        return self.log_ratio + PRICE * len(self.changes)

    @property
    def parts(self) -> tuple[str, ...]:
        """What it is made of, for people."""
        return tuple(part for change in self.changes for part in change.parts)


@dataclass(frozen=True, kw_only=True)
class Untimed:
    """Why a candidate is not timed: it does not compile or run, in time if it is late, or its outputs are wrong."""

    reason: str
    wrong: bool = False
    late: bool = False


@dataclass(frozen=True, kw_only=True)
class RaceTurns:
    """What a generation of a race gave, by name."""

    logs: dict[str, float]  # Logarithms of ratios to the reference
    calls: dict[str, Calibration]  # What the next generation has to know
    lost: dict[str, str]  # Why some could not be timed


@dataclass(frozen=True, kw_only=True)
class Raced:
    """What a race came to."""

    standings: Mapping[str, RaceStanding]  # Of each by name, beside the start (of a dispatch, the compiler's own)
    leader: str
    lost: Mapping[str, str]  # Why some could not be timed at all, by name


class TuneSession:
    """A search from its first compile to its answer. Use it in its directory's context."""

    case: Case  # Of what the search starts from, once that is compiled

    def __init__(self, options: TuneOptions, target: TuneTarget, directory: TuneDirectory, progress: Progress) -> None:
        self.options, self.target, self.directory, self.progress = options, target, directory, progress
        self.stages: dict[str, float] = {}  # Seconds by what they were spent on
        self.moments: list[TimedCandidate] = []
        self.noise = noise_of(environment_here())
        self.start_ns = 0.0  # What one of the start's calls takes, once that is known
        self._waited_s = 0.0

    # --- memory, and its clock ---

    @property
    def spent_s(self) -> float:
        """Seconds that everything took that was asked for so far, in this stretch or an earlier one."""
        return math.fsum(self.stages.values())

    @property
    def left_s(self) -> float:
        """Of the budget."""
        return self.options.budget - self.spent_s

    def once(self, stage: str, key: str, kind: type[_T], make: Callable[[], _T]) -> _T:
        """What an earlier stretch knows under a key, or what is made now."""
        kept = self.directory.remembered(key)
        if kept is None:
            started, waited_s = time.monotonic(), self._waited_s
            value = make()
            seconds = time.monotonic() - started - (self._waited_s - waited_s)
            kept = self.directory.remember(key, value, seconds)
        self.stages[stage] = self.stages.get(stage, 0.0) + kept.seconds
        self.progress.left(f"{duration(self.left_s)} of the budget" if self.left_s > 0 else "")
        return parsed(kept.value, kind, self.directory.path / RECORD_FILE, "remove it, and what it says is done again")

    def timed_now(self, name: str, ratio: float, *, best: bool) -> None:
        """Put down how a whole program did, for the picture of the race."""
        self.moments.append(TimedCandidate(seconds=round(self.spent_s, 1), name=name, ratio=ratio, best=best))

    # --- whole programs ---

    @property
    def limits(self) -> Limits:
        """Of one compile: a search does not wait for a candidate until its budget is gone."""
        seconds = max(_LEAST_COMPILE_LIMIT_S, self.options.budget / 4)
        return compile_limits(min(self.options.compile_timeout_s, seconds), self.options.compile_memory_gib)

    def compile(
        self, batch: str, configs: Mapping[str, CompileConfig], seconds: float | None = None
    ) -> dict[str, Form | Untimed]:
        """Compile and check whole programs, those of a batch together; what is in the cache is not compiled again."""
        # A suite with a flag that the release does not know is refused as a whole.
        unknown = {name: reason for name, config in configs.items() if (reason := self._unknown_flag(config))}
        wanted = {START: self.target.config, **{name: each for name, each in configs.items() if name not in unknown}}
        text = derived_suite(
            self.target.suite.path,
            self.directory.path / SUITES_FOLDER,
            wanted,
            models=[self.target.model],
            devices=[self.target.device.name],
            named=["tune"],
            description=f"{self.target.model} on {self.target.device.name}: candidates {batch}",
        )
        asked = f"{batch}/{digest([text])}"  # another release has other flag sets
        # Also where it is known already: commands of the report name it, and a longer budget wrote another one there.
        suite = self.directory.write_suite(batch, text)
        make = partial(self._compiled_now, suite, seconds or math.inf)
        run = self.once("compile", f"compiled/{asked}", Path, make)
        side = Side(load_run(run, rounds=False), batch, run)
        found: dict[str, Form | Untimed] = {name: Untimed(reason=reason) for name, reason in unknown.items()}
        found |= {name: self._candidate(side, name, config) for name, config in wanted.items()}
        return {name: found[name] for name in (START, *configs)}

    def compile_one(self, name: str, config: CompileConfig) -> Form | Untimed:
        """One whole program."""
        return self.compile(name, {name: config})[name]

    def _unknown_flag(self, config: CompileConfig) -> str:
        """Which flag the release's tools do not know, as a phrase; "": none."""
        flags = merge_flags(self.target.device.compile_flags, config.flags)
        for tool, flag in unknown_to(self.target.toolchain, flags, config.run_flags):
            return f"{tool} {self.target.toolchain.version} knows no flag --{flag_name(flag)}"
        return ""

    def _compiled_now(self, suite: Path, seconds: float) -> Path:
        # The start is called too, so nothing is stopped before it is known how long that takes.
        call_limit_s = max(seconds, 2e-9 * self.start_ns) if self.start_ns else math.inf
        options = unmeasured(
            self.options,
            suite,
            results=self.directory.path / _RUNS_FOLDER,
            compile_timeout_s=min(seconds, self.limits.seconds or self.options.compile_timeout_s),
            compile_memory_gib=self.options.compile_memory_gib,
            call_timeout_s=min(self.options.call_timeout_s, call_limit_s),
            keep_going=True,
            verbose=False,
        )
        quiet, toolchains = Quietly(self.progress), (self.target.toolchain,)
        return run_suite(options, quiet, toolchains, purpose="tune", with_reference=False)

    def _candidate(self, side: Side, name: str, config: CompileConfig) -> Form | Untimed:
        case = side.cases[self.target.case(name)]
        if case.skip is not None:
            return Untimed(reason=case.skip)
        failure = find_failure(case, side.evidence, timed=True)
        if failure is not None:
            return Untimed(reason=failure.message, wrong=failure.mismatch, late=is_timeout(failure))
        place = Place(name=name, side=side, case=case, toolchain=self.target.toolchain)
        module = find_module(side, case, self.target.toolchain)
        code = " ".join((module.build.module_sha256 or "", *case.run_flags))
        return Form(name=name, config=config, place=place, module=module, code=code)

    # --- races ---

    def race(
        self,
        name: str,
        contenders: Mapping[str, Racer],
        reference: str,
        *,
        stage: str,
        seconds: float,
        log_ratio: float,
        least: int = 1,
    ) -> Raced:
        """Race contenders beside one of a known log ratio to the start, until the rest are equal or time is over."""
        race = Race([*contenders], replace(RULE, least=least))
        lost: dict[str, str] = {}
        known: dict[str, Calibration] = {}
        begun_s = self.spent_s
        while not race.generations or (not race.is_over and self.spent_s - begun_s < seconds):
            left = {reference, *race.alive} - (lost.keys() - {reference})
            alive = [each for each in contenders if each in left]
            self.progress.step(f"{plural(len(alive), 'candidate')} in {name}", advance=0)
            racing = digest([reference, *(f"{each} {contenders[each].code}" for each in alive)])
            group = group_of(name, self.case, [contenders[each].loadable for each in alive])
            before = {each: known[each] for each in alive if each in known}
            make = partial(self._generation, group, reference, race.generations, before)
            turns = self.once(stage, f"race/{name}/{racing}/{race.generations}", RaceTurns, make)
            known |= turns.calls
            lost |= turns.lost
            race.add({each: turns.logs.get(each) for each in alive})
            if reference in lost:
                break
        if START in known and not self.start_ns:
            self.start_ns = known[START].per_call_ns
        return Raced(standings=race.standings(log_ratio), leader=race.leader or reference, lost=lost)

    def _generation(self, group: Group, reference: str, number: int, known: Mapping[str, Calibration]) -> RaceTurns:
        cases = {case.name: case for case in group.cases}
        order = load_order([*cases], f"{self.options.seed}/{group.name}/{number}")
        usual_ns = known[reference].per_call_ns if reference in known else self.start_ns
        hopeless_s = max(_LEAST_CALL_LIMIT_S, _HOPELESS * usual_ns / 1e9) if usual_ns else math.inf
        settings = Settings(
            seconds=max(_LEAST_SECONDS, _SECONDS_EACH * len(cases)),
            seed=self.options.seed,
            long_round_s=_LONG_ROUND_S,
            call_limit_s=min(self.options.call_timeout_s, hopeless_s),
        )
        with self.alone():
            shuffled = replace(group, cases=tuple(cases[name] for name in order))
            rounds, losses = measured(shuffled, number, settings, known)
        times = tabulate_rounds(rounds)
        logs = {name: found[0].centre for name in cases if (found := times.log_ratios(name, reference))}
        turns = {turn.case: turn.calls for each in rounds for turn in each.turns}
        medians = {name: times.medians(name) for name in cases}
        calls = {
            name: Calibration(calls=turns[name], per_call_ns=float(ns[0]))
            for name, ns in medians.items()
            if ns.size and name in turns
        }
        return RaceTurns(logs=logs, calls=calls, lost={loss.case: loss.failure.message for loss in losses})

    @contextmanager
    def alone(self) -> Iterator[None]:
        """While nobody else measures on this machine; waiting for that is no part of the budget."""
        started = time.monotonic()
        with only_one_measures(self.progress.note, wait=self.options.wait):
            self._waited_s += time.monotonic() - started
            yield

    # --- confirmations ---

    def confirm(self, head: Form, base: Form, rule: Rule, budget_s: float) -> Trial:
        """One whole program beside another by the rule of comparisons, confirmed in fresh processes."""

        def confirmed() -> Trial:
            policy = policy_of(
                self.options, rule, budget_s=budget_s, cap_s=_CAPS * budget_s, noise=self.noise, limits=self.limits
            )
            return try_pair(base.place, head.place, LATENCY, policy, self.progress)

        key = f"confirm/{base.name}/{head.name}/{digest([base.code, head.code])}"
        return replace(self.once("confirm", key, Trial, confirmed), head=head.name, base=base.name)


def digest(texts: Sequence[str]) -> str:
    """What some texts are known by in what is remembered: of other contents another piece of work is made."""
    return hashlib.sha256(json.dumps(texts).encode()).hexdigest()[:16]


class Quietly(Progress):
    """Reports what a run of candidates does, without its notes: that some of them fail is no news."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress

    def stage(self, title: str, total: int) -> None:
        """A new stage begins."""
        self._progress.stage(title, total)

    def step(self, text: str, advance: int = 1) -> None:
        """Steps are done."""
        self._progress.step(text, advance)
