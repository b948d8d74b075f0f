"""Comparisons on disk, so that every figure of a report can be looked up.

<results>/<comparison id>/
    comparison.json    the document that `--format json` prints
    rounds.jsonl       every turn that was timed for it: one JSON line a round, its group the row's case
    compiles.jsonl     every compile that was timed for it
    report.md          the full report
    tables/            its rows of a results folder's tables, see harness.store.tables
    finished.json      the hash of every file
    turns-dropped.json where `harness results gc` has deleted rounds.jsonl: when, and its hash

Until it is finished it has files more with which `harness compare --resume` goes on, see harness.store.unfinished.
"""

from __future__ import annotations

import json
import math
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from harness.cache import write_atomically
from harness.errors import RunError
from harness.metrics import LATENCY
from harness.records.comparison import Comparison, Explained
from harness.records.run import HostRecord, Round
from harness.store.clock import utc_text
from harness.store.database import try_to_write_tables
from harness.store.documents import parse_kept
from harness.store.files import (
    DROPPED_FILE,
    FINISHED_FILE,
    TURNS_FILE,
    adapter,
    describe_bytes,
    describe_folder,
    finished_document,
    line_of,
    read_document,
)
from harness.store.run_directory import writing_results
from harness.store.unfinished import UNFINISHED_FILE, UnfinishedDirectory, read_rounds

COMPARISON_FILE = "comparison.json"
COMPARISON_FILES = (COMPARISON_FILE, TURNS_FILE, "compiles.jsonl", "report.md", FINISHED_FILE, DROPPED_FILE)
# Raised when a name changes its meaning or goes away; new names may appear without.
COMPARISON_VERSION = 1

# Numbers that a value needs and JSON may have lost, since it has neither NaN nor infinities.
_NEEDED = {"rows": ("floor", "seconds"), "means": ("ratio",)}
_NEEDED_OF_SELFCHECK = ("upper_bound", "seconds")


class ComparisonDirectory(UnfinishedDirectory):
    """A comparison being written. Use `create` or `resume`, as a context manager."""

    kind, command, begun_file, document = "comparison", "compare", UNFINISHED_FILE, COMPARISON_FILE
    rounds: tuple[Round, ...] = ()  # Of the generations of the stretches before this one; there once it is entered

    def __enter__(self) -> ComparisonDirectory:
        super().__enter__()
        self.rounds = read_rounds(self.path) if self.generations else ()
        return self

    def keep_placed(self, placed: Mapping[str, Sequence[str]], hosts: Sequence[HostRecord]) -> None:
        """Keep which hosts of a fleet measure each row, by the row's name, and what these hosts are like."""
        if self.begun is not None:
            own = {host.name: host.environment for host in hosts}
            rows = {name: tuple(names) for name, names in placed.items()}
            with self._one_writes:
                self.begun = replace(
                    self.begun, placed={**self.begun.placed, **rows}, hosts={**self.begun.hosts, **own}
                )
                self._keep_begun()

    def keep_round(self, measured: Round) -> None:
        """Keep the turns of one round, at once."""
        self._append(TURNS_FILE, line_of(measured))

    def keep_compile(self, case: str, fields: Mapping[str, Any]) -> None:
        """Keep what one generation of compiles took."""
        self._append("compiles.jsonl", json.dumps({"case": case, **fields}).encode())

    def finish(self, document: bytes, report: str, comparison: Comparison | None = None) -> None:
        """Write the comparison itself, as JSON, its report and its tables."""
        with writing_results(self.path):
            write_atomically(self.path / "report.md", report.encode())
            if comparison is not None:
                try_to_write_tables(self.path, {"comparisons": comparison_rows(comparison)})
            # comparison.json makes it a comparison, so it comes last, and what is one has its hashes.
            files = {**describe_folder(self.path, COMPARISON_FILES), COMPARISON_FILE: describe_bytes(document)}
            write_atomically(self.path / FINISHED_FILE, finished_document(files))
            write_atomically(self.path / COMPARISON_FILE, document)
            self._forget_unfinished()


def comparison_rows(comparison: Comparison) -> list[dict[str, Any]]:
    """The rows of the table `comparisons`: one for each of the comparison's."""
    same = ("case", "model", "variant", "device", "metric", "verdict", "ratio", "ci_low", "ci_high", "p", "floor")
    explained = {each.case: adapter(Explained).dump_json(each).decode() for each in comparison.explained}
    return [
        {
            "comparison": comparison.id,
            "created": utc_text(comparison.created),
            "base_run": comparison.base.run,
            "head_run": comparison.head.run,
            "machine": comparison.machine.description,
            **{name: getattr(row, name) for name in (*same, "base_value", "head_value", "unit", "control", "reason")},
            "gate": row.gate or "",
            "command": shlex.join(comparison.command),
            "within": comparison.within,
            "base_commit": comparison.base.commit,
            "head_commit": comparison.head.commit,
            "explained": explained.get(row.case, "") if row.metric == LATENCY.name and not row.control else "",
        }
        for row in comparison.rows
    ]


def is_comparison(path: Path) -> bool:
    """Whether a directory is a finished comparison."""
    return (path / COMPARISON_FILE).is_file()


def load_comparison(folder: Path) -> Comparison:
    """Read a comparison's folder."""
    file = folder / COMPARISON_FILE
    return comparison_from_json(read_document(file), str(file))


def comparison_from_json(content: str | bytes, source: str = "comparison.json") -> Comparison:
    """A comparison as it was kept."""
    document = parse_kept(content, source, what="comparison", version=COMPARISON_VERSION)
    try:
        comparison: Comparison = adapter(Comparison).validate_python(_with_numbers(document))
    except (ValidationError, TypeError, AttributeError, LookupError) as error:
        where = ".".join(map(str, error.errors()[0]["loc"])) if isinstance(error, ValidationError) else "its rows"
        raise RunError(f"{source}: is damaged at {where}; make the comparison again") from None
    return comparison


def _with_numbers(document: Mapping[str, Any]) -> dict[str, Any]:
    """The document with NaN where a needed number was none, and each tool's output back in its row."""
    kept = {key: value for key, value in document.items() if key not in ("schema_version", "tool_output")}
    for key, names in _NEEDED.items():
        kept[key] = [_filled(record, names) for record in kept[key]]
    for output in document.get("tool_output", ()):
        kept["rows"][output["row"]]["stderr"] = output["stderr"]
    machine = dict(kept["machine"])
    if machine.get("selfcheck"):
        machine["selfcheck"] = _filled(machine["selfcheck"], _NEEDED_OF_SELFCHECK)
    return {**kept, "machine": machine}


def _filled(record: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    lost = {name: math.nan for name in names if name in record and record[name] is None}
    return {**record, **lost}
