"""Places that results lie at: a local folder, or any URL that fsspec reads; nobody ever sees half of a copy."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from harness.cache import held
from harness.errors import RunError, UsageError
from harness.store.files import (
    CHUNK_BYTES,
    DROPPED_FILE,
    FINISHED_FILE,
    STAGING_PREFIX,
    TURNS_FILE,
    FileRecord,
    describe_file,
    open_plain,
    read_dropped,
    reading,
    staging,
    writing,
)
from harness.store.folders import (
    BESIDE,
    FOLDER_LIMIT_BYTES,
    Contents,
    is_name,
    is_table,
    kind_of,
    look_into,
)
from harness.store.kinds import COMPARISON, EXPLANATION
from harness.text import shown

_CREDENTIALS = re.compile(r"//[^/@]*@")
_LOCK_FILE = ".archive.lock"


def is_url(place: str) -> bool:
    """Whether a place is one of fsspec's, and no path."""
    return "://" in place or "::" in place


def without_password(place: str) -> str:
    """A URL that may be shown."""
    return _CREDENTIALS.sub("//...@", place)


@contextlib.contextmanager
def archive_lock(results: Path) -> Iterator[None]:
    """Be the only process that changes a results folder; what a killed one left half copied is removed."""

    def tell() -> None:
        sys.stderr.write(f"Waiting for another harness that changes {results}.\n")

    with contextlib.ExitStack() as stack:
        with writing(results):
            results.mkdir(parents=True, exist_ok=True)
            stack.enter_context(held(results / _LOCK_FILE, tell))
        for left in results.glob(f"{STAGING_PREFIX}*"):
            shutil.rmtree(left, ignore_errors=True)
        yield


def require_size(folder: Path, contents: Contents) -> None:
    """Refuse a folder that is larger than a run can be."""
    if contents.bytes > FOLDER_LIMIT_BYTES:
        largest = max(contents.known, key=lambda name: contents.known[name])
        raise RunError(
            f"{folder / largest}: makes this folder {contents.bytes / 2**30:,.1f} GiB, and more than "
            f"{FOLDER_LIMIT_BYTES / 2**30:g} GiB is not copied; look at what is in it"
        )


def same_content(folder: Path, other: Path) -> bool:
    """Whether two folders are the same run or comparison, byte by byte; raw turns may have been dropped from either."""
    return _described(folder) == _described(other)


def _described(folder: Path) -> dict[str, FileRecord]:
    # Tables follow from the records, and only one of two copies may have been read since.
    names = [name for name in look_into(folder).known if name != DROPPED_FILE and not is_table(name)]
    found = {name: describe_file(folder / name) for name in names}
    if (dropped := read_dropped(folder)) is not None:
        found[TURNS_FILE] = dropped.turns
    return found


def _copy_file(source: Path, target: Path) -> None:
    """Copy one plain file; a link that has come to its place meanwhile is refused."""
    with reading(source):
        stream = open_plain(source, follow=False)
    with stream, writing(target):
        target.parent.mkdir(exist_ok=True)
        size = 0
        with target.open("xb") as copy:
            while chunk := stream.read(CHUNK_BYTES):
                size += len(chunk)
                if size > FOLDER_LIMIT_BYTES:
                    raise RunError(f"{source}: has grown while it was copied; try again")
                copy.write(chunk)


def in_order(paths: Iterable[str]) -> list[str]:
    """Files in the order in which they may appear: what makes a folder or a set of tables a whole one comes last."""
    last = ("runs.parquet", "comparisons.parquet", FINISHED_FILE, COMPARISON.file, EXPLANATION.file)

    def position(path: str) -> int:
        name = path.rpartition("/")[2]
        return last.index(name) if name in last else -1

    return sorted(paths, key=lambda path: (position(path), path))


class Place:
    """Where a results folder lies: a folder of this machine, which is read where it lies; a URL has a subclass.

    Attributes:
        address: As the user gave it, without a password.
        local: The folder that holds the runs; of a URL, a mirror that `fetch` fills.
        refused: Folders and files that are not read, by name, and why.
    """

    def __init__(self, address: str, local: Path) -> None:
        self.address = address
        self.local = local
        self.refused: dict[str, str] = {}

    def names(self) -> list[str]:
        """Folders of runs and comparisons, finished or not, sorted; those of a URL need not be in the mirror yet."""
        found = []
        try:
            with os.scandir(self.local) as entries:
                for entry in sorted(entries, key=lambda entry: entry.name):
                    beside = entry.name.startswith(".") or entry.name in BESIDE
                    if beside or not entry.is_dir():
                        continue
                    if entry.is_symlink():
                        self.refused[entry.name] = "is a symbolic link, which is not followed"
                    elif not is_name(entry.name):
                        self.refused[entry.name] = f"{shown(entry.name)!r} is no name of a run"
                    elif _is_candidate(entry):
                        found.append(entry.name)
        except FileNotFoundError:
            raise UsageError(f"{self.address}: there is no such folder; give one that holds runs") from None
        except OSError as error:
            raise RunError(
                f"{self.address}: cannot be listed ({error.strerror}); give a folder that holds runs"
            ) from None
        return found

    def fetch(self, names: Iterable[str] | None = None) -> None:
        """Bring folders into `local`, which has nothing to do where they lie there.

        A folder that has not changed is not fetched again; for one that is refused, `refused` says why.
        """

    def fetch_history(self) -> None:
        """Bring the compacted history into `local`, if there is one."""

    def fetch_marks(self) -> None:
        """Bring what was said of runs and changes into `local`, if there is anything."""

    def put(self, folder: Path, check: Callable[[Path], None] | None = None) -> bool:
        """Copy a run's or a comparison's folder to this place under its name; False: the same one is there already."""
        contents = look_into(folder)
        require_size(folder, contents)
        target = self.local / folder.name
        with archive_lock(self.local):
            if target.exists() or target.is_symlink():
                if not same_content(folder, target):
                    raise RunError(
                        f"{self.address.rstrip('/')}/{folder.name}: is there already with other content; "
                        "compare the two, and rename or delete one"
                    )
                return False
            with writing(target), staging(self.local) as copy:
                for name in contents.known:
                    _copy_file(folder / name, copy / name)
                if check is not None:
                    check(copy)
                self._upload(copy, folder.name, contents)
                copy.rename(target)
        return True

    def _upload(self, copy: Path, name: str, contents: Contents) -> None:
        """Bring a new folder to where others see it, beyond `local`."""

    def apply(self, written: Iterable[str], removed: Iterable[str]) -> None:
        """Do at the place what was done in `local`: upload files, what makes others whole last, then delete others."""


def _is_candidate(entry: os.DirEntry[str]) -> bool:
    """Whether a folder may be a run or a comparison, perhaps one that was only begun."""
    try:
        return kind_of(set(os.listdir(entry.path))) is not None  # noqa: PTH208 (names alone are wanted)
    except OSError:
        return True  # reading it says why it cannot be
