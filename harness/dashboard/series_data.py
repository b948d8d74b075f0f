"""Series -> the list of all of them, and one file for each with its points and changes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd

from harness.dashboard.coding import decimal_places, figures, fits, key_of, numbers, scale, table, texts, whole
from harness.dashboard.comparing import Comparing
from harness.dashboard.gather import Gathered
from harness.dashboard.spark import sparkline
from harness.dashboard.words import metric_title
from harness.history.changes import Change
from harness.metrics import is_exact

Payload = dict[str, Any]


def bounds(gathered: Gathered) -> list[tuple[int, int]]:
    """Where each series' points begin and end."""
    numbers_of = gathered.points["series_number"].to_numpy()
    edges = np.searchsorted(numbers_of, np.arange(len(gathered.series) + 1))
    return list(zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True))


def changes_by_series(gathered: Gathered) -> dict[str, list[Change]]:
    """The changes of each series, the oldest first."""
    found: dict[str, list[Change]] = defaultdict(list)
    for change in sorted(gathered.changes, key=lambda change: change.started):
        found[change.series].append(change)
    return found


def run_list(gathered: Gathered) -> Payload:
    """Every run, in order of time."""
    runs = gathered.runs
    words = ("run", "key", "suite", "started", "machine_class", "machine", "cpu", "kernel", "toolchain", "revision",
             "reference", "harness_version", "harness_commit", "clock", "selfcheck_when", "command")  # fmt: skip
    figures = ("cores", "cases", "measured", "failed", "missing", "noise", "load_1min", "selfcheck_flagged",
               "selfcheck_rows", "selfcheck_bound", "selfcheck_detects")  # fmt: skip
    columns = {name: texts(_known(runs[name])) for name in words}
    columns |= {name: numbers(_floats(runs[name]), digits=3, exact=True) for name in figures}
    return table(len(runs), finished=whole(_floats(runs["finished"])), **columns)


def series_list(gathered: Gathered) -> Payload:
    """Every series with its last figure, its course and its last change; names and toolchains that pages refer to."""
    series, points = gathered.series, gathered.points
    found = changes_by_series(gathered)
    run_numbers = {run: number for number, run in enumerate(gathered.runs["run"])}
    last = [found[one][-1] if found.get(one) else None for one in series["series"]]
    edges = bounds(gathered)
    ends = np.array([end - 1 for _, end in edges], dtype=np.int64)
    values = points["value"].to_numpy(np.float64)
    run_number = points["run_number"].to_numpy(np.float64)
    return {
        "names": table(
            len(gathered.names),
            **{name: texts(_known(gathered.names[name])) for name in gathered.names.columns},
            key=texts(_keys_of_names(gathered.names)),
        ),
        "tools": table(
            len(gathered.tools),
            toolchain=texts(_known(gathered.tools["toolchain"])),
            revision=texts(_known(gathered.tools["revision"])),
        ),
        "series": table(
            len(series),
            key=texts(_known(series["key"])),
            name=whole(_floats(series["name_number"])),
            metric=texts(_known(series["metric"])),
            title=texts([metric_title(metric) for metric in series["metric"]]),
            unit=texts(_known(series["unit"])),
            role=texts(_known(series["role"])),
            machine=texts(_known(series["machine_class"])),
            points=whole(np.array([float(end - start) for start, end in edges])),
            run=whole(run_number[ends]) if len(series) else whole(np.empty(0)),
            tool=whole(_floats(points["tool_number"])[ends]) if len(series) else whole(np.empty(0)),
            **{name: figures(_floats(points[name])[ends]) for name in ("value", "low", "high")},
            changes=whole(np.array([float(len(found.get(one, ()))) for one in series["series"]])),
            worse=whole(np.array([float(change.is_worse) if change else np.nan for change in last])),
            change=figures(np.array([change.ratio if change else np.nan for change in last])),
            change_run=whole(
                np.array([float(run_numbers.get(change.first_bad, 0)) if change else np.nan for change in last])
            ),
            spark=texts([sparkline(values[start:end]) for start, end in edges]),
        ),
    }


