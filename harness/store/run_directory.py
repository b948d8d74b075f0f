"""Run directories: append-only while a run goes on, immutable once it has finished.

    <results>/<run id>/
        run.json           the header, written first; its settings may change where a run goes on
        builds.jsonl       one JSON line a record; and ir.jsonl, checks.jsonl, references.jsonl, rounds.jsonl,
                           lost.jsonl, work.jsonl, peaks.jsonl
        hosts.jsonl        where several hosts measured it: what each is like; and placed.jsonl, which measured what
        logs/              what iree-compile printed for builds that failed, and rewrites for those that did not
        report.md          the full report
        tables/            its rows of a results folder's tables, see harness.store.tables
        finished.json      there once the run has finished, with the hash of every file; nothing is written after it
        turns-dropped.json where `harness results gc` has deleted rounds.jsonl: when, and its hash

Each line is written by one system call, so that a run killed at any moment loses at most the line in flight, and
`harness run --resume` drops a line that was cut short.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, TypeVar

from filelock import FileLock, Timeout
from pydantic import ValidationError

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
from harness.store.database import RowsOf, try_to_write_tables
from harness.store.files import (
    DROPPED_FILE,
    FINISHED_FILE,
    LOGS_FOLDER,
    TURNS_FILE,
    LogKind,
    adapter,
    describe_folder,
    finished_document,
    line_of,
    log_path,
    parsing,
    read_document,
    read_dropped,
    read_lines,
    read_manifest,
    reading,
    require_schema,
    writing,
)
from harness.text import shown

Record = Build | IrCounts | Check | Reference | Round | Lost | Work | Peak | HostRecord | Placed
_T = TypeVar("_T")

HEADER_FILE = "run.json"
_LOCK_FILE = ".lock"
# Of a suite's name in a folder's: file systems take 255 bytes, and more is added before and after it.
_NAME_LENGTH = 150
_FILES: dict[type[Any], str] = {
    Build: "builds.jsonl",
    IrCounts: "ir.jsonl",
    Check: "checks.jsonl",
    Reference: "references.jsonl",
    Round: "rounds.jsonl",
    Lost: "lost.jsonl",
    Work: "work.jsonl",
    Peak: "peaks.jsonl",
    HostRecord: "hosts.jsonl",
    Placed: "placed.jsonl",
}
# What is said where there is no room in a results folder, or no right to write there.
_ELSEWHERE = "choose another folder with --results"


def file_names() -> tuple[str, ...]:
    """Every file that a run directory may hold, but for those in logs/."""
    return (HEADER_FILE, *_FILES.values(), "report.md", FINISHED_FILE, DROPPED_FILE)


def new_run_id(suite: str, now: datetime) -> str:
    """`20261121-035012-esrgan`: sorts by time, and tells what it was."""
    name = re.sub(r"[^A-Za-z0-9._+-]", "-", suite).lstrip("._+-")[:_NAME_LENGTH] or "suite"
    return f"{now.astimezone(timezone.utc):%Y%m%d-%H%M%S}-{name}"


def require_writable(results: Path, remedy: str = _ELSEWHERE) -> None:
    """Make the results folder, so that a run cannot end in nowhere to write to."""
    with writing(results, remedy):
        results.mkdir(parents=True, exist_ok=True)
        probe = results / f".probe-{os.getpid()}"
        probe.write_bytes(b"")
        probe.unlink()


def writing_results(path: Path) -> AbstractContextManager[None]:
    """As `writing`, of what may as well be put elsewhere."""
    return _writing_into(path, f"make room or {_ELSEWHERE}")


@contextlib.contextmanager
def _writing_into(folder: Path, remedy: str) -> Iterator[None]:
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


def make_folder(results: Path, name: str) -> Path:
    """Make the folder of a new run or comparison; the second of the same second gets a number behind its name."""
    require_writable(results)
    for attempt in range(1, 1000):
        path = results / (name if attempt == 1 else f"{name}-{attempt}")
        with writing_results(results), contextlib.suppress(FileExistsError):
            path.mkdir()
            return path
    raise RunError(f"{results}: has a thousand folders named {name}; choose another with --results")


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


class RunDirectory:
    """A run being written. Use `create` or `resume`, as a context manager.

    Attributes:
        before_failure: Called before a failure is recorded; raises where it is not the case's own.
    """

    def __init__(self, path: Path, header: Header) -> None:
        self.path = path
        self.header = header
        self.before_failure: Callable[[], None] = lambda: None
        self._lock = FileLock(path / _LOCK_FILE)

    @classmethod
    def create(cls, results: Path, header: Header) -> RunDirectory:
        """Make the directory of a new run and write its header.

        The directory's name is the run's id; a second run in the same second gets a number behind it.
        """
        path = make_folder(results, header.id)
        named = replace(header, id=path.name)
        try:
            with writing_results(results):
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
            for file in _FILES.values():
                _drop_cut_line(path / file)
            return directory, load_run(path)

    def __enter__(self) -> RunDirectory:
        self._refuse_finished()
        try:
            with _continuable(self.path):
                self._lock.acquire(timeout=0)
        except Timeout:
            raise RunError(f"{self.path}: another harness is writing this run; wait for it or stop it") from None
        for folder in (self.path, self.path / LOGS_FOLDER):
            sweep(folder, WRITING_PREFIX)
        try:
            self._refuse_finished()  # by the harness that has just let go of the lock
        except RunError:
            self.__exit__()
            raise
        return self

    def _refuse_finished(self) -> None:
        if (self.path / FINISHED_FILE).is_file():
            raise RunError(f"{self.path}: this run is finished and is not written again; start a new one")

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError):  # before the release: after it, the file may be another harness's lock
            (self.path / _LOCK_FILE).unlink()
        self._lock.release()

    def set(self, **settings: Any) -> None:
        """Change settings of the run, which goes on with others than it was begun with."""
        if settings.items() <= self.header.settings.items():
            return
        self.header = replace(self.header, settings={**self.header.settings, **settings})
        with _continuable(self.path):
            write_atomically(self.path / HEADER_FILE, adapter(Header).dump_json(self.header, indent=1))

    def append(self, record: Record) -> None:
        """Write one record as one line; on failure the file is as it was before."""
        if getattr(record, "failure", None) is not None:
            self.before_failure()
        with _continuable(self.path):
            append_line(self.path / _FILES[type(record)], line_of(record) + b"\n")

    def log(self, case: str, text: str, kind: LogKind = "stderr") -> Path:
        """Keep what tools, or only the rewrites of plugins, printed for a case; the file's path inside the run."""
        path = self.path / log_path(case, kind)
        with _continuable(self.path):
            write_atomically(path, text.encode())
        return path

    def keep_log(self, file: Path) -> None:
        """Keep a log of another run, which this one is joined from."""
        with reading(file):
            text = file.read_bytes()
        with _continuable(self.path):
            write_atomically(self.path / LOGS_FOLDER / file.name, text)

    def finish(self, report: Callable[[Run], str], rows_of: RowsOf | None = None) -> None:
        """Write the report and the tables of the finished run, and close it for good."""
        run = replace(load_run(self.path), finished=True)
        text = report(run)
        with _continuable(self.path):
            write_atomically(self.path / "report.md", text.encode())
            if rows_of is not None:
                try_to_write_tables(self.path, rows_of(run))
            write_atomically(self.path / FINISHED_FILE, finished_document(describe_folder(self.path, file_names())))


