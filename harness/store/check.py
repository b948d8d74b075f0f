"""`harness results verify`: are folders what they were when they were finished? Nothing in them is trusted."""

from __future__ import annotations

import os
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from harness.errors import RunError
from harness.progress import Progress
from harness.records.comparison import Comparison
from harness.records.explanation import Explanation
from harness.records.run import Run
from harness.store.database import connect, id_column, parquet, pattern, text
from harness.store.files import (
    DROPPED_FILE,
    FINISHED_FILE,
    TABLES_FOLDER,
    TURNS_FILE,
    FileRecord,
    NewerSchemaError,
    describe_file,
    ends_in_newline,
    read_dropped,
    read_manifest,
)
from harness.store.folders import (
    BESIDE,
    HISTORY_FOLDER,
    MARKS_FOLDER,
    PUBLISHED_FOLDER,
    Contents,
    is_id,
    is_table,
    look_into,
)
from harness.store.kinds import BISECT, COMPARISON, EXPLANATION, TUNING
from harness.store.marks import mark_files, parse_mark
from harness.store.parquet_files import (
    Source,
    compacted_sources,
    fault_of,
    require_own_history,
    tables_of,
    too_many_rows,
    too_much_text,
)
from harness.store.place import Place
from harness.store.run_directory import HEADER_FILE
from harness.text import one_line, plural, shown

State = Literal["ok", "unfinished", "damaged", "changed", "future schema", "not a run"]

# What is wrong with a folder, as opposed to what is merely no finished run.
WRONG: frozenset[State] = frozenset({"damaged", "changed", "future schema"})
_Kept = Run | Comparison | Explanation


@dataclass(frozen=True, kw_only=True)
class Finding:
    """What a look at one folder, or at one part of the compacted history, showed."""

    name: str
    kind: str  # `run`, `comparison`, `explanation`, `history` or `marks`; "" for what is none of these
    # `damaged`: it cannot be read as what it says it is. `changed`: it can, but is not what it was when it was
    # finished.
    state: State
    why: str = ""  # One sentence that names the file; a remark where it is ok
    hashed: bool = False  # Whether every file was held against the hash that was written when it was finished


class _WrongError(RunError):
    """What is wrong with a folder that can be read: its state, and why."""

    def __init__(self, state: State, why: str) -> None:
        super().__init__(why)
        self.state = state


def _wrong(name: str, kind: str, error: RunError) -> Finding:
    if isinstance(error, _WrongError):
        state = error.state
    else:
        state = "future schema" if isinstance(error, NewerSchemaError) else "damaged"
    return Finding(name=name, kind=kind, state=state, why=str(error))


def verify(place: Place, progress: Progress) -> list[Finding]:
    """Look at every folder, at those in `published/`, whose names are free, and at what was compacted."""
    names = _folders(place.local)
    published = _folders(place.local / PUBLISHED_FOLDER) if PUBLISHED_FOLDER in names else []
    is_published = place.local.resolve().name == PUBLISHED_FOLDER
    own = [name for name in names if name not in BESIDE]
    progress.stage("Verifying", len(own) + len(published))
    findings = []
    for name in [*own, *(f"{PUBLISHED_FOLDER}/{name}" for name in published)]:
        findings.append(check_folder(place.local / name, name=name, named_by_id="/" not in name and not is_published))
        progress.step(shown(name))
    refused = [name for name in place.refused if name not in names]  # of a URL; a folder's own are looked at above
    findings += [Finding(name=name, kind="", state="damaged", why=f"it {place.refused[name]}") for name in refused]
    return findings + check_history(place.local) + check_marks(place.local)


def _folders(folder: Path) -> list[str]:
    """Names of folders, and of links to folders, in order."""
    try:
        with os.scandir(folder) as entries:
            return sorted(entry.name for entry in entries if entry.is_dir() and not entry.name.startswith("."))
    except OSError as error:
        raise RunError(f"{folder}: cannot be listed ({error.strerror}); give a folder that holds runs") from None


