"""What the first page tells of suites: what changed lately, and how the last run of each went."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np

from harness.dashboard.coding import key_of
from harness.dashboard.failing import failing_cases
from harness.dashboard.gather import Gathered
from harness.dashboard.series_data import bounds
from harness.dashboard.spark import spark_path, sparkline
from harness.dashboard.words import figure, metric_title, moved
from harness.history.changes import Change
from harness.history.failures import CaseNews

LATELY_DAYS = 30  # before the newest run
_GROUPS = 12  # of one suite
_FAILING = 20  # of one suite
_OLDER = 4  # altogether, where nothing changed lately
_SHOWN = 5  # series of one group
_SHOWN_COUNTED = 2  # where only counted figures changed, which many cases often do alike
SPARK_WIDTH, SPARK_HEIGHT = 120.0, 20.0


@dataclass(frozen=True, kw_only=True)
class ChangedSeries:
    """One line of a group.

    Attributes:
        path: The course of the series, as the `d` of an SVG path.
        change: `+12.0 %`.
        note: When else it began: the range of runs that it may have been.
    """

    key: str
    case: str
    metric: str
    path: str
    change: str
    worse: bool
    before: str
    after: str
    kind: str
    note: str


@dataclass(frozen=True, kw_only=True)
class Group:
    """Changes that came with one run and have one cause.

    Attributes:
        key: Of the first bad run.
        commits: The two revisions of IREE, where it is what ran and both are known and differ.
        of: The series that cause, evidence and toolchains are said of.
        more: How many series are not shown.
    """

    run: str
    key: str
    started: str
    cause: str
    evidence: str
    before: str
    after: str
    commits: tuple[str, str] | None
    of: str
    worse: int
    better: int
    shown: tuple[ChangedSeries, ...]
    more: int


@dataclass(frozen=True, kw_only=True)
class SuiteFacts:
    """A suite, its last run, what fails in it, and what changed lately, newest first."""

    name: str
    key: str
    run: str
    started: str
    toolchain: str
    machine: str
    cases: int
    measured: int
    failed: int
    missing: int
    noise: float | None
    runs: int
    series: int
    finished: bool
    groups: tuple[Group, ...]
    more_groups: int
    failing: tuple[CaseNews, ...]
    more_failing: int


def suites(gathered: Gathered) -> list[SuiteFacts]:
    """Every suite, those with the newest runs first."""
    groups = _groups(gathered)
    failing = failing_cases(gathered)
    counts = gathered.series["suite"].value_counts()
    found = []
    for name, runs in gathered.runs.groupby("suite", sort=False):
        last = runs.iloc[-1]
        listed = groups.get(str(name), [])
        broken = failing.get(str(name), [])
        found.append(
            SuiteFacts(
                name=str(name),
                key=str(last["key"]),
                run=str(last["run"]),
                started=str(last["started"]),
                toolchain=str(last["toolchain"]),
                machine=str(last["machine_class"]),
                cases=int(last["cases"]),
                measured=int(last["measured"]),
                failed=int(last["failed"]),
                missing=int(last["missing"]),
                noise=float(last["noise"]) if last["noise"] == last["noise"] and last["noise"] is not None else None,
                runs=len(runs),
                series=int(counts.get(name, 0)),
                finished=bool(last["finished"]),
                groups=tuple(listed[:_GROUPS]),
                more_groups=max(0, len(listed) - _GROUPS),
                failing=tuple(broken[:_FAILING]),
                more_failing=max(0, len(broken) - _FAILING),
            )
        )
    return sorted(found, key=lambda suite: suite.started, reverse=True)


def lately(gathered: Gathered) -> list[Change]:
    """Changes of the last 30 days of the history, the newest first; those of the reference toolchain left out."""
    if gathered.runs.empty:
        return []
    newest = _seconds(str(gathered.runs["started"].iloc[-1]))
    return [change for change in _newest_first(gathered) if newest - _seconds(change.started) <= LATELY_DAYS * 86_400]


def _newest_first(gathered: Gathered) -> list[Change]:
    told = (change for change in gathered.changes if change.role != "reference")
    return sorted(told, key=lambda change: change.started, reverse=True)


def _groups(gathered: Gathered) -> dict[str, list[Group]]:
    bundles: dict[tuple[str, str, str], list[Change]] = defaultdict(list)
    found_lately = lately(gathered)
    for change in found_lately or _newest_first(gathered):
        bundles[change.suite, change.first_bad, change.cause].append(change)
    if not found_lately:  # the newest of any age are better than nothing
        bundles = dict(list(bundles.items())[:_OLDER])
    courses = _Courses(gathered)
    found: dict[str, list[Group]] = defaultdict(list)
    for (suite, _, _), changes in bundles.items():
        found[suite].append(_group(changes, courses))
    return found


def _group(changes: Sequence[Change], courses: _Courses) -> Group:
    # Times before counted figures, and the largest first: what people look for.
    ordered = sorted(changes, key=lambda one: (one.unit != "ns", -abs(np.log(max(one.ratio, 1e-9)))))
    first = ordered[0]
    shown = _SHOWN if any(change.unit in ("ns", "ratio") for change in changes) else _SHOWN_COUNTED
    return Group(
        run=first.first_bad,
        key=key_of(first.first_bad),
        started=first.started,
        cause=first.cause,
        evidence=first.evidence,
        before=first.toolchain_before,
        after=first.toolchain_after,
        commits=courses.revisions(first),
        of=f"{first.case}, {metric_title(first.metric).lower()}",
        worse=sum(change.is_worse for change in changes),
        better=sum(not change.is_worse for change in changes),
        shown=tuple(_line(change, courses) for change in ordered[:shown]),
        more=max(0, len(changes) - shown),
    )


def _line(change: Change, courses: _Courses) -> ChangedSeries:
    sure = change.earliest == change.latest
    return ChangedSeries(
        key=key_of(change.series),
        case=change.case,
        metric=metric_title(change.metric),
        path=courses.path(change.series),
        change=moved(change.ratio),
        worse=change.is_worse,
        before=figure(change.before, change.unit),
        after=figure(change.after, change.unit),
        kind=change.kind,
        note="" if sure else f"{courses.day(change.earliest)} to {courses.day(change.latest)}",
    )


class _Courses:
    """What lines need of series and runs, looked up as they are made."""

    def __init__(self, gathered: Gathered) -> None:
        self._values = gathered.points["value"].to_numpy(np.float64)
        self._bounds = dict(zip(gathered.series["series"], bounds(gathered), strict=True))
        self._started = dict(zip(gathered.runs["run"], gathered.runs["started"], strict=True))
        peers = gathered.names["peer"].to_numpy()[gathered.series["name_number"].to_numpy(np.int64)]
        self._peer = dict(zip(gathered.series["series"], peers, strict=True))
        self._revision = dict(zip(gathered.runs["run"], gathered.runs["revision"], strict=True))

    def path(self, series: str) -> str:
        start, end = self._bounds.get(series, (0, 0))
        return spark_path(sparkline(self._values[start:end]), SPARK_WIDTH, SPARK_HEIGHT)

    def day(self, run: str) -> str:
        return str(self._started.get(run, ""))[:10] or run

    def revisions(self, change: Change) -> tuple[str, str] | None:
        if self._peer.get(change.series) or change.toolchain_before == change.toolchain_after:
            return None  # whatever else IREE's version was in these runs
        pair = tuple(str(self._revision.get(run, "")) for run in (change.last_good, change.first_bad))
        return (pair[0], pair[1]) if all(pair) and pair[0] != pair[1] else None


def _seconds(started: str) -> float:
    try:
        return datetime.fromisoformat(started.replace("Z", "+00:00")).timestamp()
    except ValueError:
        return 0.0
