"""What pages load: lists of runs, series and changes, means over time, files of series, runs and commands."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

import numpy as np
import pandas as pd

from harness.dashboard.comparisons import compare_command
from harness.dashboard.encode import Payload, key_of, metric_title, sparkline, table
from harness.dashboard.gather import Gathered
from harness.dashboard.overview import BAD
from harness.dashboard.steps import lines_table
from harness.history.changes import Change
from harness.metrics import LATENCY, LATENCY_VS_BASELINE, LATENCY_VS_REFERENCE, is_exact
from harness.report.releases import Releases

_RUN_COLUMNS = (
    "run", "key", "suite", "started", "machine_class", "machine", "cpu", "kernel", "toolchain", "revision", "reference",
    "harness_version", "harness_commit", "clock", "selfcheck_when", "command", "cores", "cases", "measured", "failed",
    "missing", "noise", "load_1min", "selfcheck_flagged", "selfcheck_rows", "selfcheck_bound", "selfcheck_detects",
    "finished",
)  # fmt: skip
_CHANGE_COLUMNS = (
    "suite", "case", "unit", "machine_class", "role", "kind", "direction", "cause", "evidence", "toolchain_before",
    "toolchain_after", "ratio", "before", "after", "p",
)  # fmt: skip
_SERIES_COLUMNS = ("suite", "case", "model", "variant", "device", "peer", "role", "machine_class", "metric", "unit")
_CASES = """
SELECT run, "case", "role", toolchain, status, stage, message, flags, repro
FROM cases ORDER BY run, suite, "case", toolchain
"""
_NEWEST = """
SELECT suite, "case", arg_max(repro, (started, run)) FROM cases WHERE "role" = 'newest' AND repro <> '' GROUP BY ALL
"""
_CHANGE_FACTS = ("kind", "before", "after", "p", "cause", "evidence", "toolchain_before", "toolchain_after", "commits")
_CHANGE_RUNS = ("last_good", "first_bad", "earliest", "latest", "until")


# --- Lists ---


def run_list(gathered: Gathered) -> Payload:
    """Every run, in order of time."""
    rows = gathered.run_rows
    return table(len(rows), **{name: [row[name] for row in rows] for name in _RUN_COLUMNS})


def series_list(gathered: Gathered) -> Payload:
    """Every series with its last figure, its course and its last change; and the cases that pages refer to."""
    series, names = gathered.series, gathered.names
    points = [gathered.points_by_series[name] for name in series["series"]]
    ends = gathered.points.groupby("series").tail(1)
    changes = [gathered.changes_by_series.get(name, []) for name in series["series"]]
    last = [own[-1] if own else None for own in changes]
    keys = [key_of(f"{suite}\0{case}") for suite, case in zip(names["suite"], names["case"], strict=True)]
    numbers = [gathered.name_numbers[pair] for pair in zip(series["suite"], series["case"], strict=True)]
    return {
        "names": table(len(names), **{name: names[name] for name in names.columns}, key=keys),
        "series": table(
            len(series),
            name=numbers,
            title=[metric_title(metric) for metric in series["metric"]],
            machine=series["machine_class"],
            **{name: series[name] for name in ("key", "metric", "unit", "role", "points")},
            run=ends["run_number"],
            **{name: ends[name] for name in ("toolchain", "value", "low", "high")},
            changes=[len(own) for own in changes],
            worse=[change and change.is_worse for change in last],
            change=[change and change.ratio for change in last],
            change_run=[change and gathered.run_numbers.get(change.first_bad, 0) for change in last],
            spark=[sparkline(frame["value"].to_numpy(np.float64)) for frame in points],
        ),
    }


def change_list(gathered: Gathered) -> Payload:
    """Every change, the newest first."""
    changes = sorted(gathered.changes, key=lambda change: change.started, reverse=True)
    return table(
        len(changes),
        state=[gathered.settled[change].state if change in gathered.settled else "new" for change in changes],
        said=[gathered.said(change) for change in changes],
        series=[key_of(change.series) for change in changes],
        title=[metric_title(change.metric) for change in changes],
        worse=[change.is_worse for change in changes],
        **{name: [getattr(change, name) for change in changes] for name in _CHANGE_COLUMNS},
        **{name: [gathered.run_numbers.get(getattr(change, name)) for change in changes] for name in _CHANGE_RUNS},
    )


# --- A file for each run ---


def run_files(gathered: Gathered, releases: Mapping[str, Releases]) -> Iterator[tuple[str, Payload]]:
    """The key and the data of each run, in order of time: what became of its cases, and figures with their changes."""
    before = gathered.points.groupby("series")["value"].shift()
    points = gathered.points.assign(change=gathered.points["value"] / before)
    facts = pd.DataFrame({"metric": gathered.series["metric"], "series_number": range(len(gathered.series))})
    points = points.join(facts.set_index(gathered.series["series"]), on="series")
    cases = gathered.history.query(_CASES)
    points_by_run, cases_by_run = (dict(iter(frame.groupby("run", sort=False))) for frame in (points, cases))
    for run in gathered.run_rows:
        own_cases, own_points = cases_by_run.get(run["run"], cases[:0]), points_by_run.get(run["run"], points[:0])
        over = lines_table(releases[run["run"]]) if run["run"] in releases else None
        yield run["key"], {**_run(gathered, run["suite"], own_cases, own_points), "releases": over}


def _run(gathered: Gathered, suite: str, cases: pd.DataFrame, points: pd.DataFrame) -> Payload:
    columns = {name: cases[name].tolist() for name in cases.columns}
    place = {pair: row for row, pair in enumerate(zip(columns["case"], columns["toolchain"], strict=True))}
    metrics = [
        {
            "metric": metric,
            "title": metric_title(str(metric)),
            **table(
                len(own),
                case=[place.get(pair, -1) for pair in zip(own["case"], own["toolchain"], strict=True)],
                series=own["series_number"],
                **{name: own[name] for name in ("value", "low", "high", "change")},
            ),
        }
        for metric, own in points.groupby("metric", sort=False)
    ]
    return {
        "cases": table(
            len(cases),
            name=[gathered.name_numbers[suite, case] for case in columns["case"]],
            **{name: columns[name] for name in ("role", "toolchain", "status", "stage", "message", "flags")},
            repro=cases["repro"].where(cases["status"].isin(BAD), ""),  # that of others is with their series
        ),
        "metrics": metrics,
    }


# --- A file for each series ---


def series_files(gathered: Gathered) -> Iterator[tuple[str, Payload]]:
    """The key and the data of each series: its points, its changes, and the reference toolchain's series beside it."""
    pairs = gathered.comparisons[["base_run", "head_run", "comparison"]].drop_duplicates()  # the newest first
    compared = {(base, head): key_of(name) for base, head, name in reversed(pairs.to_numpy().tolist())}
    rows = gathered.series.to_dict("records")
    references: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for row in rows:
        if row["role"] == "reference":
            references[_siblings(row)].append(row["key"])

    def change_data(change: Change) -> Payload:
        facts = asdict(change)
        return {
            **{name: facts[name] for name in _CHANGE_FACTS},
            "ratio": change.ratio if np.isfinite(change.ratio) else None,  # from nothing to something
            "worse": change.is_worse,
            "said": gathered.said(change),
            **{name: gathered.run_numbers.get(facts[name]) for name in _CHANGE_RUNS},
            "comparison": compared.get((change.last_good, change.first_bad)),
            "command": compare_command(change, gathered.runs_by_id, gathered.place),
        }

    newest = gathered.history.query(_NEWEST).itertuples(index=False, name=None)
    repro = {(suite, case): text for suite, case, text in newest}
    for row in rows:
        changes = gathered.changes_by_series.get(row["series"], [])
        yield (
            row["key"],
            {
                **{name: row[name] for name in _SERIES_COLUMNS},
                "title": metric_title(row["metric"]),
                "exact": is_exact(row["metric"]),
                "references": references.get(_siblings(row), []) if row["role"] != "reference" else [],
                "points": _points(gathered, row["series"]),
                "changes": list(map(change_data, changes)),
                "repro": repro.get((row["suite"], row["case"]), ""),
            },
        )


