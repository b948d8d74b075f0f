"""History -> what the pages are made of: its tables, read once, its changes, and what people said of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from harness.dashboard.encode import key_of, signed
from harness.history.changes import Change
from harness.history.events import ChangeEvent, group_changes
from harness.history.pages import STATES
from harness.history.series import frame_records, usable_runs

if TYPE_CHECKING:
    import pandas as pd

    from harness.history.series import History


_NAMES = """
SELECT suite, "case", any_value(model) AS model, any_value(variant) AS variant, any_value(device) AS device,
       any_value(peer) AS peer
FROM (SELECT suite, "case", model, variant, device, peer FROM cases
      UNION SELECT suite, "case", model, variant, device, peer FROM points)
GROUP BY suite, "case" ORDER BY suite, "case"
"""
_POINTS = """
SELECT series, run, "case", toolchain, revision, "value", low, high,
       coalesce(module_sha256 <> lag(module_sha256) OVER w, true) AND module_sha256 <> '' AS new_module
FROM points WHERE run IN (SELECT run FROM runs)
WINDOW w AS (PARTITION BY series ORDER BY started, run, "case")
ORDER BY series, started, run, "case"
"""


@dataclass(frozen=True, kw_only=True)
class Gathered:
    """Everything but what became of single cases, which are many."""

    history: History
    place: str  # The results folder, as the user gave it; commands name it
    runs: pd.DataFrame  # Table `runs` in order of time, with `key`; pages refer to a run by its place here
    series: pd.DataFrame  # View `series` by id, with `key`
    # Suite, case, model, variant, device and peer of every case; pages refer to a case by its place here
    names: pd.DataFrame
    # Table `points` by series, then time, with `run_number` and with `new_module`: whether the module is another than
    # at the point before
    points: pd.DataFrame
    comparisons: pd.DataFrame  # Table `comparisons`, newest first
    changes: tuple[Change, ...]

    @cached_property
    def run_rows(self) -> list[dict[str, Any]]:
        """The runs as values; None where a run does not say."""
        return frame_records(self.runs)

    @cached_property
    def runs_by_id(self) -> Mapping[str, dict[str, Any]]:
        """The same by their ids."""
        return {run["run"]: run for run in self.run_rows}

    @cached_property
    def run_numbers(self) -> Mapping[str, int]:
        """Place of each run."""
        return {run: number for number, run in enumerate(self.runs["run"])}

    @cached_property
    def name_numbers(self) -> Mapping[tuple[str, str], int]:
        """Place of each case by its suite and name."""
        return {pair: number for number, pair in enumerate(zip(self.names["suite"], self.names["case"], strict=True))}

    @cached_property
    def points_by_series(self) -> Mapping[str, pd.DataFrame]:
        """The points of each series in order of time."""
        return {str(series): points for series, points in self.points.groupby("series", sort=False)}

    @cached_property
    def changes_by_series(self) -> Mapping[str, list[Change]]:
        """The changes of each series that has any, the oldest first."""
        changes: dict[str, list[Change]] = defaultdict(list)
        for change in sorted(self.changes, key=lambda change: change.started):
            changes[change.series].append(change)
        return changes

    @cached_property
    def settled(self) -> Mapping[Change, ChangeEvent]:
        """The event of each change that somebody knows of, put together as `harness history --changes` does."""
        marks = self.history.marks.acknowledgements
        events = group_changes(self.changes, usable_runs(self.history), last=1, marks=marks) if marks else []
        return {change: event for event in events if event.settled for change in event.changes}

    def said(self, change: Change) -> str:
        """`acknowledged by ann on 2026-02-12: the new tiling is wanted`; "" where nobody said anything."""
        event = self.settled.get(change)
        if event is None:
            return ""
        last = event.marks[-1]
        by = f" by {last.who}" if last.who else ""
        on = f" on {last.when[:10]}" if last.when else ""
        return f"{STATES[event.state]}{by}{on}{f': {last.note}' if last.note else ''}"


def gather(history: History, place: str, changes: Sequence[Change]) -> Gathered:
    """Read a history."""
    runs = history.query("SELECT * FROM runs ORDER BY started, run")
    runs["key"] = [key_of(run) for run in runs["run"]]
    series = history.query("SELECT * FROM series ORDER BY series")
    series["key"] = [key_of(name) for name in series["series"]]
    points = history.query(_POINTS)
    points["run_number"] = points["run"].map({run: number for number, run in enumerate(runs["run"])})
    return Gathered(
        history=history,
        place=place,
        runs=runs,
        series=series[series["series"].isin(points["series"])],
        names=history.query(_NAMES),
        points=points,
        comparisons=history.query('SELECT * FROM comparisons ORDER BY created DESC, comparison, metric, "case"'),
        changes=tuple(replace(change, evidence=signed(change.evidence)) for change in changes),
    )
