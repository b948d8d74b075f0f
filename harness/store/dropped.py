"""The marker of a folder whose raw turns were deleted by `harness results gc`: what they were, and when they went.

As in: {"dropped": "2027-03-01T02:00:00+00:00", "files": {"rounds.jsonl": {"sha256": "...", "bytes": 231228}}}
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from pathlib import Path

from harness.cache import write_atomically
from harness.errors import RunError
from harness.store.bounded import read_document
from harness.store.manifest import FileRecord

TURNS_FILE = "rounds.jsonl"
DROPPED_FILE = "turns-dropped.json"


@dataclass(frozen=True, kw_only=True)
class Dropped:
    """That a folder's raw turns are gone.

    Attributes:
        when: ISO 8601, UTC.
        turns: Hash and size of what was there.
    """

    when: str
    turns: FileRecord


def mark_dropped(folder: Path, turns: FileRecord, now: datetime | None = None) -> None:
    """Write the marker; the turns themselves go after it.

    Raises:
        OSError: It cannot be written.
    """
    when = (now or datetime.now(timezone.utc)).isoformat(timespec="seconds")
    marker = {"dropped": when, "files": {TURNS_FILE: asdict(turns)}}
    write_atomically(folder / DROPPED_FILE, json.dumps(marker).encode())


def read_dropped(folder: Path) -> Dropped | None:
    """The marker of a folder whose turns are gone; None where they are there, or never were.

    Raises:
        RunError: The marker is damaged.
    """
    file = folder / DROPPED_FILE
    if not file.is_file() or (folder / TURNS_FILE).exists():  # the latter: it was stopped before it dropped them
        return None
    try:
        document = json.loads(read_document(file))
        when, turns = document["dropped"], document["files"][TURNS_FILE]
        datetime.fromisoformat(when)
        return Dropped(when=when, turns=FileRecord(sha256=str(turns["sha256"]), bytes=int(turns["bytes"])))
    except (ValueError, KeyError, TypeError, RecursionError):
        raise RunError(f"{file}: is damaged; take it from a backup") from None
