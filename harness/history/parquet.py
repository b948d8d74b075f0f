"""Compacted runs: rows of many runs in few Parquet files, written and merged whole or not at all."""

from __future__ import annotations

import contextlib
import re
import secrets
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from harness.cache import held
from harness.errors import RunError
from harness.history.database import connect, parquet, text
from harness.history.frames import TABLES, Table, frame_of, turns_frame
from harness.history.index import (
    LOCK_FILE,
    Index,
    Part,
    history_folder,
    part_file,
    read_index,
    require_own,
    write_index,
)
from harness.history.part_file import copy_rows
from harness.history.tables import Tables
from harness.history.values import ComparisonRow
from harness.store.manifest import describe_file
from harness.text import one_line

if TYPE_CHECKING:
    import pandas as pd

Frames = Mapping[Table, "pd.DataFrame"]

_ID_LENGTH = 60


class RowsError(RunError):
    """Rows that no file takes, such as text that cannot be encoded; others can be written."""


def compacted_runs(results: Path) -> frozenset[str]:
    """Ids of the runs whose rows are in Parquet, so that their folders are not read again.

    Raises:
        RunError: The index is damaged, or of a newer schema.
    """
    return read_index(results).runs


def compacted_comparisons(results: Path) -> frozenset[str]:
    """Ids of the comparisons whose rows are in Parquet.

    Raises:
        RunError: The index is damaged, or of a newer schema.
    """
    return read_index(results).comparisons


def frames_of(tables: Sequence[Tables], comparisons: Sequence[ComparisonRow] = ()) -> Frames:
    """The rows of several runs and comparisons, a frame for each table.

    Raises:
        OverflowError: A number is too large for 64 bits.
    """
    import pandas as pd

    turns = [turns_frame(one.run) for one in tables]
    return {
        "runs": frame_of(TABLES["runs"], [row for one in tables for row in one.runs]),
        "points": frame_of(TABLES["points"], [row for one in tables for row in one.points]),
        "cases": frame_of(TABLES["cases"], [row for one in tables for row in one.cases]),
        "turns": pd.concat(turns, ignore_index=True) if turns else frame_of(TABLES["turns"], []),
        "comparisons": frame_of(TABLES["comparisons"], comparisons),
    }


def write_parts(results: Path, tables: Sequence[Tables], comparisons: Sequence[ComparisonRow] = ()) -> Part:
    """Compact runs and comparisons: one more part, which is there whole or not at all.

    Raises:
        RunError: The folder cannot be written, or its index not read; nothing has changed then.
        RowsError: It is the rows that cannot be written; likewise.
    """
    return write_frames(results, frames_of(tables, comparisons))


def write_frames(results: Path, frames: Frames) -> Part:
    """Add a part that holds these rows; see `write_parts`.

    Args:
        frames: By table; a table that is left out or empty gets no file.

    Raises:
        RunError: A run is compacted already, the folder cannot be written, or its index not read.
        RowsError: It is the rows that cannot be written.
    """
    runs = tuple(sorted(set(frames["runs"]["run"]))) if "runs" in frames else ()
    compared = tuple(sorted(set(frames["comparisons"]["comparison"]))) if "comparisons" in frames else ()
    with _writing(results) as index:
        _refuse_twice(results, index, runs, compared)
        part = Part(name=_part_name(runs or compared), runs=runs, comparisons=compared)
        connection = connect()
        try:
            for table, frame in frames.items():
                if len(frame):
                    connection.register("given", frame)
                    part.bytes[table] = copy_rows(connection, table, "given", part_file(results, table, part))
                    connection.unregister("given")
        except Exception:
            _delete(results, part)
            raise
        finally:
            connection.close()
        part = _hashed(results, part)
        write_index(results, (*index.parts, part))
    return part


def merge_parts(results: Path, *, leave_turns_of: Sequence[str] = ()) -> Part | None:
    """Make one part of all, so that a series lies in one place; None where there is at most one and nothing to leave.

    Args:
        leave_turns_of: Ids of runs whose turns are dropped on the way.

    Raises:
        RunError: A part cannot be read or the folder not written; the old parts are as they were.
    """
    with _writing(results) as index:
        if len(index.parts) < 2 and not leave_turns_of:
            return None
        merged = Part(
            name=_part_name(sorted(index.runs) or sorted(index.comparisons)),
            runs=tuple(sorted(index.runs)),
            comparisons=tuple(sorted(index.comparisons)),
        )
        with tempfile.TemporaryDirectory(prefix="harness-") as spill:
            connection = connect(Path(spill))
            for table in TABLES:
                files = [part_file(results, table, part) for part in index.parts if table in part.bytes]
                if files:
                    source = parquet(files)
                    if table == "turns" and leave_turns_of:
                        left = ", ".join(text(run) for run in leave_turns_of)
                        source = f"(SELECT * FROM {source} WHERE run NOT IN ({left}))"  # noqa: S608 (quoted)
                    merged.bytes[table] = copy_rows(connection, table, source, part_file(results, table, merged))
            connection.close()
        merged = _hashed(results, merged)
        write_index(results, [merged])
        for part in index.parts:
            _delete(results, part)
    return merged


@contextlib.contextmanager
def _writing(results: Path) -> Iterator[Index]:
    """The index, which nobody else changes meanwhile.

    Raises:
        RunError: It cannot be read, leads elsewhere, or something cannot be written.
        RowsError: It is the rows that cannot be.
    """
    import duckdb

    require_own(results)
    folder = history_folder(results)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with held(folder / LOCK_FILE, on_wait=lambda: None):
            yield read_index(results)
    except OSError as error:
        raise RunError(
            f"{folder}: cannot be written ({error.strerror or error}); make room or mend its permissions"
        ) from None
    except (duckdb.IOException, duckdb.OutOfMemoryException) as error:
        raise RunError(f"{folder}: cannot be written or read ({_detail(error)}); its index is as it was") from None
    except (duckdb.Error, UnicodeError) as error:
        raise RowsError(f"{folder}: cannot be written or read ({_detail(error)}); its index is as it was") from None


def _detail(error: Exception) -> str:
    return one_line(str(error))[:200]


def _hashed(results: Path, part: Part) -> Part:
    """A part with the hash of each of its files."""
    return replace(part, sha256={table: describe_file(part_file(results, table, part)).sha256 for table in part.bytes})


def _refuse_twice(results: Path, index: Index, runs: Sequence[str], comparisons: Sequence[str]) -> None:
    twice = sorted(index.runs.intersection(runs)) or sorted(index.comparisons.intersection(comparisons))
    if twice:
        raise RunError(f"{history_folder(results)}: {twice[0]} is compacted already; leave it out")


def _part_name(ids: Sequence[str]) -> str:
    """`<first run id>--<last run id>-<8 hex>`; the digits are random, since no part is written over another."""
    ends = [re.sub(r"[^A-Za-z0-9._+-]", "_", one)[:_ID_LENGTH] for one in (ids[0], ids[-1])] if ids else ["none"] * 2
    return f"{'--'.join(end.lstrip('.-_+') or 'run' for end in ends)}-{secrets.token_hex(4)}"


def _delete(results: Path, part: Part) -> None:
    """Delete a part's files; one that stays behind is in no index and is never read."""
    for table in part.bytes:
        if table in TABLES:
            with contextlib.suppress(OSError):
                part_file(results, table, part).unlink(missing_ok=True)
