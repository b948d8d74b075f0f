"""The other series that a change is held against: its case's own, and its baseline's."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from harness.history.series_values import SeriesValues
from harness.history.series_view import SeriesRow
from harness.history.values import Role
from harness.metrics import (
    COMPILE_TIME,
    LATENCY,
    LATENCY_VS_BASELINE,
    LATENCY_VS_REFERENCE,
    is_exact,
    shows_the_program,
)

CaseKey = tuple[str, str, str, str]
_GroupKey = tuple[str, str, str, str]
# Series by metric and role; several of one kind have different references.
ByKind = Mapping[tuple[str, Role], Sequence[SeriesValues]]

_TIMES = ((LATENCY.name, "newest"), (LATENCY.name, "reference"), (LATENCY_VS_REFERENCE, "newest"))


@dataclass(frozen=True, kw_only=True)
class Beside:
    """What one series is held against.

    Attributes:
        own: Series of the same case.
        baseline: Times of its baseline variant's case.
    """

    own: ByKind
    baseline: ByKind


class Neighbours:
    """Finds what each series is held against."""

    def __init__(self, rows: Sequence[SeriesRow]) -> None:
        self._of_case: dict[CaseKey, list[SeriesRow]] = defaultdict(list)
        for row in rows:
            self._of_case[_case_key(row)].append(row)
        self._baselines = self._find_baselines(rows)

    def rows(self, row: SeriesRow) -> list[SeriesRow]:
        """Series that explain a change of this one; none for toolchains that stay the same, which explain others."""
        return [*self._own(row), *self._baseline(row)]

    def beside(self, row: SeriesRow, values: Mapping[str, SeriesValues]) -> Beside:
        """The same with their values."""
        return Beside(own=_by_kind(self._own(row), values), baseline=_by_kind(self._baseline(row), values))

    def _own(self, row: SeriesRow) -> list[SeriesRow]:
        if row.role != "newest":
            return []
        members = self._of_case[_case_key(row)]
        if is_exact(row.metric):
            return [one for one in members if (one.metric, one.role) == (row.metric, "reference")]
        wanted = {*_TIMES, *([(COMPILE_TIME.name, "reference")] if row.metric == COMPILE_TIME.name else [])}
        beside = [one for one in members if (one.metric, one.role) in wanted]
        return beside + [one for one in members if shows_the_program(one.metric) and one.role == "newest"]

    def _baseline(self, row: SeriesRow) -> list[SeriesRow]:
        if row.metric != LATENCY_VS_BASELINE or row.role != "newest":
            return []
        baseline = self._baselines.get(_group_key(row))
        members = self._of_case[baseline] if baseline is not None else []
        return [one for one in members if (one.metric, one.role) in _TIMES]

    def _find_baselines(self, rows: Sequence[SeriesRow]) -> dict[_GroupKey, CaseKey]:
        """The one case of each group that is timed and has no ratio to a baseline, being the baseline itself."""
        against = {_case_key(row) for row in rows if row.metric == LATENCY_VS_BASELINE}
        found: dict[_GroupKey, set[CaseKey]] = defaultdict(set)
        for row in rows:
            timed = (row.metric, row.role, row.peer) == (LATENCY.name, "newest", "")
            if timed and _case_key(row) not in against:
                found[_group_key(row)].add(_case_key(row))
        return {group: next(iter(cases)) for group, cases in found.items() if len(cases) == 1}


def _case_key(row: SeriesRow) -> CaseKey:
    """What a series shares with the others of its case on the same machines."""
    return (row.suite, row.case_id, row.machine_class, row.case)


def _group_key(row: SeriesRow) -> _GroupKey:
    """What a case shares with those that are measured in turns with it."""
    return (row.suite, row.model, row.device, row.machine_class)


def _by_kind(rows: Sequence[SeriesRow], values: Mapping[str, SeriesValues]) -> ByKind:
    found: dict[tuple[str, Role], list[SeriesValues]] = defaultdict(list)
    for row in rows:
        if row.series in values:
            found[row.metric, row.role].append(values[row.series])
    return found
