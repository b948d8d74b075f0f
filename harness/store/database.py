"""DuckDB as the store uses it: in memory, in bounded space, with names of files as text, and for users only to read."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.errors import RunError
from harness.records.run import Run
from harness.store.files import TABLES_FOLDER, staging
from harness.store.schema import COMPARISON_TABLES, TABLES, create_tables, insert_rows
from harness.text import one_line

if TYPE_CHECKING:
    import duckdb

Rows = Mapping[str, Sequence[Mapping[str, Any]]]
# A run's rows of the tables of RUN_TABLES; harness.report.rows has the one.
RowsOf = Callable[[Run], Rows]

ONLY_READS = "a query only reads: give one SELECT"
# What rows of a table are sorted by on disk, so that what is asked for together lies together.
SORTED_BY = {
    "runs": "started, run",
    "points": "series, started, run",
    "cases": 'started, run, "case", role, toolchain',
    "turns": 'run, "group", generation, round, place',
    "comparisons": 'created, comparison, "case", metric',
}
# What sorting and grouping may take before it goes to disk; a query's result and Python come on top.
_MEMORY = "1GB"
# A series is found by the groups' smallest and largest ids, and the groups that may have it are read whole: in files of
# a million points this size halves the time of DuckDB's own 122,880, and makes files 3 % larger.
_ROWS_A_GROUP = 32_768
_GLOB = re.compile(r"[*?\[]")
_EXPLAIN = re.compile(r"\s*EXPLAIN\s+(?:ANALYZE\s+|\([^()]*\)\s*)*(?P<rest>.*)", re.IGNORECASE | re.DOTALL)
# A PIVOT that looks its columns up is several statements to DuckDB, as is a COPY of one.
_PIVOT = re.compile(r"[\s(]*(PIVOT|SELECT|FROM|WITH)\b", re.IGNORECASE)


def connect(spill: Path | None = None) -> duckdb.DuckDBPyConnection:
    """A database in memory."""
    import duckdb

    connection = duckdb.connect(":memory:")
    connection.execute("SET enable_progress_bar = false")
    connection.execute(f"SET memory_limit = {text(_MEMORY)}")
    connection.execute("SET preserve_insertion_order = false")
    connection.execute(f"SET temp_directory = {text(str(spill) if spill is not None else '')}")
    return connection


def lock(connection: duckdb.DuckDBPyConnection, folder: Path) -> None:
    """From here on, statements read and write files in this folder and no others, and cannot change that.

    A statement of a user passes `only_reads` besides, so that it writes nothing.
    """
    import duckdb

    # Patterns are held against them as text.
    allowed = ", ".join(text(name) for name in dict.fromkeys((str(folder), pattern(folder))))
    connection.execute(f"SET allowed_directories = [{allowed}]")
    connection.execute("SET enable_external_access = false")
    for optional in ("python_enable_replacements", "autoload_known_extensions", "autoinstall_known_extensions"):
        try:
            connection.execute(f"SET {optional} = false")
        except duckdb.Error:  # not in every release
            continue
    connection.execute("SET lock_configuration = true")


def only_reads(connection: duckdb.DuckDBPyConnection, sql: str) -> bool:
    """Whether it is one statement that reads; DESCRIBE, SUMMARIZE, SHOW and FROM are SELECT to DuckDB.

    DuckDB can lock statements into folders, and there they may still write. A history is somebody's measurements, so
    what would write is refused before it is executed.
    """
    statements = connection.extract_statements(sql)
    if len(statements) != 1:
        return False
    kind = statements[0].type.name
    if kind == "EXPLAIN":  # with ANALYZE it executes what it explains
        explained = _EXPLAIN.fullmatch(sql)
        return explained is not None and only_reads(connection, explained["rest"])
    return kind == "SELECT" or (kind == "MULTI" and _PIVOT.match(sql) is not None)


def text(value: str) -> str:
    """A text as SQL writes it, whatever is in it; for the places of a statement that take no parameter."""
    return "'" + value.replace("'", "''") + "'"


def texts(values: Sequence[str]) -> str:
    """Several texts as SQL lists them."""
    return ", ".join(map(text, values))


def parquet(files: Sequence[Path], options: str = "") -> str:
    """The rows of Parquet files, as a table of a statement.

    DuckDB takes names for patterns, and `key=value` in a path for a column of that name that every row has; here they
    are names and nothing else.
    """
    return f"read_parquet([{texts([pattern(file) for file in files])}], hive_partitioning = false{options})"


def id_column(table: str) -> str:
    """The column that says whose a row is."""
    return "comparison" if table in COMPARISON_TABLES else "run"


def copy_rows(connection: duckdb.DuckDBPyConnection, table: str, source: str, file: Path) -> None:
    """Write rows to a Parquet file, sorted."""
    connection.execute(
        f"COPY (SELECT {TABLES[table].select} FROM {source} ORDER BY {SORTED_BY[table]}) "  # noqa: S608 (our names)
        f"TO {text(str(file))} (FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE {_ROWS_A_GROUP})"
    )


def pattern(path: Path) -> str:
    """The pattern that matches this path alone."""
    return _GLOB.sub(r"[\g<0>]", str(path))


def write_tables(folder: Path, rows: Rows) -> None:
    """Put a run's or a comparison's rows beside its records: all tables, or none."""
    import duckdb

    try:
        with staging(folder) as copy, connect() as connection:
            create_tables(connection)
            for table, of_table in rows.items():
                insert_rows(connection, table, of_table)
                copy_rows(connection, table, table, copy / f"{table}.parquet")
            copy.rename(folder / TABLES_FOLDER)
    except (duckdb.Error, UnicodeError) as error:
        raise RunError(f"{folder}: its tables cannot be made ({one_line(str(error))[:200]})") from None


def try_to_write_tables(folder: Path, rows: Rows) -> bool:
    """As `write_tables`; False: the folder cannot be written, or a value fits no column, and there are none."""
    try:
        write_tables(folder, rows)
    except (OSError, RunError):
        return False
    return True
