"""A bisect from its first position to its answer: positions compiled once, and measurements that are kept as they end.

What is searched, releases or a variant's parts, is the matter of harness.stages.bisecting. `harness verdict`, for `git
bisect run`, measures one position beside a run's.
"""

import contextlib
import math
import shlex
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from harness.bisect.search import Measured, Unusable
from harness.bisect.trials import ERROR, JUDGED_OF_SEARCH, Place, as_measured, rule_of_measurements, try_pair
from harness.compare.pairs import Pair, Side
from harness.compare.samplers import MeasurementPolicy
from harness.compare.sides import noise_of, toolchains_here
from harness.errors import CaseError, Interrupted, NothingSelected, RunError, SuiteError, ToolchainError, UsageError
from harness.machine.environment import describe_machine
from harness.metrics import FLOORS, LATENCY, METRICS, REFERENCE_FACTS, TIMED, Metric, metric_named
from harness.progress import Progress
from harness.records.bisection import Bisection, Nearer, Position, Trial
from harness.records.comparison import Verdict
from harness.report import render
from harness.stages.explaining import AskedPair, explain_and_keep
from harness.stages.ir import the_case
from harness.stages.options import BisectOptions, OneCase, VerdictOptions
from harness.stages.run import run_suite
from harness.stages.session import policy_of, unmeasured
from harness.stats.rule import Rule
from harness.store.evidence import find_failure
from harness.store.files import FINISHED_FILE
from harness.store.folders import find_folder
from harness.store.run_directory import load_run
from harness.store.work_directory import BisectDirectory, KeptSentence
from harness.suite.load import Suite
from harness.text import did_you_mean
from harness.toolchain import Toolchain, toolchain_named
from harness.toolchain.host_cpu import environment_here

# Why a position was not measured for lack of time; such a one has no trial.
SPENT = "the budget of all measurements was spent"
_DIFFERENT: frozenset[Verdict] = frozenset({"regressed", "improved"})


def require_metric(name: str, suite: Suite | None = None) -> Metric:
    """The metric of that name, which a suite has to count, if it is an op."""
    metric = metric_named(name)
    if metric is None:
        raise UsageError(f"--metric {name}: there is no such metric{did_you_mean(name, [*METRICS])}")
    phase, slash, op = name.partition("/")
    if slash and suite is not None:
        counted = [f"{phase}/{op}" for phase, ops in suite.ir.items() for op in ops]
        if name not in counted:
            hint = did_you_mean(name, counted, f"; add {op!r} to {phase} in [ir]")
            raise UsageError(f"--metric {name}: {suite.path} does not count it{hint}")
    return metric


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """A position that is to be compiled and checked: the case of a suite under a toolchain."""

    name: str
    suite: Path
    case: str
    toolchain: Toolchain
    label: str = ""  # What its side is called where that is another word
    others: Sequence[Toolchain] = ()  # It is compared with these


def make_place(
    wanted: Wanted, options: OneCase, progress: Progress, *, resume: Path | None = None, **more: Any
) -> Place | Unusable:
    """A position, compiled and checked, in the run that was begun for it or a new one, or why it cannot be measured."""
    if resume is not None and (resume / FINISHED_FILE).is_file():
        return place_in(resume, wanted)
    try:
        run = run_suite(
            unmeasured(options, wanted.suite, wanted.case, resume=resume),
            progress,
            (wanted.toolchain,),
            others=wanted.others,
            purpose="compare",
            with_reference=require_metric(options.metric) in REFERENCE_FACTS,
            **more,
        )
    except SuiteError as error:
        return Unusable(reason=str(error))
    return place_in(run, wanted)


