"""A bisect under way: what the user chose, positions compiled once, and measurements that are kept as they end.

What is searched, releases or a variant's parts, is the matter of harness.stages.bisecting and bisecting_parts.
"""

from __future__ import annotations

import glob
import shlex
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from harness.bisect.judged import as_measured, error_of, measurements_of_search, rule_of_measurements
from harness.bisect.search import Measured, Unusable
from harness.bisect.trials import Measuring, Place, try_pair, why_unmeasured
from harness.cache import cache_root
from harness.compare.options import CALL_LIMIT_S
from harness.compare.pairs import side_of
from harness.compare.sides import describe_machine
from harness.errors import Interrupted, RunError, SuiteError
from harness.machine.environment import capture_environment
from harness.metrics import LATENCY, REFERENCE_FACTS, TIMED, Metric
from harness.options import Flag, Positive, Quiet, Share, Verbose
from harness.progress import Progress
from harness.records.bisection import Bisection, Nearer, Over, Position, Trial
from harness.records.comparison import Verdict
from harness.stages.options import CompileTimeout, RunOptions, compile_limits
from harness.stages.run import run_suite
from harness.store.bisect_directory import BisectDirectory
from harness.store.evidence import find_failure
from harness.store.files import FINISHED_FILE
from harness.store.run_directory import HEADER_FILE, RunDirectory, load_run
from harness.suite.completion import CASES
from harness.toolchain import Toolchain

# Why a position was not measured for lack of time; such a one has no trial.
SPENT = "the budget of all measurements was spent"
_DIFFERENT: frozenset[Verdict] = frozenset({"regressed", "improved"})
_Releases = Annotated[tuple[str, ...], Parameter(negative="", show_default=False)]


@Parameter(name="*")
@dataclass(frozen=True)
class BisectOptions:
    """What a user can choose about a bisect.

    Attributes:
        suite: The suite's TOML file.
        case: The case, as `harness list` shows it.
        over: Search releases between --good and --bad, or which of the variant's flags, plugins and plugin options make
            the difference to --base.
        good: Release on which the case was good, as in iree==3.6.0.
        bad: Release on which it is bad.
        fixed: Release beyond the bad one on which it is good again; since when is searched too.
        release: Only these between the ends (default: all that the package index has); repeatable.
        skip: None of these releases; repeatable.
        pre: Pre-releases too, which pip finds where PIP_FIND_LINKS says.
        base: With --over flags: the variant that the case's is held against (default: the suite's baseline).
        toolchain: With --over flags: under this release (default: the one that is installed).
        metric: latency, instructions, compile-time, dispatches, copies, fills, transient-memory, module-size,
            dispatch-size, or an op count of the suite as in flow/tensor.empty.
        floor: Relative change below which nothing counts as a step (default: the suite's, else the metric's).
        row_budget: Wall seconds for looking at one pair; it is more where calls are so long that a verdict needs more,
            up to --row-cap, and confirming a finding takes as much again.
        row_cap: Wall seconds for looking at one pair whose calls take long.
        budget: Wall seconds of all measurements together; what is not known then is found out with --resume.
        seed: Of the order of turns.
        resume: Go on with this bisect (its folder, or latest); nothing that was measured is repeated.
        results: Where the bisect's directory goes, and its runs.
        compile_timeout: Seconds after which a compile is stopped.
        call_timeout: Seconds after which a turn is stopped.
        wait: Wait while another harness measures on this machine; else measure beside it.
        quiet: Say nothing while it works.
        verbose: As of a run.
    """

    suite: Path | None = None
    _: KW_ONLY
    case: Annotated[str | None, CASES] = None
    over: Over = "releases"
    good: str | None = None
    bad: str | None = None
    fixed: str | None = None
    release: _Releases = ()
    skip: _Releases = ()
    pre: Flag = False
    base: str | None = None
    toolchain: str | None = None
    metric: str = LATENCY.name
    floor: Share | None = None
    row_budget: Positive = 60.0
    row_cap: Positive = 1800.0
    budget: Positive | None = None
    seed: int = 0
    resume: Path | None = None
    results: Path = Path("results")
    compile_timeout: CompileTimeout = 900.0
    call_timeout: Positive = CALL_LIMIT_S
    wait: bool = True
    quiet: Quiet = False
    verbose: Verbose = False

    @property
    def chosen(self) -> tuple[Path, str]:
        """Suite and case, once it is known that both are given."""
        assert self.suite is not None and self.case is not None  # noqa: S101 (whoever begins a bisect makes sure)
        return self.suite, self.case


