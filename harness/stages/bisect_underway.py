"""A bisect under way: what the user chose, positions compiled once, and measurements that are kept as they end.

What is searched, releases or a variant's parts, is the matter of harness.stages.bisecting and bisecting_parts.
"""

from __future__ import annotations

import contextlib
import math
import shlex
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from harness.bisect.judged import JUDGED_OF_SEARCH, as_measured, error_of, rule_of_measurements
from harness.bisect.search import Measured, Unusable
from harness.bisect.trials import Place, try_pair, why_unmeasured
from harness.compare.pairs import Pair
from harness.errors import CaseError, Interrupted, RunError
from harness.machine.identity import describe_machine
from harness.metrics import LATENCY, TIMED, Metric
from harness.progress import Progress
from harness.records.bisection import Bisection, Nearer, Position, Trial
from harness.records.comparison import Verdict
from harness.stages.bisect_options import BisectOptions
from harness.stages.explaining import Terms, explain_pair, keep
from harness.stages.options import compile_limits
from harness.stages.positions import make_place, measuring_of
from harness.stats.rule import Rule
from harness.store.run_directory import HEADER_FILE, RunDirectory
from harness.store.search_directory import BisectDirectory, KeptSentence
from harness.toolchain import Toolchain
from harness.toolchain.host_cpu import environment_here

# Why a position was not measured for lack of time; such a one has no trial.
SPENT = "the budget of all measurements was spent"
_DIFFERENT: frozenset[Verdict] = frozenset({"regressed", "improved"})
# Gives a position by its name.
PlaceOf = Callable[[str], Place | Unusable]


