"""The series of a history: which ones a text means, and their points as arrays.

A series is one case's one metric on one class of machines in one role. Change points are looked for in the points of
finished runs whose clock was right; these runs, in order of time, are the `Runs` that places count.
"""

from __future__ import annotations

import fnmatch
import re
import shlex
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from harness.errors import UsageError
from harness.metrics import LATENCY, LATENCY_VS_BASELINE, LATENCY_VS_REFERENCE
from harness.progress import Progress
from harness.report.rows import rows_of
from harness.store.marks import WITHOUT_EXPERIMENTS, RunChoice
from harness.store.place import without_password
from harness.store.schema import BETWEEN_HOSTS, Role
from harness.store.tables import Tables
from harness.text import shown

if TYPE_CHECKING:
    import pandas as pd

History = Tables
_DEFAULT_RESULTS = "results"
_FIRST_METRICS = (LATENCY.name, LATENCY_VS_REFERENCE, LATENCY_VS_BASELINE)
_ROLES = ("newest", "reference", "other")
_MOST_LISTED = 6  # in a message
_NEXT_DEVICE = re.compile(r"; [^\s:;]+: ")


def open_history(
    place: str, *, progress: Progress | None = None, choice: RunChoice | None = WITHOUT_EXPERIMENTS
) -> History:
    """Open a results folder as a history to ask."""
    return Tables(place, rows_of, progress or Progress(), choice)


@dataclass(frozen=True, kw_only=True)
class SeriesRow:
    """One series: view `series`. Names are those of its last run."""

    series: str
    suite: str
    case: str
    case_id: str
    model: str
    variant: str
    device: str
    peer: str
    role: Role
    machine_class: str
    metric: str
    unit: str
    points: int  # How many it has
    first_run: str  # The earliest run with a point of it
    last_run: str  # The latest
    last_value: float  # The latest run's


def series_rows(history: History) -> list[SeriesRow]:
    """All series of a history."""
    return [SeriesRow(**record) for record in frame_records(history.series())]


def frame_records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Rows as plain values, None where there is none."""
    records: list[dict[str, Any]] = frame.astype(object).where(frame.notna(), None).to_dict("records")
    return records


def match_series(rows: Sequence[SeriesRow], wanted: str, metrics: Sequence[str] = ()) -> list[SeriesRow]:
    """Series by their id, by the name of their case, or by case and metric with a space or a `/` between them.

    A text that is the name of some series is no pattern for others. What people ask for first comes first.
    """
    chosen = [row for row in rows if not metrics or row.metric in metrics]
    named = [row for row in chosen if wanted in _names(row)]
    found = named or [row for row in chosen if any(fnmatch.fnmatchcase(name, wanted) for name in _names(row))]
    return sorted(found, key=_rank)


def _names(row: SeriesRow) -> tuple[str, ...]:
    return row.series, row.case, f"{row.case} {row.metric}", f"{row.case}/{row.metric}"


def _rank(row: SeriesRow) -> tuple[int, str, str, int, str, str, str]:
    first = _FIRST_METRICS.index(row.metric) if row.metric in _FIRST_METRICS else len(_FIRST_METRICS)
    metric = "" if row.metric in _FIRST_METRICS else row.metric
    return first, row.case, metric, _ROLES.index(row.role), row.suite, row.machine_class, row.series


def choose_series(rows: Sequence[SeriesRow], wanted: str | None, where: str) -> SeriesRow:
    """The one series that a text means: of a case its latency, and of several toolchains the newest."""
    found = match_series(rows, "*" if wanted is None else wanted)
    if wanted is not None and wanted not in (row.series for row in found):
        if any(fnmatch.fnmatchcase(row.case, wanted) or row.case == wanted for row in found):
            found = [row for row in found if row.metric == LATENCY.name] or found
        found = [row for row in found if row.role == "newest"] or found
    if len(found) == 1:
        return found[0]
    some = ", ".join(
        f"{row.series} ({shown(f'{row.case} {row.metric}, {row.role}, {row.suite}, {row.machine_class}')})"
        for row in found[:_MOST_LISTED]
    )
    more = f" and {len(found) - _MOST_LISTED:,} more" if len(found) > _MOST_LISTED else ""
    option = "--series is missing" if wanted is None else f"--series {shown(wanted)}"
    what = f"means {len(found):,} series, {some}{more}; give an id" if found else "means no series"
    raise UsageError(f"{without_password(where)}: {option}: {what}; {list_command_line(where)} lists all")


def reference_of(rows: Sequence[SeriesRow], chosen: SeriesRow) -> SeriesRow | None:
    """The same case's series under the fixed toolchain on the same machines, the longest of several; None without."""
    if chosen.role == "reference":
        return None

    def place(row: SeriesRow) -> tuple[str, ...]:
        return row.suite, row.case_id, row.case, row.metric, row.machine_class

    same = [row for row in rows if row.role == "reference" and place(row) == place(chosen)]
    return max(same, key=lambda row: (row.points, row.series), default=None)


