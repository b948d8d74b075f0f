"""Runs and comparisons that are not compacted: each folder's rows, from the cache or from the folder itself."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from harness.errors import HarnessError, RunError
from harness.history import memo as memos
from harness.history.frames import TABLES, Table, frame_of
from harness.history.index import Index
from harness.history.memo import Memo
from harness.history.memo_check import changed_file, changed_note, sizes
from harness.history.tables import comparison_rows, tables_of
from harness.progress import Progress
from harness.report.comparison import comparison_from_json
from harness.store.bounded import read_document
from harness.store.comparison_directory import COMPARISON_FILE
from harness.store.folders import is_name
from harness.store.manifest import FINISHED_FILE
from harness.store.run_directory import load_run
from harness.text import one_line

if TYPE_CHECKING:
    import duckdb
    import pandas as pd

_RUN_FILE = "run.json"


@dataclass(kw_only=True)
class Found:
    """What lies in a results folder beside what was compacted.

    Attributes:
        memos: Finished runs and comparisons whose rows are in the cache.
        frames: Rows of the others.
        folders: Of the runs, by id.
        notes: Folders that were left out, and why.
    """

    memos: dict[str, Memo] = field(default_factory=dict)
    frames: list[Mapping[Table, pd.DataFrame]] = field(default_factory=list)
    folders: dict[str, Path] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def read_folders(
    connection: duckdb.DuckDBPyConnection, results: Path, names: Sequence[str], index: Index, progress: Progress
) -> Found:
    """Put every run and comparison into rows that the index does not have; what cannot be read is a note.

    Args:
        names: Of the folders.
    """
    found = Found()
    compacted = index.runs | index.comparisons
    folders = [results / name for name in names if name not in compacted]
    if folders:  # of a compacted history there may be none to read
        progress.stage("Reading runs", len(folders))
    for folder in folders:
        try:
            _read(connection, folder, compacted, found)
        except HarnessError as error:
            found.notes.append(f"{folder.name} is left out: {one_line(str(error))}")
        except Exception as error:  # a folder may hold anything, and must not cost the others
            detail = one_line(f"{type(error).__name__}: {error}")[:200]
            found.notes.append(f"{folder.name} is left out: it cannot be put into tables ({detail})")
        progress.step(folder.name)
    return found


def _read(connection: duckdb.DuckDBPyConnection, folder: Path, compacted: frozenset[str], found: Found) -> None:
    is_run = not (folder / COMPARISON_FILE).exists()
    needed = [_RUN_FILE, FINISHED_FILE] if is_run else [COMPARISON_FILE]
    files = [folder / name for name in needed if (folder / name).is_file()]
    finished = len(files) == len(needed)
    key = memos.key_of(files, sizes(folder)) if finished else ""
    memo = memos.find_memo(key) if finished else None
    frames: Mapping[Table, pd.DataFrame] = {}
    if memo is None:
        name, frames, dropped = _run_frames(folder) if is_run else _comparison_frames(folder)
        if dropped:  # not what the run had when it was finished
            finished = False
            found.notes.append(
                f"{folder.name} has no latencies here: `harness results gc` deleted its turns ({dropped[:10]}), "
                "and the compacted history, which had them, does not have the run"
            )
    else:
        name = memo.id
    if not is_name(name):
        raise RunError(f"it says that it is {one_line(name)[:80]!r}, which is no name of a run")
    if name in compacted or name in found.folders or name in found.memos:
        if name not in compacted:
            found.notes.append(
                f"{folder.name} is left out: it says that it is {one_line(name)[:80]}, which is there already"
            )
        return
    if memo is None and finished and (changed := changed_file(folder)):
        finished = False
        found.notes.append(changed_note(folder.name, changed))
    if memo is None and finished:
        with contextlib.suppress(OSError, _duckdb_error()):  # the cache cannot be written: the rows stay in memory
            memo = memos.keep(connection, key, name, frames)
    if memo is not None:
        found.memos[name] = memo
    else:
        found.frames.append(frames)
    if is_run:
        found.folders[name] = folder


def _duckdb_error() -> type[Exception]:
    import duckdb

    return duckdb.Error


def _run_frames(folder: Path) -> tuple[str, Mapping[Table, pd.DataFrame], str]:
    """Its id, its rows, and when its turns were deleted."""
    tables = tables_of(load_run(folder))
    frames: Mapping[Table, pd.DataFrame] = {
        "runs": frame_of(TABLES["runs"], tables.runs),
        "points": frame_of(TABLES["points"], tables.points),
        "cases": frame_of(TABLES["cases"], tables.cases),
    }
    return tables.run.header.id, frames, tables.run.turns_dropped


def _comparison_frames(folder: Path) -> tuple[str, Mapping[Table, pd.DataFrame], str]:
    file = folder / COMPARISON_FILE
    comparison = comparison_from_json(read_document(file).decode(errors="replace"), str(file))
    return comparison.id, {"comparisons": frame_of(TABLES["comparisons"], comparison_rows(comparison))}, ""