def series_files(gathered: Gathered, repro: Mapping[str, str]) -> Iterator[tuple[str, Payload]]:
    """The key and the data of each series.

    Args:
        repro: Command lines that repeat the last point of a case, by `suite NUL case`.
    """
    found = changes_by_series(gathered)
    kept = _kept_comparisons(gathered)
    comparing = Comparing(gathered.runs, gathered.place)
    run_numbers = {run: number for number, run in enumerate(gathered.runs["run"])}
    references = _references(gathered.series)
    tools = gathered.tools["toolchain"].tolist(), gathered.tools["revision"].tolist()
    arrays = {name: gathered.points[name].to_numpy(np.float64) for name in gathered.points.columns}
    newest = gathered.runs["toolchain"].to_numpy(), gathered.runs["revision"].to_numpy()
    rows: Any = gathered.series.itertuples()
    for row, (start, end) in zip(rows, bounds(gathered), strict=True):
        part = {name: array[start:end] for name, array in arrays.items()}
        own = part["run_number"].astype(int)
        toolchains = [tools[0][int(one)] for one in part["tool_number"]]
        revisions = [tools[1][int(one)] for one in part["tool_number"]]
        as_runs = toolchains == newest[0][own].tolist() and revisions == newest[1][own].tolist()
        name = gathered.names.iloc[int(row.name_number)]
        yield (
            str(row.key),
            {
                **{key: str(name[key]) for key in ("suite", "case", "model", "variant", "device", "peer")},
                **{key: str(getattr(row, key)) for key in ("case_id", "role", "machine_class", "metric", "unit")},
                "title": metric_title(str(row.metric)),
                "exact": is_exact(str(row.metric)),
                "references": references.get(_siblings(row), []) if row.role != "reference" else [],
                "points": table(
                    end - start,
                    run=whole(part["run_number"]),
                    **_figures(part, exact=is_exact(str(row.metric))),
                    new_module=whole(part["new_module"]),
                    **({} if as_runs else {"toolchain": texts(toolchains), "revision": texts(revisions)}),
                ),
                "changes": [
                    _change(change, run_numbers, kept, comparing.command(change, is_peer=bool(name["peer"])))
                    for change in found.get(str(row.series), ())
                ],
                "repro": repro.get(f"{name['suite']}\0{name['case']}", ""),
            },
        )


def key_of_case(suite: str, case: str) -> str:
    """Under which its command lines lie."""
    return key_of(f"{suite}\0{case}")


def _figures(part: Mapping[str, np.ndarray[Any, np.dtype[np.float64]]], *, exact: bool) -> Payload:
    """Value, and how far below and above it the fastest and slowest lie."""
    value = part["value"]
    if exact or not (np.isfinite(part["low"]).any() or np.isfinite(part["high"]).any()):
        return {"value": numbers(value, exact=exact)}
    places = decimal_places(value)
    if not fits(value, places) or not fits(part["high"], places):
        return {"value": numbers(value)}
    middle = scale(value, places)
    below, above = middle - scale(part["low"], places), scale(part["high"], places) - middle
    return {"value": whole(middle, places), "below": whole(below, places), "above": whole(above, places)}


def _change(
    change: Change, run_numbers: Mapping[str, int], kept: Mapping[tuple[str, str], str], command: str
) -> Payload:
    words = ("kind", "before", "after", "p", "cause", "evidence", "toolchain_before",
             "toolchain_after", "commits")  # fmt: skip
    return {
        **{name: getattr(change, name) for name in words},
        "ratio": change.ratio if np.isfinite(change.ratio) else None,  # from nothing to something
        "worse": change.is_worse,
        **{
            name: run_numbers.get(getattr(change, name))
            for name in ("last_good", "first_bad", "earliest", "latest", "until")
        },
        "comparison": kept.get((change.last_good, change.first_bad)),
        "command": command,
    }


def _kept_comparisons(gathered: Gathered) -> dict[tuple[str, str], str]:
    """Key of the newest comparison of two runs."""
    pairs = gathered.comparisons[["base_run", "head_run", "comparison"]].drop_duplicates()
    return {(base, head): key_of(one) for base, head, one in reversed(pairs.to_numpy().tolist())}


def _keys_of_names(names: pd.DataFrame) -> list[str | None]:
    return [key_of_case(suite, case) for suite, case in zip(names["suite"], names["case"], strict=True)]


def _siblings(row: Any) -> tuple[str, ...]:
    return row.suite, row.case_id, row.metric, row.machine_class


def _references(series: pd.DataFrame) -> dict[tuple[str, ...], list[str]]:
    found: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for row in series[series["role"] == "reference"].itertuples():
        found[_siblings(row)].append(str(row.key))
    return found


def _floats(column: pd.Series[Any]) -> np.ndarray[Any, np.dtype[np.float64]]:
    return pd.to_numeric(column, errors="coerce").to_numpy(np.float64, na_value=np.nan)


def _known(column: pd.Series[Any]) -> list[str | None]:
    return [None if value is None or value != value else str(value) for value in column.tolist()]