def check_folder(folder: Path, *, name: str, named_by_id: bool = True) -> Finding:
    """Look at the folder of a run, a comparison or an explanation."""
    return examine(folder, name=name, named_by_id=named_by_id)[0]


def examine(folder: Path, *, name: str, named_by_id: bool = True) -> tuple[Finding, _Kept | None]:
    """As `check_folder`; and what was read, where it could be."""
    kind = ""
    record: _Kept | None = None
    try:
        contents = look_into(folder)
        if contents.kind is None:
            begun = any(name in contents.known for name in ("rounds.jsonl", "compiles.jsonl"))
            begun = begun or EXPLANATION.begun_file in contents.unknown
            raise _WrongError("unfinished" if begun else "not a run", _why_without_kind(contents, begun=begun))
        kind = contents.kind.name
        kept: _Kept = contents.kind.load(folder)
        record = kept
        own_id = kept.header.id if isinstance(kept, Run) else kept.id
        if named_by_id and own_id != name:
            raise _WrongError("changed", f"it is {kind} {shown(own_id)} under another name; rename it back")
        if not contents.finished:
            raise _WrongError("unfinished", f"go on with it: harness run --resume {shlex.quote(str(folder))}")
        why, hashed = _check_files(folder, contents, kind)
        _check_tables(folder, own_id)
    except RunError as error:
        return _wrong(name, kind, error), record
    return Finding(name=name, kind=kind, state="ok", why=why, hashed=hashed), record


def why_not_mergeable(contents: Contents, name: str) -> str | None:
    """Why a folder is no finished run or comparison with a name that the harness gives; None: it is one."""
    if contents.kind is None:
        return _why_without_kind(contents, begun=TURNS_FILE in contents.known)
    if not is_id(name):
        return f"{shown(name)!r} is no id of a run; rename it to the id that its {HEADER_FILE} has"
    if not contents.finished:
        return "is not finished; go on with it where it was made, with harness run --resume"
    return None


def _why_without_kind(contents: Contents, *, begun: bool) -> str:
    for kind in (BISECT, TUNING):
        if kind.begun_file in contents.unknown:
            return f"{kind.phrase}, which stays where it was made"
    if EXPLANATION.begun_file in contents.unknown:
        return "an explanation that was stopped"
    return "a comparison that was stopped" if begun else f"it has neither {HEADER_FILE} nor {COMPARISON.file}"


def _check_files(folder: Path, contents: Contents, kind: str) -> tuple[str, bool]:
    """Hold a finished folder's files against their hashes, or where it has none, look whether they are whole."""
    for path in contents.known:
        if path.endswith(".jsonl") and not ends_in_newline(folder / path):
            raise _WrongError("damaged", f"{folder / path}: its last line is cut short; take it from a backup")
    dropped = read_dropped(folder)
    remarks = [f"its raw turns were dropped on {dropped.when[:10]}"] if dropped is not None else []
    remarks += [f"holds {contents.beside} beside"] if contents.unknown else []
    manifest = read_manifest(folder)
    if manifest is None:
        return "; ".join(remarks), False  # of a harness that wrote no hashes yet
    for path, record in manifest.items():
        if path == TURNS_FILE and dropped is not None:
            if dropped.turns != record:
                raise _WrongError("changed", f"{folder / DROPPED_FILE}: tells of other turns than it had")
        else:
            _check_hash(folder / path, record, kind)
    later = (FINISHED_FILE, DROPPED_FILE)
    for path in contents.known:
        if path not in manifest and path not in later and not is_table(path):
            raise _WrongError("changed", f"{folder / path}: was not there when the {kind} was finished")
    return "; ".join(remarks), True


