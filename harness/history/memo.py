"""A finished run's rows, kept in the cache folder: a run is put into tables once, since it never changes again.

    <cache>/history/<version>/
        <key>.json                 which run or comparison it is; written last
        <key>.<table>.parquet      its rows
        sets/<key>.<table>.parquet the rows of all runs of one results folder, sorted

All of it may be deleted at any time.
"""

from __future__ import annotations

import contextlib
import hashlib
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from harness.cache import cache_root, read_memo, write_memo
from harness.history.database import parquet
from harness.history.frames import TABLES, Table
from harness.history.part_file import copy_rows
from harness.store.bounded import read_document

if TYPE_CHECKING:
    import duckdb
    import pandas as pd

# Part of every key: to be raised whenever the same run would give other rows.
TABLES_VERSION = 2
_FORGET_AFTER_S = 30 * 24 * 3600.0


@dataclass(frozen=True, kw_only=True)
class Memo:
    """What is kept of one run or comparison.

    Attributes:
        id: Of the run or the comparison.
        tables: Those with a file.
    """

    key: str
    id: str
    tables: tuple[Table, ...]

    def file(self, table: Table) -> Path:
        """Where its rows of a table are."""
        return memo_folder() / f"{self.key}.{table}.parquet"


def memo_folder() -> Path:
    """Where memos are kept."""
    return cache_root() / "history" / f"v{TABLES_VERSION}"


def key_of(files: Iterable[Path], beside: str = "") -> str:
    """Of the files that tell one finished run or comparison from all others.

    Args:
        beside: What else tells it, see `harness.history.memo_check`.

    Raises:
        RunError: One cannot be read, or is too large to be what it says.
    """
    digest = hashlib.sha256(f"{TABLES_VERSION} {beside}".encode())
    for file in files:
        content = read_document(file)
        digest.update(f"\n{file.name} {len(content)}\n".encode())
        digest.update(content)
    return digest.hexdigest()[:32]


def find_memo(key: str) -> Memo | None:
    """What is kept under a key; None: nothing."""
    kept = read_memo(memo_folder() / f"{key}.json")
    if not isinstance(kept, dict) or not isinstance(kept.get("id"), str) or not isinstance(kept.get("tables"), list):
        return None
    tables = tuple(table for table in TABLES if table in kept["tables"])
    memo = Memo(key=key, id=kept["id"], tables=tables)
    return memo if all(memo.file(table).is_file() for table in tables) else None


def keep(connection: duckdb.DuckDBPyConnection, key: str, name: str, frames: Mapping[Table, pd.DataFrame]) -> Memo:
    """Keep rows under a key.

    Args:
        name: Id of the run or the comparison.

    Raises:
        OSError: The cache folder cannot be written.
        duckdb.Error: Likewise, or the rows cannot be stored.
    """
    memo = Memo(key=key, id=name, tables=tuple(table for table, frame in frames.items() if len(frame)))
    for table in memo.tables:
        keep_table(connection, memo, table, frames[table])
    write_memo(memo_folder() / f"{key}.json", {"id": name, "tables": list(memo.tables)})
    return memo


def keep_table(connection: duckdb.DuckDBPyConnection, memo: Memo, table: Table, frame: pd.DataFrame) -> Path:
    """Keep one table's rows of a run whose other rows are kept; as `keep`."""
    connection.register("given", frame)
    copy_rows(connection, table, "given", memo.file(table))
    connection.unregister("given")
    return memo.file(table)


def forget(memos: Iterable[Memo]) -> None:
    """Delete what is kept of these, as after a file of theirs could not be read."""
    for memo in memos:
        for file in (memo_folder() / f"{memo.key}.json", *(memo.file(table) for table in TABLES)):
            with contextlib.suppress(OSError):
                file.unlink(missing_ok=True)


def together(connection: duckdb.DuckDBPyConnection, memos: Sequence[Memo]) -> dict[Table, Path]:
    """One file a table that has all of these rows: many small files cost a query more than reading them.

    Raises:
        OSError: The cache folder cannot be written.
        duckdb.Error: A memo cannot be read.
    """
    folder = memo_folder() / "sets"
    digest = hashlib.sha256("\n".join(sorted(memo.key for memo in memos)).encode()).hexdigest()[:32]
    found = {}
    for table in TABLES:
        files = [memo.file(table) for memo in memos if table in memo.tables]
        if not files:
            continue
        found[table] = folder / f"{digest}.{table}.parquet"
        if found[table].is_file():
            found[table].touch()
        else:
            copy_rows(connection, table, parquet(files), found[table])
    _forget_old(folder)
    return found


def _forget_old(folder: Path) -> None:
    """Sets that nobody has asked for lately: each new run makes another."""
    for file in folder.glob("*.parquet"):
        with contextlib.suppress(OSError):
            if time.time() - file.stat().st_mtime > _FORGET_AFTER_S:
                file.unlink()
