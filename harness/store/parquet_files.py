"""The Parquet files of a results folder: which there are, and whether they are what a harness writes."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from harness.errors import RunError
from harness.store.database import (
    parquet,
    pattern,
    texts,
)
from harness.store.files import (
    FINISHED_FILE,
    TABLES_FOLDER,
)
from harness.store.folders import HISTORY_FOLDER
from harness.store.kinds import COMPARISON
from harness.store.run_directory import HEADER_FILE
from harness.store.schema import COMPARISON_TABLES, LATER, RUN_TABLES, TABLES
from harness.text import one_line

if TYPE_CHECKING:
    import duckdb

STORED = (*RUN_TABLES, "turns", *COMPARISON_TABLES)
_SET = re.compile(r"tables-[0-9a-f]{8}")
_PHYSICAL = {"VARCHAR": "BYTE_ARRAY", "BIGINT": "INT64", "DOUBLE": "DOUBLE", "BOOLEAN": "BOOLEAN"}
# So many rows of equal values are no burden; beyond them, what is stored has to be there.
_ROWS_OF_ANY_FILE = 100_000
_ROWS_A_BYTE = 1
# The same of text, of which a case's command lines are the longest; compressed it takes a hundredth or so.
_TEXT_OF_ANY_FILE = 64 * 2**20
_TEXT_A_BYTE = 2_000


@dataclass(frozen=True, kw_only=True)
class Source:
    """Rows in Parquet: a folder's own, or what was compacted."""

    name: str  # Of the folder or the part, for messages
    files: Mapping[str, Path]  # By table; a table without rows may have none
    ids: set[str] = field(default_factory=set)  # Of the runs and comparisons that are read from here
    hidden: set[str] = field(default_factory=set)  # Of those in it that are read from an earlier source


def is_finished(folder: Path) -> bool:
    """Whether a folder is a finished run or comparison, whose rows stay as they are."""
    if (folder / COMPARISON.file).is_file():
        return True
    return (folder / HEADER_FILE).is_file() and (folder / FINISHED_FILE).is_file()


def tables_of(folder: Path) -> dict[str, Path]:
    """The Parquet files of a run's or a comparison's folder, by table; {} where one is missing or a link."""
    wanted = COMPARISON_TABLES if (folder / COMPARISON.file).exists() else RUN_TABLES
    found = _files_in(folder / TABLES_FOLDER)
    return {table: found[table] for table in wanted} if all(table in found for table in wanted) else {}


def compacted_sources(results: Path) -> list[Source]:
    """What was compacted: sets of tables."""
    folder = results / HISTORY_FOLDER
    if folder.is_symlink() or not folder.is_dir():
        return []
    sets = [path for path in sorted(folder.iterdir()) if _SET.fullmatch(path.name)]
    return [Source(name=f"{HISTORY_FOLDER}/{path.name}", files=_files_in(path)) for path in sets]


def require_own_history(results: Path) -> None:
    """Refuse compacted tables that are elsewhere: what lies there is not this folder's to read or to change."""
    folder = results / HISTORY_FOLDER
    for path in (folder, *(folder.iterdir() if folder.is_dir() else ())):
        if path.is_symlink():
            raise RunError(f"{path}: is a symbolic link, which is not followed; put what it leads to in its place")


def _files_in(folder: Path) -> dict[str, Path]:
    if folder.is_symlink():
        return {}
    files = {table: folder / f"{table}.parquet" for table in STORED}
    return {table: file for table, file in files.items() if file.is_file() and not file.is_symlink()}


def fault_of(connection: duckdb.DuckDBPyConnection, table: str, files: Sequence[Path]) -> str:
    """Why Parquet files are not rows of a table; "" where all are.

    Each has to have exactly the columns that this harness writes, or an older one did, so that no query fails later on
    what a file says; and no more rows than fit its bytes, so that a small file does not fill the memory.
    """
    import duckdb

    wanted = {(column.name, _PHYSICAL[column.sql]) for column in TABLES[table].columns}
    of_older = {(name, kind) for name, kind in wanted if name not in LATER.get(table, {})}
    try:
        columns = connection.execute(
            f"SELECT file_name, name, type FROM parquet_schema([{texts([pattern(file) for file in files])}]) "  # noqa: S608
            "WHERE num_children IS NULL"
        ).fetchall()
        counts = connection.execute(
            f"SELECT file_name, num_rows FROM parquet_file_metadata([{texts([pattern(file) for file in files])}])"  # noqa: S608
        ).fetchall()
    except duckdb.Error as error:
        return one_line(str(error))[:160]
    found: dict[str, set[tuple[str, str]]] = {}
    for file, name, kind in columns:
        found.setdefault(file, set()).add((name, kind))
    same = len(found) == len(files) and all(of_older <= of_file <= wanted for of_file in found.values())
    if not same:
        return "its columns are not those that this harness writes"
    if fault := next((fault for file, rows in counts if (fault := too_many_rows(Path(file), rows))), ""):
        return fault
    try:
        return _text_fault(connection, table, files)
    except duckdb.Error as error:
        return one_line(str(error))[:160]


def _text_fault(connection: duckdb.DuckDBPyConnection, table: str, files: Sequence[Path]) -> str:
    """That a file's text takes far more room than the file; "" where none's does.

    The file itself says how large its columns are. One value of a column's dictionary may stand in every row, so a
    column with a dictionary may have so many times as much; whether it has is counted where that would be too much.
    """
    columns = _text_columns(table)
    size = (
        "total_uncompressed_size::DOUBLE * CASE WHEN contains(encodings, 'DICTIONARY') "
        "THEN greatest(num_values, row_group_num_rows) ELSE 1 END"
    )
    sizes = connection.execute(
        f"SELECT file_name, sum({size}) FROM parquet_metadata([{texts([pattern(file) for file in files])}]) "  # noqa: S608
        f"WHERE path_in_schema IN ({texts(columns)}) GROUP BY file_name"
    ).fetchall()
    faults = (
        too_much_text(connection, table, Path(file)) for file, most in sizes if most > _most_text_bytes(Path(file))
    )
    return next(filter(None, faults), "")


def too_much_text(connection: duckdb.DuckDBPyConnection, table: str, file: Path) -> str:
    """That the text of all rows together takes more room than a harness puts into so many bytes; "": it does not."""
    lengths = f"sum(strlen(COLUMNS('^({'|'.join(_text_columns(table))})$')))"
    (sizes,) = connection.execute(f"SELECT {lengths} FROM {parquet([file])}").fetchall()  # noqa: S608 (our names)
    size = sum(filter(None, sizes))
    if size <= _most_text_bytes(file):
        return ""
    return f"it has {size / 2**20:,.0f} MiB of text in {file.stat().st_size:,} bytes, which no harness writes"


def _text_columns(table: str) -> list[str]:
    return [column.name for column in TABLES[table].columns if column.sql == "VARCHAR"]


def _most_text_bytes(file: Path) -> int:
    return max(_TEXT_OF_ANY_FILE, file.stat().st_size * _TEXT_A_BYTE)


def too_many_rows(file: Path, rows: int) -> str:
    """That a file says it has more rows than a harness puts into so many bytes; "" where it does not.

    A row has figures that differ from all others, and takes 10 bytes and more; equal rows take almost none.
    """
    most = max(_ROWS_OF_ANY_FILE, file.stat().st_size * _ROWS_A_BYTE)
    return f"it has {rows:,} rows in {file.stat().st_size:,} bytes, which no harness writes" if rows > most else ""
