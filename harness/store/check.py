"""`harness results verify`: are folders what they were when they were finished? Nothing in them is trusted."""

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from harness.errors import RunError
from harness.progress import Progress
from harness.records.run import Run
from harness.store.files import FINISHED_FILE, NewerSchemaError, describe_file, ends_in_newline, read_manifest
from harness.store.folders import MARKS_FOLDER, PUBLISHED_FOLDER, Contents, is_table, look_into
from harness.store.marks import read_marks
from harness.store.place import Place
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


def verify(place: Place, progress: Progress) -> list[Finding]:
    """Look at every run, comparison and explanation, at those in `published/`, and at what was said of them."""
    folders = dict.fromkeys(place.names(), True)
    published = Place(place.address, place.local / PUBLISHED_FOLDER)
    if published.local.is_dir():
        folders |= {f"{PUBLISHED_FOLDER}/{name}": False for name in published.names()}
    named_by_id = place.local.resolve().name != PUBLISHED_FOLDER  # names of published ones are free
    progress.stage("Verifying", len(folders))
    findings = []
    for name, has_id in folders.items():
        if name not in place.refused:
            findings.append(check_folder(place.local / name, name=name, named_by_id=has_id and named_by_id))
        progress.step(shown(name))
    marks = read_marks(place.local)
    if marks.files:
        sound = plural(len(marks.files), "statement")
        findings.append(Finding(name=MARKS_FOLDER, kind="marks", state="ok", why=sound))
    for kind, wrong in (("", {**place.refused, **published.refused}), ("marks", marks.wrong)):
        findings += [Finding(name=name, kind=kind, state="damaged", why=why) for name, why in wrong.items()]
    return findings


def check_folder(folder: Path, *, name: str, named_by_id: bool = True) -> Finding:
    """Look at the folder of a run, a comparison or an explanation."""
    kind = ""
    state: State
    try:
        contents = look_into(folder)
        if contents.kind is None:
            state, why = "not a run", "it has no run, comparison or explanation"
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
    except NewerSchemaError as error:
        state, why = "future schema", str(error)
    except RunError as error:
        state, why = "damaged", str(error)
    return Finding(name=name, kind=kind, state=state, why=why)


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
