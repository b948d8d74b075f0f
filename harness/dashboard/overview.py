"""What pages tell of suites and machines: what changed lately, what fails, how each last run went, whom to trust.

A template shows each value by its name.
"""

import statistics
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np

from harness.dashboard.encode import metric_title, seconds
from harness.dashboard.gather import Acknowledgements, Gathered
from harness.dashboard.heat_map import heat_maps
from harness.history.changes import Change
from harness.history.failures import failing_cases, failure_groups
from harness.metrics import FLOORS, is_exact

LATELY_DAYS = 30  # before the newest run
_RECENT = 10  # runs whose noise stands for the machine today
_SERIES = 5  # of one group
_SERIES_COUNTED = 2  # where only counted figures changed, which many cases often do alike
Facts = dict[str, Any]


# --- Machines ---


def machines(gathered: Gathered) -> list[Facts]:
    """Every class of machines, the one that ran last first."""
    health = [_health(name, runs) for name, runs in _by_machine(gathered).items()]
    return sorted(health, key=lambda machine: str(machine["last"]), reverse=True)


def _by_machine(gathered: Gathered) -> dict[str, list[Facts]]:
    runs: dict[str, list[Facts]] = defaultdict(list)
    for row in gathered.run_rows:
        runs[row["machine_class"]].append(row)
    return runs


def _health(name: str, runs: Sequence[Facts]) -> Facts:
    def lately(fact: str) -> float | None:
        """The median of the last runs that have this figure."""
        values = [run[fact] for run in runs[-_RECENT:] if run[fact] is not None]
        return statistics.median(values) if values else None

    checked = {run["selfcheck_when"]: run for run in runs if run["selfcheck_when"] is not None}
    return {
        "name": name,
        "runs": len(runs),
        "last": runs[-1]["started"],
        "noise": lately("noise"),
        "load": lately("load_1min"),
        "selfchecks": list(reversed(checked.values())),  # runs whose selfchecks differ, the newest first
    }


# --- Suites ---


def suites(gathered: Gathered, known: Acknowledgements) -> list[Facts]:
    """Every suite, those with the newest runs first, and of each what changed lately and what fails."""
    groups, maps, failing = _groups(gathered, known), heat_maps(gathered), _failures(gathered)
    series = gathered.series["suite"].value_counts()
    runs: dict[str, list[Facts]] = defaultdict(list)
    for row in gathered.run_rows:
        runs[row["suite"]].append(row)
    facts = [
        {
            "name": name,
            "last": rows[-1],
            "runs": len(rows),
            "series": int(series.get(name, 0)),
            "maps": maps.get(name, []),
            "groups": groups[name],
            "failing": failing[name],
        }
        for name, rows in runs.items()
    ]
    return sorted(facts, key=lambda suite: str(suite["last"]["started"]), reverse=True)


def known_changes(gathered: Gathered, known: Acknowledgements) -> list[Facts]:
    """Changes of the last 30 days of the history that are acknowledged or marked as fixed, the newest first."""
    recent = set(lately(gathered))
    return [
        {"change": event.lead, "cases": len(event.cases), "said": known.text(event.lead)}
        for event in known.events
        if not recent.isdisjoint(event.changes)
    ]


def _failures(gathered: Gathered) -> dict[str, list[Facts]]:
    """By suite the cases that fail, once a cause, the latest first."""
    whole = [row for row in gathered.run_rows if row["finished"] and not row["clock"]]
    last = {(row["suite"], row["machine_class"]): row for row in whole}
    failures: dict[str, list[Facts]] = defaultdict(list)
    for group in failure_groups(failing_cases(gathered.history, last=1)):
        first = group[0]
        where = f"failed at {first.stage}" if first.stage else "failed" if first.message else "missing"
        cases = [{"case": case.case, "name": gathered.name_numbers[case.suite, case.case]} for case in group]
        facts = {"first": first, "last": last[first.suite, first.machine_class], "where": where, "cases": cases}
        failures[first.suite].append(facts)
    return failures


def lately(gathered: Gathered) -> list[Change]:
    """Changes of the last 30 days of the history, the newest first.

    Those of the reference toolchain are left out, and those of a size that are below its floor, as in comparisons.
    """
    if gathered.runs.empty:
        return []
    newest = seconds(gathered.runs["started"].iloc[-1])
    changes = (change for change in gathered.changes if change.role != "reference" and not is_small(change))
    recent = [change for change in changes if newest - seconds(change.started) <= LATELY_DAYS * 86_400]
    return sorted(recent, key=lambda change: change.started, reverse=True)


def is_small(change: Change) -> bool:
    """Whether it is a counted figure's, and below the metric's floor: a module that grew by 0.06 %."""
    return is_exact(change.metric) and abs(change.ratio - 1) < FLOORS.get(change.metric, 0.0)


def _groups(gathered: Gathered, known: Acknowledgements) -> dict[str, list[Facts]]:
    """By suite, new changes that came with one run and have one cause."""
    bundles: dict[tuple[str, str, str], list[Change]] = defaultdict(list)
    for change in lately(gathered):
        if not known.settled(change):
            bundles[change.suite, change.first_bad, change.cause].append(change)
    groups: dict[str, list[Facts]] = defaultdict(list)
    for (suite, _, _), bundle in bundles.items():
        groups[suite].append(_group(gathered, known, bundle))
    return groups


def _group(gathered: Gathered, known: Acknowledgements, changes: Sequence[Change]) -> Facts:
    # Times before counted figures, and the largest first: what people look for.
    ordered = sorted(changes, key=lambda change: (change.unit != "ns", -abs(np.log(max(change.ratio, 1e-9)))))
    most = _SERIES if any(change.unit in ("ns", "ratio") for change in changes) else _SERIES_COUNTED
    worse, first = sum(change.is_worse for change in changes), ordered[0]
    return {
        "first": first,  # of which cause, evidence and toolchains are said
        "about": f"{first.case}, {metric_title(first.metric).lower()}",
        "commits": _commits(gathered, first),
        "worse": worse,
        "better": len(changes) - worse,
        "lines": [_line(gathered, change) for change in ordered[:most]],
        "more": max(0, len(changes) - most),
        "said": known.text(first),
    }


def _line(gathered: Gathered, change: Change) -> Facts:
    days = [str(_run(gathered, run).get("started", ""))[:10] or run for run in (change.earliest, change.latest)]
    return {"change": change, "note": "" if change.earliest == change.latest else " to ".join(days)}


def _run(gathered: Gathered, run: str) -> Facts:
    number = gathered.run_numbers.get(run)
    return {} if number is None else gathered.run_rows[number]


def _commits(gathered: Gathered, change: Change) -> tuple[str, str] | None:
    """The two revisions of IREE, where it is what ran and both are known and differ."""
    if change.peer or change.toolchain_before == change.toolchain_after:
        return None  # whatever else IREE's version was in these runs
    before, after = (_run(gathered, run).get("revision") for run in (change.last_good, change.first_bad))
    return (before, after) if before and after and before != after else None