def _continuable(path: Path) -> AbstractContextManager[None]:
    """As `writing`, of a run that can go on afterwards."""
    return _writing_into(
        path, f"make room or mend its permissions, then go on with `harness run --resume {shlex.quote(str(path))}`"
    )


def _drop_cut_line(path: Path) -> None:
    if path.is_file():
        content = path.read_bytes()
        whole = content.rfind(b"\n") + 1
        if whole < len(content):
            with _continuable(path.parent):
                os.truncate(path, whole)


def load_run(path: Path, *, rounds: bool = True) -> Run:
    """Read a run directory, finished or not; a last line that was cut short is left out."""
    if not (path / HEADER_FILE).is_file():
        what = f"is not a run directory (it has no {HEADER_FILE})" if path.exists() else "there is no such folder"
        results = path.parent if path.parent != Path() else Path("results")
        raise RunError(f"{path}: {what}; {what_is_there(results)}")
    dropped = read_dropped(path)
    if dropped is None:
        _require_turns(path)
    header = _header(path / HEADER_FILE)
    run = Run(
        header=header,
        builds=_records(path, Build),
        ir=_records(path, IrCounts),
        checks=_records(path, Check),
        references=_records(path, Reference),
        rounds=_records(path, Round) if rounds else (),
        lost=_records(path, Lost),
        work=_records(path, Work),
        peaks=_records(path, Peak),
        finished=(path / FINISHED_FILE).is_file(),
        turns_dropped=dropped.when if dropped is not None else "",
        hosts=_records(path, HostRecord),
        placed=_records(path, Placed),
    )
    _require_names(path / HEADER_FILE, header.environment)
    for host in run.hosts:
        _require_names(path / _FILES[HostRecord], host.environment)
    if run.finished:
        _require_hosts(path, run)
    if not run.placed:
        return run
    groups = {case.name: case.group for case in header.cases}
    where = _places(run.placed)

    def counts(record: Lost | Reference) -> bool:
        return not record.host or _counts(record, groups.get(record.case, ""), where)

    return replace(
        run,
        rounds=_that_count(run.rounds, where),
        lost=tuple(filter(counts, run.lost)),
        references=tuple(filter(counts, run.references)),
    )