def history_command_line(results: str, *arguments: str) -> str:
    """A command line that asks this results folder, to be copied from a message."""
    place = [without_password(results)] if results != _DEFAULT_RESULTS else []
    return f"`{shlex.join(['harness', 'history', *place, *arguments])}`"


def list_command_line(results: str) -> str:
    """The command line that lists all series."""
    statement = "SELECT series.case, metric, role, series.series FROM series ORDER BY ALL"
    return history_command_line(results, "--sql", statement)


@dataclass(frozen=True, kw_only=True)
class RunFacts:
    """What a run recorded of itself, its machine and its harness."""

    run: str
    started: str = ""  # ISO 8601 in UTC
    suite: str = ""  # Its name
    suite_file: str = ""  # Its path, as the user gave it
    machine_class: str = ""
    machine: str = ""
    kernel: str = ""
    devices: str = ""  # What each is, with its driver's version, as `name: facts`, several with `; ` between
    harness_commit: str = ""
    load_1min: float | None = None  # Of the machine as the run began; None: not known
    reference: str = ""  # Release of the toolchain that stays the same; "" where there was one only
    toolchain: str = ""  # The newest release of IREE in it
    before: str = ""  # That of the run before it of the same suite on the same machines; "" of a first one

    def driver(self, device: str) -> str:
        """What a device is, with its driver's version; "" where the run does not say, or hosts of it say several."""
        said = _driver(self.devices, device)
        return "" if BETWEEN_HOSTS in self.machine and BETWEEN_HOSTS in said else said


@cache  # thousands of runs say the same
def _driver(devices: str, device: str) -> str:
    of_device = f"; {devices}".partition(f"; {device}: ")[2]
    return _NEXT_DEVICE.split(of_device)[0]


@dataclass(frozen=True, kw_only=True)
class Runs:
    """Runs in which changes are looked for, in order of time: finished ones whose clock was right."""

    facts: tuple[RunFacts, ...]
    # Machine of the points of a series in a run of several hosts, by ids of the series and the run; of those series
    # that have changes
    hosts: Mapping[tuple[str, str], str] = field(default_factory=dict)

    @cached_property
    def ids(self) -> tuple[str, ...]:
        """Of each run."""
        return tuple(facts.run for facts in self.facts)

    @cached_property
    def places(self) -> Mapping[str, int]:
        """Of each run among all, by its id."""
        return {run: place for place, run in enumerate(self.ids)}

    @cached_property
    def from_end(self) -> Mapping[str, int]:
        """How many runs of the same suite on machines of the same class came after each run, by its id."""
        seen: Counter[tuple[str, str]] = Counter()
        found = {}
        for facts in reversed(self.facts):
            found[facts.run] = seen[facts.suite, facts.machine_class]
            seen[facts.suite, facts.machine_class] += 1
        return found

    def machine(self, series: str, place: int) -> str:
        """Which machine measured a series in a run; "" where the run does not say."""
        return self.hosts.get((series, self.ids[place]), self.facts[place].machine)


