"""How far each machine can be trusted: its false alarms, its noise, and what became different on it."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from harness.dashboard.comparisons import ComparisonFacts
from harness.dashboard.gather import Gathered
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
