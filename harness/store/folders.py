"""What the folder of a run, a comparison or an explanation may hold, and a look at one that does not trust it."""

from __future__ import annotations

import os
import re
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from harness.errors import RunError
from harness.store.comparison_directory import COMPARISON_FILE, COMPARISON_FILES
from harness.store.explanation_directory import EXPLANATION_FILE, EXPLANATION_FILES
from harness.store.files import FINISHED_FILE
from harness.store.run_directory import HEADER_FILE, file_names
from harness.text import shown

Kind = Literal["run", "comparison", "explanation"]

HISTORY_FOLDER = "history"
PUBLISHED_FOLDER = "published"
MARKS_FOLDER = "marks"
# Of a results folder, beside its runs and comparisons.
BESIDE = (HISTORY_FOLDER, PUBLISHED_FOLDER, MARKS_FOLDER)
# About 20 million turns: a folder is read as a whole before it is let in.
FOLDER_LIMIT_BYTES = 2 * 2**30
# A log for each case of the largest plan that the harness is measured with.
FILES_LIMIT = 100_000

# As harness.store.run_directory.new_run_id makes them, from suite names of harness/suite/schema.py.
_ID = re.compile(r"[0-9]{8}-[0-9]{6}-[A-Za-z0-9][A-Za-z0-9._+-]{0,199}")
# As users rename folders; nothing that means something to a file system or a shell.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+@,-]{0,219}")
_LOG = re.compile(r"logs/[A-Za-z0-9_+@,-][A-Za-z0-9._+@,-]{0,250}\.txt")
_TABLE = r"(runs|points|cases|turns|comparisons)"
_TABLES = re.compile(rf"tables/{_TABLE}\.parquet")
_PART = re.compile(
    rf"history/(index\.json|{_TABLE}/[A-Za-z0-9][A-Za-z0-9._+-]*\.parquet"
    rf"|tables-[0-9a-f]{{8}}/({_TABLE}\.parquet|finished\.json))"
)
_MARK = re.compile(rf"{MARKS_FOLDER}/[0-9]{{8}}-[0-9]{{6}}-[0-9a-f]{{16}}\.json")


@dataclass(frozen=True, kw_only=True)
class Contents:
    """What a folder holds; paths are relative to it."""

    kind: Kind | None
    known: dict[str, int]  # Files of its kind, by path, with their bytes
    unknown: tuple[str, ...]  # Other files, which the harness does not write

    @property
    def finished(self) -> bool:
        """Whether nothing will be written into it any more."""
        return self.kind in ("comparison", "explanation") or FINISHED_FILE in self.known

    @property
    def bytes(self) -> int:
        """Of the known files."""
        return sum(self.known.values())

    @property
    def beside(self) -> str:
        """What else it holds, in words; "" where that is nothing."""
        more = f" and {len(self.unknown) - 1} more" if len(self.unknown) > 1 else ""
        return f"{shown(self.unknown[0])}{more}" if self.unknown else ""


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
    """Whether `path`, relative to its folder, is a file of its tables, which a run of an old harness gets later."""
    return _TABLES.fullmatch(path) is not None


def is_history_file(path: str) -> bool:
    """Whether `path`, relative to a results folder, is one of the compacted history's."""
    return _PART.fullmatch(path) is not None


def is_mark_file(path: str) -> bool:
    """Whether `path`, relative to a results folder, is a statement about a run or a change, see harness.store.marks."""
    return _MARK.fullmatch(path) is not None


_KNOWN = frozenset((*file_names(), *COMPARISON_FILES, *EXPLANATION_FILES))
_KINDS: dict[str, Kind] = {
    COMPARISON_FILE: "comparison",
    EXPLANATION_FILE: "explanation",
    HEADER_FILE: "run",
}


def kind_of(names: set[str]) -> Kind | None:
    """What a folder with these files is; None: nothing that the harness made."""
    return next((kind for file, kind in _KINDS.items() if file in names), None)


def look_into(folder: Path) -> Contents:
    """List a folder without following a link or opening a file."""
    known: dict[str, int] = {}
    unknown: list[str] = []
    waiting = [""]
    try:
        if stat.S_ISLNK(folder.lstat().st_mode):
            raise RunError(f"{folder}: is a symbolic link, which is not followed; give the folder itself")
        while waiting:
            below = waiting.pop()
            with os.scandir(folder / below) as entries:
                for entry in entries:
                    path = f"{below}{entry.name}"
                    mode = entry.stat(follow_symlinks=False).st_mode
                    if stat.S_ISDIR(mode):
                        waiting.append(f"{path}/")
                    elif not stat.S_ISREG(mode):
                        what = "a symbolic link" if stat.S_ISLNK(mode) else "a pipe, a socket or a device"
                        raise RunError(f"{folder}: {shown(path)} is {what}, which no run has; take it away")
                    elif is_known(path):
                        known[path] = entry.stat(follow_symlinks=False).st_size
                    elif not entry.name.startswith("."):  # locks, and files that were being written
                        unknown.append(path)
                    if len(known) + len(unknown) + len(waiting) > FILES_LIMIT:
                        raise RunError(f"{folder}: holds more than {FILES_LIMIT:,} files, which no run does")
    except OSError as error:
        raise RunError(f"{folder}: cannot be listed ({error.strerror}); mend its permissions") from None
    if len(telling := [file for file in reversed(_KINDS) if file in known]) > 1:
        raise RunError(f"{folder}: has both {telling[0]} and {telling[1]}, which no folder does; look at it")
    return Contents(kind=kind_of(set(known)), known=dict(sorted(known.items())), unknown=tuple(sorted(unknown)))
