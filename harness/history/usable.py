"""Which parts of a compacted history can be read: a results folder may be damaged, or come from anybody."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from harness.errors import RunError
from harness.history.database import columns, parquet
from harness.history.frames import TABLES
from harness.history.index import Index, Part, part_file, read_index

if TYPE_CHECKING:
    import duckdb


def usable_index(connection: duckdb.DuckDBPyConnection, results: Path, notes: list[str]) -> Index:
    """The index without parts that are not as it says; their runs are read from their folders where those are there.

    Args:
        notes: Gets a sentence for each part that is left out.
    """
    try:
        index = read_index(results)
    except RunError as error:
        notes.append(f"The compacted history is left out: {error}")
        return Index()
    kept = []
    for part in index.parts:
        if fault := _fault(connection, results, part):
            notes.append(f"Part {part.name} of the compacted history is left out: {fault}; take it from a backup")
        else:
            kept.append(part)
    return Index(parts=tuple(kept))


def _fault(connection: duckdb.DuckDBPyConnection, results: Path, part: Part) -> str:
    import duckdb

    for table, size in part.bytes.items():
        file = part_file(results, table, part)
        if not file.is_file():
            return f"its {table} are missing"
        if file.stat().st_size != size:
            return f"its {table} have another size than when they were written"
        try:
            connection.execute(f"SELECT {columns(TABLES[table])} FROM {parquet([file])} LIMIT 0")  # noqa: S608 (quoted)
        except duckdb.Error as error:
            return f"its {table} cannot be read ({' '.join(str(error).split())[:160]})"
    return ""
