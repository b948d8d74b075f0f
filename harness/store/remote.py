"""A results folder behind a URL: its folders are mirrored into the cache folder, each fetched once and as a whole.

A listing may say anything: only names that the harness gives are let through.
"""

from __future__ import annotations

import contextlib
import hashlib
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from harness.cache import cache_root, read_memo, write_memo
from harness.errors import HarnessError, RunError, UsageError
from harness.store.files import FINISHED_FILE, staging, writing
from harness.store.folders import FOLDER_LIMIT_BYTES, MARKS_FOLDER, is_known, is_mark_file, is_name, kind_of
from harness.store.kinds import RUN
from harness.store.place import Place, archive_lock, in_order, is_url, without_password
from harness.text import one_line, shown

# These list everything below a prefix at once; others are walked, folder by folder.
_FLAT = frozenset({"s3", "s3a", "gs", "gcs", "abfs", "az", "adl"})
_DEPTH = 3  # <run>/logs/<file>
_SIZES_FILE = ".fetched.json"
_LOCAL_SCHEMES = ("file://", "local://")


@dataclass(frozen=True, kw_only=True)
class RemoteFile:
    """One file of a listing."""

    path: str  # As its file system wants it
    bytes: int | None  # None where the listing does not say


# Of runs, of comparisons and of the marks, by name: their files by path in the folder.
Folders = dict[str, dict[str, RemoteFile]]


def list_remote(system: Any, root: str, address: str, *, may_be_new: bool = False) -> tuple[Folders, dict[str, str]]:
    """List a place: its folders, and names that no run of the harness has, with the reason why they are not read."""
    protocols = {system.protocol} if isinstance(system.protocol, str) else set(system.protocol)
    depth = None if protocols & _FLAT else _DEPTH
    found: Mapping[str, Mapping[str, Any]] = system.find(root, maxdepth=depth, detail=True)
    if not found and not may_be_new and not system.exists(root):
        _require_answer(system, root, address)
        raise RunError(f"{address}: there is nothing there; give a folder that holds runs")
    web = bool(protocols & {"http", "https"})
    folders: Folders = {}
    refused: dict[str, str] = {}
    for path, info in found.items():
        inner = path[len(root) :].lstrip("/") if path.startswith(root) else path
        name, _, below = (unquote(inner) if web else inner).partition("/")
        if is_mark_file(f"{name}/{below}") or (is_name(name) and is_known(below)):
            folders.setdefault(name, {})[below] = RemoteFile(path=path, bytes=info.get("size"))
            if info.get("islink"):
                refused[name] = f"{shown(below)} is a symbolic link, which is not followed"
        elif kind_of({below}) is not None and not name.startswith("."):
            refused[shown(name)] = f"{shown(name)!r} is no name of a run"
    read = {
        name: files
        for name, files in folders.items()
        if name not in refused and (name == MARKS_FOLDER or kind_of(files) is not None)
    }
    return read, refused


def _require_answer(system: Any, root: str, address: str) -> None:
    """Tell a place that does not answer from one that is empty: `find` and `exists` take both for nothing."""
    with _explained(address, "reached"), contextlib.suppress(FileNotFoundError, NotADirectoryError):
        system.ls(root, detail=False)


@contextlib.contextmanager
def _explained(address: str, done: str) -> Iterator[None]:
    """Say in one sentence that a place cannot be `done`; file systems of fsspec have exceptions of their own."""
    try:
        yield
    except HarnessError:
        raise
    except Exception as error:
        raise _failed(address, done, error) from None


def _failed(address: str, done: str, error: Exception) -> RunError:
    why = without_password(one_line(f"{type(error).__name__}: {error}"))[:300]
    return RunError(f"{address}: cannot be {done} ({why}); check the address, the network and your rights")


