"""Which cases fail in their suite's last run, since when, where and why.

A case that fails has no figures, so its series end and no change is found in them: only the table `cases` has it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from harness.history.series import History, frame_records
from harness.report.page import Column, Table
from harness.text import one_line, plural

_NAMED, _NAMED_OF_A_CAUSE = 3, 5
_MOST_ROWS = 100
_MOST_LETTERS = 300  # what a tool printed may be long

# A case is the same as long as its name is, since what makes it work again may well be another flag. Skipped cases are
# as if they had not been planned. `place` counts a suite's runs on machines of a class from the last, which is 0.
_QUERY = """
WITH placed AS (
    SELECT run, suite, machine_class, started,
           row_number() OVER (PARTITION BY suite, machine_class ORDER BY started DESC, run DESC) - 1 AS place
    FROM runs
    WHERE finished AND clock = ''
), outcomes AS (
    SELECT placed.*, cases."case" AS "case", toolchain, stage, message,
           min(place) FILTER (status NOT IN ('failed', 'missing'))
               OVER (PARTITION BY placed.suite, machine_class, cases."case") AS latest_good
    FROM cases JOIN placed ON cases.run = placed.run
    WHERE "role" = 'newest' AND status NOT IN ('skipped', 'not measured yet')
)
SELECT suite, machine_class, "case", arg_max(run, place) AS since, arg_max(started, place) AS started,
       arg_max(toolchain, place) AS toolchain, count(*) AS runs, arg_min(stage, place) AS stage,
       arg_min(message, place) AS message, max(place) < $last AS recent
FROM outcomes
WHERE latest_good IS NULL OR place < latest_good
GROUP BY suite, machine_class, "case"
HAVING min(place) = 0
ORDER BY max(place), suite, machine_class, "case"
"""


@dataclass(frozen=True, kw_only=True)
class FailingCase:
    """A case that fails under the newest toolchain."""

    suite: str
    case: str
    machine_class: str  # As in the table `runs`
    since: str  # The run since which it does so without a break
    started: str  # When that began, ISO 8601 in UTC
    toolchain: str  # Release of IREE in that run
    runs: int  # In how many runs it has done so, `since` and the last among them
    stage: str  # Where it did so in the last run; "" of a case that is missing there
    message: str  # Why; "" of the same
    recent: bool  # Whether `since` is among the last runs that were asked for

    @property
    def why(self) -> str:
        """Stage and message."""
        text = one_line(self.message)
        text = text if len(text) <= _MOST_LETTERS else f"{text[: _MOST_LETTERS - 3]}..."
        return ": ".join(part for part in (self.stage, text) if part) or "planned, but not measured"


def failing_cases(history: History, last: int) -> list[FailingCase]:
    """Cases that fail, by their suite's finished runs, those of the latest begin first."""
    return [FailingCase(**row) for row in frame_records(history.query(_QUERY.replace("$last", str(int(last)))))]


def failure_groups(failing: Sequence[FailingCase]) -> list[tuple[FailingCase, ...]]:
    """Cases that began to fail in the same run, at the same stage and with the same message: most likely one cause."""
    groups: dict[tuple[str, ...], list[FailingCase]] = {}
    for case in failing:
        key = (case.suite, case.machine_class, case.since, case.toolchain, case.stage, case.message)
        groups.setdefault(key, []).append(case)
    return list(map(tuple, groups.values()))


def failures_verdict(failing: Sequence[FailingCase]) -> str:
    """How many cases fail, since when and why; "" where none does."""
    if not failing:
        return ""
    causes = failure_groups(failing)
    told = []
    for first, *others in causes[:_NAMED]:
        names = f"{first.case} and {plural(len(others), 'other')}" if others else first.case
        told.append(f"{names} since {first.since} ({first.toolchain}): {first.why}")
    left = sum(map(len, causes[_NAMED:]))
    more = f"; and {left} more" if left else ""
    fail = "case fails" if len(failing) == 1 else "cases fail"
    return f"{len(failing)} {fail}: {'; '.join(told)}{more}".rstrip(".") + "."


def failures_tables(failing: Sequence[FailingCase]) -> list[Table]:
    """Those that fail for one cause in one row; no table where there are none."""
    if not failing:
        return []
    groups = failure_groups(failing)
    cases = [group[0] for group in groups]
    names = []
    for group in groups:
        left = len(group) - _NAMED_OF_A_CAUSE
        more = [f"and {plural(left, 'more case')}"] if left > 0 else []
        names.append((*(case.case for case in group[:_NAMED_OF_A_CAUSE]), *more))
    return [
        Table(
            title="Cases that fail",
            columns=[
                Column("case", names, kind="name"),
                Column("suite", [case.suite for case in cases], rank=2),
                Column("machines", [case.machine_class for case in cases], rank=3),
                Column("since", [case.since for case in cases], kind="name"),
                Column("toolchain", [case.toolchain for case in cases], rank=1),
                Column("runs", [f"{case.runs:,}" for case in cases], kind="number"),
                Column("why", [case.why for case in cases], kind="sentence"),
            ],
            most=_MOST_ROWS,
            after=("--format json has all of them.",) if len(cases) > _MOST_ROWS else (),
        )
    ]