class BisectUnderway:
    """A bisect from its first position to its answer. Use it as a context manager.

    Attributes:
        options: Those that it was begun with.
        directory: Where all of it is kept.
        floor: Relative change below which nothing counts as a step.
        trials: What was asked so far, in this order, measured now or before.
        planned: How many measurements share the error that all may make together.
    """

    def __init__(
        self, options: BisectOptions, directory: BisectDirectory, metric: Metric, floor: float, progress: Progress
    ) -> None:
        self.options, self.directory, self.metric, self.floor = options, directory, metric, floor
        self.progress = progress
        self.trials: list[Trial] = []
        self.planned = measurements_of_search(2)
        self._is_spent = False
        self._spent_s = 0.0
        self._places: dict[str, Place | Unusable] = {}

    def __enter__(self) -> BisectUnderway:
        self.directory.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self.directory.__exit__(*error)

    @property
    def how_to_go_on(self) -> str:
        """What to do where it is stopped."""
        return f"go on with `harness bisect --resume {shlex.quote(str(self.directory.path))}`"

    def place(self, name: str, make: Callable[[], Place | Unusable]) -> Place | Unusable:
        """A position, made when it is first asked for."""
        if name not in self._places:
            self._places[name] = make()
        return self._places[name]

    def compiled(
        self,
        name: str,
        suite: Path,
        case: str,
        toolchain: Toolchain,
        others: Sequence[Toolchain] = (),
        label: str = "",
    ) -> Place | Unusable:
        """The case of a suite under a toolchain, compiled and checked, once in the life of the bisect.

        Args:
            name: Of the position.
            others: Toolchains that it is compared with: a flag of theirs that it does not know skips the case.
            label: What its side is called; "": as the position.

        Raises:
            HarnessError: As `run_suite`, but for a suite that cannot be run like this: that position is unusable.
            Interrupted: The message says how to go on.
        """
        options = self.options
        run = _run_of(self.directory, name)
        if run is None or not (run / FINISHED_FILE).is_file():
            unmeasured = RunOptions(
                suite,
                resume=run,
                patterns=(glob.escape(case),),
                measure=False,
                results=options.results,
                compile_timeout_s=options.compile_timeout,
                call_timeout_s=options.call_timeout,
                wait=options.wait,
                verbose=options.verbose,
            )
            keep = partial(self._keep_run, name)
            try:
                run = run_suite(
                    unmeasured,
                    self.progress,
                    (toolchain,),
                    others=others,
                    purpose="compare",
                    on_begin=keep,
                    with_reference=self.metric in REFERENCE_FACTS,
                )
            except Interrupted:
                raise Interrupted(f"interrupted; {self.how_to_go_on}") from None
            except SuiteError as error:
                return Unusable(reason=str(error))
            except RunError as error:  # such as a disk that is full
                raise RunError(f"{error}; then {self.how_to_go_on}") from None
        return place_in(run, name, case, toolchain, label)

    def _keep_run(self, name: str, run: RunDirectory) -> None:
        self.directory.keep_run(name, run.path)

    def measure(
        self, base: str, head: str, floor: float, place: Callable[[str], Place | Unusable]
    ) -> Measured | Unusable:
        """Measure one position beside another, or say what came of it before.

        Args:
            place: Gives a position by its name.

        Raises:
            Interrupted: The message says how to go on.
        """
        kept = self.directory.trials.get((base, head, floor))
        if kept is None:
            if self.options.budget is not None and self._spent_s >= self.options.budget:
                self._is_spent = True
                return Unusable(reason=SPENT)
            kept = self._measured_now(base, head, floor, place)
            self.directory.keep_trial(kept)
            self.progress.note(_said(kept))
        self.trials.append(kept)
        return as_measured(kept)

    def _measured_now(self, base: str, head: str, floor: float, place: Callable[[str], Place | Unusable]) -> Trial:
        first, second = place(base), place(head)
        for found in (first, second):
            if isinstance(found, Unusable):
                return Trial(base=base, head=head, floor=floor, verdict="failed", reason=found.reason)
        assert isinstance(first, Place) and isinstance(second, Place)  # noqa: S101 (the loop above)
        started = time.monotonic()
        try:
            rule = rule_of_measurements(self.planned, floor)
            return try_pair(first, second, rule, self._measuring, self.trials)
        except KeyboardInterrupt:
            raise Interrupted(f"interrupted; {self.how_to_go_on}") from None
        finally:
            self._spent_s += time.monotonic() - started

    @property
    def _measuring(self) -> Measuring:
        options = self.options
        return Measuring(
            metric=self.metric,
            budget_s=options.row_budget,
            cap_s=options.row_cap,
            noise=self.directory.begun.noise,
            seed=options.seed,
            call_limit_s=options.call_timeout,
            compile_limits=compile_limits(options.compile_timeout),
            wait=options.wait,
            cache=cache_root(),
            progress=self.progress,
        )

    def trial(self, base: str, head: str, floor: float) -> Trial:
        """What came of a measurement that was asked; one that there was no time for is inconclusive.

        A difference beyond a farther edge, by which a search sorted a position, is one beyond this floor too.
        """
        unasked = Trial(base=base, head=head, floor=floor, verdict="inconclusive", reason=SPENT)
        both = [trial for trial in self.trials if (trial.base, trial.head) == (base, head)]
        farther = (trial for trial in both if trial.floor > floor and trial.verdict in _DIFFERENT)
        return next((trial for trial in both if trial.floor == floor), next(farther, unasked))

    def say_where_they_belong(self, begin: int, belongs: Iterator[Nearer]) -> None:
        """Put down to which end of its stretch the head of each measurement belongs.

        Args:
            begin: Number of the first one.
        """
        for number, nearer in zip(range(begin, len(self.trials)), belongs, strict=False):
            self.trials[number] = replace(self.trials[number], belongs=nearer)

    def concluded(self, ends: Sequence[str], order: Sequence[str], **found: Any) -> Bisection:
        """What there is, with all that every bisect has.

        Args:
            order: Names of all positions.
            found: Steps and stretches that are open, or parts and causes.
        """
        begun = self.directory.begun
        suite, case = self.options.chosen
        positions = (self._position(name) for name in order)
        asked: dict[tuple[str, str, float], Trial] = {}
        for trial in self.trials:  # a search may ask the same again
            asked.setdefault(trial.key, trial)
        timed = self.metric.name in TIMED
        measured = len({trial.key for trial in self.trials if trial.generations}) if timed else 0
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
            ends=tuple(ends),
            positions=tuple(position for position in positions if position is not None),
            trials=tuple(asked.values()),
            error=error_of(measured, self.planned),
            finished=not self._is_spent,
            machine=describe_machine(capture_environment()),
            notes=(spent,) if self._is_spent else (),
            settings=begun.options,
            command=begun.command,
            **found,
        )

    def _position(self, name: str) -> Position | None:
        """What became of a position; None: it was never asked for."""
        found, run = self._places.get(name), _run_of(self.directory, name)
        if found is None and run is None:
            return None
        heads = (why_unmeasured(trial) for trial in self.trials if trial.head == name)
        unusable = found.reason if isinstance(found, Unusable) else next(filter(None, heads), "")
        revision = ""
        if isinstance(found, Place):
            revision = next((record.revision for record in found.side.toolchains.values()), "")
        return Position(name=name, revision=revision, run="" if run is None else run.name, unusable=unusable)


