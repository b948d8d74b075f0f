"""A results folder behind a URL: its folders are mirrored into the cache folder, each fetched once and as a whole.

A listing may say anything: only names that the harness gives are let through.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any
from urllib.parse import unquote

from harness.cache import cache_root, read_memo, write_atomically, write_memo
from harness.errors import HarnessError, RunError, UsageError
from harness.store.files import FINISHED_FILE
from harness.store.folders import (
    FOLDER_LIMIT_BYTES,
    HISTORY_FOLDER,
    is_history_file,
    is_known,
    is_name,
    kind_of,
    look_into,
)
from harness.store.place import (
    STAGING_PREFIX,
    OnProgress,
    archive_lock,
    in_order,
    require_size,
    same_content,
    staged,
    unwritable,
    without_password,
)
from harness.text import one_line, shown

# A hundred thousand links of a hundred bytes, several times over.
PAGE_LIMIT_BYTES = 64 * 2**20
_CHUNK_BYTES = 2**20
# These list everything below a prefix at once; others are walked, folder by folder.
_FLAT = frozenset({"s3", "s3a", "gs", "gcs", "abfs", "az", "adl"})
_DEPTH = 3  # <run>/logs/<file> and history/<table>/<part>
# What file systems of fsspec call a file's version or time, the surest first.
_STAMPS = ("ETag", "etag", "md5Hash", "content_md5", "CRC", "mtime", "LastModified", "last_modified", "updated")
_STAMPS_FILE = ".fetched.json"


def web_options(place: str) -> dict[str, Any]:
    """What fsspec's file system of http is opened with; nothing for another one.

    Raises:
        ImportError: What reads http is not installed.
    """
    if not place.startswith(("http://", "https://")):
        return {}
    from aiohttp import ClientResponse

    class Bounded(ClientResponse):
        async def text(self, encoding: str | None = None, errors: str = "strict") -> str:
            """All of a page, as fsspec asks for those that list folders."""
            page = bytearray()
            async for chunk in self.content.iter_chunked(_CHUNK_BYTES):
                page += chunk
                if len(page) > PAGE_LIMIT_BYTES:
                    raise RunError(f"{self.url}: lists more than {PAGE_LIMIT_BYTES / 2**20:g} MiB; look at what it is")
            return page.decode(encoding or self.charset or "utf-8", errors)

    return {"client_kwargs": {"response_class": Bounded}}


@dataclass(frozen=True, kw_only=True)
class RemoteFile:
    """One file of a listing.

    Attributes:
        path: As its file system wants it.
        bytes: None where the listing does not say.
        stamp: Size and version, as text; they change where the file does.
    """

    path: str
    bytes: int | None
    stamp: str

    def same_as(self, known: object, *, fixed: bool) -> bool:
        """Whether it is the file that was fetched with that stamp.

        Args:
            fixed: Whether such a file never changes, so that it is one of which nothing is told.
        """
        return self.stamp == known and (fixed or self.stamp != "")


@dataclass(frozen=True, kw_only=True)
class Listing:
    """What lies at a place.

    Attributes:
        folders: Of runs and comparisons: their files by path in the folder.
        history: Files of the compacted history, by path.
        refused: Names that no run of the harness has, and why they are not read.
    """

    folders: Mapping[str, dict[str, RemoteFile]]
    history: Mapping[str, RemoteFile]
    refused: Mapping[str, str]


def list_remote(system: Any, root: str, address: str, *, may_be_new: bool = False) -> Listing:
    """List a place.

    Args:
        system: A file system of fsspec.
        root: The place's path in it, without a slash at its end.
        address: What it is called in messages.
        may_be_new: Whether a place where nothing is yet is one all the same.

    Raises:
        RunError: There is nothing there, or it cannot be reached.
    """
    protocols = {system.protocol} if isinstance(system.protocol, str) else set(system.protocol)
    depth = None if protocols & _FLAT else _DEPTH
    found: Mapping[str, Mapping[str, Any]] = system.find(root, maxdepth=depth, detail=True)
    if not found and not may_be_new and not system.exists(root):
        _require_answer(system, root, address)
        raise RunError(f"{address}: there is nothing there; give a folder that holds runs")
    web = bool(protocols & {"http", "https"})
    folders: dict[str, dict[str, RemoteFile]] = {}
    history: dict[str, RemoteFile] = {}
    refused: dict[str, str] = {}
    for path, info in found.items():
        inner = path[len(root) :].lstrip("/") if path.startswith(root) else path
        name, _, below = (unquote(inner) if web else inner).partition("/")
        if name == ".." or (not name and below):
            refused[shown(inner)] = "leads out of the place"
            continue
        if not below or name.startswith("."):
            continue  # beside the folders, or hidden
        file = RemoteFile(path=path, bytes=_size(info), stamp=_stamp(info))
        if is_history_file(f"{name}/{below}"):
            history[f"{name}/{below}"] = file
        elif not is_name(name):
            if kind_of({below}) is not None:
                refused[name] = f"{shown(name)!r} is no name of a run"
        elif info.get("islink"):
            refused[name] = f"{shown(below)} is a symbolic link, which is not followed"
        elif ".." in below.split("/") or "\\" in below:
            refused[name] = f"{shown(below)} leads out of its folder"
        elif is_known(below):
            folders.setdefault(name, {})[below] = file
    kept = {name: files for name, files in folders.items() if name not in refused and kind_of(set(files)) is not None}
    return Listing(folders=kept, history=history, refused=refused)


def _require_answer(system: Any, root: str, address: str) -> None:
    """Tell a place that does not answer from one that is empty: `find` and `exists` take both for nothing.

    Raises:
        RunError: It cannot be reached.
    """
    try:
        system.ls(root, detail=False)
    except (FileNotFoundError, NotADirectoryError):
        return
    except Exception as error:  # every file system has exceptions of its own
        why = without_password(one_line(str(error) or type(error).__name__))[:300]
        raise RunError(
            f"{address}: cannot be reached ({why}); check the address, the network and your rights"
        ) from None


def _size(info: Mapping[str, Any]) -> int | None:
    size = info.get("size")
    return size if isinstance(size, int) and size >= 0 else None


def _stamp(info: Mapping[str, Any]) -> str:
    """Size and version; "" where the listing tells neither, so that the file is fetched again."""
    version = next((str(info[key]) for key in _STAMPS if info.get(key) is not None), "")
    size = _size(info)
    return f"{size} {version}" if version or size is not None else ""


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


def open_remote(place: str, mirror: Path | None = None) -> RemotePlace:
    """Open a URL of fsspec.

    Args:
        mirror: Where folders are fetched to; None: a folder of the cache.

    Raises:
        UsageError: No such protocol, or what reads it is not installed.
        RunError: It cannot be listed.
    """
    import fsspec
    from fsspec.core import url_to_fs

    address = without_password(place)
    try:
        system, root = url_to_fs(place, **web_options(place))
    except ImportError as error:
        raise UsageError(f"{address}: {_install(place, str(error))}") from None
    except ValueError as error:
        known = ", ".join(f"{name}://" for name in ("s3", "gs", "http", "sftp", "zip"))
        raise UsageError(f"{address}: {one_line(str(error))}; give a path, or a URL of fsspec ({known}, ...)") from None
    except Exception as error:  # every file system has exceptions of its own
        raise unreadable(address, error) from None
    if isinstance(system, fsspec.get_filesystem_class("dir")) and root == system.path:
        root = ""  # of `dir::file:///folder`, which is itself the root
    return RemotePlace(address, system, root, mirror or cache_root() / "places" / _digest(place))


def _digest(place: str) -> str:
    return hashlib.sha256(place.encode()).hexdigest()[:16]


def _install(place: str, message: str) -> str:
    """What is missing, and the command that installs it."""
    packages = {"s3": "s3fs", "s3a": "s3fs", "gs": "gcsfs", "gcs": "gcsfs", "http": "aiohttp", "https": "aiohttp"}
    packages |= {"abfs": "adlfs", "az": "adlfs", "sftp": "paramiko", "ssh": "paramiko", "smb": "smbprotocol"}
    missing = [package for scheme, package in packages.items() if f"{scheme}://" in place]
    if not missing:
        return f"cannot be read with what is installed ({one_line(message)}); install what it names"
    return f"needs the package {missing[-1]}, which is not installed: pip install {missing[-1]}"
