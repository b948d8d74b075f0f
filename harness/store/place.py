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
    FINISHED_FILE,
    STAGING_PREFIX,
    FileRecord,
    describe_file,
    open_plain,
    reading,
    staging,
    writing,
)
from harness.store.folders import BESIDE, FOLDER_LIMIT_BYTES, is_name, is_table, kind_of, look_into
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


def same_content(folder: Path, other: Path) -> bool:
    """Whether two folders are the same byte by byte; tables follow from the rest, and one of them may have none yet."""
    return _described(folder) == _described(other)


def _described(folder: Path) -> dict[str, FileRecord]:
    return {name: describe_file(folder / name) for name in look_into(folder).known if not is_table(name)}


def _copy_file(source: Path, target: Path) -> None:
    """Copy one plain file; a link that has come to its place meanwhile is refused."""
    with reading(source):
        stream = open_plain(source, follow=False)
    with stream, writing(target):
        target.parent.mkdir(exist_ok=True)
        with target.open("xb") as copy:
            shutil.copyfileobj(stream, copy)


def in_order(paths: Iterable[str]) -> list[str]:
    """Files in the order in which they may appear: what makes a folder a whole one comes last."""
    last = (FINISHED_FILE, COMPARISON.file, EXPLANATION.file)
    return sorted(paths, key=lambda path: (last.index(path) if path in last else -1, path))


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

    def fetch_marks(self) -> None:
        """Bring what was said of runs and changes into `local`, if there is anything."""

    def put(self, folder: Path, settle: Callable[[Path], None]) -> bool:
        """Copy a run's or a comparison's folder to this place under its name; False: the same one is there already.

        Its tables stay behind. `settle` looks at the copy, which nobody else can change, and gives it tables.
        """
        contents = look_into(folder)
        if contents.bytes > FOLDER_LIMIT_BYTES:
            largest = max(contents.known, key=lambda name: contents.known[name])
            raise RunError(
                f"{folder / largest}: makes this folder {contents.bytes / 2**30:,.1f} GiB, and more than "
                f"{FOLDER_LIMIT_BYTES / 2**30:g} GiB is not copied; look at what is in it"
            )
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
                names = [name for name in contents.known if not is_table(name)]
                for name in names:
                    _copy_file(folder / name, copy / name)
                settle(copy)
                self._upload(copy, folder.name, names)
                copy.rename(target)
        return True

    def _upload(self, copy: Path, name: str, files: Iterable[str]) -> None:
        """Bring files of a new folder to where others see it, beyond `local`."""

    def publish(self, paths: Iterable[str]) -> None:
        """Let others see files that were written in `local`."""


def _is_candidate(entry: os.DirEntry[str]) -> bool:
    """Whether a folder may be a run or a comparison, perhaps one that was only begun."""
    try:
        return kind_of(set(os.listdir(entry.path))) is not None  # noqa: PTH208 (names alone are wanted)
    except OSError:
        return True  # reading it says why it cannot be
