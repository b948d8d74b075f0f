"""DuckDB as the history uses it: in memory, in bounded space, and with names of files as text and never as SQL."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.history.frames import Kind, kinds_of

if TYPE_CHECKING:
    import duckdb

_SQL_TYPES: Mapping[Kind, str] = {
    "text": "VARCHAR",
    "integer": "BIGINT",
    "integer or none": "BIGINT",
    "number": "DOUBLE",
    "truth": "BOOLEAN",
}
_GLOB = re.compile(r"[*?\[]")
# What sorting and grouping may take before it goes to disk; a query's result and Python come on top.
_MEMORY = "1GB"


def connect(spill: Path | None = None) -> duckdb.DuckDBPyConnection:
    """A database in memory.

    Args:
        spill: Where what does not fit into memory may go; None: it stays in memory.
    """
    import duckdb

    connection = duckdb.connect(":memory:")
    connection.execute("SET enable_progress_bar = false")
    connection.execute(f"SET memory_limit = {text(_MEMORY)}")
    connection.execute("SET preserve_insertion_order = false")
    connection.execute(f"SET temp_directory = {text(str(spill) if spill is not None else '')}")
    return connection


def lock(connection: duckdb.DuckDBPyConnection, folders: Sequence[Path]) -> None:
    """From here on, statements read and write files in these folders and no others, and cannot change that.

    What comes from a user has to be looked at with `harness.history.reading` besides, so that it only reads.
    """
    import duckdb

    # Patterns are held against them as text.
    allowed = ", ".join(text(name) for folder in folders for name in dict.fromkeys((str(folder), _pattern(folder))))
    connection.execute(f"SET allowed_directories = [{allowed}]")
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


def columns(row: type[Any]) -> str:
    """A table's columns, each with its type, as a select list."""
    return ", ".join(f'CAST("{name}" AS {sql_type(kind)}) AS "{name}"' for name, kind in kinds_of(row).items())


def sql_type(kind: Kind) -> str:
    """DuckDB's type of a column."""
    return _SQL_TYPES[kind]


def create_table(connection: duckdb.DuckDBPyConnection, name: str, row: type[Any]) -> None:
    """Make an empty table with the columns of a row; `name` is one of the harness's own."""
    described = ", ".join(f'"{column}" {sql_type(kind)}' for column, kind in kinds_of(row).items())
    connection.execute(f"CREATE TABLE {name} ({described})")


def parquet(files: Sequence[Path]) -> str:
    """The rows of Parquet files, as a table of a statement.

    DuckDB takes names for patterns, and `key=value` in a path for a column of that name that every row has; here they
    are names and nothing else.
    """
    return f"read_parquet([{', '.join(text(_pattern(file)) for file in files)}], hive_partitioning = false)"


def _pattern(path: Path) -> str:
    """The pattern that matches this path alone."""
    return _GLOB.sub(r"[\g<0>]", str(path))
