"""DuckDB as the store uses it: in memory, in bounded space, with names of files as text, and for users only to read."""

from __future__ import annotations

import contextlib
import re
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.records.run import Run
from harness.store.files import TABLES_FOLDER, staging
from harness.store.schema import TABLES, create_tables, insert_rows

if TYPE_CHECKING:
    import duckdb

Rows = Mapping[str, Sequence[Mapping[str, Any]]]
# A run's rows of the tables of RUN_TABLES; harness.report.rows has the one.
RowsOf = Callable[[Run], Rows]

# What sorting and grouping may take before it goes to disk; a query's result and Python come on top.
_MEMORY = "1GB"
_GLOB = re.compile(r"[*?\[]")


def connect(folder: Path | None = None) -> duckdb.DuckDBPyConnection:
    """A database in memory; in a folder, where it may be larger than memory."""
    import duckdb

    connection = duckdb.connect(str(folder / "history.duckdb") if folder is not None else ":memory:")
    connection.execute("SET enable_progress_bar = false")
    connection.execute(f"SET memory_limit = {text(_MEMORY)}")
    connection.execute("SET preserve_insertion_order = false")
    connection.execute(f"SET temp_directory = {text(str(folder) if folder is not None else '')}")
    return connection


def lock(connection: duckdb.DuckDBPyConnection) -> None:
    """From here on, statements read and write no files, and cannot change that."""
    import duckdb

    connection.execute("SET enable_external_access = false")
    for optional in ("python_enable_replacements", "autoload_known_extensions", "autoinstall_known_extensions"):
        try:
            connection.execute(f"SET {optional} = false")
        except duckdb.Error:  # not in every release
            continue
    connection.execute("SET lock_configuration = true")


def text(value: str) -> str:
    """A text as SQL writes it, whatever is in it; for the places of a statement that take no parameter."""
    return "'" + value.replace("'", "''") + "'"


def parquet(files: Iterable[Path], options: str = "") -> str:
    """The rows of Parquet files, as a table of a statement.

    DuckDB takes names for patterns, and `key=value` in a path for a column of that name that every row has; here they
    are names and nothing else.
    """
    names = ", ".join(text(_GLOB.sub(r"[\g<0>]", str(file))) for file in files)
    return f"read_parquet([{names}], hive_partitioning = false{options})"


def copy_rows(connection: duckdb.DuckDBPyConnection, table: str, source: str, file: Path) -> None:
    """Write rows to a Parquet file, sorted."""
    connection.execute(
        f"COPY (SELECT {TABLES[table].select} FROM {source} ORDER BY ALL) "  # noqa: S608 (our names)
        f"TO {text(str(file))} (FORMAT parquet, COMPRESSION zstd)"
    )


def write_tables(folder: Path, rows: Rows) -> None:
    """Put a run's or a comparison's rows beside its records, in place of those that are there: all tables, or none.

    There are none where the folder cannot be written, or a value fits no column: they are made of the records later.
    """
    import duckdb

    with contextlib.suppress(OSError, duckdb.Error, UnicodeError), staging(folder) as copy, connect() as connection:
        create_tables(connection)
        for table, of_table in rows.items():
            insert_rows(connection, table, of_table)
            copy_rows(connection, table, table, copy / f"{table}.parquet")
        shutil.rmtree(folder / TABLES_FOLDER, ignore_errors=True)
        copy.rename(folder / TABLES_FOLDER)