class BisectUnderway:
    """A bisect from its first position to its answer. Use it as a context manager.

    Attributes:
        options: Those that it was begun with.
        directory: Where all of it is kept.
        floor: Relative change below which nothing counts as a step.
        trials: What was asked so far, in this order, measured now or before, by what was asked.
        planned: How many measurements share the error that all may make together.
    """

    def __init__(
        self, options: BisectOptions, directory: BisectDirectory, metric: Metric, floor: float, progress: Progress
    ) -> None:
        self.options, self.directory, self.metric, self.floor = options, directory, metric, floor
        self.progress = progress
        self.trials: dict[tuple[str, str, float], Trial] = {}
        self.planned = JUDGED_OF_SEARCH
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

    # --- positions ---

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
        """The case of a suite under a toolchain, compiled and checked once in the life of the bisect."""

        def keep(run: RunDirectory) -> None:
            self.directory.keep_run(name, run.path)

        try:
            return make_place(
                name,
                suite,
                case,
                toolchain,
                self.options,
                self.progress,
                others=others,
                label=label,
                resume=_run_of(self.directory, name),
                on_begin=keep,
            )
        except Interrupted:
            raise Interrupted(f"interrupted; {self.how_to_go_on}") from None
        except RunError as error:
            raise RunError(f"{error}; then {self.how_to_go_on}") from None

    # --- measurements ---

    def measure(
        self, base: str, head: str, floor: float, place: PlaceOf, whole: float | None = None
    ) -> Measured | Unusable:
        """Measure one position beside another, or say what came of it before."""
        asked = base, head, floor
        kept = self.trials.get(asked) or self.directory.answer(asked)
        if kept is None or (kept.placed and whole is None):
            if self._left_s <= 0:
                self._is_spent = True
                return Unusable(reason=SPENT)
            kept = self.directory.keep_trial(self._measured_now(base, head, floor, place, whole))
            self.progress.note(_said(kept))
        self.trials[asked] = kept
        return as_measured(kept)

    @property
    def _left_s(self) -> float:
        """Of the budget of this stretch."""
        return math.inf if self.options.budget is None else self.options.budget - self._spent_s

    def _measured_now(self, base: str, head: str, floor: float, place: PlaceOf, whole: float | None) -> Trial:
        first, second = place(base), place(head)
        for found in (first, second):
            if isinstance(found, Unusable):
                return Trial(base=base, head=head, floor=floor, verdict="failed", reason=found.reason)
        assert isinstance(first, Place) and isinstance(second, Place)  # noqa: S101 (the loop above)
        rule, noise = rule_of_measurements(self.planned, floor), self.directory.begun.noise
        measuring = measuring_of(self.options, self.metric, noise, self.progress, left_s=self._left_s)
        with self._counting_seconds():
            trial = try_pair(first, second, rule, replace(measuring, whole=whole), self.directory.kept)
        if trial.is_open and self._left_s <= 0:
            self._is_spent = True  # more time might have told
        return trial

    @contextlib.contextmanager
    def _counting_seconds(self) -> Iterator[None]:
        """Take what is measured off the budget."""
        started = time.monotonic()
        try:
            yield
        except KeyboardInterrupt:
            raise Interrupted(f"interrupted; {self.how_to_go_on}") from None
        finally:
            self._spent_s += time.monotonic() - started

    def told(self, base: str, head: str, floor: float) -> Trial | None:
        """The measurement that tells of two positions; None: there is none.

        A difference beyond a farther edge, by which a search sorted a position, is one beyond this floor too.
        """
        both = [trial for trial in self.trials.values() if (trial.base, trial.head) == (base, head)]
        farther = (trial for trial in both if trial.floor > floor and trial.verdict in _DIFFERENT)
        return next((trial for trial in both if trial.floor == floor), next(farther, None))

    def trial(self, base: str, head: str, floor: float) -> Trial:
        """The same; one that there was no time for is inconclusive."""
        unasked = Trial(base=base, head=head, floor=floor, verdict="inconclusive", reason=SPENT)
        return self.told(base, head, floor) or unasked

    def sort(self, base: str, head: str, floor: float, nearer: Nearer) -> None:
        """Put down to which end of its stretch the head of a measurement belongs."""
        asked = base, head, floor
        if asked in self.trials:  # but where there was no time for it
            self.trials[asked] = replace(self.trials[asked], belongs=nearer)

    # --- why ---

    def explained(self, before: Place, after: Place, expected: Verdict) -> KeptSentence:
        """What the compiler does differently from one position to another, once in the life of the bisect.

        Nothing is said where the metric is no latency, where it cannot be explained, or where what was measured for
        that does not show the change; a note says why.
        """
        asked = f"{before.name}..{after.name}"
        kept = self.directory.begun.explained.get(asked)
        if kept is not None:
            return kept
        if self.metric is not LATENCY:
            return KeptSentence()
        if self._left_s <= 0:
            self._is_spent = True
            return KeptSentence()
        try:
            with self._counting_seconds():
                found = explain_pair(
                    Pair(name=self.options.chosen[1], base=before.case, head=after.case),
                    before.side,
                    after.side,
                    {place.toolchain.version: place.toolchain for place in (before, after)},
                    self._terms,
                    self.progress,
                    within=False,
                    created=datetime.now(timezone.utc),
                    command=() if self.options.over == "releases" else self.directory.begun.command,
                )
        except (CaseError, RunError) as error:
            self.progress.note(f"The step is not explained: {error}")
            return KeptSentence()
        if found.is_stopped:
            raise Interrupted(f"interrupted; {self.how_to_go_on}")
        explanation, folder = keep(found.explanation, self.options.results, before.side.run.header.suite_name)
        if explanation.latency.verdict != expected:
            self.progress.note(f"The step is not explained: measured with its parts it is not seen again; see {folder}")
            return KeptSentence()
        said = KeptSentence(text=explanation.sentence, explanation=explanation.id)
        self.directory.keep_sentence(asked, said)
        return said

    @property
    def _terms(self) -> Terms:
        options = self.options
        left_s = self._left_s
        return Terms(
            rule=Rule(floor=self.floor),
            budget_s=min(options.row_budget, left_s),
            cap_s=min(options.row_cap, left_s),
            seed=options.seed,
            call_limit_s=options.call_timeout,
            limits=compile_limits(options.compile_timeout),
            noise=self.directory.begun.noise,
            wait=options.wait,
        )

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
            ends=tuple(ends),
            positions=tuple(position for position in positions if position is not None),
            trials=tuple(self.trials.values()),
            error=error_of(measured, self.planned),
            finished=not self._is_spent,
            attempt=begun.attempt,
            machine=describe_machine(environment_here()),
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
        heads = (why_unmeasured(trial) for trial in self.trials.values() if trial.head == name)
        unusable = found.reason if isinstance(found, Unusable) else next(filter(None, heads), "")
        revision = ""
        if isinstance(found, Place):
            revision = next((record.revision for record in found.side.toolchains.values()), "")
        return Position(name=name, revision=revision, run="" if run is None else run.name, unusable=unusable)


def _run_of(directory: BisectDirectory, name: str) -> Path | None:
    """The run that was made or begun for a position, where it is still there."""
    kept = directory.begun.runs.get(name)
    return Path(kept) if kept is not None and (Path(kept) / HEADER_FILE).is_file() else None


def _said(trial: Trial) -> str:
    ratio = "" if trial.ratio is None else f", {trial.ratio:.3f} times"
    what = "placed" if trial.placed else trial.verdict
    return f"{trial.head} beside {trial.base}: {what}{ratio} ({trial.reason})"
