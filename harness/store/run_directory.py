"""Run directories: append-only while a run goes on, immutable once it has finished; results/README.md has their files.

How a line is written, and dropped where it was cut short: harness.store.journal.
"""

from __future__ import annotations

import contextlib
import os
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

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
    log_path,
    parse_versioned,
    read_document,
    read_manifest,
    read_records,
)
from harness.store.journal import REPORT_FILE, ROOM, Journal, make_folder, what_is_there, writing_into
from harness.store.schema import RowsOf, write_tables

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
    run = Run(header=header, finished=finished, **records)
    groups = {case.name: case.group for case in header.cases}
    return replace(
        run,
        rounds=_that_count(run.rounds, run.placed, groups),
        lost=_that_count(run.lost, run.placed, groups),
        references=_that_count(run.references, run.placed, groups),
    )


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
