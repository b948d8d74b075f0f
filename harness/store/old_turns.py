"""Which runs' raw turns in Parquet are to go: those whose folders lost theirs, and old ones without a folder."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from harness.errors import RunError
from harness.store.age import too_young, wrong_clock
from harness.store.dropped import TURNS_FILE
from harness.store.values import Dropping


@dataclass(frozen=True, kw_only=True)
class OldTurns:
    """Turns in Parquet that are to go.

    Attributes:
        runs: Whose they are.
        rows: What there is to say of runs that have no folder.
        bytes: About what they take, by their share of all turns.
        young: How many runs without a folder have turns that are younger.
    """

    runs: frozenset[str]
    rows: tuple[Dropping, ...]
    bytes: int
    young: int


def old_turns_in_parquet(
    results: Path, folders: set[str], going: Iterable[str], age: timedelta, now: datetime
) -> OldTurns:
    """Find them.

    Args:
        folders: Runs that have a folder.
        going: Those whose folders' turns go now.

    Raises:
        RunError: The history cannot be read.
    """
    import duckdb

    from harness.history.database import connect, parquet
    from harness.history.index import part_file, read_index

    index = read_index(results)
    files = [part_file(results, "turns", part) for part in index.parts if "turns" in part.bytes]
    headers = [part_file(results, "runs", part) for part in index.parts if "runs" in part.bytes]
    if not files:
        return OldTurns(runs=frozenset(), rows=(), bytes=0, young=0)
    connection = connect()
    try:
        counted = connection.execute(
            f"SELECT run, any_value(started), any_value(clock), count(*) FROM {parquet(files)} "  # noqa: S608 (paths)
            f"LEFT JOIN (SELECT run, started, clock FROM {parquet(headers)}) USING (run) GROUP BY run ORDER BY run"
        ).fetchall()
    except duckdb.Error as error:
        raise RunError(
            f"{results}: its compacted turns cannot be read ({error}); run `harness results verify`"
        ) from None
    finally:
        connection.close()
    gone, rows, old = set(going), [], {}
    young = 0
    for run, started, clock, count in counted:
        if run in folders:
            if run in gone or not (results / run / TURNS_FILE).is_file():
                old[run] = count
            continue
        row = _judge(str(run), str(started), str(clock or ""), age, now)
        if row is not None:
            rows.append(row)
            if row.dropped:
                old[run] = count
        else:
            young += 1
    total = sum(count for *_, count in counted)
    size = sum(file.stat().st_size for file in files)
    share = round(size * sum(old.values()) / total) if total else 0
    return OldTurns(runs=frozenset(old), rows=tuple(rows), bytes=share, young=young)


def _judge(run: str, started: str, clock: str, age: timedelta, now: datetime) -> Dropping | None:
    """As of a folder; None: it is young."""
    fault = f"its age is not known: {clock}" if clock else wrong_clock(started, (), now)
    if fault:
        return Dropping(name=run, started=started, dropped=False, why=fault)
    if too_young(started, age, now):
        return None
    return Dropping(name=run, started=started, dropped=True, why="in the compacted history only")