def place_in(run: Path, name: str, case: str, toolchain: Toolchain, label: str = "") -> Place | Unusable:
    """A case of a finished run as a position, or why it cannot be measured.

    Args:
        label: What its side is called; "": as the position.
    """
    side = side_of(load_run(run, rounds=False), label or name, run)
    found = side.cases.get(case)
    if found is None:
        return Unusable(reason=f"{run} has no case {case}")
    if found.skip is not None:
        return Unusable(reason=f"it is skipped: {found.skip}")
    if found.peer is not None:
        return Unusable(reason="another engine runs it, which no release and no flag of IREE changes")
    failure = find_failure(found, side.evidence, timed=True)
    if failure is not None:
        return Unusable(reason=f"it fails at {failure.stage}: {failure.message}")
    return Place(name=name, side=side, case=found, toolchain=toolchain)


def _run_of(directory: BisectDirectory, name: str) -> Path | None:
    """The run that was made or begun for a position, where it is still there."""
    kept = directory.begun.runs.get(name)
    return Path(kept) if kept is not None and (Path(kept) / HEADER_FILE).is_file() else None


def _said(trial: Trial) -> str:
    ratio = "" if trial.ratio is None else f", {trial.ratio:.3f} of it"
    return f"{trial.head} beside {trial.base}: {trial.verdict}{ratio} ({trial.reason})"
