"""What a results folder's compacted history consists of: <results>/history/index.json.

    <results>/history/
        index.json                  the parts, with the runs in each
        <table>/<part>.parquet      rows of one table: runs, points, cases, turns or comparisons

A part is never changed once it is in the index; compacting adds one, and merging parts writes a new one before the old
ones are taken out. A results folder may come from anybody, so nothing in the index is believed that is not checked.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from harness.cache import write_atomically
from harness.errors import RunError
from harness.history.frames import TABLES, Table
from harness.store.bounded import read_document

SCHEMA_VERSION = 1
HISTORY_FOLDER = "history"
LOCK_FILE = ".lock"
_INDEX_FILE = "index.json"
_PART_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,240}")


@dataclass(frozen=True, kw_only=True)
class Part:
    """One set of Parquet files.

    Attributes:
        name: Of its files, without the ending.
        runs: Ids of the runs in it; they are not read from their folders again.
        comparisons: Ids of the comparisons in it, likewise.
        bytes: Size of each file, by table; a table without rows has no file.
        sha256: Hash of each file, by table, for `harness results verify`.
    """

    name: str
    runs: tuple[str, ...] = ()
    comparisons: tuple[str, ...] = ()
    bytes: dict[Table, int] = field(default_factory=dict)
    sha256: dict[Table, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Index:
    """All parts, in the order they were added."""

    schema_version: int = SCHEMA_VERSION
    parts: tuple[Part, ...] = ()

    @property
    def runs(self) -> frozenset[str]:
        """Ids of all compacted runs."""
        return frozenset(run for part in self.parts for run in part.runs)

    @property
    def comparisons(self) -> frozenset[str]:
        """Ids of all compacted comparisons."""
        return frozenset(one for part in self.parts for one in part.comparisons)


def history_folder(results: Path) -> Path:
    """Where a results folder keeps what was compacted."""
    return results / HISTORY_FOLDER


def part_file(results: Path, table: Table, part: Part) -> Path:
    """Where a part's rows of one table are."""
    return history_folder(results) / table / f"{part.name}.parquet"


def require_own(results: Path) -> None:
    """Refuse a history that is elsewhere, in whole or in part: what lies there is not this history's to change.

    Raises:
        RunError: The folder, a table's folder or the lock is a symbolic link.
    """
    folder = history_folder(results)
    for path in (folder, folder / LOCK_FILE, *(folder / table for table in TABLES)):
        if path.is_symlink():
            raise RunError(f"{path}: is a symbolic link, which is not followed; put what it leads to in its place")


def read_index(results: Path) -> Index:
    """The index of a results folder; one without parts where nothing was compacted.

    Raises:
        RunError: It is damaged, or of a newer schema.
    """
    file = history_folder(results) / _INDEX_FILE
    if not file.is_file():
        return Index()
    try:
        document = json.loads(read_document(file))
        version = document["schema_version"]
    except OSError as error:
        raise RunError(f"{file}: cannot be read ({error.strerror}); mend its permissions") from None
    except (ValueError, KeyError, TypeError, RecursionError):
        raise RunError(f"{file}: is damaged; {_MEND}") from None
    if version != SCHEMA_VERSION:
        raise RunError(f"{file}: has schema {version!r:.20}, and this harness reads {SCHEMA_VERSION}; upgrade it")
    try:
        index = TypeAdapter(Index).validate_python(document)
    except ValidationError as error:
        raise RunError(f"{file}: is damaged ({error.errors()[0]['msg']}); {_MEND}") from None
    bad = next((part.name for part in index.parts if not _PART_NAME.fullmatch(part.name)), None)
    if bad is not None:
        raise RunError(f"{file}: names a part {bad[:40]!r}, which is no name of a file; {_MEND}")
    return index


_MEND = "take it from a backup, or delete the folder and run `harness results compact` where the runs are still there"


def write_index(results: Path, parts: Sequence[Part]) -> None:
    """Replace the index.

    Raises:
        OSError: It cannot be written; the old one is as it was.
    """
    document = asdict(Index(parts=tuple(parts)))
    write_atomically(history_folder(results) / _INDEX_FILE, json.dumps(document, indent=1).encode())
