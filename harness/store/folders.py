"""Folders of results: what a user may call one, what it may hold, and a look at one that does not trust it.

A user calls it by its path, `latest`, `@-1`, or how its name begins.
"""

import json
import os
import re
import stat
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Generic, Literal, TypeVar

from cyclopts import Parameter

from harness.errors import RunError, UsageError
from harness.records.bisection import Bisection
from harness.records.comparison import Comparison
from harness.records.explanation import Explanation
from harness.records.run import SCHEMA_VERSION, Run
from harness.records.tuning import Tuning
from harness.store.files import FINISHED_FILE, TURNS_FILE, parse_versioned, read_document
from harness.store.run_directory import FILES, HEADER_FILE, REPORT_FILE, load_run, what_is_there
from harness.text import shown

KindName = Literal["run", "comparison", "explanation", "bisect", "tuning"]
Result = Run | Comparison | Explanation | Bisection | Tuning
# Folders of a results folder or of an out folder, and theirs: `tuned/rdb@cpu`, `results/tuned/rdb@cpu`.
_PLACES_OF_TUNINGS = (".", "*", "*/*")

_T = TypeVar("_T")


def _fields(document: Mapping[str, Any]) -> dict[str, Any]:
    """Those of a value; of a comparison with each tool's output back in its row."""
    for output in document.get("tool_output", ()):
        document["rows"][output["row"]]["stderr"] = output["stderr"]
    return {name: value for name, value in document.items() if name not in ("schema_version", "tool_output")}


@dataclass(frozen=True, kw_only=True)
class Kind(Generic[_T]):
    """A kind of results, each in a folder of its own."""

    name: KindName
    phrase: str  # `an explanation`
    value: type[_T]
    file: str  # A folder that has it is a whole one
    command: str  # `harness <command>` makes it
    # Of what is in it. Raised when a name changes its meaning or goes away; new names may appear without.
    version: int = 1
    begun_file: str = ""  # With which the command goes on
    files: tuple[str, ...] = ()  # All that a finished one may have; (): it stays where it was made
    go_on: str = ""  # How one that was begun goes on, where the command has no --resume
    read: Callable[[Path], _T] | None = None  # A folder of several documents

    def is_at(self, folder: Path) -> bool:
        """Whether a folder is one that has come to its end (of a run: one that was begun)."""
        return (folder / self.file).is_file()

    def load(self, folder: Path) -> _T:
        """Read what a folder holds."""
        if self.read is not None:
            return self.read(folder)
        return self.parse(read_document(folder / self.file), str(folder / self.file))

    def parse(self, content: str | bytes, source: str = "") -> _T:
        """The value of a document as it was kept."""
        remedy = f"make the {self.name} again"
        return parse_versioned(content, self.value, self.version, source or self.file, remedy, _fields)


RUN: Kind[Run] = Kind(
    name="run",
    phrase="a run",
    value=Run,
    file=HEADER_FILE,
    version=SCHEMA_VERSION,
    command="run",
    files=FILES,
    read=load_run,
)
COMPARISON = Kind(
    name="comparison",
    phrase="a comparison",
    value=Comparison,
    file="comparison.json",
    command="compare",
    begun_file="unfinished.json",
    files=("comparison.json", TURNS_FILE, "compiles.jsonl", REPORT_FILE, FINISHED_FILE),
)
EXPLANATION = Kind(
    name="explanation",
    phrase="an explanation",
    value=Explanation,
    file="explanation.json",
    command="explain",
    begun_file="unfinished-explanation.json",
    files=("explanation.json", REPORT_FILE, FINISHED_FILE),
)
BISECT = Kind(
    name="bisect",
    phrase="a bisect",
    value=Bisection,
    file="bisection.json",
    command="bisect",
    begun_file="begun.json",
)
TUNING = Kind(
    name="tuning",
    phrase="a tuning",
    value=Tuning,
    file="tuning.json",
    command="tune",
    begun_file="tuning-begun.json",
    go_on="call `harness tune` as before, and it goes on",
)
KINDS: tuple[Kind[Any], ...] = (RUN, COMPARISON, EXPLANATION, BISECT, TUNING)


def kind_at(folder: Path) -> Kind[Any] | None:
    """What a folder holds; None: nothing that has come to its end."""
    return next((kind for kind in reversed(KINDS) if kind.is_at(folder)), None)