def _points(gathered: Gathered, series: str) -> Payload:
    """The points of a series; toolchains only where they are not those of the runs."""
    points = gathered.points_by_series[series]
    runs = gathered.runs.iloc[points["run_number"]]
    versions = {
        name: points[name] for name in ("toolchain", "revision") if points[name].tolist() != runs[name].tolist()
    }
    figures = {name: points[name] for name in ("value", "low", "high", "new_module")}
    return table(len(points), run=points["run_number"], **figures, **versions)


def _siblings(row: dict[Any, Any]) -> tuple[str, ...]:
    return row["suite"], row["case_id"], row["metric"], row["machine_class"]


_METRICS = (LATENCY_VS_BASELINE, LATENCY_VS_REFERENCE, LATENCY.name)


def mean_panels(gathered: Gathered) -> Payload:
    """What the chart of the first page loads: for each suite and device its runs, and means by metric and variant."""
    series = gathered.series[(gathered.series["role"] == "newest") & gathered.series["metric"].isin(_METRICS)]
    right_clock = gathered.runs.index[gathered.runs["finished"].astype(bool) & (gathered.runs["clock"] == "")]
    points = gathered.points[gathered.points["run_number"].isin(right_clock)]
    facts = series[["series", "suite", "device", "machine_class", "metric", "variant", "peer"]]
    joined = points[["series", "run_number", "value"]].merge(facts, on="series")
    joined = joined[joined["value"] > 0]
    panels = [
        _panel(gathered, names, own)
        for names, own in joined.groupby(["suite", "device", "machine_class"], sort=True)
        if own["run_number"].nunique() > 1
    ]
    return {"panels": sorted(panels, key=lambda panel: -panel["last"])}