def place_in(run: Path, wanted: Wanted) -> Place | Unusable:
    """A position in a finished run, or why it cannot be measured."""
    side = Side(load_run(run, rounds=False), wanted.label or wanted.name, run)
    found = side.cases.get(wanted.case)
    if found is None:
        return Unusable(reason=f"{run} has no case {wanted.case}")
    if found.skip is not None:
        return Unusable(reason=f"it is skipped: {found.skip}")
    if found.peer is not None:
        return Unusable(reason="another engine runs it, which no release and no flag of IREE changes")
    failure = find_failure(found, side.evidence, timed=True)
    if failure is not None:
        return Unusable(reason=f"it fails at {failure.stage}: {failure.message}")
    return Place(name=wanted.name, side=side, case=found, toolchain=wanted.toolchain)


class BisectSession(ABC):
    """A bisect, new or to go on with."""

    def __init__(self, options: BisectOptions, suite: Suite, directory: BisectDirectory, progress: Progress) -> None:
        self.options, self.directory, self.progress = options, directory, progress  # As it was begun
        self.metric = require_metric(options.metric)
        own_floor = suite.floors.get(self.metric.name, self.metric.floor)
        self.floor = own_floor if options.floor is None else options.floor
        self.trials: dict[tuple[str, str, float], Trial] = {}  # By what was asked, in this order, now or before
        self.planned = JUDGED_OF_SEARCH  # So many measurements share the error that all may make together
        self._is_spent = False
        self._spent_s = 0.0
        self._places: dict[str, Place | Unusable] = {}

    @abstractmethod
    def search(self) -> Bisection:
        """What was asked for, searched."""

    @abstractmethod
    def wanted(self, name: str) -> Wanted:
        """What a position is, by its name."""

    def run(self) -> Bisection:
        """Search, and keep the answer."""
        with self.directory:
            try:
                found = self.search()
            except (KeyboardInterrupt, Interrupted):
                raise Interrupted(f"interrupted; {self.how_to_go_on}") from None
            self.directory.finish(render(found, "json"), render(found, "markdown", full=True))
        return found

    @property
    def how_to_go_on(self) -> str:
        """What to do where it is stopped."""
        return f"go on with `harness bisect --resume {shlex.quote(str(self.directory.path))}`"

    # --- positions ---

    def place(self, name: str) -> Place | Unusable:
        """A position, compiled once in the life of the bisect, when it is first asked for."""
        if name not in self._places:
            try:
                self._places[name] = make_place(
                    self.wanted(name),
                    self.options,
                    self.progress,
                    resume=self.directory.runs().get(name),
                    on_begin=lambda run: self.directory.keep_run(name, run.path),
                )
            except RunError as error:
                raise RunError(f"{error}; then {self.how_to_go_on}") from None
        return self._places[name]

    # --- measurements ---

    def measure(self, base: str, head: str, floor: float, whole: float | None = None) -> Measured | Unusable:
        """Measure one position beside another, or say what came of it before."""
        asked = base, head, floor
        kept = self.trials.get(asked) or self.directory.answer(asked)
        if kept is None or (kept.placed and whole is None):
            if self._left_s <= 0:
                self._is_spent = True
                return Unusable(reason=SPENT)
            kept = self.directory.keep_trial(self._measured_now(base, head, floor, whole))
            ratio = "" if kept.ratio is None else f", {kept.ratio:.3f} times"
            what = "placed" if kept.placed else kept.verdict
            self.progress.note(f"{head} beside {base}: {what}{ratio} ({kept.reason})")
        self.trials[asked] = kept
        return as_measured(kept)

    @property
    def _left_s(self) -> float:
        return math.inf if self.options.budget is None else self.options.budget - self._spent_s

    def _measured_now(self, base: str, head: str, floor: float, whole: float | None) -> Trial:
        first, second = self.place(base), self.place(head)
        for found in (first, second):
            if isinstance(found, Unusable):
                return Trial(base=base, head=head, floor=floor, verdict="failed", reason=found.reason)
        assert isinstance(first, Place) and isinstance(second, Place)  # noqa: S101 (the loop above)
        policy = self._policy(rule_of_measurements(self.planned, floor))
        earlier = self.directory.kept
        with self._counting_seconds():
            trial = try_pair(first, second, self.metric, policy, self.progress, whole=whole, earlier=earlier)
        if trial.is_open and self._left_s <= 0:
            self._is_spent = True  # more time might have told
        return trial

    def _policy(self, rule: Rule) -> MeasurementPolicy:
        budget_s, cap_s = (min(seconds, self._left_s) for seconds in (self.options.row_budget, self.options.row_cap))
        return policy_of(self.options, rule, budget_s=budget_s, cap_s=cap_s, noise=self.directory.begun.noise)

    @contextlib.contextmanager
    def _counting_seconds(self) -> Iterator[None]:
        """Take what is measured off the budget."""
        started = time.monotonic()
        try:
            yield
        finally:
            self._spent_s += time.monotonic() - started

    def told(self, base: str, head: str, floor: float) -> Trial | None:
        """The measurement that tells of two positions, if any: a difference beyond a farther edge is one here too."""
        both = [trial for trial in self.trials.values() if (trial.base, trial.head) == (base, head)]
        farther = (trial for trial in both if trial.floor > floor and trial.verdict in _DIFFERENT)
        return next((trial for trial in both if trial.floor == floor), next(farther, None))

    def trial(self, base: str, head: str) -> Trial:
        """The same, at the floor; one that there was no time for is inconclusive."""
        unasked = Trial(base=base, head=head, floor=self.floor, verdict="inconclusive", reason=SPENT)
        return self.told(base, head, self.floor) or unasked

    def sort(self, base: str, head: str, floor: float, nearer: Nearer) -> None:
        """Put down to which end of its stretch the head of a measurement belongs."""
        asked = base, head, floor
        if asked in self.trials:  # but where there was no time for it
            self.trials[asked] = replace(self.trials[asked], belongs=nearer)

    # --- why ---

    def explained(self, size: Trial) -> KeptSentence:
        """What the compiler does differently from one position to another, where an explanation shows the change."""
        base, head, step = self.place(size.base), self.place(size.head), f"{size.base}..{size.head}"
        kept = self.directory.sentence(step)
        if kept is not None:
            return kept
        if self.metric is not LATENCY or isinstance(base, Unusable) or isinstance(head, Unusable):
            return KeptSentence()
        if self._left_s <= 0:
            self._is_spent = True
            return KeptSentence()
        pair = Pair(name=self.options.chosen[1], base=base.case, head=head.case)
        try:
            with self._counting_seconds():
                explanation, path = explain_and_keep(
                    AskedPair(pair=pair, base=base.side, head=head.side),
                    {record: place.toolchain for place in (base, head) for record in place.side.toolchains.values()},
                    self._policy(Rule(floor=self.floor)),
                    self.progress,
                    self.options.results,
                    command=() if self.options.over == "releases" else self.directory.begun.command,
                )
        except (CaseError, RunError) as error:
            self.progress.note(f"The step is not explained: {error}")
            return KeptSentence()
        if explanation.latency.verdict != size.verdict:
            why = f"measured with its parts it is {explanation.latency.verdict} ({explanation.latency.reason})"
            self.progress.note(f"The step is not explained: {why}; see {path}")
            return KeptSentence()
        said = KeptSentence(text=explanation.sentence, explanation=explanation.id)
        self.directory.remember(f"explained/{step}", said)
        return said

    # --- the answer ---

    def concluded(self, ends: Sequence[str], order: Sequence[str], **found: Any) -> Bisection:
        """What there is, with all that every bisect has."""
        begun = self.directory.begun
        suite, case = self.options.chosen
        positions = (self._position(name) for name in order)
        timed = self.metric.name in TIMED
        measured = sum(trial.generations > 0 and not trial.placed for trial in self.directory.kept) if timed else 0
        spent = f"{SPENT[0].upper()}{SPENT[1:]}; {self.how_to_go_on}"
        return Bisection(
            id=self.directory.path.name,
            created=begun.created,
            suite=suite.as_posix(),
            case=case,
            metric=self.metric.name,
            unit=self.metric.unit,
            floor=self.floor,
            over=self.options.over,
            commits=begun.commits,
            ends=tuple(ends),
            positions=tuple(position for position in positions if position is not None),
            trials=tuple(self.trials.values()),
            error=min(1.0, ERROR * measured / self.planned),
            finished=not self._is_spent,
            attempt=self.directory.attempt,
            machine=describe_machine(environment_here()),
            notes=(spent,) if self._is_spent else (),
            settings=begun.options,
            command=begun.command,
            **found,
        )

    def _position(self, name: str) -> Position | None:
        """What became of a position; None: it was never asked for."""
        found, run = self._places.get(name), self.directory.runs().get(name)
        heads = [as_measured(trial) for trial in self.trials.values() if trial.head == name]
        if found is None and run is None and not heads:
            return None
        why = (each.reason for each in (found, *heads) if isinstance(each, Unusable))
        revision = ""
        if isinstance(found, Place):
            revision = next((record.revision for record in found.side.toolchains.values()), "")
        return Position(name=name, revision=revision, run="" if run is None else run.name, unusable=next(why, ""))