@dataclass(frozen=True, kw_only=True, eq=False)
class SeriesValues:
    """The points of one series, in order of time."""

    series: str  # Its id
    places: NDArray[np.int64]  # `(points,)`: place of each point's run in `Runs`, ascending
    values: NDArray[np.float64]  # `(points,)`: in the metric's unit

    def values_at(self, places: NDArray[np.int64]) -> list[float]:
        """The values of those of these runs `(runs,)` that have one, in order of time."""
        return [float(value) for value in self.values[np.isin(self.places, places)]]


@dataclass(frozen=True, kw_only=True)
class Program:
    """What a point was made with."""

    toolchain: str  # Release of IREE; of a peer, the engine's name and version
    revision: str
    module_sha256: str  # Of what ran; "" where nothing was compiled

    def has_toolchain_of(self, other: Program) -> bool:
        """Whether release and revision are the same."""
        return (self.toolchain, self.revision) == (other.toolchain, other.revision)


def usable_runs(history: History) -> Runs:
    """Runs in which changes are looked for."""
    columns = [name.name for name in fields(RunFacts) if name.name != "before"]
    frame = history.query(
        f"SELECT {', '.join(columns)}, "  # noqa: S608 (our names)
        "lag(toolchain, 1, '') OVER (PARTITION BY suite, machine_class ORDER BY started, run) AS before "
        "FROM runs WHERE finished AND clock = '' ORDER BY started, run"
    )
    known = ({name: value for name, value in row.items() if value is not None} for row in frame_records(frame))
    return Runs(facts=tuple(RunFacts(**facts) for facts in known))


def load_values(history: History, series: Iterable[str], runs: Runs) -> dict[str, SeriesValues]:
    """The points of these series in these runs, by id, where there are any; numbers alone: texts take long."""
    wanted = sorted(set(series))
    frame = history.query(
        "SELECT chosen.number, usable.place, points.value FROM points "
        "JOIN (SELECT unnest(?::VARCHAR[]) AS series, unnest(range(?)) AS number) AS chosen USING (series) "
        "JOIN (SELECT unnest(?::VARCHAR[]) AS run, unnest(range(?)) AS place) AS usable USING (run) "
        "ORDER BY chosen.number, usable.place",
        [wanted, len(wanted), list(runs.ids), len(runs.ids)],
    )
    numbers, places = frame["number"].to_numpy(), frame["place"].to_numpy(dtype="int64")
    values = frame["value"].to_numpy(dtype="float64")
    edges = np.searchsorted(numbers, np.arange(len(wanted) + 1))
    return {
        name: SeriesValues(series=name, places=places[low:high], values=values[low:high])
        for name, low, high in zip(wanted, edges[:-1], edges[1:], strict=True)
        if high > low
    }


def with_hosts(history: History, runs: Runs, series: Iterable[str]) -> Runs:
    """The runs, with the machine that measured each of these series in those of several hosts."""
    several = [run for run, facts in zip(runs.ids, runs.facts, strict=True) if BETWEEN_HOSTS in facts.machine]
    if not several:
        return runs
    frame = history.query(
        "SELECT series, run, machine FROM points JOIN (SELECT unnest(?::VARCHAR[]) AS series) AS chosen USING (series) "
        "JOIN (SELECT unnest(?::VARCHAR[]) AS run) AS several USING (run)",
        [sorted(set(series)), several],
    )
    machines = {(str(name), str(run)): str(machine) for name, run, machine in frame.itertuples(index=False, name=None)}
    return replace(runs, hosts=machines)


def load_programs(history: History, points: Collection[tuple[str, str]]) -> dict[tuple[str, str], Program]:
    """What points were made with."""
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
