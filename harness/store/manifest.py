"""What a finished folder holds, by hash: written in its finished.json, so that a change is seen years later.

    {"finished": "2026-11-21T04:59:10+00:00", "files": {"run.json": {"sha256": "...", "bytes": 29829}, ...}}

Folders of harnesses before this one have no `files`.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from pathlib import Path

from harness.errors import RunError
from harness.store.bounded import open_plain, read_document

FINISHED_FILE = "finished.json"
LOGS_FOLDER = "logs"
TABLES_FOLDER = "tables"
_CHUNK_BYTES = 2**20
# Of the folder itself, its logs or its tables; a later harness may have files that this one does not know.
_PATH = re.compile(rf"(({LOGS_FOLDER}|{TABLES_FOLDER})/)?[A-Za-z0-9_+@,-][A-Za-z0-9._+@,-]{{0,254}}")
_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, kw_only=True)
class FileRecord:
    """One file as it was when its folder was finished."""

    sha256: str
    bytes: int


def describe_file(file: Path) -> FileRecord:
    """Hash and size of a file, whatever its size.

    Raises:
        RunError: It cannot be read or is no plain file.
    """
    digest, size = hashlib.sha256(), 0
    try:
        with open_plain(file, follow=False) as stream:
            while chunk := stream.read(_CHUNK_BYTES):
                digest.update(chunk)
                size += len(chunk)
    except OSError as error:
        raise RunError(f"{file}: cannot be read ({error.strerror}); mend its permissions") from None
    return FileRecord(sha256=digest.hexdigest(), bytes=size)


def describe_bytes(content: bytes) -> FileRecord:
    """The same of a file that is about to be written."""
    return FileRecord(sha256=hashlib.sha256(content).hexdigest(), bytes=len(content))


def describe_folder(folder: Path, names: Iterable[str]) -> dict[str, FileRecord]:
    """Those of a folder's plain files that have these names, its logs and its tables, by their paths in it.

    Raises:
        RunError: One cannot be read.
    """
    logs = sorted((folder / LOGS_FOLDER).glob("*.txt"))
    tables = sorted((folder / TABLES_FOLDER).glob("*.parquet"))
    files = [*(folder / name for name in names if name != FINISHED_FILE), *logs, *tables]
    return {
        file.relative_to(folder).as_posix(): describe_file(file)
        for file in files
        if file.is_file() and not file.is_symlink()
    }


def finished_document(files: dict[str, FileRecord], now: datetime | None = None) -> bytes:
    """What finished.json says."""
    when = (now or datetime.now(timezone.utc)).isoformat(timespec="seconds")
    return json.dumps({"finished": when, "files": {name: asdict(one) for name, one in files.items()}}).encode()


def read_manifest(folder: Path) -> dict[str, FileRecord] | None:
    """The files of a finished folder; None where it has no finished.json, or one of before there were hashes.

    Raises:
        RunError: The file is damaged, or names a file that no run has, such as one elsewhere.
    """
    file = folder / FINISHED_FILE
    if not file.is_file():
        return None
    try:
        document = json.loads(read_document(file))
        files = document.get("files")
        if files is None:
            return None
        records = {str(name): FileRecord(sha256=one["sha256"], bytes=one["bytes"]) for name, one in files.items()}
        if not all(_SHA256.fullmatch(one.sha256) and one.bytes >= 0 for one in records.values()):
            raise ValueError
        if not all(_PATH.fullmatch(name) for name in records):
            raise ValueError
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise RunError(f"{file}: is damaged; take it from a backup") from None
    return records
