"""How far each machine can be trusted: its false alarms, its noise, and what became different on it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import pandas as pd

from harness.dashboard.comparison_data import ComparisonFacts
from harness.dashboard.gather import Gathered
from harness.stats.rates import rate_bounds

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


@dataclass(frozen=True, kw_only=True)
class Selfcheck:
    """A check of a machine against itself; `bound` is the upper end of the rate's 95 % interval."""

    when: str
    flagged: int
    rows: int
    bound: float | None
    detects: float | None


@dataclass(frozen=True, kw_only=True)
class MachineHealth:
    """One class of machines.

    Attributes:
        noise: Median of its last ten runs' spreads between generations.
        selfchecks: The newest first.
    """

    name: str
    runs: int
    last: str
    noise: float | None
    load: float | None
    selfchecks: tuple[Selfcheck, ...]


@dataclass(frozen=True, kw_only=True)
class Controls:
    """A/A controls of the comparisons that were made on one machine.

    Attributes:
        bound: Exact upper end of the 95 % interval of the rate.
    """

    machine: str
    comparisons: int
    rows: int
    flagged: int
    bound: float


@dataclass(frozen=True, kw_only=True)
class MachineChange:
    """What was different from one run to the next on machines of one class."""

    run: str
    key: str
    started: str
    name: str
    what: str
    before: str
    after: str


def machines(gathered: Gathered) -> list[MachineHealth]:
    """Every class of machines, the one that ran last first."""
    found = [_health(str(name), runs) for name, runs in gathered.runs.groupby("machine_class", sort=False)]
    return sorted(found, key=lambda one: one.last, reverse=True)


def _health(name: str, runs: pd.DataFrame) -> MachineHealth:
    checked = runs.dropna(subset=["selfcheck_when"]).drop_duplicates("selfcheck_when", keep="last")
    recent = runs.tail(_RECENT)
    return MachineHealth(
        name=name,
        runs=len(runs),
        last=str(runs["started"].iloc[-1]),
        noise=_number(recent["noise"].median()),
        load=_number(recent["load_1min"].median()),
        selfchecks=tuple(
            Selfcheck(
                when=str(row["selfcheck_when"]),
                flagged=int(row["selfcheck_flagged"]),
                rows=int(row["selfcheck_rows"]),
                bound=_number(row["selfcheck_bound"]),
                detects=_number(row["selfcheck_detects"]),
            )
            for row in reversed(checked.to_dict("records"))
        ),
    )


def controls(comparisons: Sequence[ComparisonFacts]) -> list[Controls]:
    """What the controls of all comparisons say of each machine."""
    found = []
    for machine in dict.fromkeys(one.machine for one in comparisons if one.controls):
        here = [one for one in comparisons if one.machine == machine and one.controls]
        rows, flagged = sum(one.controls for one in here), sum(one.flagged for one in here)
        bound = rate_bounds(flagged, rows)[1]
        found.append(Controls(machine=machine, comparisons=len(here), rows=rows, flagged=flagged, bound=bound))
    return found


def machine_changes(gathered: Gathered) -> list[MachineChange]:
    """Everything that became different, the newest first."""
    found = [
        change
        for name, runs in gathered.runs.groupby("machine_class", sort=False)
        for before, after in pairwise(runs.to_dict("records"))
        for change in _differences(str(name), before, after)
    ]
    return sorted(found, key=lambda change: change.started, reverse=True)


def _differences(name: str, before: dict[Any, Any], after: dict[Any, Any]) -> Iterator[MachineChange]:
    for column, what in _FACTS.items():
        pair = _word(before.get(column)), _word(after.get(column))
        if pair[0] != pair[1] and all(pair):  # what an older run did not record is no difference
            yield MachineChange(
                run=str(after["run"]),
                key=str(after["key"]),
                started=str(after["started"]),
                name=name,
                what=what,
                before=pair[0],
                after=pair[1],
            )


def _word(value: Any) -> str:
    return "" if value is None or pd.isna(value) else str(value)


def _number(value: Any) -> float | None:
    return None if value is None or pd.isna(value) else float(value)