def load_rounds(path: Path) -> tuple[Round, ...]:
    """The rounds of a run directory alone, without those that no longer count since their group moved."""
    return _that_count(_records(path, Round), _places(_records(path, Placed)))


def _places(placed: Iterable[Placed]) -> dict[str, tuple[str, int]]:
    """Host and attempt of each group now: it may be back on a host where it was before."""
    return {record.group: (record.host, record.attempt) for record in placed}


def _that_count(rounds: Iterable[Round], places: Mapping[str, tuple[str, int]]) -> tuple[Round, ...]:
    return tuple(measured for measured in rounds if _counts(measured, measured.group, places))


def _counts(record: Round | Lost | Reference, group: str, places: Mapping[str, tuple[str, int]]) -> bool:
    """Whether what a host recorded of a group counts: that group is there still, or was never placed."""
    own = (record.host, record.attempt)
    return places.get(group, own) == own


def _require_turns(path: Path) -> None:
    """That a finished run has the turns that it was finished with: else it would read as if nothing was measured."""
    file = path / TURNS_FILE
    if not os.path.lexists(file) and TURNS_FILE in (read_manifest(path) or ()):
        raise RunError(f"{file}: is gone; take it from a backup")


def _require_names(file: Path, environment: Mapping[str, Mapping[str, Any]]) -> None:
    """That an environment says of devices and peers what readers print: names and versions."""
    for section in ("devices", "device_names", "peers"):
        for name, said in environment.get(section, {}).items():
            if not isinstance(said, str):
                raise RunError(
                    f"{file}: is damaged (environment.{section} of {shown(name)} is no text); take it from a backup"
                )


def _require_hosts(path: Path, run: Run) -> None:
    """That a finished run tells where each group was measured, and what each host was like.

    Else its figures would count as those of the machine that asked for them.
    """
    known = {host.name for host in run.hosts}
    for host in run.host_of_group.values():
        if host not in known:
            raise RunError(
                f"{path / _FILES[HostRecord]}: has no line of {shown(host)}, which {_FILES[Placed]} names; take it from"
                " a backup"
            )
    for measured in run.rounds:
        if measured.host and measured.group not in run.host_of_group:
            raise RunError(
                f"{path / _FILES[Placed]}: has no line of {shown(measured.group)}, which {shown(measured.host)}"
                " measured; take it from a backup"
            )


def _header(file: Path) -> Header:
    raw = read_document(file)
    with parsing(file, "take the run from a backup"):
        version = json.loads(raw)["schema_version"]
    require_schema(version, file, SCHEMA_VERSION)
    try:
        header: Header = adapter(Header).validate_json(raw)
    except ValidationError as error:
        raise RunError(f"{file}: is damaged ({_first(error)}); take the run from a backup") from None
    return header


def _records(path: Path, kind: type[_T]) -> tuple[_T, ...]:
    file = path / _FILES[kind]
    if not os.path.lexists(file):  # a link to nothing is no missing file
        return ()
    validate = adapter(kind).validate_json
    records = []
    for number, line in enumerate(read_lines(file), start=1):
        try:
            records.append(validate(line))
        except ValidationError as error:
            raise RunError(
                f"{file}: line {number} is damaged ({_first(error)}); remove that line or take the run from a backup"
            ) from None
    return tuple(records)


def _first(error: ValidationError) -> str:
    detail = error.errors(include_url=False)[0]
    where = ".".join(str(part) for part in detail["loc"])
    what = detail["msg"].replace(" at line 1 column ", " at column ")  # of what is one line of the file
    return f"{where}: {what}" if where else what
