"""Comparisons -> the list of all of them, and one file for each with its rows."""

from __future__ import annotations

import glob
import os
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from harness.dashboard.coding import figures, key_of, table, texts, whole
from harness.dashboard.gather import Gathered
from harness.dashboard.series_data import Payload
from harness.dashboard.words import metric_title, signed
from harness.errors import ExitCode
from harness.records.comparison import VERDICTS, Comparison, MachineFacts, Row, SideFacts
from harness.report.comparison.words import headline
from harness.report.outcome import comparison_exit_code

_TEXTS = ("case", "model", "variant", "device", "metric", "verdict", "unit", "gate")
_FIGURES = ("ratio", "ci_low", "ci_high", "p", "floor", "base_value", "head_value")
_FILTER = "--filter"
_FLAGGED = ("regressed", "improved")


@dataclass(frozen=True, kw_only=True)
class ComparisonFacts:
    """One comparison, in a list of them.

    Attributes:
        counts: Rows by verdict, all metrics together and controls left out, in the order of VERDICTS.
        controls: Rows of a module against itself.
        flagged: How many of these were called changed.
        verdict: All of it in one sentence.
        alarming: Whether `harness compare` would have exited with a failure.
        within: Whether variants of one run were compared with its baseline.
        command: The command line that made it; "" where none was kept.
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
    verdict: str
    alarming: bool
    within: bool
    command: str


def comparison_facts(gathered: Gathered) -> list[ComparisonFacts]:
    """All comparisons, the newest first."""
    return [_facts(str(one), rows) for one, rows in gathered.comparisons.groupby("comparison", sort=False)]


def _facts(identity: str, rows: pd.DataFrame) -> ComparisonFacts:
    real = rows[~rows["control"].astype(bool)]
    controls = rows[rows["control"].astype(bool)]
    counts = real["verdict"].value_counts()
    first = rows.iloc[0]
    whole_of_it = _comparison(real)
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
        verdict=headline(whole_of_it),
        alarming=comparison_exit_code(whole_of_it, strict=False) is not ExitCode.OK,
        within=bool(first["within"]),
        command=str(first["command"]),
    )


def _comparison(rows: pd.DataFrame) -> Comparison:
    """As much of a comparison as its verdict is made of."""
    side = SideFacts(label="", run="", suite="", started="", toolchains=(), machine="")
    words = ("case", "model", "variant", "device", "metric", "verdict", "gate")
    columns: list[list[Any]] = [rows[name].tolist() for name in words]
    return Comparison(
        id="",
        created="",
        base=side,
        head=side,
        within=False,
        mode="recorded",
        rule="generations",
        machine=MachineFacts(description=""),
        rows=tuple(
            Row(
                case=case,
                model=model,
                variant=variant,
                device=device,
                metric=metric,
                verdict=verdict,
                gate=gate or None,
            )
            for case, model, variant, device, metric, verdict, gate in zip(*columns, strict=True)
        ),
        summary={},
    )


def comparison_list(found: list[ComparisonFacts]) -> Payload:
    """All comparisons, the newest first."""
    words = ("id", "key", "created", "base", "head", "machine", "verdict")
    counted = ("controls", "flagged", "alarming", "within")
    columns = {name: texts([getattr(one, name) for one in found]) for name in words}
    columns |= {name: whole(np.array([float(getattr(one, name)) for one in found])) for name in counted}
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
        command = shlex.split(one.command) or _rebuilt(one, gathered.place)
        yield (
            one.key,
            {
                **{name: getattr(one, name) for name in ("id", "created", "base", "head", "machine", "verdict")},
                **{name: getattr(one, name) for name in ("within", "alarming")},
                "base_key": runs.get(one.base),
                "head_key": runs.get(one.head),
                "command": shlex.join(command),
                "command_of_all": shlex.join(_unfiltered(command)),
                "rows": table(
                    len(rows),
                    **{name: texts([str(value) for value in rows[name]]) for name in _TEXTS},
                    reason=texts([signed(str(value)) for value in rows["reason"]]),
                    title=texts([metric_title(metric) for metric in rows["metric"]]),
                    filter=texts([shlex.quote(glob.escape(case)) for case in rows["case"]]),
                    **{name: figures(_floats(rows[name]), digits=9) for name in _FIGURES},
                    control=whole(rows["control"].to_numpy(np.float64)),
                ),
            },
        )


def _rebuilt(one: ComparisonFacts, place: str) -> list[str]:
    """Where no command was kept: that of the two runs."""
    folder = place.rstrip("/") or "/"
    base, head = (os.path.join(folder, run) for run in (one.base, one.head))  # noqa: PTH118 (may be a URL)
    return ["harness", "compare", *(["--within", head] if one.within else [base, head])]


def _unfiltered(command: list[str]) -> list[str]:
    """Without patterns on names, so that one may be added that decides alone."""
    found: list[str] = []
    is_pattern = False
    for word in command:
        if not is_pattern and word != _FILTER and not word.startswith(f"{_FILTER}="):
            found.append(word)
        is_pattern = word == _FILTER and not is_pattern
    return found


def _floats(column: pd.Series[float]) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    return pd.to_numeric(column, errors="coerce").to_numpy(np.float64, na_value=np.nan)
