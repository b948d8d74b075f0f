"""A folder that is being written, and run directories, which are such; results/README.md has their files.

By one harness at a time, a record at a time, so that it can go on where it stopped. Each record is one JSON line of a
file, written by one system call: a harness that is killed at any moment loses at most the line in flight, and the next
one drops a line that was cut short. Documents are written whole or not at all. A run is append-only while it goes on,
and immutable once it has finished.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, TypeVar

from filelock import FileLock, Timeout

from harness.cache import WRITING_PREFIX, write_atomically
from harness.errors import RunError
from harness.records.run import (
    SCHEMA_VERSION,
    Build,
    Check,
    Header,
    HostRecord,
    IrCounts,
    Lost,
    Peak,
    Placed,
    Reference,
    Round,
    Run,
    Work,
)
from harness.scratch import sweep
from harness.store.files import (
    FINISHED_FILE,
    LOGS_FOLDER,
    TURNS_FILE,
    LogKind,
    adapter,
    describe_folder,
    ends_in_newline,
    finished_document,
    line_of,
    log_path,
    parse_versioned,
    read_document,
    read_lines,
    read_manifest,
    read_records,
    writing,
)
from harness.store.schema import RowsOf, write_tables

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


# --- Runs ---

Record = Build | IrCounts | Check | Reference | Round | Lost | Work | Peak | HostRecord | Placed
_T = TypeVar("_T")
_Hosted = TypeVar("_Hosted", Round, Lost, Reference)

HEADER_FILE = "run.json"
# The fields of a run that are records of their own, a file each.
RECORDS: dict[str, type[Any]] = {
    "builds": Build,
    "ir": IrCounts,
    "checks": Check,
    "references": Reference,
    "rounds": Round,
    "lost": Lost,
    "work": Work,
    "peaks": Peak,
    "hosts": HostRecord,
    "placed": Placed,
}
_FILES = {kind: f"{field}.jsonl" for field, kind in RECORDS.items()}
# Every file that a run directory may hold, but for those in logs/.
FILES = (HEADER_FILE, *_FILES.values(), REPORT_FILE, FINISHED_FILE)


class RunDirectory(Journal):
    """A run being written. Use `create` or `resume`, as a context manager."""

    def __init__(self, path: Path, header: Header) -> None:
        super().__init__(path)
        self.header = header
        # Called before a failure is recorded; raises where it is not the case's own.
        self.before_failure: Callable[[], None] = lambda: None
        go_on = f"harness run --resume {shlex.quote(str(path))}"
        self.remedy = f"make room or mend its permissions, then go on with `{go_on}`"

    @classmethod
    def create(cls, results: Path, header: Header) -> RunDirectory:
        """Make the directory of a new run, whose name is the run's id, and write its header."""
        path = make_folder(results, header.id)
        named = replace(header, id=path.name)
        try:
            with writing_into(results, ROOM):
                write_atomically(path / HEADER_FILE, adapter(Header).dump_json(named, indent=1))
        except RunError:
            with contextlib.suppress(OSError):
                path.rmdir()
            raise
        return cls(path, named)

    @classmethod
    def resume(cls, path: Path) -> tuple[RunDirectory, Run]:
        """Open an unfinished run to go on with it, and what it holds so far."""
        with cls(path, load_run(path).header) as directory:
            return directory, load_run(path)

    def begin(self) -> None:
        """Refuse a run that is finished, also by a harness that has just let go of the lock."""
        if (self.path / FINISHED_FILE).is_file():
            raise RunError(f"{self.path}: this run is finished and is not written again; start a new one")
        sweep(self.path / LOGS_FOLDER, WRITING_PREFIX)
        super().begin()

    def set(self, **settings: Any) -> None:
        """Change settings of the run, which goes on with others than it was begun with."""
        if not settings.items() <= self.header.settings.items():
            self.header = replace(self.header, settings={**self.header.settings, **settings})
            self.write_value(HEADER_FILE, self.header)

    def append(self, record: Record) -> None:
        """Write one record as one line; on failure the file is as it was before."""
        if getattr(record, "failure", None) is not None:
            self.before_failure()
        self.append_to(_FILES[type(record)], record)

    def log(self, case: str, text: str, kind: LogKind = "stderr") -> Path:
        """Keep what tools, or only the rewrites of plugins, printed for a case; the file's path inside the run."""
        return self.write(log_path(case, kind), text)

    def finish(self, report: Callable[[Run], str], rows_of: RowsOf | None = None) -> None:
        """Write the report and the tables of the finished run, and close it for good."""
        run = replace(load_run(self.path), finished=True)
        self.write(REPORT_FILE, report(run))
        if rows_of is not None:
            with self.writing():
                write_tables(self.path, rows_of(run))
        with self.writing():
            files = describe_folder(self.path, FILES)
        self.write(FINISHED_FILE, finished_document(files))


def load_run(path: Path, *, rounds: bool = True) -> Run:
    """Read a run directory, finished or not; a last line that was cut short is left out."""
    if not (path / HEADER_FILE).is_file():
        what = f"is not a run directory (it has no {HEADER_FILE})" if path.exists() else "there is no such folder"
        results = path.parent if path.parent != Path() else Path("results")
        raise RunError(f"{path}: {what}; {what_is_there(results)}")
    file, finished = path / TURNS_FILE, (path / FINISHED_FILE).is_file()
    # A finished run without the turns that it was finished with would read as if nothing had been measured.
    if not os.path.lexists(file) and TURNS_FILE in (read_manifest(path) or ()):
        raise RunError(f"{file}: is gone; take it from a backup")
    for file in filter(Path.is_file, path.glob("*.jsonl") if finished else ()):
        if not ends_in_newline(file):  # as one that is still written may
            raise RunError(f"{file}: its last line is cut short; take it from a backup")
    records: dict[str, Any] = {
        field: _records(path, kind) for field, kind in RECORDS.items() if rounds or kind is not Round
    }
    header_file = path / HEADER_FILE
    content, remedy = read_document(header_file), "take the run from a backup"
    header = parse_versioned(content, Header, SCHEMA_VERSION, header_file, remedy)
    groups = {case.name: case.group for case in header.cases}
    for field in ("rounds", "lost", "references"):
        records[field] = _that_count(records.get(field, ()), records["placed"], groups)
    return Run(header=header, finished=finished, **records)


def load_rounds(path: Path) -> tuple[Round, ...]:
    """The rounds of a run directory alone, without those that no longer count since their group moved."""
    return _that_count(_records(path, Round), _records(path, Placed), {})


def _that_count(
    records: tuple[_Hosted, ...], placed: Sequence[Placed], groups: Mapping[str, str]
) -> tuple[_Hosted, ...]:
    """Without what was recorded of a group before it moved: on another host, or on this one in an earlier attempt."""
    if not placed:
        return records
    places = {record.group: (record.host, record.attempt) for record in placed}
    groups_of = (record.group if isinstance(record, Round) else groups.get(record.case, "") for record in records)
    return tuple(
        record
        for record, group in zip(records, groups_of, strict=True)
        if not record.host or places.get(group) in (None, (record.host, record.attempt))
    )


def _records(path: Path, kind: type[_T]) -> tuple[_T, ...]:
    return tuple(read_records(path / _FILES[kind], kind, "remove that line or take the run from a backup"))
