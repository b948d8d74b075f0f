"""Places that results lie at: a local folder, or any URL that fsspec reads, mirrored into the cache folder."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Protocol

from harness.errors import RunError, UsageError
from harness.store.address import OnProgress, is_url
from harness.store.folders import HISTORY_FOLDER, PUBLISHED_FOLDER, is_name, kind_of, look_into
from harness.store.transfer import archive_lock, move_into_place, require_size, same_content, staged
from harness.text import shown

_LOCAL_SCHEMES = ("file://", "local://")


class Place(Protocol):
    """Where a results folder lies.

    Attributes:
        address: As the user gave it, without a password.
        local: A folder of this machine that holds the runs; of a URL, a mirror that `fetch` fills.
        refused: Folders and files that are not read, by name, and why.
    """

    address: str
    local: Path
    refused: dict[str, str]

    def names(self) -> list[str]:
        """Folders of runs and comparisons, finished or not, sorted; those of a URL need not be in the mirror yet."""

    def fetch(self, names: Iterable[str] | None = None, on_progress: OnProgress | None = None) -> None:
        """Bring folders into `local`; what is there and has not changed is not fetched again.

        Args:
            names: None: the compacted history, and all folders that are not in it.
            on_progress: Told each name.

        Raises:
            RunError: The place cannot be read.
        """

    def fetch_history(self) -> None:
        """Bring the compacted history into `local`, if there is one."""

    def put(self, folder: Path, check: Callable[[Path], None] | None = None) -> bool:
        """Copy a run's or a comparison's folder to this place under its name; False: the same one is there already.

        Args:
            check: Called with the copy before anybody can see it; what it raises is raised, and nothing is kept.

        Raises:
            RunError: Another one of that name is there, it holds a link, or the place cannot be written.
        """

    def apply(self, written: Iterable[str], removed: Iterable[str]) -> None:
        """Do at the place what was done in `local`: upload these files, in this order, then delete those.

        Args:
            written: Paths relative to the place.
            removed: Likewise.

        Raises:
            RunError: The place cannot be written.
        """


def open_place(place: str, *, mirror: Path | None = None) -> Place:
    """Open a results folder, wherever it is.

    Args:
        place: A path, or a URL of fsspec such as `s3://bucket/results` or `zip://::results.zip`.
        mirror: Where a URL's folders are fetched to; None: a folder of the cache, so that they are fetched once.

    Raises:
        UsageError: No such protocol, or what reads it is not installed; the message has the command that installs it.
        RunError: It cannot be listed.
    """
    if not is_url(place):
        return LocalPlace(place, Path(place))
    from harness.store.open_remote import open_remote

    if "::" not in place and place.startswith(_LOCAL_SCHEMES):
        from fsspec.implementations.local import LocalFileSystem

        return LocalPlace(place, Path(str(LocalFileSystem._strip_protocol(place))))
    return open_remote(place, mirror)


class LocalPlace:
    """A folder of this machine, which is read where it lies."""

    def __init__(self, address: str, folder: Path) -> None:
        self.address = address
        self.local = folder
        self.refused: dict[str, str] = {}

    def names(self) -> list[str]:
        """Folders of runs and comparisons in it.

        Raises:
            RunError: It cannot be listed.
        """
        found = []
        try:
            with os.scandir(self.local) as entries:
                for entry in sorted(entries, key=lambda entry: entry.name):
                    if (why := _refusal(entry)) is not None:
                        self.refused[entry.name] = why
                    elif _is_candidate(entry):
                        found.append(entry.name)
        except FileNotFoundError:
            raise UsageError(f"{self.address}: there is no such folder; give one that holds runs") from None
        except OSError as error:
            raise RunError(
                f"{self.address}: cannot be listed ({error.strerror}); give a folder that holds runs"
            ) from None
        return found

    def fetch(self, names: Iterable[str] | None = None, on_progress: OnProgress | None = None) -> None:
        """Nothing: they are here."""

    def fetch_history(self) -> None:
        """Nothing: it is here."""

    def put(self, folder: Path, check: Callable[[Path], None] | None = None) -> bool:
        """Copy a folder here under its name, one process at a time."""
        contents = look_into(folder)
        require_size(folder, contents)
        target = self.local / folder.name
        with archive_lock(self.local):
            if target.exists() or target.is_symlink():
                return _require_same(folder, target)
            with staged(folder, contents, self.local) as copy:
                if check is not None:
                    check(copy)
                return move_into_place(copy, target) or _require_same(folder, target)

    def apply(self, written: Iterable[str], removed: Iterable[str]) -> None:
        """Nothing: it was done here."""


def _require_same(folder: Path, target: Path) -> bool:
    if not same_content(folder, target):
        raise RunError(f"{target}: is there already with other content; compare the two, and rename or delete one")
    return False


def _is_candidate(entry: os.DirEntry[str]) -> bool:
    """Whether an entry of a results folder may be a run or a comparison, perhaps one that was only begun."""
    if not is_name(entry.name) or not entry.is_dir(follow_symlinks=False):
        return False
    try:
        return kind_of(set(os.listdir(entry.path))) is not None  # noqa: PTH208 (names alone are wanted)
    except OSError:
        return True  # reading it says why it cannot be


def _refusal(entry: os.DirEntry[str]) -> str | None:
    """Why an entry is not even looked into; None: it is, or is nothing of ours."""
    if entry.name.startswith(".") or entry.name in (HISTORY_FOLDER, PUBLISHED_FOLDER):
        return None
    if entry.is_symlink():
        return "is a symbolic link, which is not followed" if entry.is_dir() else None
    if entry.is_dir() and not is_name(entry.name):
        return f"{shown(entry.name)!r} is no name of a run"
    return None
