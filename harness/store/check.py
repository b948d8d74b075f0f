"""`harness results verify`: are folders what they were when they were finished? Nothing in them is trusted."""

import os
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from harness.errors import RunError
from harness.progress import Progress
from harness.records.run import Run
from harness.store.files import (
    FINISHED_FILE,
    TURNS_FILE,
    NewerSchemaError,
    describe_file,
    ends_in_newline,
    read_manifest,
)
from harness.store.folders import (
    BESIDE,
    MARKS_FOLDER,
    PUBLISHED_FOLDER,
    Contents,
    is_id,
    is_table,
    look_into,
)
from harness.store.kinds import BISECT, COMPARISON, EXPLANATION, TUNING
from harness.store.marks import parsed_marks
from harness.store.place import Place
from harness.store.run_directory import HEADER_FILE
from harness.text import plural, shown

State = Literal["ok", "unfinished", "damaged", "changed", "future schema", "not a run"]

# What is wrong with a folder, as opposed to what is merely no finished run.
WRONG: frozenset[State] = frozenset({"damaged", "changed", "future schema"})


@dataclass(frozen=True, kw_only=True)
class Finding:
    """What a look at one folder showed."""

    name: str
    kind: str  # `run`, `comparison`, `explanation` or `marks`; "" for what is none of these
    # `damaged`: it cannot be read as what it says it is. `changed`: it can, but is not what it was when it was
    # finished.
    state: State
    why: str = ""  # One sentence that names the file; a remark where it is ok


def _wrong(name: str, kind: str, error: RunError) -> Finding:
    state: State = "future schema" if isinstance(error, NewerSchemaError) else "damaged"
    return Finding(name=name, kind=kind, state=state, why=str(error))


def verify(place: Place, progress: Progress) -> list[Finding]:
    """Look at every folder, at those in `published/`, whose names are free, and at what was said of them."""
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
    return findings + _check_marks(place.local)


def _folders(folder: Path) -> list[str]:
    """Names of folders, and of links to folders, in order."""
    try:
        with os.scandir(folder) as entries:
            return sorted(entry.name for entry in entries if entry.is_dir() and not entry.name.startswith("."))
    except OSError as error:
        raise RunError(f"{folder}: cannot be listed ({error.strerror}); give a folder that holds runs") from None


def check_folder(folder: Path, *, name: str, named_by_id: bool = True) -> Finding:
    """Look at the folder of a run, a comparison or an explanation."""
    kind = ""
    try:
        contents = look_into(folder)
        if contents.kind is None:
            state, why = _without_kind(contents)
        else:
            kind = contents.kind.name
            kept = contents.kind.load(folder)
            own_id = kept.header.id if isinstance(kept, Run) else kept.id
            if named_by_id and own_id != name:
                state, why = "changed", f"it is {kind} {shown(own_id)} under another name; rename it back"
            elif not contents.finished:
                state, why = "unfinished", f"go on with it: harness run --resume {shlex.quote(str(folder))}"
            else:
                state, why = _state_of_files(folder, contents, kind)
    except RunError as error:
        return _wrong(name, kind, error)
    return Finding(name=name, kind=kind, state=state, why=why)


def why_not_mergeable(contents: Contents, name: str) -> str | None:
    """Why a folder is no finished run or comparison with a name that the harness gives; None: it is one."""
    if contents.kind is None:
        return _without_kind(contents)[1]
    if not is_id(name):
        return f"{shown(name)!r} is no id of a run; rename it to the id that its {HEADER_FILE} has"
    if not contents.finished:
        return "is not finished; go on with it where it was made, with harness run --resume"
    return None


def _without_kind(contents: Contents) -> tuple[State, str]:
    """What a folder is that holds no run, comparison or explanation."""
    for kind in (BISECT, TUNING):
        if kind.begun_file in contents.unknown:
            return "not a run", f"{kind.phrase}, which stays where it was made"
    if EXPLANATION.begun_file in contents.unknown:
        return "unfinished", "an explanation that was stopped"
    if TURNS_FILE in contents.known:
        return "unfinished", "a comparison that was stopped"
    return "not a run", f"it has neither {HEADER_FILE} nor {COMPARISON.file}"


def _state_of_files(folder: Path, contents: Contents, kind: str) -> tuple[State, str]:
    """A finished folder's files beside their hashes; its tables have none, since they are made of the others."""
    for path in contents.known:
        if path.endswith(".jsonl") and not ends_in_newline(folder / path):
            return "damaged", f"{folder / path}: its last line is cut short; take it from a backup"
    manifest = read_manifest(folder) or {}
    for path, record in manifest.items():
        file = folder / path
        if is_table(path):
            continue
        if not file.is_file() or file.is_symlink():
            return "damaged", f"{file}: is gone; take it from a backup"
        if describe_file(file) != record:
            return "changed", f"{file}: is not as it was when the {kind} was finished"
    for path in contents.known:
        if path not in manifest and path != FINISHED_FILE and not is_table(path):
            return "changed", f"{folder / path}: was not there when the {kind} was finished"
    return "ok", f"holds {contents.beside} beside" if contents.unknown else ""


def _check_marks(results: Path) -> list[Finding]:
    """Look at what was said of runs and changes: one finding for all that is well, and one for each other file."""
    try:
        found = list(parsed_marks(results))
    except RunError as error:
        return [_wrong(MARKS_FOLDER, "marks", error)]
    wrong = [_wrong(f"{MARKS_FOLDER}/{file.name}", "marks", said) for file, said in found if isinstance(said, RunError)]
    sound = plural(len(found) - len(wrong), "statement")
    well = Finding(name=MARKS_FOLDER, kind="marks", state="ok", why=sound)
    return [*([well] if len(found) > len(wrong) else []), *wrong]
