"""Which cases fail in their suite's last run and since when, which work again, and which are new.

A case that fails has no figures, so its series end and no change is found in them: only the table `cases` has it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from harness.history.series import History

State = Literal["fails", "works again", "new"]

# A case is the same as long as its name is, since what makes it work again may well be another flag. Skipped cases are
# as if they had not been planned. `place` counts a suite's runs on machines of a class from the last, which is 0.
_QUERY = """
WITH placed AS (
    SELECT run, suite, machine_class, started,
           row_number() OVER (PARTITION BY suite, machine_class ORDER BY started DESC, run DESC) - 1 AS place,
           count(*) OVER (PARTITION BY suite, machine_class) AS length
    FROM runs
    WHERE finished AND clock = ''
), outcomes AS (
    SELECT suite, machine_class, "case", max(place) AS earliest, min(place) FILTER (bad) AS latest_bad,
           min(place) FILTER (NOT bad) AS latest_good
    FROM (
        SELECT placed.suite, machine_class, place, cases."case" AS "case", status IN ('failed', 'missing') AS bad
        FROM cases JOIN placed ON cases.run = placed.run
        WHERE "role" = 'newest' AND status NOT IN ('skipped', 'not measured yet')
    )
    GROUP BY ALL
    HAVING min(place) = 0 AND (latest_bad IS NOT NULL OR earliest < $last)
)
SELECT suite, machine_class, "case", length,
       any_value(coalesce(latest_bad, -1)) = 0 AS fails, any_value(earliest) AS earliest, max(place) AS since_place,
       arg_max(run, place) AS since, arg_max(started, place) AS started, arg_max(toolchain, place) AS toolchain,
       count(*) AS runs,
       arg_min(status, place) AS status, arg_min(stage, place) AS stage, arg_min(message, place) AS message
FROM (
    SELECT placed.*, cases."case" AS "case", toolchain, status, stage, message, earliest, latest_bad, latest_good
    FROM cases JOIN placed ON cases.run = placed.run
    JOIN outcomes ON outcomes.suite = placed.suite AND outcomes.machine_class = placed.machine_class
                  AND outcomes."case" = cases."case"
    WHERE "role" = 'newest' AND status NOT IN ('skipped', 'not measured yet')
)
WHERE place < coalesce(CASE WHEN latest_bad = 0 THEN latest_good ELSE latest_bad END, length)
GROUP BY suite, machine_class, "case", length
HAVING fails OR since_place < $last
ORDER BY since_place, suite, machine_class, "case"
"""


@dataclass(frozen=True, kw_only=True)
class CaseNews:
    """What became of one case lately, under the newest toolchain."""

    state: State  # `fails` in its suite's last run; `works again` after it failed; `new`: not in earlier runs
    suite: str
    case: str
    machine_class: str  # As in the table `runs`
    since: str  # The run since which it is so without a break
    started: str  # When that began, ISO 8601 in UTC
    toolchain: str  # Release of IREE in that run
    runs: int  # In how many runs it has been so, `since` and the last among them
    stage: str  # Where a case that fails did so in the last run; "" of other cases, and of a case that is missing there
    message: str  # Why; "" of the same
    recent: bool  # Whether `since` is among the last runs that were asked for


def failure_groups(failing: Sequence[CaseNews]) -> list[tuple[CaseNews, ...]]:
    """Cases that began to fail in the same run, at the same stage and with the same message: most likely one cause."""
    groups: dict[tuple[str, ...], list[CaseNews]] = {}
    for case in failing:
        key = (case.suite, case.machine_class, case.since, case.toolchain, case.stage, case.message)
        groups.setdefault(key, []).append(case)
    return list(map(tuple, groups.values()))


def case_news(history: History, last: int) -> list[CaseNews]:
    """Cases that fail, work again or are new, by their suite's finished runs; those that fail come first."""
    frame = history.query(_QUERY.replace("$last", str(int(last))))
    news = []
    for row in frame.itertuples(index=False, name=None):
        values: dict[str, Any] = dict(zip(frame.columns, row, strict=True))
        length, earliest = int(values.pop("length")), int(values.pop("earliest"))
        fails, place = bool(values.pop("fails")), int(values.pop("since_place"))
        always = place == earliest
        expected = values.pop("status") == "expected failure"  # which is no failure, and does not work either
        if not fails and (earliest == length - 1 if always else expected):
            continue
        values["runs"] = int(values["runs"])
        if not fails:
            values |= {"stage": "", "message": ""}
        state: State = "fails" if fails else "new" if always else "works again"
        news.append(CaseNews(state=state, recent=place < last, **values))
    order: tuple[State, ...] = ("fails", "works again", "new")
    return sorted(news, key=lambda case: order.index(case.state))
