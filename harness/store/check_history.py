"""Whether a compacted history is what its index says."""

from __future__ import annotations

from pathlib import Path

from harness.errors import RunError
from harness.history.frames import TABLES
from harness.history.index import Part, part_file, read_index, require_own
from harness.store.folders import HISTORY_FOLDER
from harness.store.manifest import describe_file
from harness.store.values import Finding, State
from harness.text import shown


def check_history(results: Path) -> list[Finding]:
    """Look at every part: its files are there with their hashes and can be read, and hold the runs that they should.

    Nothing where nothing was compacted.
    """
    folder = results / HISTORY_FOLDER
    if not folder.is_dir():
        return []
    try:
        require_own(results)
        index = read_index(results)
    except RunError as error:
        future = "upgrade it" in str(error)
        return [_finding(HISTORY_FOLDER, "future schema" if future else "damaged", str(error))]
    found = [_check_part(results, part) for part in index.parts]
    if strays := stray_files(results):
        more = f" and {len(strays) - 1} more" if len(strays) > 1 else ""
        why = f"{shown(strays[0].name)}{more}: in no index and not read; `harness results compact` removes it"
        found.append(_finding(HISTORY_FOLDER, "ok", why))
    return found


def stray_files(results: Path) -> list[Path]:
    """Parquet files that no index has: of a compaction that was killed, and read by nobody.

    Raises:
        RunError: The index cannot be read.
    """
    index = read_index(results)
    listed = {part_file(results, table, part) for part in index.parts for table in TABLES if table in part.bytes}
    folders = [results / HISTORY_FOLDER, *(results / HISTORY_FOLDER / table for table in TABLES)]
    own = [folder for folder in folders[1:] if not folder.is_symlink() and not folders[0].is_symlink()]
    there = (file for folder in own for file in folder.glob("*.parquet"))
    return sorted(file for file in there if file not in listed)


def _check_part(results: Path, part: Part) -> Finding:
    name = f"{HISTORY_FOLDER}/{part.name}"
    hashed = True
    for table in TABLES:
        if table not in part.bytes:
            continue
        file = part_file(results, table, part)
        if file.is_symlink() or not file.is_file():
            return _finding(name, "damaged", f"{file}: is gone; take it from a backup")
        try:
            record = describe_file(file)
        except RunError as error:
            return _finding(name, "damaged", str(error))
        expected = part.sha256.get(table)
        hashed = hashed and expected is not None
        if record.bytes != part.bytes[table] or expected not in (None, record.sha256):
            return _finding(name, "changed", f"{file}: is not as it was when it was written; take it from a backup")
    if (why := _unreadable(results, part)) is not None:
        return _finding(name, "damaged", why)
    return Finding(name=name, kind="history", state="ok", hashed=hashed)


def _unreadable(results: Path, part: Part) -> str | None:
    """Why a part's rows cannot be read, or are not those of its runs; None: all is well."""
    import duckdb

    from harness.history.database import columns, connect, parquet

    connection = connect()
    file = results / HISTORY_FOLDER
    try:
        for table, row in TABLES.items():
            if table not in part.bytes:
                continue
            file = part_file(results, table, part)
            source = parquet([file])
            # Each column of each row, as every reader casts it.
            connection.execute(f"SELECT count(COLUMNS(*)) FROM (SELECT {columns(row)} FROM {source})").fetchall()  # noqa: S608
            own, ids = ("comparison", part.comparisons) if table == "comparisons" else ("run", part.runs)
            there = {str(one) for (one,) in connection.execute(f"SELECT DISTINCT {own} FROM {source}").fetchall()}  # noqa: S608
            if not there <= set(ids) or (table == "runs" and there != set(ids)):
                return f"{file}: holds other runs than its index says; take it from a backup"
    except duckdb.Error as error:
        return f"{file}: cannot be read ({' '.join(str(error).split())[:200]}); take it from a backup"
    finally:
        connection.close()
    return None


def _finding(name: str, state: State, why: str) -> Finding:
    return Finding(name=name, kind="history", state=state, why=why)
