"""Figures that a place has in Parquet only: runs whose folders are gone there, or lack their raw turns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from harness.errors import RunError
from harness.store.check_history import check_history
from harness.store.dropped import DROPPED_FILE, TURNS_FILE
from harness.store.folders import HISTORY_FOLDER, is_id
from harness.store.place import Place
from harness.store.transfer import archive_lock
from harness.store.values import WRONG, Outcome
from harness.text import shown

if TYPE_CHECKING:
    from harness.history.index import Index
    from harness.history.parquet import Frames

# With all their turns these are some 20 MB in memory.
_BATCH_RUNS = 100
# Ten times as many as the largest runs have; a hostile file may have any number of equal rows in few bytes.
_BATCH_ROWS = 50_000_000


def merge_history(place: Place, target: Place) -> Iterator[Outcome]:
    """Copy the rows of runs and comparisons that cannot be compacted at the target, since it has no whole folder."""
    if not (place.local / HISTORY_FOLDER).is_dir():
        place.fetch_history()
        if not (place.local / HISTORY_FOLDER).is_dir():
            return
    wrong = next((one for one in check_history(place.local) if one.state in WRONG), None)
    if wrong is not None:
        yield Outcome(name=shown(wrong.name), source=place.address, fate="refused", why=wrong.why)
        return
    try:
        copied, left_out = _copy_rows(place, target)
    except RunError as error:
        yield Outcome(name=HISTORY_FOLDER, source=place.address, fate="refused", why=str(error))
        return
    if copied:
        count = f"{len(copied)} run{'' if len(copied) == 1 else 's'}"
        why = f"figures of {count} that have no folder there, or one without raw turns: {', '.join(copied)}"
        yield Outcome(name=f"{HISTORY_FOLDER}/ ({count})", source=place.address, fate="copied", why=why)
    for name in left_out:
        yield Outcome(name=shown(name), source=place.address, fate="refused", why="its name in the history is no id")


def _copy_rows(place: Place, target: Place) -> tuple[list[str], list[str]]:
    """Add parts to the target's history; the ids that are in it now, and those that no run of the harness has."""
    from harness.history.index import read_index
    from harness.history.parquet import write_frames

    target.fetch_history()
    whole = {name for name in target.names() if not _lacks_turns(target, name)}
    with archive_lock(target.local):
        there, here = read_index(place.local), read_index(target.local)
        runs = sorted(there.runs - here.runs - whole)
        comparisons = sorted(there.comparisons - here.comparisons - whole)
        ids = [name for name in (*runs, *comparisons) if is_id(name)]
        written: list[str] = []
        for start in range(0, len(ids), _BATCH_RUNS):
            part = write_frames(target.local, _rows_of(place.local, there, ids[start : start + _BATCH_RUNS]))
            written += [f"{HISTORY_FOLDER}/{table}/{part.name}.parquet" for table in part.bytes]
        if written:
            target.apply([*written, f"{HISTORY_FOLDER}/index.json"], [])
        return ids, [name for name in (*runs, *comparisons) if not is_id(name)]


def _lacks_turns(target: Place, name: str) -> bool:
    """Whether a folder's raw turns were dropped."""
    target.fetch([name])
    folder = target.local / name
    return (folder / DROPPED_FILE).is_file() and not (folder / TURNS_FILE).is_file()


def _rows_of(results: Path, index: Index, ids: Sequence[str]) -> Frames:
    """All rows of some runs and comparisons.

    Raises:
        RunError: They cannot be read.
    """
    import duckdb

    from harness.history.database import columns, connect, parquet, text
    from harness.history.frames import TABLES, shape
    from harness.history.index import part_file

    wanted = ", ".join(text(name) for name in ids)
    frames = {}
    connection = connect()
    try:
        for table, row in TABLES.items():
            files = [part_file(results, table, part) for part in index.parts if table in part.bytes]
            if files:
                own = "comparison" if table == "comparisons" else "run"
                rows = f"FROM {parquet(files)} WHERE {own} IN ({wanted})"
                counted = connection.execute(f"SELECT count(*) {rows}").fetchone()
                if counted is None or counted[0] > _BATCH_ROWS:
                    raise RunError(f"{files[0]}: has more than {_BATCH_ROWS:,} rows of {len(ids)} runs; look at it")
                frames[table] = shape(row, connection.execute(f"SELECT {columns(row)} {rows}").df())
    except duckdb.Error as error:
        detail = " ".join(str(error).split())[:200]
        raise RunError(f"{results / HISTORY_FOLDER}: cannot be read ({detail}); take it from a backup") from None
    finally:
        connection.close()
    return frames
