"""Comparisons as pages load them: the list, a file for each; and the command that compares both sides of a change."""

from __future__ import annotations

import contextlib
import glob
import os
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from harness.compare.pairs import TOOLCHAIN_PREFIX
from harness.dashboard.encode import Payload, key_of, metric_title, signed, table
from harness.dashboard.gather import Gathered
from harness.errors import ExitCode
from harness.history.changes import Change
from harness.history.series import frame_records
from harness.records.comparison import VERDICTS, Comparison, Explained, MachineFacts, Row, SideFacts
from harness.report.comparison import CHANGED, comparison_exit_code, headline
from harness.report.units import compared
from harness.store.files import adapter

if TYPE_CHECKING:
    import pandas as pd

_COLUMNS = ("case", "model", "variant", "device", "metric", "verdict", "unit", "gate", "ratio", "ci_low", "ci_high",
            "p", "floor", "base_value", "head_value", "control")  # fmt: skip
_SHARED = ("id", "created", "title", "base", "head", "machine", "verdict", "alarming", "within")
Facts = dict[str, Any]  # of one comparison
# What can be installed again by its name, as `3.13.0` or `3.14.0rc20261120`.
_RELEASE = re.compile(r"\d+(\.\d+)+((a|b|rc|\.dev|\.post)\d+)?")


def comparison_facts(gathered: Gathered) -> list[Facts]:
    """All comparisons, the newest first."""
    return [
        _facts(str(name), rows, gathered.runs_by_id)
        for name, rows in gathered.comparisons.groupby("comparison", sort=False)
    ]


def _facts(name: str, rows: pd.DataFrame, runs: Mapping[str, Mapping[str, Any]]) -> Facts:
    is_control, first = rows["control"].astype(bool), frame_records(rows[:1])[0]
    controls, comparison = rows[is_control], _comparison(rows[~is_control], first, runs)
    counts = rows["verdict"][~is_control].value_counts()
    return {
        "id": name,
        "key": key_of(name),
        "rows": rows,  # of the table `comparisons`
        "created": first["created"],
        "title": compared(comparison.base, comparison.head),  # `IREE 3.13.0 against IREE 3.12.0`
        "base": first["base_run"],
        "head": first["head_run"],
        "machine": first["machine"],
        # Rows by verdict, all metrics together and controls left out
        "counts": [int(counts.get(verdict, 0)) for verdict in VERDICTS],
        "controls": len(controls),
        "flagged": int(controls["verdict"].isin(CHANGED).sum()),  # how many of these were called changed
        "verdict": headline(comparison),
        "alarming": comparison_exit_code(comparison, strict=False) is not ExitCode.OK,
        "within": comparison.within,  # whether variants of one run were compared with its baseline
        "command": first["command"],  # "" where none was kept
    }


def _comparison(rows: pd.DataFrame, first: Mapping[Any, Any], runs: Mapping[str, Mapping[str, Any]]) -> Comparison:
    """As much of a comparison as a table tells, which names both sides and says its verdict."""
    words, ends = shlex.split(first["command"]), (first["base_run"], first["head_run"])
    labels = [word for word in words if word.startswith(TOOLCHAIN_PREFIX)]
    if len(labels) != len(ends):
        labels = [next((word for word in words if word.rstrip("/").endswith(run)), run) for run in ends]
    base, head = (_side(label, run, runs.get(run)) for label, run in zip(labels, ends, strict=True))
    variants = sorted(set(rows["variant"])) if first["within"] else []
    names = ["case", "model", "variant", "device", "metric", "verdict", "gate"]
    return Comparison(
        id="",
        created="",
        base=replace(base, commit=first["base_commit"] or ""),
        head=replace(head, commit=first["head_commit"] or "", variants=tuple(variants)),
        within=first["within"],
        mode="recorded",
        machine=MachineFacts(description=""),
        rows=tuple(Row(**{**row, "gate": row["gate"] or None}) for row in frame_records(rows[names])),
        summary={},
    )


def _side(label: str, run: str, row: Mapping[str, Any] | None) -> SideFacts:
    releases = [row["reference"], row["toolchain"]] if row else []
    if row and row["revision"]:
        releases[1] = f"{row['toolchain']} ({row['revision'][:10]})"
    toolchains = tuple(release for release in releases if release)
    return SideFacts(label=label, run=run, suite="", started="", toolchains=toolchains, machine="")


def comparison_list(comparisons: Sequence[Facts]) -> Payload:
    """All comparisons, the newest first."""
    columns = {name: [facts[name] for facts in comparisons] for name in ("key", "controls", "flagged", *_SHARED)}
    counts = {verdict: [facts["counts"][place] for facts in comparisons] for place, verdict in enumerate(VERDICTS)}
    return table(len(comparisons), **columns, **counts)


def comparison_files(gathered: Gathered, comparisons: Sequence[Facts]) -> Iterator[tuple[str, Payload]]:
    """The key and the data of each comparison."""
    for facts in comparisons:
        rows = facts["rows"]
        command = shlex.split(facts["command"])
        if not command:  # none was kept: that of the two runs
            base, head = _paths(gathered.place, facts["base"], facts["head"])
            command = ["harness", "compare", *(["--within", head] if facts["within"] else [base, head])]
        yield (
            facts["key"],
            {
                **{name: facts[name] for name in _SHARED},
                **{f"{side}_key": gathered.runs_by_id.get(facts[side], {}).get("key") for side in ("base", "head")},
                "command": shlex.join(command),
                "explained": list(_explanations(rows["explained"])),
                "rows": table(
                    len(rows),
                    **{name: rows[name] for name in _COLUMNS},
                    reason=[signed(reason) for reason in rows["reason"]],
                    title=[metric_title(metric) for metric in rows["metric"]],
                ),
            },
        )


def _explanations(texts: Iterable[str]) -> Iterator[Payload]:
    """What regressed latencies are made of, in a sentence; what no harness can have written is left out."""
    for text in filter(None, texts):
        with contextlib.suppress(ValidationError):
            explained: Explained = adapter(Explained).validate_json(text)
            yield {"case": explained.case, "sentence": signed(explained.sentence)}


def _paths(place: str, *runs: str) -> list[str]:
    return [os.path.join(place.rstrip("/") or "/", run) for run in runs]  # noqa: PTH118 (may be a URL)


# --- Both sides of a change ---


def compare_command(change: Change, runs: Mapping[str, Mapping[str, Any]], place: str) -> str:
    """The command line that compares before and after a change: toolchains, as every machine can, or else runs."""
    if change.peer:
        return ""
    ends = (change.last_good, change.first_bad)
    case = glob.escape(change.case)
    releases = [str(runs[run]["toolchain"]) for run in ends if run in runs]
    installable = len(releases) == 2 and all(_RELEASE.fullmatch(release) for release in releases)
    if change.role == "newest" and installable and releases[0] != releases[1]:
        suite = str(runs[change.first_bad]["suite_file"])
        sides = [f"{TOOLCHAIN_PREFIX}{release}" for release in releases]
        return shlex.join(["harness", "compare", *sides, "--suite", suite, "--filter", case])
    # Where a run has several toolchains, the names of its cases end in them.
    return shlex.join(["harness", "compare", *_paths(place, *ends), "--filter", case, "--filter", f"{case}:*"])
