"""What changes a results folder as a whole: compact its tables, delete old raw turns."""

from __future__ import annotations

import contextlib
import hashlib
import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path

from harness.errors import HarnessError, RunError
from harness.progress import Progress, Silent
from harness.records.run import Run
from harness.store.check import examine
from harness.store.clock import clock_fault, is_younger
from harness.store.database import RowsOf, copy_rows, id_column, texts, write_tables
from harness.store.files import (
    DROPPED_FILE,
    FINISHED_FILE,
    TURNS_FILE,
    FileRecord,
    describe_file,
    finished_document,
    mark_dropped,
    parsing,
    read_document,
    staging,
    writing,
)
from harness.store.folders import HISTORY_FOLDER, look_into
from harness.store.kinds import COMPARISON, EXPLANATION
from harness.store.parquet_files import Source, compacted_sources, require_own_history, tables_of
from harness.store.place import (
    Place,
    archive_lock,
)
from harness.store.run_directory import HEADER_FILE
from harness.store.schema import COMPARISON_TABLES, RUN_TABLES
from harness.store.tables import Tables, rows_in
from harness.text import one_line, shown


@dataclass(frozen=True, kw_only=True)
class Compacted:
    """What compacting did."""

    runs: tuple[str, ...]  # Ids that were added
    comparisons: tuple[str, ...]  # Likewise
    left_out: dict[str, str]  # Folders that were not, and why
    merged_parts: int  # How many parts became one; 0: they were left as they are
    folder_bytes: int  # Of the folders whose runs and comparisons are in Parquet now
    before_bytes: int  # Of all Parquet files of the history before
    after_bytes: int  # Of all of them now
    parts: int  # How many parts there are now


@dataclass(frozen=True, kw_only=True)
class Dropping:
    """What became, or would become, of one run's or comparison's raw turns."""

    name: str
    started: str  # As the run itself says, ISO 8601 in UTC
    dropped: bool  # Whether they go; else `why` says why they stay
    bytes: int = 0  # Of rounds.jsonl
    why: str = ""


@dataclass(frozen=True, kw_only=True)
class GarbageReport:
    """What `harness results gc` did, or would do."""

    rows: tuple[Dropping, ...]  # Runs and comparisons that are old and have turns, and those whose age is not known
    dry_run: bool
    young: int = 0  # How many more have turns and are younger than what was asked for


# --- Compacting ---


def compact(place: Place, rows_of: RowsOf, progress: Progress) -> Compacted:
    """Give every finished folder its tables, and put the rows of all into one file a table, which is quicker to ask.

    Folders stay as they are. The new files are there whole before the old ones go, so it may be killed at any moment.
    """
    results = place.local
    require_own_history(results)
    with archive_lock(results):
        before = compacted_sources(results)
        before_bytes = _bytes_of(results)
        left_out = dict(place.refused)
        with compacted_tables(results, rows_of) as tables:
            _require_all(tables, before)
            named = (name for name in place.names() if name not in tables.ids)
            names = [name for name in named if not EXPLANATION.is_at(results / name)]  # of which no table has rows
        progress.stage("Compacting", len(names))
        sizes = {}
        for name in names:
            if why := _why_not_compacted(results / name, name):
                left_out[name] = why
            else:
                sizes[name] = look_into(results / name).bytes
            progress.step(name)
        with Tables(results, list(sizes), (), rows_of, Silent()) as tables:
            for name in sorted(sizes.keys() - tables.ids):
                left_out[name] = next(
                    (note for note in tables.notes if note.startswith(name)), "cannot be put into tables"
                )
            added = [name for name in sizes if name in tables.ids]
            rewritten = bool(added) or len(before) > 1
            if rewritten:
                _remove(results, before, besides=write_set(tables, results, sorted(tables.ids)))
        of_runs = {name: (results / name / HEADER_FILE).is_file() for name in added}
        return Compacted(
            runs=tuple(name for name in added if of_runs[name]),
            comparisons=tuple(name for name in added if not of_runs[name]),
            left_out={shown(name): why for name, why in left_out.items()},
            merged_parts=len(before) if rewritten and len(before) > 1 else 0,
            folder_bytes=sum(sizes[name] for name in added),
            before_bytes=before_bytes,
            after_bytes=_bytes_of(results),
            parts=len(compacted_sources(results)),
        )


def _why_not_compacted(folder: Path, name: str) -> str:
    finding, record = examine(folder, name=name)
    if finding.state != "ok":
        return f"{finding.state}: {finding.why}" if finding.why else finding.state
    if isinstance(record, Run) and record.turns_dropped and not tables_of(folder):
        return "its raw turns were dropped, and it has no tables from before; merge the one that has them"
    return ""


def compacted_tables(results: Path, rows_of: RowsOf) -> Tables:
    """Only what was compacted, as tables."""
    return Tables(results, (), (), rows_of, Silent())