# --- `harness verdict`: a suite as it is now -> its case, compiled -> measured beside a run's -> a word ---


Word = Literal["good", "bad", "cannot tell"]
# What a verdict is to a search that knows good and bad alone; of any other it cannot tell.
_WORDS: dict[Verdict, Word] = {"unchanged": "good", "improved": "good", "identical": "good", "regressed": "bad"}


@dataclass(frozen=True, kw_only=True)
class Judged:
    """What is said of the suite as it is now."""

    case: str
    word: Word
    reason: str  # Why, in plain words
    trial: Trial | None = None  # The measurement; None: it did not come to one


def judge_now(options: VerdictOptions, progress: Progress) -> Judged:
    """Say whether a case is as good as a run's; what is wrong with the suite of this moment cannot tell."""
    metric = require_metric(options.metric)
    path = find_folder(options.against, options.results, kind="run")
    run = load_run(path, rounds=False)
    toolchains = {known.name: known.toolchain for known in run.header.cases if known.peer is None}
    case = the_case(options.case, [*toolchains], f"--against {path}", f"harness report {path}")
    side = Side(run, str(path))
    toolchain = toolchains_here([side], progress.note)[side.toolchains[toolchains[case]]]
    good = place_in(path, Wanted(name="the run", suite=path, case=case, toolchain=toolchain))
    if isinstance(good, Unusable):
        raise RunError(f"--against {path}: {case} cannot be measured there: {good.reason}; give another run")
    counts = good.side.evidence.ir.get(case)
    if "/" in metric.name and (counts is None or metric.name not in counts.counts):
        raise UsageError(f"--metric {metric.name}: --against {path} did not count it; add it to the suite's [ir]")
    now: Place | Unusable
    try:
        of_now = toolchain_named(options.toolchain or toolchain.version, progress.note)
        others = () if toolchain.compiler_is_gone or toolchain.version == of_now.version else (toolchain,)
        wanted = Wanted(name="now", suite=options.suite, case=case, toolchain=of_now, others=others)
        now = make_place(wanted, options, progress)
    except (ToolchainError, NothingSelected) as error:
        now = Unusable(reason=str(error))
    if isinstance(now, Unusable):
        return Judged(case=case, word="cannot tell", reason=now.reason)
    floors = FLOORS | now.side.run.header.floors
    rule = Rule(floor=floors.get(metric.name, metric.floor) if options.floor is None else options.floor)
    noise = noise_of(environment_here())
    policy = policy_of(options, rule, budget_s=options.row_budget, cap_s=options.row_cap, noise=noise)
    trial = try_pair(good, now, metric, policy, progress)
    return Judged(case=case, word=_WORDS.get(trial.verdict, "cannot tell"), reason=trial.reason, trial=trial)
