"""What a failure brings with it: a line on stderr when it happens, and cases that are not tried after it."""

from __future__ import annotations

from collections.abc import Sequence

from harness.process import PAST_TIME
from harness.progress import Progress
from harness.records.case import Case
from harness.records.run import Check, Failure
from harness.store.evidence import is_expected
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
