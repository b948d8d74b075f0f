"""What the stages of a run share: choices, planned cases, what is done already, and what a failure brings with it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from harness.process import PAST_TIME
from harness.progress import Progress
from harness.records.case import Case
from harness.records.run import Build, Check, Failure, IrCounts, Lost, Reference, Run
from harness.stages.options import RunOptions
from harness.stages.prepare import Prepared
from harness.store.evidence import is_expected
from harness.store.run_directory import RunDirectory
from harness.text import one_line, plural

_LONGEST = 400
# How the message of a failure begins where another case timed out; that one's note counts it.
NOT_TRIED = "not tried, since "


class FailureNotes:
    """Notes on the progress of a run; the same words are printed once."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._first: dict[tuple[str, str], str] = {}

    def model(self, name: str, failure: Failure, cases: Sequence[Case]) -> None:
        """A model could not be made."""
        unexpected = sum(not is_expected(case, failure) for case in cases)
        if unexpected:
            self._note(name, failure, f"; {plural(unexpected, 'case fails', 'cases fail')} with it")

    def case(self, case: Case, failure: Failure, others: int = 0) -> None:
        """A case failed; nothing is said of what the suite expects."""
        if not is_expected(case, failure) and not failure.message.startswith(NOT_TRIED):
            self._note(case.name, failure, f"; {plural(others, 'case fails', 'cases fail')} with it" if others else "")

    def _note(self, name: str, failure: Failure, consequence: str) -> None:
        first = self._first.setdefault((failure.stage, failure.message), name)
        message = one_line(failure.message)[:_LONGEST] if first == name else f"as {first}"
        self._progress.note(f"Failed ({failure.stage}): {name}: {message}{consequence}")


def is_timeout(failure: Failure) -> bool:
    """Whether a tool was stopped because it took too long."""
    return PAST_TIME in failure.message


class GivenUp:
    """Cases that are not tried since another variant of their model, device and toolchain timed out."""

    def __init__(self, *, keep_going: bool) -> None:
        self._keep_going = keep_going
        self._first: dict[tuple[str, str], tuple[str, str]] = {}  # a case, and the option that gives it more

    def note(self, case: Case, failure: Failure | None) -> bool:
        """Take notice of how a case ended; whether the others of its model and device are given up from now on."""
        if self._keep_going or failure is None or not is_timeout(failure):
            return False
        option = "--compile-timeout" if failure.stage == "compile" else "--call-timeout"
        self._first.setdefault((case.group, case.toolchain), (case.name, option))
        return True

    def refusal(self, case: Case, stage: str) -> Failure | None:
        """Why a case is not tried at this stage; None: it is."""
        first, option = self._first.get((case.group, case.toolchain), (case.name, ""))
        if first == case.name:
            return None
        return Failure(
            stage=stage,
            message=f"{NOT_TRIED}{first} timed out; give it more with {option}, or try every case with --keep-going",
        )


def unchecked(case: Case, failure: Failure) -> Check:
    """The check of a case that was not run for it."""
    return Check(
        case=case.name, against="", command=(), relative_tolerance=0.0, absolute_tolerance=0.0, failure=failure
    )


# --- What the stages of a run share: the user's choices, the planned cases, and where results go ---


@dataclass(frozen=True, kw_only=True)
class Done:
    """What an interrupted run had finished, by case; timed seconds and rounds by group and generation."""

    builds: Mapping[str, Build] = field(default_factory=dict)
    ir: Mapping[str, IrCounts] = field(default_factory=dict)
    checks: Mapping[str, Check] = field(default_factory=dict)
    references: Mapping[str, Reference] = field(default_factory=dict)
    generations: Mapping[tuple[str, int], tuple[float, int]] = field(default_factory=dict)
    lost: frozenset[str] = frozenset()
    work: frozenset[str] = frozenset()

    def has_all_of(self, case: Case, settings: Mapping[str, Any]) -> bool:
        """Whether nothing is left of a case, since it was measured to the end, or has failed."""
        build, check = self.builds.get(case.name), self.checks.get(case.name)
        has_failed = any(record is not None and record.failure is not None for record in (build, check))
        if has_failed or case.name in self.lost:
            return True
        if not settings.get("measure", True):
            return check is not None
        return (case.group, int(settings["generations"]) - 1) in self.generations


def done_in(run: Run) -> Done:
    """What a run that was read back had finished."""
    generations: dict[tuple[str, int], tuple[float, int]] = {}
    for timed in run.rounds:
        seconds, rounds = generations.get((timed.group, timed.generation), (0.0, 0))
        timed_s = sum(turn.wall_ns for turn in timed.turns) / 1e9
        generations[timed.group, timed.generation] = (seconds + timed_s, rounds + 1)
    return Done(
        builds={build.case: build for build in run.builds},
        ir={counts.case: counts for counts in run.ir},
        checks={check.case: check for check in run.checks},
        references={reference.case: reference for reference in run.references},
        generations=generations,
        lost=frozenset(lost.case for lost in run.lost),
        work=frozenset(work.model for work in run.work),
    )


@dataclass(frozen=True, kw_only=True)
class Context:
    """One run under way."""

    prepared: Prepared
    options: RunOptions
    directory: RunDirectory
    done: Done
    progress: Progress
    failures: FailureNotes  # What is printed of them as they happen
    given_up: GivenUp  # What is not tried since another case timed out
    checks: dict[str, Check] = field(default_factory=dict)  # Of all cases that were checked so far, by name
    with_reference: bool = True  # Whether iree-benchmark-module is asked of each case, which says what memory it takes

    def failed(self, case: Case, failure: Failure, untried: Iterable[Case] = ()) -> None:
        """Say that a case failed, and how many of those that were not tried yet go with it."""
        others = 0
        if self.given_up.note(case, failure):
            others = sum((other.group, other.toolchain) == (case.group, case.toolchain) for other in untried)
        self.failures.case(case, failure, others)


def failed_at(case: Case, message: str, builds: dict[str, Build], checks: dict[str, Check]) -> Build | Check | Lost:
    """What says that a case has failed, at the stage that it has come to; builds and checks have it then."""
    if case.peer is None and case.name not in builds:
        failure = Failure(stage="compile", message=message)
        return builds.setdefault(case.name, Build(case=case.name, command=(), cache_key="", failure=failure))
    if case.name not in checks:
        return checks.setdefault(case.name, unchecked(case, Failure(stage="verify", message=message)))
    return Lost(case=case.name, generation=0, failure=Failure(stage="measure", message=message))