def _check_hash(file: Path, record: FileRecord, what: str) -> None:
    if not file.is_file() or file.is_symlink():
        advice = "take it from a backup"
        if file.parent.name == TABLES_FOLDER and not (file.parents[1] / DROPPED_FILE).exists():
            advice = f"delete {file.parent}, and `harness results list {file.parents[2]}` makes its files again"
        raise _WrongError("damaged", f"{file}: is gone; {advice}")
    if describe_file(file) != record:
        raise _WrongError("changed", f"{file}: is not as it was when the {what} was finished")


def _check_tables(folder: Path, own_id: str) -> None:
    """Read a folder's tables, if it has some: every row has to be its own."""
    source = Source(name=folder.name, files=tables_of(folder))
    if source.files and (why := _unreadable(source, {own_id})):
        raise _WrongError("damaged", f"{why}; delete {folder / 'tables'}, and they are made again")


def check_history(results: Path) -> list[Finding]:
    """Look at what was compacted: each part has its hashes, can be read, and has rows of its own runs alone."""
    try:
        require_own_history(results)
        sources = compacted_sources(results)
    except RunError as error:
        return [_wrong(HISTORY_FOLDER, "history", error)]
    return [_check_source(results, source) for source in sources]


def check_marks(results: Path) -> list[Finding]:
    """Look at what was said of runs and changes: one finding for all that is well, and one for each other file."""
    wrong, sound = [], 0
    try:
        for file in mark_files(results):
            try:
                parse_mark(file)
                sound += 1
            except RunError as error:
                wrong.append(_wrong(f"{MARKS_FOLDER}/{file.name}", "marks", error))
    except RunError as error:
        return [_wrong(MARKS_FOLDER, "marks", error)]
    well = Finding(name=MARKS_FOLDER, kind="marks", state="ok", why=plural(sound, "statement"), hashed=True)
    return [*([well] if sound else []), *wrong]


def _check_source(results: Path, source: Source) -> Finding:
    hashed = False
    try:
        records = read_manifest(results / source.name) or {}
        for name, record in records.items():
            _check_hash(results / source.name / name, record, "part")
        hashed = bool(records)
        if why := _unreadable(source):
            raise _WrongError("damaged", f"{why}; take it from a backup")
    except RunError as error:
        return _wrong(source.name, "history", error)
    return Finding(name=source.name, kind="history", state="ok", hashed=hashed)


def _unreadable(source: Source, owners: set[str] | None = None) -> str:
    """Why rows cannot be read, or are not those of their owners; "" where all is well."""
    import duckdb

    connection = connect()
    try:
        for table, file in source.files.items():
            if fault := fault_of(connection, table, [file]):
                return f"{file}: cannot be read ({fault})"
            rows = parquet([file])
            try:
                # The file's own count was looked at; what is read is what its groups of rows say.
                groups = f"SELECT coalesce(sum(row_group_num_rows), 0) FROM parquet_metadata({text(pattern(file))})"  # noqa: S608
                ((count,),) = connection.execute(f"{groups} WHERE column_id = 0").fetchall()
                if fault := too_many_rows(file, int(count)):
                    return f"{file}: cannot be read ({fault})"
                if fault := too_much_text(connection, table, file):
                    return f"{file}: cannot be read ({fault})"
                # Each column of each row, as every reader reads it.
                connection.execute(f"SELECT count(COLUMNS(*)) FROM {rows}").fetchall()  # noqa: S608 (quoted)
                ids = connection.execute(f"SELECT DISTINCT {id_column(table)} FROM {rows}").fetchall()  # noqa: S608
            except duckdb.Error as error:
                return f"{file}: cannot be read ({one_line(str(error))[:200]})"
            found = {str(name) for (name,) in ids}
            if owners is None and table == "runs":
                owners = found
            of_runs = table != "comparisons" or "runs" not in source.files
            if of_runs and owners is not None and not found <= owners:
                return f"{file}: has rows of other runs than its own"
    finally:
        connection.close()
    return ""
