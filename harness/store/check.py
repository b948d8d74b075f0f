"""Whether one folder is what it was when it was finished, found out without trusting anything in it."""

from __future__ import annotations

import json
from pathlib import Path

from harness.errors import RunError
from harness.records.comparison import Comparison
from harness.records.run import SCHEMA_VERSION as RUN_VERSION
from harness.records.run import Run
from harness.report.comparison import SCHEMA_VERSION as COMPARISON_VERSION
from harness.report.comparison import comparison_from_json
from harness.store.bounded import ends_in_newline, read_document
from harness.store.comparison_directory import COMPARISON_FILE
from harness.store.dropped import DROPPED_FILE, TURNS_FILE, read_dropped
from harness.store.folders import HEADER_FILE, Contents, Kind, is_id, is_table, look_into
from harness.store.manifest import FINISHED_FILE, describe_file, read_manifest
from harness.store.run_directory import load_run
from harness.store.values import Finding, State
from harness.text import shown


def check_folder(folder: Path, *, name: str, named_by_id: bool = True) -> Finding:
    """Look at a run's or a comparison's folder.

    Args:
        name: What it is called, which may differ from the folder's own name while it is being copied.
        named_by_id: Whether it has to be called as its id says.
    """
    return examine(folder, name=name, named_by_id=named_by_id)[0]


def examine(folder: Path, *, name: str, named_by_id: bool = True) -> tuple[Finding, Run | Comparison | None]:
    """As `check_folder`; and what was read, where it could be."""
    read: list[Run | Comparison] = []
    finding = _examine(folder, name, read, named_by_id=named_by_id)
    return finding, read[0] if read else None


def _examine(folder: Path, name: str, read: list[Run | Comparison], *, named_by_id: bool) -> Finding:
    kind = ""
    try:
        contents = look_into(folder)
        if contents.kind is None:
            begun = "rounds.jsonl" in contents.known or "compiles.jsonl" in contents.known
            state: State = "unfinished" if begun else "not a run"
            return Finding(name=name, kind="", state=state, why=_without_kind(begun=begun))
        kind = contents.kind
        if (version := _version_of(folder, contents.kind)) is not None:
            return Finding(name=name, kind=kind, state="future schema", why=version)
        read.append(_read_whole(folder, contents.kind))
        own_id = _id_of(read[0])
        if named_by_id and own_id != name:
            return _finding(name, kind, "changed", f"it is {kind} {shown(own_id)} under another name; rename it back")
        if not contents.finished:
            return _finding(name, kind, "unfinished", f"go on with it: harness run --resume {folder}")
        return _check_files(folder, contents, name)
    except RunError as error:
        return Finding(name=name, kind=kind, state="damaged", why=str(error))
    except (RecursionError, UnicodeDecodeError):
        file = folder / (COMPARISON_FILE if kind == "comparison" else HEADER_FILE)
        return Finding(name=name, kind=kind, state="damaged", why=f"{file}: is damaged; take it from a backup")


def why_not_mergeable(contents: Contents, name: str) -> str | None:
    """Why a folder is no finished run or comparison with a name that the harness gives; None: it is one."""
    if contents.kind is None:
        return _without_kind(begun=TURNS_FILE in contents.known)
    if not is_id(name):
        return f"{shown(name)!r} is no id of a run; rename it to the id that its {HEADER_FILE} has"
    if not contents.finished:
        return "is not finished; go on with it where it was made, with harness run --resume"
    return None


def _without_kind(*, begun: bool) -> str:
    return "a comparison that was stopped" if begun else f"it has neither {HEADER_FILE} nor {COMPARISON_FILE}"


def _finding(name: str, kind: str, state: State, why: str) -> Finding:
    return Finding(name=name, kind=kind, state=state, why=why)


def _version_of(folder: Path, kind: Kind) -> str | None:
    """That a later harness wrote a folder; None: this one can read it, or nobody can."""
    file = folder / (HEADER_FILE if kind == "run" else COMPARISON_FILE)
    known = RUN_VERSION if kind == "run" else COMPARISON_VERSION
    try:
        version = json.loads(read_document(file))["schema_version"]
    except (ValueError, KeyError, TypeError):
        return None
    if isinstance(version, int) and version > known:
        return f"{file}: has schema {version}, and this harness reads {known}; upgrade it"
    return None


def _id_of(read: Run | Comparison) -> str:
    return read.header.id if isinstance(read, Run) else read.id


def _read_whole(folder: Path, kind: Kind) -> Run | Comparison:
    """Read everything that a report would read.

    Raises:
        RunError: It is damaged.
    """
    if kind == "run":
        return load_run(folder)
    file = folder / COMPARISON_FILE
    return comparison_from_json(read_document(file).decode(), str(file))


def _check_files(folder: Path, contents: Contents, name: str) -> Finding:
    """Hold a finished folder's files against their hashes, or where it has none, look whether they are whole."""
    kind = str(contents.kind)
    for path in contents.known:
        if path.endswith(".jsonl") and not ends_in_newline(folder / path):
            why = f"{folder / path}: its last line is cut short; take it from a backup"
            return _finding(name, kind, "damaged", why)
    dropped = read_dropped(folder)
    remark = f"its raw turns were dropped on {dropped.when[:10]}" if dropped is not None else ""
    if contents.unknown:
        remark = "; ".join(part for part in (remark, f"holds {contents.beside} beside") if part)
    manifest = read_manifest(folder)
    if manifest is None:
        return _finding(name, kind, "ok", remark)  # of a harness that wrote no hashes yet
    for path, record in manifest.items():
        if path == TURNS_FILE and dropped is not None:
            if dropped.turns != record:
                return _finding(name, kind, "changed", f"{folder / DROPPED_FILE}: tells of other turns than it had")
        elif path not in contents.known:
            return _finding(name, kind, "damaged", f"{folder / path}: is gone; take it from a backup")
        elif describe_file(folder / path) != record:
            return _finding(name, kind, "changed", f"{folder / path}: is not as it was when the {kind} was finished")
    later = (FINISHED_FILE, DROPPED_FILE)
    added = [path for path in contents.known if path not in manifest and path not in later and not is_table(path)]
    if added:
        return _finding(name, kind, "changed", f"{folder / added[0]}: was not there when the {kind} was finished")
    return Finding(name=name, kind=kind, state="ok", why=remark, hashed=True)