def kind_of_value(value: object) -> Kind[Any]:
    """The kind of a result."""
    return next(kind for kind in KINDS if isinstance(value, kind.value))


def load_result(path: Path) -> Result:
    """What a folder holds."""
    for kind in reversed(KINDS):
        if kind.is_at(path):
            found: Result = kind.load(path)
            return found
        if kind.begun_file and (path / kind.begun_file).is_file():
            go_on = kind.go_on or f"go on with `harness {kind.command} --resume {path}`"
            raise RunError(f"{path}: this {kind.name} has not come to its end; {go_on}")
    if tunings := tunings_in(path):
        raise RunError(f"{path}: is a folder of tunings; give one of them: {', '.join(map(str, tunings))}")
    return load_run(path)  # which says why it is none


def tunings_in(place: Path) -> list[Path]:
    """The searches that have come to their end in a folder, or in a folder of that: of a results or an out folder."""
    return sorted({file.parent for pattern in _PLACES_OF_TUNINGS for file in place.glob(f"{pattern}/{TUNING.file}")})


PUBLISHED_FOLDER = "published"
MARKS_FOLDER = "marks"
# Of a results folder, beside its runs and comparisons.
BESIDE = (PUBLISHED_FOLDER, MARKS_FOLDER)

# As harness.store.run_directory.new_run_id makes them, from suite names of harness/suite/schema.py.
_ID = re.compile(r"[0-9]{8}-[0-9]{6}-[A-Za-z0-9][A-Za-z0-9._+-]{0,199}")
# As users rename folders; nothing that means something to a file system or a shell.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+@,-]{0,219}")
_LOG = re.compile(r"logs/[A-Za-z0-9_+@,-][A-Za-z0-9._+@,-]{0,250}\.txt")
_TABLE = re.compile(r"tables/(runs|points|cases|comparisons)\.parquet")
_MARK = re.compile(rf"{MARKS_FOLDER}/[0-9]{{8}}-[0-9]{{6}}-[0-9a-f]{{16}}\.json")
# Others stay where they were made.
_COPIED = tuple(kind for kind in KINDS if kind.files)
_KNOWN = frozenset(file for kind in _COPIED for file in kind.files)


def is_id(name: str) -> bool:
    """Whether the harness could have named a run, a comparison or an explanation so."""
    return _ID.fullmatch(name) is not None


def is_name(name: str) -> bool:
    """Whether a folder of that name can be a run that somebody renamed."""
    return _NAME.fullmatch(name) is not None and name not in BESIDE


def is_known(path: str) -> bool:
    """Whether a run, a comparison or an explanation has such a file; `path` is relative to its folder, with slashes."""
    return path in _KNOWN or _LOG.fullmatch(path) is not None or is_table(path)


def is_table(path: str) -> bool:
    """Whether `path`, relative to its folder, is a file of its tables, which can be made again of the others."""
    return _TABLE.fullmatch(path) is not None


def is_mark_file(path: str) -> bool:
    """Whether `path`, relative to a results folder, is a statement about a run or a change, see harness.store.marks."""
    return _MARK.fullmatch(path) is not None


def kind_of(names: Collection[str]) -> Kind[Any] | None:
    """What a folder with these files is; None: nothing that is copied."""
    return next((kind for kind in _COPIED if kind.file in names), None)


@dataclass(frozen=True, kw_only=True)
class Contents:
    """What a folder holds; paths are relative to it."""

    kind: Kind[Any] | None
    known: dict[str, int]  # The files that the harness writes, by path, with their bytes

    @property
    def finished(self) -> bool:
        """Whether nothing will be written into it any more."""
        return self.kind not in (RUN, None) or FINISHED_FILE in self.known

    @property
    def bytes(self) -> int:
        """Of the known files."""
        return sum(self.known.values())