def _require_all(tables: Tables, sources: Sequence[Source]) -> None:
    """Refuse to write a set without what an old one has."""
    if len(tables.sources) < len(sources):
        raise RunError(f"{tables.results / HISTORY_FOLDER}: {tables.notes[0]}")


def write_set(tables: Tables, results: Path, ids: Sequence[str]) -> Path:
    """Write the rows of some runs and comparisons as one set, which is there whole or not at all; its folder."""
    import duckdb

    history = results / HISTORY_FOLDER
    try:
        with writing(history):
            history.mkdir(parents=True, exist_ok=True)
            with staging(results) as copy:
                for table in (*RUN_TABLES, *COMPARISON_TABLES):
                    kept = f"{id_column(table)} IN ({texts(ids)})"
                    copy_rows(tables.connection, table, f"(FROM {table} WHERE {kept})", copy / f"{table}.parquet")
                records = {file.name: describe_file(file) for file in sorted(copy.iterdir())}
                (copy / FINISHED_FILE).write_bytes(finished_document(records))
                folder = history / f"tables-{_digest(records)}"
                if not folder.exists():  # else the same rows are there
                    copy.rename(folder)
    except duckdb.Error as error:
        why = one_line(str(error))[:200]
        raise RunError(f"{history}: cannot be written or read ({why}); it is as it was") from None
    return folder


def _digest(records: Mapping[str, FileRecord]) -> str:
    """8 hex digits of a set's content, so that the same rows have the same name."""
    text = "".join(f"{name} {record.sha256}\n" for name, record in sorted(records.items()))
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def _remove(results: Path, sources: Sequence[Source], *, besides: Path) -> None:
    """Delete what another set has now; what stays behind is hidden by it, and goes the next time."""
    for source in sources:
        folder = results / source.name
        if folder.is_dir() and folder != besides:  # the same rows make the same set again
            shutil.rmtree(folder, ignore_errors=True)


def _bytes_of(results: Path) -> int:
    return sum(file.stat().st_size for file in (results / HISTORY_FOLDER).glob("*/*.parquet"))


# --- Deleting old raw turns ---


def drop_turns(
    place: Place, age: timedelta, now: datetime, rows_of: RowsOf, progress: Progress, *, dry_run: bool
) -> GarbageReport:
    """Delete the raw turns of runs and comparisons that are older than `age` by their own clocks.

    Only of those that are finished and whole; their figures stay in their tables, which are made where there are none.
    A marker is written before the turns are deleted, so that a process killed in between leaves both.
    """
    results = place.local
    require_own_history(results)
    with contextlib.nullcontext() if dry_run else archive_lock(results):
        rows: list[Dropping] = []
        young = 0
        names = place.names()
        progress.stage("Looking for old turns", len(names))
        for name in names:
            if (row := _judge(results / name, name, age, now)) is not None:
                rows.append(_drop(results / name, row, rows_of) if row.dropped and not dry_run else row)
            else:
                young += (results / name / TURNS_FILE).is_file()
            progress.step(name)
        return GarbageReport(rows=tuple(rows), dry_run=dry_run, young=young)


def _judge(folder: Path, name: str, age: timedelta, now: datetime) -> Dropping | None:
    """Whether a folder's turns go, and why not; None: it is young, or has none."""
    if not (folder / TURNS_FILE).is_file():
        return None
    row = Dropping(name=name, started=_started(folder), dropped=False, bytes=(folder / TURNS_FILE).lstat().st_size)
    if fault := clock_fault(row.started, (), now):
        return replace(row, why=f"its age is not known: {fault}")
    if is_younger(row.started, age, now):
        return None
    finding, record = examine(folder, name=name)
    if finding.state != "ok" or record is None:
        return replace(row, why=f"{finding.state}: {finding.why}")
    if isinstance(record, Run) and (fault := clock_fault(row.started, record.rounds, now)):
        return replace(row, why=f"its age is not known: {fault}")
    return replace(row, dropped=True)


def _started(folder: Path) -> str:
    """When a run began, or a comparison was made, as it says itself; "" where it does not."""
    for file, key in ((folder / COMPARISON.file, "created"), (folder / HEADER_FILE, "started")):
        if file.is_file():
            with contextlib.suppress(RunError), parsing(file):
                return shown(str(json.loads(read_document(file))[key]))
    return ""


def _drop(folder: Path, row: Dropping, rows_of: RowsOf) -> Dropping:
    """Make sure of the tables, mark and delete; a folder that cannot be written keeps its turns."""
    turns = folder / TURNS_FILE
    try:
        with writing(folder):
            if not tables_of(folder):
                write_tables(folder, rows_in(folder, rows_of)[1])
            mark_dropped(folder, describe_file(turns))
            turns.unlink()
    except HarnessError as error:
        if turns.exists():
            with contextlib.suppress(OSError):
                (folder / DROPPED_FILE).unlink(missing_ok=True)
        return replace(row, dropped=False, why=one_line(str(error)))
    return row
