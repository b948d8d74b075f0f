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

import contextlib
import json
import math
import shlex
import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout
from pydantic import ValidationError

from harness.cache import write_atomically
from harness.errors import Interrupted, PlaceGone, RunError
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
from harness.store.run_directory import append_line, make_folder, new_run_id, writing_results
from harness.store.unfinished import (
    GENERATIONS_FILE,
    UNFINISHED_FILE,
    Begun,
    KeptGeneration,
    read_begun,
    read_generations,
    read_rounds,
)

COMPARISON_FILE = "comparison.json"
_LOCK_FILE = ".lock"
COMPARISON_FILES = (COMPARISON_FILE, TURNS_FILE, "compiles.jsonl", "report.md", FINISHED_FILE, DROPPED_FILE)
# Raised when a name changes its meaning or goes away; new names may appear without.
COMPARISON_VERSION = 1

# Numbers that a value needs and JSON may have lost, since it has neither NaN nor infinities.
_NEEDED = {"rows": ("floor", "seconds"), "means": ("ratio",)}
_NEEDED_OF_SELFCHECK = ("upper_bound", "seconds")


class ComparisonDirectory:
    """A comparison being written. Use `create` or `resume`, as a context manager.

    It leaves nothing behind where it ends early and nothing was measured, but for what can go on.

    Attributes:
        begun: None: it cannot go on where it is stopped.
        generations: Of the stretches before this one, and their rounds; there once it is entered.
    """

    def __init__(self, path: Path, begun: Begun | None = None) -> None:
        self.path = path
        self.begun = begun
        self.generations: tuple[KeptGeneration, ...] = ()
        self.rounds: tuple[Round, ...] = ()
        self._lock = FileLock(path / _LOCK_FILE)
        self._one_writes = threading.Lock()  # rows of a fleet are measured at the same time

    @classmethod
    def create(cls, results: Path, suite: str, now: datetime, begun: Begun | None = None) -> ComparisonDirectory:
        """Make the directory `<time>-<suite>-compare`.

        Raises:
            RunError: The results folder cannot be written.
        """
        directory = cls(make_folder(results, f"{new_run_id(suite, now)}-compare"), begun)
        directory._keep_begun()
        return directory

    @classmethod
    def resume(cls, path: Path) -> ComparisonDirectory:
        """Open a comparison to go on with it.

        Raises:
            RunError: It is finished, is none that can go on, or is damaged.
        """
        if is_comparison(path):
            raise RunError(f"{path}: this comparison is finished and is not written again; start a new one")
        return cls(path, read_begun(path))

    def __enter__(self) -> ComparisonDirectory:
        try:
            self._lock.acquire(timeout=0)
        except Timeout:
            raise RunError(f"{self.path}: another harness is writing this comparison; wait for it or stop it") from None
        self.generations = read_generations(self.path)
        self.rounds = read_rounds(self.path) if self.generations else ()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        with contextlib.suppress(OSError):  # before the release: after it, the file may be another harness's lock
            (self.path / _LOCK_FILE).unlink()
        self._lock.release()
        is_stopped = kind is not None and issubclass(kind, KeyboardInterrupt | Interrupted | PlaceGone)
        if kind is not None and not self._is_measured() and not (is_stopped and self.can_go_on):
            with contextlib.suppress(OSError):
                (self.path / UNFINISHED_FILE).unlink(missing_ok=True)
                self.path.rmdir()

    @property
    def can_go_on(self) -> bool:
        """Whether there is anything that need not be done again."""
        return self.begun is not None and (bool(self.begun.runs) or self._is_measured())

    @property
    def command_to_go_on(self) -> str:
        """What goes on with it; what begins it anew, where there is nothing of it."""
        if self.begun is not None and not self.can_go_on:
            return shlex.join(self.begun.command)
        return f"harness compare --resume {shlex.quote(str(self.path))}"

    def _is_measured(self) -> bool:
        return any((self.path / name).exists() for name in (TURNS_FILE, GENERATIONS_FILE))

    def _keep_begun(self) -> None:
        if self.begun is not None:
            with writing_results(self.path):
                write_atomically(self.path / UNFINISHED_FILE, adapter(Begun).dump_json(self.begun, indent=1))

    def keep_run(self, side: str, run: Path) -> None:
        """Keep which run is made for a side, as soon as it begins."""
        if self.begun is not None:
            self.begun = replace(self.begun, runs={**self.begun.runs, side: str(run)})
            self._keep_begun()

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

    def keep_generation(self, kept: KeptGeneration) -> None:
        """Keep what a generation gave, once it has ended."""
        self._append(GENERATIONS_FILE, adapter(KeptGeneration).dump_json(kept))

    def keep_round(self, measured: Round) -> None:
        """Keep the turns of one round, at once."""
        self._append(TURNS_FILE, line_of(measured))

    def keep_compile(self, case: str, fields: Mapping[str, Any]) -> None:
        """Keep what one generation of compiles took."""
        self._append("compiles.jsonl", json.dumps({"case": case, **fields}).encode())

    def finish(self, document: bytes, report: str, comparison: Comparison | None = None) -> None:
        """Write the comparison itself, as JSON, its report and its tables.

        Args:
            comparison: What the document says; None: it gets tables when it is read first.
        """
        with writing_results(self.path):
            write_atomically(self.path / "report.md", report.encode())
            if comparison is not None:
                try_to_write_tables(self.path, {"comparisons": comparison_rows(comparison)})
            # comparison.json makes it a comparison, so it comes last, and what is one has its hashes.
            files = {**describe_folder(self.path, COMPARISON_FILES), COMPARISON_FILE: describe_bytes(document)}
            write_atomically(self.path / FINISHED_FILE, finished_document(files))
            write_atomically(self.path / COMPARISON_FILE, document)
            for name in (UNFINISHED_FILE, GENERATIONS_FILE):
                (self.path / name).unlink(missing_ok=True)

    def _append(self, name: str, line: bytes) -> None:
        with self._one_writes, writing_results(self.path):
            append_line(self.path / name, line + b"\n")


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
    """Read a comparison's folder.

    Raises:
        RunError: It is damaged, or a later harness wrote it.
    """
    file = folder / COMPARISON_FILE
    return comparison_from_json(read_document(file), str(file))


def comparison_from_json(content: str | bytes, source: str = "comparison.json") -> Comparison:
    """A comparison as it was kept.

    Args:
        content: A document as `--format json` prints it.
        source: Where it is from, for messages.

    Raises:
        RunError: It is no comparison, or a later harness wrote it.
    """
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
