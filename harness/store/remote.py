"""A results folder behind a URL: its folders are mirrored into the cache folder, each fetched once and as a whole."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from harness.cache import read_memo, write_atomically, write_memo
from harness.errors import HarnessError, RunError
from harness.store.address import OnProgress, without_password
from harness.store.folders import FOLDER_LIMIT_BYTES, HISTORY_FOLDER, kind_of, look_into
from harness.store.listing import Listing, RemoteFile, list_remote
from harness.store.manifest import FINISHED_FILE
from harness.store.transfer import (
    STAGING_PREFIX,
    archive_lock,
    in_order,
    require_size,
    same_content,
    staged,
    unwritable,
)
from harness.text import one_line, shown

_CHUNK_BYTES = 2**20
_STAMPS_FILE = ".fetched.json"


class RemotePlace:
    """A results folder behind a URL; see harness.store.place.Place."""

    def __init__(self, address: str, system: Any, root: str, mirror: Path) -> None:
        self.address = address
        self.local = mirror
        self.refused: dict[str, str] = {}
        self._system = system
        self._root = root.rstrip("/")
        self._listed: Listing | None = None
        self._added: set[str] = set()  # by `put`, since it was listed

    def names(self) -> list[str]:
        """Folders of runs and comparisons there, as they were when this was first asked."""
        return sorted({*self._listing().folders, *self._added})

    def fetch(self, names: Iterable[str] | None = None, on_progress: OnProgress | None = None) -> None:
        """Bring folders into the mirror; a folder that is refused is left out, and `refused` says why."""
        if names is None:
            self.fetch_history()
            names = self.names()
        names = list(names)
        if not self._added.isdisjoint(names):
            self._listed = None
        folders = self._listing().folders
        with self._locked():
            for name in names:
                if name in folders:
                    if on_progress is not None:
                        on_progress(name)
                    try:
                        self._fetch_folder(name, folders[name])
                    except RunError as error:  # the others may be sound
                        self.refused[name] = str(error)

    def fetch_history(self) -> None:
        """Bring the compacted history into the mirror, its index last."""
        files = self._listing().history
        with self._locked():
            known = read_memo(self.local / _STAMPS_FILE) or {}
            for path in sorted(files, key=lambda path: path.endswith(".json")):
                target = self.local / path
                if not (target.is_file() and files[path].same_as(known.get(path), fixed=path.endswith(".parquet"))):
                    self._fetch_file(files[path], target)
            write_memo(self.local / _STAMPS_FILE, {path: one.stamp for path, one in files.items()})
            for file in [file for file in (self.local / HISTORY_FOLDER).rglob("*") if file.is_file()]:
                if file.relative_to(self.local).as_posix() not in files:
                    file.unlink()

    def put(self, folder: Path, check: Callable[[Path], None] | None = None) -> bool:
        """Upload a folder; what makes it a finished one goes last."""
        contents = look_into(folder)
        require_size(folder, contents)
        if folder.name in self._added or folder.name in self._listing(may_be_new=True).folders:
            self.fetch([folder.name])
            if not same_content(folder, self.local / folder.name):
                raise RunError(
                    f"{self.address}: {folder.name} is there already with other content; compare the two, and rename "
                    "or delete one"
                )
            return False
        with self._locked(), staged(folder, contents, self.local) as copy:
            if check is not None:
                check(copy)
            self._upload({f"{folder.name}/{name}": copy / name for name in in_order(contents.known)})
        self._added.add(folder.name)
        return True

    def apply(self, written: Iterable[str], removed: Iterable[str]) -> None:
        """Upload files of the mirror, then delete others at the place."""
        self._upload({path: self.local / path for path in written})
        for path in removed:
            with self._told_writing():
                self._system.rm_file(self._path(path))
        self._listed = None

    def _listing(self, *, may_be_new: bool = False) -> Listing:
        if self._listed is None:
            with self._told_reading():
                self._system.invalidate_cache()  # listings are kept as long as the process, and a place gains runs
                self._listed = list_remote(self._system, self._root, self.address, may_be_new=may_be_new)
            self._added.clear()
            self.refused.update(self._listed.refused)
            self._forget_others(set(self._listed.folders))
        return self._listed

    def _forget_others(self, names: set[str]) -> None:
        """Remove from the mirror what is no longer at the place."""
        for folder in self.local.glob("*"):
            if folder.is_dir() and folder.name not in names and folder.name != HISTORY_FOLDER:
                shutil.rmtree(folder, ignore_errors=True)

    def _fetch_folder(self, name: str, files: dict[str, RemoteFile]) -> None:
        target = self.local / name
        known = read_memo(target / _STAMPS_FILE) or {}
        # Not every listing tells versions; what is finished does not change then either.
        fixed = kind_of(set(files)) == "comparison" or FINISHED_FILE in files
        if known.keys() == files.keys() and all(files[path].same_as(known[path], fixed=fixed) for path in files):
            return
        size = sum(one.bytes or 0 for one in files.values())
        if size > FOLDER_LIMIT_BYTES:
            self.refused[name] = (
                f"is {size / 2**30:,.1f} GiB, and more than {FOLDER_LIMIT_BYTES / 2**30:g} GiB is not fetched"
            )
            return
        copy = Path(tempfile.mkdtemp(prefix=STAGING_PREFIX, dir=self.local))
        try:
            for path, one in files.items():
                self._fetch_file(one, copy / path)
            write_memo(copy / _STAMPS_FILE, {path: one.stamp for path, one in files.items()})
            if target.exists():
                shutil.rmtree(target)
            copy.rename(target)
        except OSError as error:
            raise unwritable(target, error) from None
        finally:
            shutil.rmtree(copy, ignore_errors=True)

    def _fetch_file(self, one: RemoteFile, target: Path) -> None:
        """Fetch one file, and no more bytes than a folder may have, whatever the listing said."""
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary = target.with_name(f".fetching-{target.name[:200]}")
        size = 0
        try:
            with temporary.open("wb") as file, self._told_reading(), self._system.open(one.path, "rb") as stream:
                while chunk := stream.read(_CHUNK_BYTES):
                    size += len(chunk)
                    if size > FOLDER_LIMIT_BYTES:
                        raise RunError(f"{self.address}: {shown(one.path)} is larger than a run can be; look at it")
                    _write(file, chunk, target)
            if one.bytes is not None and size != one.bytes:
                raise RunError(
                    f"{self.address}: {shown(one.path)} has {size} bytes, and {one.bytes} were announced; try again"
                )
            temporary.replace(target)
        finally:
            temporary.unlink(missing_ok=True)

    def _upload(self, files: dict[str, Path]) -> None:
        for path, file in files.items():
            with self._told_writing():
                remote = self._path(path)
                self._system.makedirs(remote.rsplit("/", 1)[0], exist_ok=True)
                self._system.put_file(str(file), remote)

    def _path(self, path: str) -> str:
        return f"{self._root}/{path}" if self._root else path

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """One process at a time changes a mirror."""
        try:
            self.local.mkdir(parents=True, exist_ok=True)
            if not (self.local / ".address.json").is_file():
                write_atomically(self.local / ".address.json", json.dumps(self.address).encode())
        except OSError as error:
            raise unwritable(self.local, error) from None
        with archive_lock(self.local):
            yield

    @contextmanager
    def _told_reading(self) -> Iterator[None]:
        try:
            yield
        except HarnessError:
            raise
        except Exception as error:
            raise unreadable(self.address, error) from None

    @contextmanager
    def _told_writing(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            why = one_line(f"{type(error).__name__}: {error}")[:300]
            raise RunError(f"{self.address}: cannot be written ({why}); check the address and your rights") from None


def _write(file: IO[bytes], chunk: bytes, target: Path) -> None:
    try:
        file.write(chunk)
    except OSError as error:
        raise unwritable(target, error) from None


def unreadable(address: str, error: Exception) -> RunError:
    """What is said where a file system of fsspec raises one of its own exceptions."""
    why = without_password(one_line(f"{type(error).__name__}: {error}"))[:300]
    return RunError(f"{address}: cannot be read ({why}); check the address, the network and your rights")