def chained_means(values: pd.DataFrame) -> pd.Series[float]:
    """The geometric mean of cases, a column each, at each point, as if all points had the same cases."""
    logs = values.transform(np.log)
    # From a point to the one before it only cases count that are in both, so that one that comes or goes moves nothing.
    to_before = -logs.diff().mean(axis="columns").shift(-1)
    to_before.iloc[-1] = logs.iloc[-1].mean()
    means: pd.Series[float] = to_before[::-1].cumsum(skipna=False)[::-1].transform(np.exp)
    return means


def _panel(gathered: Gathered, names: tuple[str, str, str], points: pd.DataFrame) -> Payload:
    runs = sorted(points["run_number"].unique())
    rows = gathered.runs.iloc[runs]
    suite, device, machine = names
    return {
        "suite": suite,
        "device": device,
        "machine": machine,
        "last": int(runs[-1]),
        "runs": table(len(runs), **{name: rows[name] for name in ("key", "started", "toolchain", "revision")}),
        "metrics": [
            {"metric": metric, "variants": list(_variants(points[points["metric"] == metric], runs))}
            for metric in _METRICS
            if metric in set(points["metric"])
        ],
    }


def _variants(points: pd.DataFrame, runs: list[int]) -> Iterator[Payload]:
    """Each variant's mean and its number of cases, a value a run of the panel; other engines last."""
    order = points.assign(is_peer=points["peer"] != "")
    for (_, variant, _), own in order.groupby(["is_peer", "variant", "peer"], sort=True):
        cases = own.pivot(index="run_number", columns="series", values="value")
        means, counts = chained_means(cases).reindex(runs), cases.count(axis="columns").reindex(runs)
        yield {"variant": variant, **table(len(runs), mean=means, cases=counts)}