class RemotePlace(Place):
    """A results folder behind a URL."""

    def __init__(self, address: str, system: Any, root: str, mirror: Path) -> None:
        super().__init__(address, mirror)
        self._system = system
        self._root = root.rstrip("/")
        self._folders: Folders | None = None

    def names(self) -> list[str]:
        """Folders of runs and comparisons there, as they were when this was first asked."""
        return sorted(self._listing().keys() - {MARKS_FOLDER})

    def fetch(self, names: Iterable[str] | None = None) -> None:
        """Bring folders into the mirror, each as a whole."""
        folders = self._listing()
        with archive_lock(self.local):
            for name in folders if names is None else names:
                if folders.get(name):
                    try:
                        self._fetch_folder(name, folders[name])
                    except RunError as error:  # the others may be sound
                        self.refused[name] = str(error)

    def fetch_marks(self) -> None:
        """Bring the marks into the mirror."""
        self.fetch([MARKS_FOLDER])

    def put(self, folder: Path, settle: Callable[[Path], None]) -> bool:
        """Upload a folder."""
        self._listing(may_be_new=True)
        self.fetch([folder.name])
        if folder.name in self.refused:
            raise RunError(f"{self.address}: {folder.name} is there, but {self.refused[folder.name]}")
        return super().put(folder, settle)

    def publish(self, paths: Iterable[str]) -> None:
        """Upload files of the mirror."""
        self._upload_files(self.local, "", paths)
        self._folders = None

    def _listing(self, *, may_be_new: bool = False) -> Folders:
        if self._folders is None:
            with _explained(self.address, "read"):
                self._system.invalidate_cache()  # listings are kept as long as the process, and a place gains runs
                self._folders, refused = list_remote(self._system, self._root, self.address, may_be_new=may_be_new)
            self.refused.update(refused)
            for folder in self.local.glob("*"):
                if folder.is_dir() and folder.name not in self._folders:
                    shutil.rmtree(folder, ignore_errors=True)
        return self._folders

    def _fetch_folder(self, name: str, files: Mapping[str, RemoteFile]) -> None:
        """Fetch a folder under a name that nobody reads, then move it; a finished one only where it differs."""
        target = self.local / name
        sizes = {path: file.bytes for path, file in files.items()}
        finished = name == MARKS_FOLDER or kind_of(files) not in (RUN, None) or FINISHED_FILE in files
        if finished and read_memo(target / _SIZES_FILE) == sizes:
            return
        size = sum(file.bytes or 0 for file in files.values())
        if size > FOLDER_LIMIT_BYTES:
            limit = f"{FOLDER_LIMIT_BYTES / 2**30:g} GiB"
            raise RunError(f"{self.address}: {name} is {size / 2**30:,.1f} GiB, and more than {limit} is not fetched")
        with writing(target), staging(self.local) as copy:
            for path, file in files.items():
                (copy / path).parent.mkdir(parents=True, exist_ok=True)
                with _explained(self.address, "read"):
                    self._system.get_file(file.path, str(copy / path))
            write_memo(copy / _SIZES_FILE, sizes)
            if target.exists():
                shutil.rmtree(target)
            copy.rename(target)

    def _upload(self, copy: Path, name: str, files: Iterable[str]) -> None:
        self._upload_files(copy, f"{name}/", files)
        self._listing()[name] = {}  # nothing is left to fetch: the copy becomes the mirror's

    def _upload_files(self, folder: Path, below: str, files: Iterable[str]) -> None:
        """Upload files of a folder, what makes others whole last."""
        with _explained(self.address, "written"):
            for path in in_order(files):
                remote = f"{self._root}/{below}{path}" if self._root else f"{below}{path}"
                self._system.makedirs(remote.rsplit("/", 1)[0], exist_ok=True)
                self._system.put_file(str(folder / path), remote)


def open_place(place: str, *, mirror: Path | None = None) -> Place:
    """Open a results folder, wherever it is."""
    if not is_url(place):
        return Place(place, Path(place))
    if "::" not in place and place.startswith(_LOCAL_SCHEMES):
        from fsspec.implementations.local import LocalFileSystem

        return Place(place, Path(str(LocalFileSystem._strip_protocol(place))))
    return _open_remote(place, mirror)


def _open_remote(place: str, mirror: Path | None = None) -> RemotePlace:
    """Open a URL of fsspec."""
    import fsspec
    from fsspec.core import url_to_fs

    address = without_password(place)
    try:
        system, root = url_to_fs(place)
    except ImportError as error:
        raise UsageError(f"{address}: {_install(place, str(error))}") from None
    except ValueError as error:
        known = ", ".join(f"{name}://" for name in ("s3", "gs", "http", "sftp", "zip"))
        raise UsageError(f"{address}: {one_line(str(error))}; give a path, or a URL of fsspec ({known}, ...)") from None
    except Exception as error:  # every file system has exceptions of its own
        raise _failed(address, "read", error) from None
    if isinstance(system, fsspec.get_filesystem_class("dir")) and root == system.path:
        root = ""  # of `dir::file:///folder`, which is itself the root
    digest = hashlib.sha256(place.encode()).hexdigest()[:16]
    return RemotePlace(address, system, root, mirror or cache_root() / "places" / digest)


def _install(place: str, message: str) -> str:
    """What is missing, and the command that installs it."""
    packages = {"s3": "s3fs", "s3a": "s3fs", "gs": "gcsfs", "gcs": "gcsfs", "http": "aiohttp", "https": "aiohttp"}
    packages |= {"abfs": "adlfs", "az": "adlfs", "sftp": "paramiko", "ssh": "paramiko", "smb": "smbprotocol"}
    missing = [package for scheme, package in packages.items() if f"{scheme}://" in place]
    if not missing:
        return f"cannot be read with what is installed ({one_line(message)}); install what it names"
    return f"needs the package {missing[-1]}, which is not installed: pip install {missing[-1]}"
