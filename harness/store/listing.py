"""What lies below a URL, from a listing that may say anything: only names that the harness gives are let through."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from harness.errors import RunError
from harness.store.address import without_password
from harness.store.folders import is_history_file, is_known, is_name, kind_of
from harness.text import one_line, shown

# These list everything below a prefix at once; others are walked, folder by folder.
_FLAT = frozenset({"s3", "s3a", "gs", "gcs", "abfs", "az", "adl"})
_DEPTH = 3  # <run>/logs/<file> and history/<table>/<part>
# What file systems of fsspec call a file's version or time, the surest first.
_STAMPS = ("ETag", "etag", "md5Hash", "content_md5", "CRC", "mtime", "LastModified", "last_modified", "updated")


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
