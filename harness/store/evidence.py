"""A run's records by case: what happened to each, whose module it shares; and whether its clock can have been right."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta, timezone

from harness.records.case import Case
from harness.records.run import Failure, Round, Run
from harness.text import one_line


class Evidence:
    """A run's records by case or model, its rounds by group; of two of one case (after --resume) the later holds."""

    def __init__(self, run: Run) -> None:
        self.builds = {build.case: build for build in run.builds}
        self.ir = {counted.case: counted for counted in run.ir}
        self.checks = {check.case: check for check in run.checks}
        self.references = {reference.case: reference for reference in run.references}
        self.lost = {lost.case: lost for lost in run.lost}
        self.models = {model.name: model for model in run.header.models}
        self.work = {work.model: work for work in run.work}
        self.peaks = {(peak.host, peak.device): peak for peak in run.peaks}
        self.rounds: dict[str, list[Round]] = {}
        for measured in run.rounds:
            self.rounds.setdefault(measured.group, []).append(measured)
        self.finished = run.finished


def stand_ins(cases: Sequence[Case], evidence: Evidence) -> dict[str, Case]:
    """For each case of a group that is not measured on its own: the case with the same module, run flags and runtime.

    The first such case that gives the right outputs stands for the others, the baseline before all. The measuring side
    goes by the same rule.
    """
    first: dict[tuple[str, tuple[str, ...], str], Case] = {}
    found: dict[str, Case] = {}
    for case in sorted(cases, key=lambda case: not case.baseline):
        build, check = evidence.builds.get(case.name), evidence.checks.get(case.name)
        if case.skip is not None or build is None or build.failure is not None or build.module_sha256 is None:
            continue
        if check is not None and check.failure is not None:
            continue
        stands = first.setdefault((build.module_sha256, case.run_flags, case.toolchain), case)
        if stands is not case:
            found[case.name] = stands
    return found


def find_failure(case: Case, evidence: Evidence, *, timed: bool) -> Failure | None:
    """The first stage at which a case failed; None where it went all the way, or was never started."""
    records = (
        evidence.models.get(case.model),
        evidence.builds.get(case.name),
        evidence.checks.get(case.name),
        evidence.lost.get(case.name),
        None if timed else evidence.references.get(case.name),  # that it alone failed is told as a remark
    )
    return next((record.failure for record in records if record is not None and record.failure is not None), None)


def baseline_of(cases: Sequence[Case], evidence: Evidence, stand_ins: Mapping[str, Case]) -> Case | None:
    """What the others of a group are compared with: its baseline, or where that is refused the first right case.

    The refused baseline where no case of IREE's is right; None where the group has none.
    """
    planned = next((case for case in cases if case.baseline), None)
    if planned is None or not why_refused(planned, evidence):
        return planned
    own = (case for case in cases if case.peer is None and case.name in evidence.builds and case.name not in stand_ins)
    return next((case for case in own if not why_refused(case, evidence)), planned)


def why_refused(case: Case, evidence: Evidence) -> str:
    """Why a case cannot be what others are compared with, behind its name: `is refused: wrong output`; "": it can."""
    if case.skip is not None:
        return "is skipped"
    failure = find_failure(case, evidence, timed=True)
    if failure is None:
        return ""
    return "is refused: wrong output" if failure.mismatch else f"failed at {failure.stage}"


def is_expected(case: Case, failure: Failure) -> bool:
    """Whether a case fails as the suite says it does."""
    if case.expected_mismatch:
        return failure.mismatch
    text = case.expected_failure
    return text is not None and (text in failure.message or text in failure.stderr)


# --- Clocks ---

# Clocks of machines that know their time differ by far less, and time zones by at most 14 hours.
AHEAD = timedelta(days=1)
# Older than any release that the harness measures; machines without a battery begin in 1970 or at their image's date.
_FIRST_YEAR = 2020


def parse_time(text: str) -> datetime | None:
    """An ISO 8601 time in UTC; one without a zone is taken as UTC; None: it is no time."""
    try:
        time = datetime.fromisoformat(text.removesuffix("Z") + ("+00:00" if text.endswith("Z") else ""))
        return (time if time.tzinfo is not None else time.replace(tzinfo=timezone.utc)).astimezone(timezone.utc)
    except (ValueError, OverflowError):
        return None


def utc_text(text: str) -> str:
    """The same time as `2026-11-21T03:15:00+00:00`, so that times sort as text; "" where it is none."""
    time = parse_time(text)
    return "" if time is None else time.isoformat(timespec="seconds")


def clock_fault(started: str, now: datetime) -> str:
    """Why a run's time cannot be right, in plain words; "" where nothing speaks against it."""
    time = parse_time(started)
    if time is None:
        return f"its start, {one_line(started)[:40]!r}, is no time"
    if time > now + AHEAD:
        return f"it started on {time:%Y-%m-%d}, which is in the future"
    return f"it started in {time.year}, before anything could be measured" if time.year < _FIRST_YEAR else ""
