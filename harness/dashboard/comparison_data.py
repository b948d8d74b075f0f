"""Comparisons -> the list of all of them, and one file for each with its rows."""

from __future__ import annotations

import glob
import os
import shlex
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd

from harness.compare.values import VERDICTS
from harness.dashboard.coding import key_of, table, texts, whole
from harness.dashboard.gather import Gathered
from harness.dashboard.series_data import Payload
from harness.dashboard.words import metric_title

_TEXTS = ("case", "model", "variant", "device", "metric", "verdict", "unit", "gate", "reason")
_FIGURES = ("ratio", "ci_low", "ci_high", "p", "floor", "base_value", "head_value")
_FLAGGED = ("regressed", "improved")


@dataclass(frozen=True, kw_only=True)
class ComparisonFacts:
    """One comparison, in a list of them.

    Attributes:
        counts: Rows by verdict, all metrics together and controls left out, in the order of VERDICTS.
        controls: Rows of a module against itself.
        flagged: How many of these were called changed.
        violated: Rows that break a gate.
    """

    id: str
    key: str
    created: str
    base: str
    head: str
    machine: str
    counts: tuple[int, ...]
    controls: int
    flagged: int
    violated: int


def comparison_facts(gathered: Gathered) -> list[ComparisonFacts]:
    """All comparisons, the newest first."""
    return [_facts(str(one), rows) for one, rows in gathered.comparisons.groupby("comparison", sort=False)]


def _facts(identity: str, rows: pd.DataFrame) -> ComparisonFacts:
    real = rows[~rows["control"].astype(bool)]
    controls = rows[rows["control"].astype(bool)]
    counts = real["verdict"].value_counts()
    first = rows.iloc[0]
    return ComparisonFacts(
        id=identity,
        key=key_of(identity),
        created=str(first["created"]),
        base=str(first["base_run"]),
        head=str(first["head_run"]),
        machine=str(first["machine"]),
        counts=tuple(int(counts.get(verdict, 0)) for verdict in VERDICTS),
        controls=len(controls),
        flagged=int(controls["verdict"].isin(_FLAGGED).sum()),
        violated=int((real["gate"] == "violated").sum()),
    )


def comparison_list(found: list[ComparisonFacts]) -> Payload:
    """All comparisons, the newest first."""
    words = ("id", "key", "created", "base", "head", "machine")
    figures = ("controls", "flagged", "violated")
    columns = {name: texts([getattr(one, name) for one in found]) for name in words}
    columns |= {name: whole(np.array([float(getattr(one, name)) for one in found])) for name in figures}
    columns |= {
        verdict: whole(np.array([float(one.counts[at]) for one in found])) for at, verdict in enumerate(VERDICTS)
    }
    return table(len(found), **columns)


def comparison_files(gathered: Gathered, found: list[ComparisonFacts]) -> Iterator[tuple[str, Payload]]:
    """The key and the data of each comparison."""
    runs = dict(zip(gathered.runs["run"], gathered.runs["key"], strict=True))
    frames = dict(iter(gathered.comparisons.groupby("comparison", sort=False)))
    for one in found:
        rows = frames[one.id]
        folder = gathered.place.rstrip("/") or "/"
        base, head = (os.path.join(folder, run) for run in (one.base, one.head))  # noqa: PTH118 (may be a URL)
        sides = ["--within", head] if one.base == one.head else [base, head]
        yield (
            one.key,
            {
                **{name: getattr(one, name) for name in ("id", "created", "base", "head", "machine")},
                "base_key": runs.get(one.base),
                "head_key": runs.get(one.head),
                "command": shlex.join(["harness", "compare", *sides]),
                "rows": table(
                    len(rows),
                    **{name: texts([str(value) for value in rows[name]]) for name in _TEXTS},
                    title=texts([metric_title(metric) for metric in rows["metric"]]),
                    filter=texts([shlex.quote(glob.escape(case)) for case in rows["case"]]),
                    **{name: _figures(rows[name]) for name in _FIGURES},
                    control=whole(rows["control"].to_numpy(np.float64)),
                ),
            },
        )


def _figures(column: pd.Series[float]) -> Payload:
    values = pd.to_numeric(column, errors="coerce").to_numpy(np.float64, na_value=np.nan).tolist()
    return {"v": [float(f"{value:.9g}") if np.isfinite(value) else None for value in values]}
