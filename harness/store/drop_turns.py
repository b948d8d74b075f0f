"""`harness results gc`: delete raw turns of old runs whose figures are in the compacted history.

What goes is rounds.jsonl of a folder, and the same turns in Parquet. A marker is written before the turns are deleted,
so that a process killed in between leaves both, and the next time goes on there.
"""

from __future__ import annotations

import contextlib
import json
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

from harness.errors import RunError
from harness.progress import Progress
from harness.records.run import Run
from harness.store.age import too_young, wrong_clock
from harness.store.bounded import read_document
from harness.store.check import examine
from harness.store.check_history import check_history
from harness.store.comparison_directory import COMPARISON_FILE
from harness.store.dropped import DROPPED_FILE, TURNS_FILE, mark_dropped
from harness.store.folders import HEADER_FILE, HISTORY_FOLDER
from harness.store.manifest import describe_file
from harness.store.old_turns import old_turns_in_parquet
from harness.store.place import Place
from harness.store.transfer import archive_lock, unwritable
from harness.store.values import WRONG, Dropping, GarbageReport
from harness.text import shown


def drop_turns(place: Place, age: timedelta, now: datetime, progress: Progress, *, dry_run: bool) -> GarbageReport:
    """Delete the raw turns of runs and comparisons that are older than `age` by their own clocks.

    Only of those that are finished, whole, and in the compacted history, of which every part has to be whole too.

    Args:
        place: Of which `local` is changed.
        dry_run: Only say what would go.

    Raises:
        RunError: The folder cannot be read or written, or its history is elsewhere.
    """
    from harness.history.index import require_own
    from harness.history.parquet import merge_parts

    results = place.local
    require_own(results)
    with contextlib.nullcontext() if dry_run else archive_lock(results):
        broken = next((one for one in check_history(results) if one.state in WRONG), None)
        kept_for = f"the compacted history is {broken.state}: {broken.why}" if broken is not None else ""
        compacted = _compacted(results) if broken is None else frozenset[str]()
        rows: list[Dropping] = []
        young = 0
        names = place.names()
        progress.stage("Looking for old turns", len(names))
        for name in names:
            if (row := _judge(results / name, name, age, now, compacted, kept_for)) is not None:
                rows.append(_drop(results / name, row) if row.dropped and not dry_run else row)
            else:
                young += (results / name / TURNS_FILE).is_file()
            progress.step(name)
        history_bytes = 0
        if broken is None:
            going = {row.name for row in rows if row.dropped}
            old = old_turns_in_parquet(results, set(names), going, age, now)
            before = _parquet_bytes(results)
            if old.runs and not dry_run:
                merge_parts(results, leave_turns_of=sorted(old.runs))
            history_bytes = old.bytes if dry_run else before - _parquet_bytes(results)
            rows += old.rows
            young += old.young
        return GarbageReport(rows=tuple(rows), history_bytes=history_bytes, dry_run=dry_run, young=young)


def _judge(
    folder: Path, name: str, age: timedelta, now: datetime, compacted: frozenset[str], kept_for: str
) -> Dropping | None:
    """Whether a folder's turns go, and why not; None: it is young, or has none."""
    if not (folder / TURNS_FILE).is_file():
        return None
    row = Dropping(name=name, started=_started(folder), dropped=False, bytes=(folder / TURNS_FILE).lstat().st_size)
    if why := wrong_clock(row.started, (), now):
        return replace(row, why=why)
    if too_young(row.started, age, now):
        return None
    if kept_for:
        return replace(row, why=kept_for)
    finding, read = examine(folder, name=name)
    if finding.state != "ok" or read is None:
        return replace(row, why=f"{finding.state}: {finding.why}")
    if isinstance(read, Run) and (why := wrong_clock(row.started, read.rounds, now)):
        return replace(row, why=why)
    if name not in compacted:
        return replace(row, why="is not in the compacted history; `harness results compact` puts it there")
    return replace(row, dropped=True)


def _drop(folder: Path, row: Dropping) -> Dropping:
    """Mark and delete; a folder that cannot be written keeps its turns."""
    turns = folder / TURNS_FILE
    try:
        mark_dropped(folder, describe_file(turns))
        turns.unlink()
    except OSError as error:
        if turns.exists():
            with contextlib.suppress(OSError):
                (folder / DROPPED_FILE).unlink(missing_ok=True)
        return replace(row, dropped=False, why=str(unwritable(folder, error)))
    return row


def _started(folder: Path) -> str:
    """When a run began, or a comparison was made, as it says itself; "" where it does not."""
    for file, key in ((folder / COMPARISON_FILE, "created"), (folder / HEADER_FILE, "started")):
        if file.is_file():
            try:
                return shown(str(json.loads(read_document(file))[key]))
            except (ValueError, KeyError, TypeError, RecursionError, RunError):
                return ""
    return ""


def _compacted(results: Path) -> frozenset[str]:
    from harness.history.parquet import compacted_comparisons, compacted_runs

    return compacted_runs(results) | compacted_comparisons(results)


def _parquet_bytes(results: Path) -> int:
    return sum(file.stat().st_size for file in (results / HISTORY_FOLDER).glob("*/*.parquet"))
