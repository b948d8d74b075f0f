"""What pages tell of suites and machines: what changed lately, what fails, how each last run went, whom to trust."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from harness.dashboard.comparisons import ComparisonFacts
from harness.dashboard.encode import metric_title, seconds, spark_path, sparkline
from harness.dashboard.gather import Gathered, Known, Word
from harness.dashboard.heat_map import HeatMap, heat_maps
from harness.history.changes import Change
from harness.history.failures import CaseNews, case_news, failure_groups
from harness.metrics import FLOORS, is_exact
from harness.stats.intervals import rate_bounds

_RECENT = 10  # runs whose noise stands for the machine today
# Columns of a run that tell what the machine and the harness on it are, in words.
_FACTS = {
    "machine": "machine",
    "cpu": "processor",
    "cores": "cores",
    "kernel": "kernel",
    "devices": "devices",
    "harness_version": "harness",
    "harness_commit": "harness commit",
}

RunRow = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class MachineHealth:
    """One class of machines."""

    name: str
    runs: int
    last: str
    noise: float | None  # Median of its last ten runs' spreads between generations
    load: float | None  # Median of their load
    selfchecks: tuple[RunRow, ...]  # Rows of the table `runs` whose selfchecks differ, the newest first


@dataclass(frozen=True, kw_only=True)
class Controls:
    """A/A controls of the comparisons that were made on one machine."""

    machine: str
    comparisons: int
    rows: int
    flagged: int
    bound: float  # Exact upper end of the 95 % interval of the rate


@dataclass(frozen=True, kw_only=True)
class MachineChange:
    """What was different in a run from the run before it on machines of one class."""

    run: RunRow
    what: str
    before: str
    after: str


def machines(gathered: Gathered) -> list[MachineHealth]:
    """Every class of machines, the one that ran last first."""
    health = [_health(name, runs) for name, runs in _by_machine(gathered).items()]
    return sorted(health, key=lambda machine: machine.last, reverse=True)


def _by_machine(gathered: Gathered) -> dict[str, list[RunRow]]:
    runs: dict[str, list[RunRow]] = defaultdict(list)
    for row in gathered.run_rows:
        runs[row["machine_class"]].append(row)
    return runs


def _health(name: str, runs: Sequence[RunRow]) -> MachineHealth:
    checked = {run["selfcheck_when"]: run for run in runs if run["selfcheck_when"] is not None}
    noise, load = ([run[fact] for run in runs[-_RECENT:] if run[fact] is not None] for fact in ("noise", "load_1min"))
    return MachineHealth(
        name=name,
        runs=len(runs),
        last=runs[-1]["started"],
        noise=statistics.median(noise) if noise else None,
        load=statistics.median(load) if load else None,
        selfchecks=tuple(reversed(checked.values())),
    )


def controls(comparisons: Sequence[ComparisonFacts]) -> list[Controls]:
    """What the controls of all comparisons say of each machine."""
    by_machine: dict[str, list[ComparisonFacts]] = defaultdict(list)
    for facts in comparisons:
        if facts.controls:
            by_machine[facts.machine].append(facts)
    sums = {
        machine: (len(own), sum(facts.controls for facts in own), sum(facts.flagged for facts in own))
        for machine, own in by_machine.items()
    }
    return [
        Controls(machine=machine, comparisons=number, rows=rows, flagged=flagged, bound=rate_bounds(flagged, rows)[1])
        for machine, (number, rows, flagged) in sums.items()
    ]


def machine_changes(gathered: Gathered) -> list[MachineChange]:
    """Everything that became different, the newest first."""
    changes = [
        change
        for runs in _by_machine(gathered).values()
        for before, after in pairwise(runs)
        for change in _differences(before, after)
    ]
    return sorted(changes, key=lambda change: change.run["started"], reverse=True)


def _differences(before: RunRow, after: RunRow) -> Iterator[MachineChange]:
    for column, what in _FACTS.items():
        values = ["" if run.get(column) is None else str(run[column]) for run in (before, after)]
        if values[0] != values[1] and all(values):  # what an older run did not record is no difference
            yield MachineChange(run=after, what=what, before=values[0], after=values[1])


LATELY_DAYS = 30  # before the newest run
SPARK_WIDTH, SPARK_HEIGHT = 120.0, 20.0
_MOST_GROUPS = 12  # of one suite
_MOST_FAILING = 20  # causes of one suite
_MOST_NAMES = 12  # cases of one cause
_OLDER = 4  # groups altogether, where nothing changed lately
_SERIES = 5  # of one group
_SERIES_COUNTED = 2  # where only counted figures changed, which many cases often do alike


@dataclass(frozen=True, kw_only=True)
class ChangedSeries:
    """One line of a group."""

    change: Change
    path: str  # The course of the series, as the `d` of an SVG path
    note: str  # When else it began: the range of runs that it may have been


@dataclass(frozen=True, kw_only=True)
class Group:
    """Changes that came with one run and have one cause."""

    first: Change  # The one that the cause, the evidence and the toolchains are said of
    commits: tuple[str, str] | None  # The two revisions of IREE, where it is what ran and both are known and differ
    worse: int
    better: int
    lines: tuple[ChangedSeries, ...]  # The series that are listed
    more: int  # How many are not
    word: Word | None  # What was said of the first, where it came back

    @property
    def about(self) -> str:
        """The series that its sentence is about."""
        return f"{self.first.case}, {metric_title(self.first.metric).lower()}"


@dataclass(frozen=True, kw_only=True)
class FailedCase:
    """A case that fails, and its place among `Gathered.names`."""

    case: str
    name: int


@dataclass(frozen=True, kw_only=True)
class Failure:
    """Cases that fail for one cause."""

    first: CaseNews  # The case that cause and beginning are said of
    cases: tuple[FailedCase, ...]  # All of them
    last: dict[str, Any]  # The run that they were seen in, a row of the table `runs`

    @property
    def listed(self) -> tuple[FailedCase, ...]:
        """Those that there is room for."""
        return self.cases[:_MOST_NAMES]

    @property
    def more(self) -> int:
        """How many there is no room for."""
        return len(self.cases) - len(self.listed)

    @property
    def where(self) -> str:
        """`failed at compile`, or `missing`."""
        if self.first.stage:
            return f"failed at {self.first.stage}"
        return "failed" if self.first.message else "missing"


@dataclass(frozen=True, kw_only=True)
class SuiteFacts:
    """A suite, its last run as a row of the table `runs`, and what changed lately, newest first."""

    name: str
    last: dict[str, Any]
    runs: int
    series: int
    maps: tuple[HeatMap, ...]  # Its cases as heat maps, one a device
    groups: tuple[Group, ...]
    more_groups: int
    failing: tuple[Failure, ...]  # What fails in its last run, once a cause
    more_failing: int


@dataclass(frozen=True, kw_only=True)
class KnownChange:
    """A change that somebody knows of, in how many cases it is seen, and what was said of it."""

    change: Change
    cases: int
    word: Word


def known_changes(gathered: Gathered, known: Known) -> list[KnownChange]:
    """Changes of the last 30 days of the history that are acknowledged or marked as fixed, the newest first."""
    recent = set(lately(gathered))
    found = []
    for event in known.events:
        word = known.word(event.lead)
        if event.settled and word is not None and not recent.isdisjoint(event.changes):
            found.append(KnownChange(change=event.lead, cases=len(event.cases), word=word))
    return found


def suites(gathered: Gathered, known: Known) -> list[SuiteFacts]:
    """Every suite, those with the newest runs first."""
    groups = _groups(gathered, known)
    maps = heat_maps(gathered)
    failing = _failures(gathered)
    series = gathered.series["suite"].value_counts()
    runs: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in gathered.run_rows:
        runs[row["suite"]].append(row)
    facts = [
        SuiteFacts(
            name=name,
            last=rows[-1],
            runs=len(rows),
            series=int(series.get(name, 0)),
            maps=tuple(maps.get(name, ())),
            groups=tuple(groups[name][:_MOST_GROUPS]),
            more_groups=max(0, len(groups[name]) - _MOST_GROUPS),
            failing=tuple(failing[name][:_MOST_FAILING]),
            more_failing=sum(len(failure.cases) for failure in failing[name][_MOST_FAILING:]),
        )
        for name, rows in runs.items()
    ]
    return sorted(facts, key=lambda suite: suite.last["started"], reverse=True)


def _failures(gathered: Gathered) -> dict[str, list[Failure]]:
    """By suite, the latest first."""
    news = [case for case in case_news(gathered.history, last=1) if case.state == "fails"]
    last = {
        (row["suite"], row["machine_class"]): row for row in gathered.run_rows if row["finished"] and not row["clock"]
    }
    failures: dict[str, list[Failure]] = defaultdict(list)
    for group in failure_groups(news):
        cases = [FailedCase(case=case.case, name=gathered.name_numbers[case.suite, case.case]) for case in group]
        first = group[0]
        failures[first.suite].append(
            Failure(first=first, cases=tuple(cases), last=last[first.suite, first.machine_class])
        )
    return failures


def lately(gathered: Gathered) -> list[Change]:
    """Changes of the last 30 days of the history, the newest first.

    Those of the reference toolchain are left out, and those of a size that are below its floor, as in comparisons.
    """
    if gathered.runs.empty:
        return []
    newest = seconds(gathered.runs["started"].iloc[-1])
    return [change for change in _newest_first(gathered) if newest - seconds(change.started) <= LATELY_DAYS * 86_400]


def is_small(change: Change) -> bool:
    """Whether it is a counted figure's, and below the metric's floor: a module that grew by 0.06 %."""
    return is_exact(change.metric) and abs(change.ratio - 1) < FLOORS.get(change.metric, 0.0)


def _newest_first(gathered: Gathered) -> list[Change]:
    changes = (change for change in gathered.changes if change.role != "reference" and not is_small(change))
    return sorted(changes, key=lambda change: change.started, reverse=True)


def _groups(gathered: Gathered, known: Known) -> dict[str, list[Group]]:
    """By suite, changes that belong together and are new; where nothing changed lately, the newest of any age."""
    bundles: dict[tuple[str, str, str], list[Change]] = defaultdict(list)
    changes = lately(gathered)
    for change in changes or _newest_first(gathered):
        if known.settled(change):
            continue
        bundles[change.suite, change.first_bad, change.cause].append(change)
    groups: dict[str, list[Group]] = defaultdict(list)
    for (suite, _, _), bundle in list(bundles.items())[: None if changes else _OLDER]:
        groups[suite].append(_group(gathered, known, bundle))
    return groups


def _group(gathered: Gathered, known: Known, changes: Sequence[Change]) -> Group:
    # Times before counted figures, and the largest first: what people look for.
    ordered = sorted(changes, key=lambda change: (change.unit != "ns", -abs(np.log(max(change.ratio, 1e-9)))))
    most = _SERIES if any(change.unit in ("ns", "ratio") for change in changes) else _SERIES_COUNTED
    worse = sum(change.is_worse for change in changes)
    return Group(
        first=ordered[0],
        commits=_commits(gathered, ordered[0]),
        worse=worse,
        better=len(changes) - worse,
        lines=tuple(_line(gathered, change) for change in ordered[:most]),
        more=max(0, len(changes) - most),
        word=known.word(ordered[0]),
    )


def _line(gathered: Gathered, change: Change) -> ChangedSeries:
    points = gathered.points_by_series.get(change.series)
    course = "" if points is None else sparkline(points["value"].to_numpy(np.float64))
    days = [str(_run(gathered, run).get("started", ""))[:10] or run for run in (change.earliest, change.latest)]
    return ChangedSeries(
        change=change,
        path=spark_path(course, SPARK_WIDTH, SPARK_HEIGHT),
        note="" if change.earliest == change.latest else " to ".join(days),
    )


def _run(gathered: Gathered, run: str) -> dict[str, Any]:
    number = gathered.run_numbers.get(run)
    return {} if number is None else gathered.run_rows[number]


def _commits(gathered: Gathered, change: Change) -> tuple[str, str] | None:
    if change.peer or change.toolchain_before == change.toolchain_after:
        return None  # whatever else IREE's version was in these runs
    before, after = (_run(gathered, run).get("revision") for run in (change.last_good, change.first_bad))
    return (before, after) if before and after and before != after else None
