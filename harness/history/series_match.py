"""Which series of a history a text means, for every command that takes one; and in which order they are shown."""

from __future__ import annotations

import fnmatch
import shlex
from collections.abc import Sequence

from harness.history.series_view import SeriesRow
from harness.metrics import LATENCY, LATENCY_VS_BASELINE, LATENCY_VS_REFERENCE
from harness.store.address import without_password

_DEFAULT_RESULTS = "results"
_FIRST_METRICS = (LATENCY.name, LATENCY_VS_REFERENCE, LATENCY_VS_BASELINE)
_ROLES = ("newest", "reference", "other")


def matching(rows: Sequence[SeriesRow], wanted: str, metrics: Sequence[str] = ()) -> list[SeriesRow]:
    """Series by their id, by the name of their case, or by case and metric with a space or a `/` between them.

    What is a name of some series as it stands is no pattern for others. The series that people ask for first come
    first: latencies, then ratios of them, and the newest toolchain before the reference.

    Args:
        wanted: An id, a name or a shell pattern for them.
        metrics: Only these; () for all.
    """
    chosen = [row for row in rows if not metrics or row.metric in metrics]
    named = [row for row in chosen if wanted in _names(row)]
    found = named or [row for row in chosen if any(fnmatch.fnmatchcase(text, wanted) for text in _names(row))]
    return sorted(found, key=_place)


def names_case(row: SeriesRow, wanted: str) -> bool:
    """Whether it is meant by its case alone, without a metric."""
    return row.case == wanted or fnmatch.fnmatchcase(row.case, wanted)


def asking(results: str, *arguments: str) -> str:
    """A command line that asks this results folder, to be copied from a message."""
    place = [without_password(results)] if results != _DEFAULT_RESULTS else []
    return f"`{shlex.join(['harness', 'history', *place, *arguments])}`"


def listing_series(results: str) -> str:
    """The command line that lists all series."""
    return asking(results, "--sql", "SELECT series.case, metric, role, series.series FROM series ORDER BY ALL")


def _names(row: SeriesRow) -> tuple[str, ...]:
    return row.series, row.case, f"{row.case} {row.metric}", f"{row.case}/{row.metric}"


def _place(row: SeriesRow) -> tuple[int, str, str, int, str, str, str]:
    first = _FIRST_METRICS.index(row.metric) if row.metric in _FIRST_METRICS else len(_FIRST_METRICS)
    metric = "" if row.metric in _FIRST_METRICS else row.metric
    return first, row.case, metric, _ROLES.index(row.role), row.suite, row.machine_class, row.series
