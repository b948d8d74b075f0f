"""The files of a finished folder: read up to a limit, hashed, and marked where raw turns are gone.

Nothing trusts how long a line is: no more than a limit ever comes into memory. finished.json has the hash of every
file, so that a change is seen years later:

    {"finished": "2026-11-21T04:59:10+00:00", "files": {"run.json": {"sha256": "...", "bytes": 29829}, ...}}

Folders of the first harnesses have no `files`. turns-dropped.json stands in a folder whose raw turns
`harness results gc` deleted: what they were, and when they went:

    {"dropped": "2027-03-01T02:00:00+00:00", "files": {"rounds.jsonl": {"sha256": "...", "bytes": 231228}}}
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import BinaryIO

from harness.cache import write_atomically
from harness.errors import RunError

# A record of the largest suites that were run takes some kilobytes; a header of 100,000 cases takes about 150 MB.
LINE_LIMIT_BYTES = 64 * 2**20
DOCUMENT_LIMIT_BYTES = 256 * 2**20
FINISHED_FILE = "finished.json"
LOGS_FOLDER = "logs"
TABLES_FOLDER = "tables"
_CHUNK_BYTES = 2**20
# Of the folder itself, its logs or its tables; a later harness may have files that this one does not know.
_PATH = re.compile(rf"(({LOGS_FOLDER}|{TABLES_FOLDER})/)?[A-Za-z0-9_+@,-][A-Za-z0-9._+@,-]{{0,254}}")
TURNS_FILE = "rounds.jsonl"
DROPPED_FILE = "turns-dropped.json"


def read_lines(file: Path, limit_bytes: int = LINE_LIMIT_BYTES) -> Iterator[bytes]:
    r"""The lines of a file without their ends; what follows the last `\n` was cut short and is left out.

    Args:
        limit_bytes: Of one line.

    Raises:
        RunError: The file cannot be read, is no plain file, or has a longer line; the message names file and line.
    """
    number = 0
    try:
        with open_plain(file) as stream:
            while line := stream.readline(limit_bytes + 1):
                number += 1
                if line.endswith(b"\n"):
                    yield line[:-1]
                elif len(line) > limit_bytes:
                    raise RunError(
                        f"{file}: line {number} is longer than {_mebibytes(limit_bytes)}, which no record is; "
                        "take the file from a backup"
                    )
    except OSError as error:
        raise _unreadable(file, error) from None


def read_document(file: Path, limit_bytes: int = DOCUMENT_LIMIT_BYTES) -> bytes:
    """All of a file that is one document, such as run.json.

    Raises:
        RunError: The file cannot be read, is no plain file, or is larger.
    """
    try:
        with open_plain(file) as stream:
            content = stream.read(limit_bytes + 1)
    except OSError as error:
        raise _unreadable(file, error) from None
    if len(content) > limit_bytes:
        raise RunError(
            f"{file}: is larger than {_mebibytes(limit_bytes)}, which no such file is; take it from a backup"
        )
    return content


def ends_in_newline(file: Path) -> bool:
    """Whether a file's last line is whole; an empty file has none that is not.

    Raises:
        RunError: The file cannot be read.
    """
    try:
        with open_plain(file) as stream:
            size = stream.seek(0, os.SEEK_END)
            stream.seek(max(size - 1, 0))
            return stream.read(1) in (b"", b"\n")
    except OSError as error:
        raise _unreadable(file, error) from None


def open_plain(file: Path, *, follow: bool = True) -> BinaryIO:
    """Open a plain file to read it; a named pipe would have the reader wait for ever.

    Args:
        follow: Whether a symbolic link is followed.

    Raises:
        OSError: It cannot be read.
        RunError: It is something else, such as a pipe or a device.
    """
    # Not there on Windows, which has neither such pipes nor such links.
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    handle = os.open(file, flags | (0 if follow else getattr(os, "O_NOFOLLOW", 0)))
    stream = os.fdopen(handle, "rb") if stat.S_ISREG(os.fstat(handle).st_mode) else None
    if stream is None:
        os.close(handle)
        raise RunError(f"{file}: is no plain file; take it away, or take the file from a backup")
    return stream


def _mebibytes(limit_bytes: int) -> str:
    return f"{limit_bytes / 2**20:g} MiB"


def _unreadable(file: Path, error: OSError) -> RunError:
    return RunError(f"{file}: cannot be read ({error.strerror}); mend its permissions")


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
        if not all(_SHA256.fullmatch(record.sha256) and record.bytes >= 0 for record in records.values()):
            raise ValueError
        if not all(_PATH.fullmatch(name) for name in records):
            raise ValueError
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise RunError(f"{file}: is damaged; take it from a backup") from None
    return records


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
