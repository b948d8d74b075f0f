"""Geometric means over time: what each variant of a suite takes, from run to run, over all models on a device."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from harness.dashboard.encode import Payload, table
from harness.dashboard.gather import Gathered
from harness.metrics import LATENCY, LATENCY_VS_BASELINE, LATENCY_VS_REFERENCE

if TYPE_CHECKING:
    import pandas as pd

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


def chained_means(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The geometric mean of cases at each point, as if all points had the same cases.

    The last point is the geometric mean over its own cases. From a point to the one before it, only cases that are in
    both count: the level is divided by the geometric mean of how much these changed. Where all points have the same
    cases, this is their geometric mean; a case that comes or goes does not move the line.
    """
    logs = np.log(values)
    means = np.full(len(logs), np.nan)
    means[-1] = np.nanmean(logs[-1])
    for at in range(len(logs) - 1, 0, -1):
        changes = logs[at] - logs[at - 1]
        if np.isnan(changes).all():
            break
        means[at - 1] = means[at] - np.nanmean(changes)
    levels: NDArray[np.float64] = np.exp(means)
    return levels


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
        means = dict(zip(cases.index, chained_means(cases.to_numpy(np.float64)), strict=True))
        counts = cases.notna().sum(axis=1)
        yield {
            "variant": variant,
            **table(len(runs), mean=[means.get(run) for run in runs], cases=[counts.get(run) for run in runs]),
        }
