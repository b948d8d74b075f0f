"""The points of the series in which changes were found, and of what helps to explain them, as arrays."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from harness.history.circumstances import Program

if TYPE_CHECKING:
    from harness.history.open import History

# How many series are loaded with one statement.
_AT_ONCE = 500
_NEXT_DEVICE = re.compile(r"; [^\s:;]+: ")


@dataclass(frozen=True, kw_only=True)
class RunFacts:
    """What a run recorded beside its cases.

    Attributes:
        devices: What each device is, with its driver's version, as `name: facts`, several with `; ` between.
        reference: Release of the toolchain that stays the same; "" where there was one only.
    """

    started: str
    machine: str
    kernel: str
    devices: str
    commit: str
    load: float | None
    reference: str

    def driver(self, device: str) -> str:
        """What a device is, with its driver's version; "" where the run does not say."""
        return _driver(self.devices, device)


@cache
def _driver(devices: str, device: str) -> str:
    """Thousands of runs say the same."""
    of_device = f"; {devices}".partition(f"; {device}: ")[2]
    return _NEXT_DEVICE.split(of_device)[0]


@dataclass(frozen=True, kw_only=True)
class Runs:
    """Runs in which changes are looked for, in order of time: finished ones whose clock was right."""

    ids: tuple[str, ...]
    facts: tuple[RunFacts, ...]


@dataclass(frozen=True, kw_only=True, eq=False)
class SeriesValues:
    """One series, in order of time.

    Attributes:
        series: Its id.
        places: Of each point's run among all runs.
    """

    series: str
    places: NDArray[np.int64]
    values: NDArray[np.float64]

    def values_at(self, places: NDArray[np.int64]) -> list[float]:
        """The values of those of these runs that have one."""
        found = np.searchsorted(self.places, places)
        found = found[found < self.places.size]
        return [float(one) for one in self.values[found[np.isin(self.places[found], places)]]]


def usable_runs(history: History) -> Runs:
    """Runs in which changes are looked for."""
    frame = history.query(
        "SELECT run, started, machine, kernel, devices, harness_commit, load_1min, reference FROM runs "
        "WHERE finished AND clock = '' ORDER BY started, run"
    )
    rows = list(frame.itertuples(index=False, name=None))
    return Runs(
        ids=tuple(str(row[0]) for row in rows),
        facts=tuple(
            RunFacts(
                started=str(started),
                machine=str(machine),
                kernel=str(kernel),
                devices=str(devices),
                commit=str(commit),
                load=float(load) if load == load else None,  # NaN: not known
                reference=reference if isinstance(reference, str) else "",
            )
            for _, started, machine, kernel, devices, commit, load, reference in rows
        ),
    )


def load_values(history: History, series: Iterable[str], runs: Runs) -> dict[str, SeriesValues]:
    """The points of these series in these runs; a series without any is left out."""
    wanted = sorted(set(series))
    found = {}
    for start in range(0, len(wanted), _AT_ONCE):
        found.update(_values(history, wanted[start : start + _AT_ONCE], runs))
    return found


def _values(history: History, wanted: Sequence[str], runs: Runs) -> dict[str, SeriesValues]:
    """Numbers alone come out of the database: a text for each point would take most of the time.

    Series lie in order of their ids, so that a range of ids reads little else.
    """
    frame = history.query(
        "SELECT chosen.number, usable.place, points.value FROM points "
        "JOIN (SELECT unnest(?::VARCHAR[]) AS series, unnest(range(?)) AS number) AS chosen USING (series) "
        "JOIN (SELECT unnest(?::VARCHAR[]) AS run, unnest(range(?)) AS place) AS usable USING (run) "
        "WHERE points.series BETWEEN ? AND ? ORDER BY chosen.number, usable.place",
        [list(wanted), len(wanted), list(runs.ids), len(runs.ids), wanted[0], wanted[-1]],
    )
    numbers, places = frame["number"].to_numpy(), frame["place"].to_numpy(dtype="int64")
    values = frame["value"].to_numpy(dtype="float64")
    edges = np.searchsorted(numbers, np.arange(len(wanted) + 1))
    return {
        name: SeriesValues(series=name, places=places[low:high], values=values[low:high])
        for name, low, high in zip(wanted, edges[:-1], edges[1:], strict=True)
        if high > low
    }


def load_programs(history: History, points: Collection[tuple[str, str]]) -> dict[tuple[str, str], Program]:
    """What points were made with, by series and run of each."""
    if not points:
        return {}
    series, runs = zip(*points, strict=True)
    frame = history.query(
        "SELECT series, run, toolchain, revision, module_sha256 FROM points "
        "JOIN (SELECT unnest(?::VARCHAR[]) AS series, unnest(?::VARCHAR[]) AS run) AS chosen USING (series, run)",
        [list(series), list(runs)],
    )
    return {
        (str(name), str(run)): Program(toolchain=str(toolchain), revision=str(revision), module_sha256=str(module))
        for name, run, toolchain, revision, module in frame.itertuples(index=False, name=None)
    }