def look_into(folder: Path) -> Contents:
    """List a folder without following a link or opening a file."""
    known: dict[str, int] = {}
    if folder.is_symlink():
        raise RunError(f"{folder}: is a symbolic link, which is not followed; give the folder itself")
    try:
        for below, folders, files in os.walk(folder, onerror=_raise):
            for file in (Path(below, name) for name in (*folders, *files)):
                path, status = file.relative_to(folder).as_posix(), file.lstat()
                if stat.S_ISDIR(status.st_mode):
                    continue
                if not stat.S_ISREG(status.st_mode):
                    what = "a symbolic link" if stat.S_ISLNK(status.st_mode) else "a pipe, a socket or a device"
                    raise RunError(f"{folder}: {shown(path)} is {what}, which no run has; take it away")
                if is_known(path):
                    known[path] = status.st_size
    except OSError as error:
        raise RunError(f"{folder}: cannot be listed ({error.strerror}); mend its permissions") from None
    if len(telling := [kind.file for kind in _COPIED if kind.file in known]) > 1:
        raise RunError(f"{folder}: has both {telling[0]} and {telling[1]}, which no folder does; look at it")
    return Contents(kind=kind_of(known), known=dict(sorted(known.items())))


def _raise(error: OSError) -> None:
    raise error


# --- Names ---

LATEST = "latest"
_BEFORE = re.compile(r"@-([1-9]\d{0,5})")
_SHOWN = 3
# Of those that lie in a results folder; one that stays where it was made may go on, and is known by what it began with.
_FILES: dict[KindName, str] = {
    kind.name: kind.file if kind.files else kind.begun_file for kind in KINDS if kind is not TUNING
}
# Of those that a command goes on with by other files than they have in the end.
_UNFINISHED: dict[KindName, str] = {kind.name: kind.begun_file for kind in _COPIED if kind.begun_file}


def find_folder(
    name: str | Path, results: Path = Path("results"), *, kind: KindName | None = None, unfinished: bool = False
) -> Path:
    """The folder that a user means."""
    path = Path(name)
    if path.exists():
        return path
    folder = results if path.parent == Path() else path.parent
    wanted = kind or "run" if unfinished else kind
    if unfinished and wanted in _UNFINISHED:
        begun = _names_with(folder, (_UNFINISHED[wanted],))
        found = [other for other in begun if not (folder / other / _FILES[wanted]).is_file()]
    else:
        found = folder_names(folder, wanted)
        found = [other for other in found if not unfinished or not (folder / other / FINISHED_FILE).exists()]
    if path.name == LATEST or _BEFORE.fullmatch(path.name):
        back = 0 if path.name == LATEST else int(path.name.removeprefix("@-"))
        dated = (other for other in reversed(found) if is_id(other) and not _is_of_a_comparison(folder / other))
        meant = next(islice(dated, back, None), None)
        if meant is None:
            what = f"{'unfinished ' * unfinished}{wanted or 'run, comparison, explanation or bisect'}"
            raise UsageError(f"{name}: {folder} has no {what} that it could mean; {what_is_there(folder)}")
        return folder / meant
    if path.name in found:
        return folder / path.name
    begun = [other for other in found if other.startswith(path.name)] if path.name else []
    if len(begun) > 1:
        names = ", ".join(begun[:_SHOWN]) + (f" and {len(begun) - _SHOWN} more" if len(begun) > _SHOWN else "")
        raise UsageError(f"{name}: begins the names of {names} in {folder}; give more of the one you mean")
    return folder / begun[0] if begun else path


def _is_of_a_comparison(folder: Path) -> bool:
    """Whether a run was made by a command that has a result of its own, so that nobody means it by `latest`."""
    try:
        header = json.loads((folder / RUN.file).read_bytes())
        return header["settings"]["purpose"] in ("compare", "selfcheck")
    except (OSError, ValueError, LookupError, TypeError):  # a comparison, an older run, or one whose reader will say so
        return False


def complete_folders(_: object) -> list[str]:
    """What a shell offers where one of them is asked for: names below `results`, newest first."""
    return [LATEST, *(f"results/{name}" for name in reversed(folder_names(Path("results"))))]


# Of an option or an argument that is one of them.
NAMED = Parameter(completer=complete_folders)


def folder_names(results: Path, kind: KindName | None = None) -> list[str]:
    """Names of what a results folder holds of a kind, or of all, oldest first; none where there is no such folder."""
    return _names_with(results, _FILES.values() if kind is None else (_FILES[kind],))


def _names_with(results: Path, files: Collection[str]) -> list[str]:
    """Names of the folders that have one of these files."""
    try:
        return sorted(path.name for path in results.iterdir() if any((path / file).is_file() for file in files))
    except OSError:
        return []
