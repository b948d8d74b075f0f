"""A folder that is being written: by one harness at a time, a record at a time, so that it can go on where it stopped.

Each record is one JSON line of a file, written by one system call: a harness that is killed at any moment loses at most
the line in flight, and the next one drops a line that was cut short. Documents are written whole or not at all.
"""

import contextlib
import os
import re
import shlex
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, TypeVar

from filelock import FileLock, Timeout

from harness.cache import WRITING_PREFIX, write_atomically
from harness.errors import RunError
from harness.scratch import sweep
from harness.store.files import adapter, ends_in_newline, line_of, read_lines, writing

REPORT_FILE = "report.md"
_LOCK_FILE = ".lock"
# Of a suite's name in a folder's: file systems take 255 bytes, and more is added before and after it.
_NAME_LENGTH = 150
# What is said where there is no room in a results folder, or no right to write there.
_ELSEWHERE = "choose another folder with --results"
ROOM = f"make room or {_ELSEWHERE}"

_Journal = TypeVar("_Journal", bound="Journal")


class Journal:
    """A folder that is being written. Use it as a context manager: who is in it is the only one who writes."""

    what = "run"  # What it will hold, as in `another harness is writing this comparison`
    remedy = ROOM  # What helps where it cannot be written

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = FileLock(path / _LOCK_FILE)
        self._one_writes = threading.Lock()  # rows of a fleet are measured at the same time

    def writing(self) -> AbstractContextManager[None]:
        """Say in one sentence that the folder cannot be written, and what helps."""
        return writing_into(self.path, self.remedy)

    def __enter__(self: _Journal) -> _Journal:
        with self.writing():
            try:
                self._lock.acquire(timeout=0)
            except Timeout:
                raise RunError(
                    f"{self.path}: another harness is writing this {self.what}; wait for it or stop it"
                ) from None
        try:
            sweep(self.path, WRITING_PREFIX)
            self.begin()
        except BaseException:
            self._unlock()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._unlock()

    def begin(self) -> None:
        """Drop the lines that were cut short, once nobody else writes; then read what is there."""
        for file in filter(Path.is_file, self.path.glob("*.jsonl")):
            if not ends_in_newline(file):
                with self.writing():
                    os.truncate(file, sum(len(line) + 1 for line in read_lines(file)))

    def _unlock(self) -> None:
        with contextlib.suppress(OSError):  # before the release: after it, the file may be another harness's lock
            (self.path / _LOCK_FILE).unlink()
        self._lock.release()

    def append_to(self, file: str, record: Any) -> None:
        """Write one record as one line; on failure the file is as it was before."""
        with self._one_writes, self.writing():
            append_line(self.path / file, line_of(record) + b"\n")

    def write(self, file: str, content: bytes | str) -> Path:
        """Write a document, and give its file."""
        path = self.path / file
        with self.writing():
            write_atomically(path, content if isinstance(content, bytes) else content.encode(errors="replace"))
        return path

    def write_value(self, file: str, value: Any) -> Path:
        """Write a value as a document that `read_value` reads."""
        return self.write(file, adapter(type(value)).dump_json(value, indent=1))


def append_line(file: Path, line: bytes) -> None:
    """Write a line at once; on failure the file is as it was before."""
    handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    before = os.fstat(handle).st_size
    try:
        written = os.write(handle, line)
        if written < len(line):  # the disk is nearly full: the rest says so
            os.write(handle, line[written:])
    except OSError:
        with contextlib.suppress(OSError):
            os.ftruncate(handle, before)
        raise
    finally:
        os.close(handle)


# --- The folder itself ---


def new_run_id(suite: str, now: datetime) -> str:
    """`20261121-035012-esrgan`: sorts by time, and tells what it was."""
    name = re.sub(r"[^A-Za-z0-9._+-]", "-", suite).lstrip("._+-")[:_NAME_LENGTH] or "suite"
    return f"{now.astimezone(timezone.utc):%Y%m%d-%H%M%S}-{name}"


def make_folder(results: Path, name: str) -> Path:
    """Make the folder of a new result; the second of the same second gets a number behind its name."""
    require_writable(results)
    for attempt in range(1, 1000):
        path = results / (name if attempt == 1 else f"{name}-{attempt}")
        with writing_into(results, ROOM), contextlib.suppress(FileExistsError):
            path.mkdir()
            return path
    raise RunError(f"{results}: has a thousand folders named {name}; choose another with --results")


def require_writable(results: Path, remedy: str = _ELSEWHERE) -> None:
    """Make the results folder, so that a run cannot end in nowhere to write to."""
    with writing(results, remedy):
        results.mkdir(parents=True, exist_ok=True)
        probe = results / f".probe-{os.getpid()}"
        probe.write_bytes(b"")
        probe.unlink()


@contextlib.contextmanager
def writing_into(folder: Path, remedy: str) -> Iterator[None]:
    """As `writing`, of a folder that was there."""
    with writing(folder, remedy):
        try:
            yield
        except FileNotFoundError:
            if folder.exists():
                raise
            raise RunError(f"{folder}: was removed while it was written; begin it again") from None


def what_is_there(results: Path) -> str:
    """Advice to who names what a results folder does not have."""
    is_empty = not any(path.is_dir() for path in results.glob("[!.]*"))
    return "`harness run SUITE` makes a run" if is_empty else f"`ls {shlex.quote(str(results))}` shows what is there"
