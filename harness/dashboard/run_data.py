"""Runs -> one file for each: what became of its cases, and their figures beside those of the run before."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from harness.dashboard.coding import figures, numbers, table, texts, whole
from harness.dashboard.gather import Gathered
from harness.dashboard.series_data import Payload, key_of_case
from harness.dashboard.words import metric_title
from harness.metrics import LATENCY_VS_BASELINE, LATENCY_VS_REFERENCE

# Where a case's commands change more often than this, later runs have none, but for the newest's on series pages.
_COMMANDS_KEPT = 20
_WITH_RANGE = ("latency", LATENCY_VS_BASELINE, LATENCY_VS_REFERENCE)


class Commands:
    """The command lines that repeat each case, each once; character 1 in them stands for the toolchain."""

    def __init__(self, names: pd.DataFrame) -> None:
        self._keys = [key_of_case(suite, case) for suite, case in zip(names["suite"], names["case"], strict=True)]
        self._pairs = [f"{suite}\0{case}" for suite, case in zip(names["suite"], names["case"], strict=True)]
        self._found: dict[int, dict[str, int]] = defaultdict(dict)
        self._newest: dict[int, str] = {}

    def number(self, name: int, text: str, toolchain: str, *, is_newest: bool) -> int | None:
        """Which of the case's commands it is; None where there is none, or there were too many before it."""
        if not text:
            return None
        if is_newest:
            self._newest[name] = text.replace("\1", toolchain)
        found = self._found[name]
        return found.setdefault(text, len(found)) if text in found or len(found) < _COMMANDS_KEPT else None

    def newest(self) -> dict[str, str]:
        """Those of each case's last run, by `suite NUL case`."""
        return {self._pairs[name]: text for name, text in self._newest.items()}

    def files(self) -> Iterator[tuple[str, Payload]]:
        """The key and the data of each case."""
        for name, found in self._found.items():
            yield self._keys[name], {"commands": list(found)}


def run_files(gathered: Gathered, commands: Commands) -> Iterator[tuple[str, Payload]]:
    """The key and the data of each run, in order of time.

    Args:
        commands: Takes the command lines of all cases.
    """
    points = _by_run(gathered)
    tools = gathered.tools["toolchain"].tolist()
    metrics = gathered.series["metric"].tolist()
    keys = gathered.runs["key"].tolist()
    for batch, cases in gathered.batches_of_cases():
        run_numbers = cases["run_number"].to_numpy()
        for number in batch:
            low, high = np.searchsorted(run_numbers, [number, number + 1])
            yield keys[number], _run(cases.iloc[low:high], points(number), tools, metrics, commands)


def _by_run(gathered: Gathered) -> Any:
    """A function from a run's number to its points, each with the ratio to the point before in its series."""
    points = gathered.points
    value, series = points["value"].to_numpy(np.float64), points["series_number"].to_numpy()
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        change = np.where(np.diff(series, prepend=-1) == 0, value / np.roll(value, 1), np.nan)
    order = np.argsort(points["run_number"].to_numpy(), kind="stable")
    edges = np.searchsorted(points["run_number"].to_numpy()[order], np.arange(len(gathered.runs) + 1))
    columns = {name: points[name].to_numpy()[order] for name in points.columns} | {"change": change[order]}
    return lambda number: {name: one[edges[number] : edges[number + 1]] for name, one in columns.items()}


def _run(
    cases: pd.DataFrame, points: dict[str, Any], tools: list[str], metrics: list[str], commands: Commands
) -> Payload:
    listed = cases.to_dict("list")
    rows = {
        (name, toolchain): row
        for row, (name, toolchain) in enumerate(zip(listed["name_number"], listed["toolchain"], strict=True))
    }
    repro = [
        commands.number(name, text, toolchain, is_newest=role == "newest")
        for name, text, toolchain, role in zip(
            listed["name_number"], listed["repro"], listed["toolchain"], listed["role"], strict=True
        )
    ]
    at: dict[str, list[int]] = defaultdict(list)
    for position, series in enumerate(points["series_number"].tolist()):
        at[metrics[series]].append(position)
    row_of = [
        rows.get((name, tools[tool]), -1)
        for name, tool in zip(points["name_number"].tolist(), points["tool_number"].tolist(), strict=True)
    ]
    return {
        "cases": table(
            len(cases),
            name=whole(np.array(listed["name_number"], dtype=np.float64)),
            **{name: texts(listed[name]) for name in ("role", "toolchain", "status", "stage", "message", "flags")},
            commands=whole(np.array([np.nan if one is None else one for one in repro], dtype=np.float64)),
        ),
        "metrics": [_metric(metric, np.array(positions), row_of, points) for metric, positions in at.items()],
    }


def _metric(metric: str, positions: Any, row_of: list[int], points: dict[str, Any]) -> Payload:
    values = points["value"][positions]
    columns = {
        "case": whole(np.array([row_of[position] for position in positions], dtype=np.float64)),
        "series": whole(points["series_number"][positions].astype(np.float64)),
        "value": figures(values),
        "change": numbers(points["change"][positions], digits=5),
    }
    if metric in _WITH_RANGE:
        columns |= {name: figures(points[name][positions]) for name in ("low", "high")}
    return {"metric": metric, "title": metric_title(metric), **table(len(positions), **columns)}
