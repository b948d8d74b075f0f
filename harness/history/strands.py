"""The points of the series in which changes were found, and of what helps to explain them, as arrays."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from harness.compare.metrics import BUILD_FACTS, INSTRUCTIONS, LATENCY, REFERENCE_FACTS
from harness.history.points import TIMED_METRICS
from harness.history.series import LATENCY_VS_REFERENCE
from harness.history.series_view import SeriesRow
from harness.history.values import Role

if TYPE_CHECKING:
    from harness.history.open import History

# How many series are loaded with one statement.
_AT_ONCE = 500
# The version's own text is in every module, so its size changes with every release and shows nothing else.
_NO_EVIDENCE = "module-size"
_COUNTED = frozenset(metric.name for metric in (INSTRUCTIONS, *BUILD_FACTS, *REFERENCE_FACTS)) - {_NO_EVIDENCE}


@dataclass(frozen=True, kw_only=True)
class RunFacts:
    """What a run recorded beside its cases.

    Attributes:
        reference: Release of the toolchain that stays the same; "" where there was one only.
    """

    started: str
    machine: str
    kernel: str
    devices: str
    commit: str
    load: float | None
    reference: str


@dataclass(frozen=True, kw_only=True)
class Runs:
    """Runs in which changes are looked for, in order of time: finished ones whose clock was right."""

    ids: tuple[str, ...]
    facts: tuple[RunFacts, ...]


@dataclass(frozen=True, kw_only=True, eq=False)
class Strand:
    """One series, in order of time.

    Attributes:
        places: Of each point's run among all runs.
    """

    places: NDArray[np.int64]
    values: NDArray[np.float64]

    def values_at(self, places: NDArray[np.int64]) -> list[float]:
        """The values of those of these runs that have one."""
        found = np.searchsorted(self.places, places)
        found = found[found < self.places.size]
        return [float(one) for one in self.values[found[np.isin(self.places[found], places)]]]


CaseKey = tuple[str, str, str, str]
Kin = Mapping[tuple[str, Role], Strand]


def case_key(row: SeriesRow) -> CaseKey:
    """What a series shares with the others of its case on the same machines: what explains it is among those."""
    return (row.suite, row.case_id, row.machine_class, row.case)


def is_exact(metric: str) -> bool:
    """Whether equal code gives equal values of a metric, so that any difference is a change."""
    return metric not in TIMED_METRICS


def is_counted(metric: str) -> bool:
    """Whether a figure shows that a program is another one."""
    return metric in _COUNTED or "/" in metric


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


def load_strands(history: History, series: Iterable[str], runs: Runs) -> dict[str, Strand]:
    """The points of these series in these runs; a series without any is left out."""
    wanted = sorted(set(series))
    found = {}
    for start in range(0, len(wanted), _AT_ONCE):
        found.update(_strands(history, wanted[start : start + _AT_ONCE], runs))
    return found


def _strands(history: History, wanted: Sequence[str], runs: Runs) -> dict[str, Strand]:
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
        name: Strand(places=places[low:high], values=values[low:high])
        for name, low, high in zip(wanted, edges[:-1], edges[1:], strict=True)
        if high > low
    }


@dataclass(frozen=True, kw_only=True)
class Made:
    """What a point was made with."""

    toolchain: str
    revision: str
    module_sha256: str


def load_made(history: History, points: Collection[tuple[str, str]]) -> dict[tuple[str, str], Made]:
    """By series and run of each of these points."""
    if not points:
        return {}
    series, runs = zip(*points, strict=True)
    frame = history.query(
        "SELECT series, run, toolchain, revision, module_sha256 FROM points "
        "JOIN (SELECT unnest(?::VARCHAR[]) AS series, unnest(?::VARCHAR[]) AS run) AS chosen USING (series, run)",
        [list(series), list(runs)],
    )
    return {
        (str(name), str(run)): Made(toolchain=str(toolchain), revision=str(revision), module_sha256=str(module))
        for name, run, toolchain, revision, module in frame.itertuples(index=False, name=None)
    }


def explaining(rows: Sequence[SeriesRow]) -> list[SeriesRow]:
    """The series of one case that its times are held against: the reference's, else counted figures."""
    beside = [
        row for row in rows if (row.metric, row.role) in ((LATENCY.name, "reference"), (LATENCY_VS_REFERENCE, "newest"))
    ]
    return beside + [row for row in rows if is_counted(row.metric) and row.role == "newest"]


def kin_of(rows: Sequence[SeriesRow], strands: Mapping[str, Strand]) -> Kin:
    """Series of one case by metric and role; several of one kind, as of two references, follow each other."""
    parts: dict[tuple[str, Role], list[Strand]] = {}
    for row in rows:
        if row.series in strands:
            parts.setdefault((row.metric, row.role), []).append(strands[row.series])
    return {key: _joined(of_key) for key, of_key in parts.items()}


def _joined(strands: Sequence[Strand]) -> Strand:
    if len(strands) == 1:
        return strands[0]
    places = np.concatenate([one.places for one in strands])
    values = np.concatenate([one.values for one in strands])
    order = np.argsort(places, kind="stable")
    return Strand(places=places[order], values=values[order])
