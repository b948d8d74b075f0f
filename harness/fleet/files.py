"""Files that an order names: known by place and hash, sent where they are lacking, checked before they are used.

Every file has a place below a host's cache folder. What the asker has anywhere, such as a model's program, lies under
its own hash; a build lies where the content-addressed BuildCache has it, whole; outputs that were right lie under a
hash too. So an order that travels holds paths which are relative to the cache, and each host adds its own.
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
import os
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

from harness.cache import cache_root, trim
from harness.compile import BuildCache
from harness.errors import RunError
from harness.files import file_sha256
from harness.records.run import Build
from harness.verify.kept import LIMIT_BYTES, YOUNG_S

CHUNK_BYTES = 64 * 2**20
# What is smaller goes with the order or the answer that it belongs to.
SMALL_BYTES = 2**20
_FOLDER = "fleet"
_COMING = ".coming-"
# What has been coming for longer comes no more.
_SURELY_LEFT_S = 24 * 3600.0

_TRIM_EVERY_S = _SWEEP_EVERY_S = 3600.0
_SWEPT = 1000  # folders that are remembered

_T = TypeVar("_T")
_trimmed_s = -math.inf
_hashes: dict[tuple[str, int, int], str] = {}
_hashes_lock = threading.Lock()
# By a build's folder: when it or its module last changed, in nanoseconds, and its files.
_builds: dict[Path, tuple[int, tuple[Item, ...]]] = {}


class Damaged(RunError):
    """A file came with other bytes than it was sent with."""


@dataclass(frozen=True, kw_only=True)
class Item:
    """A file that an order needs."""

    place: str  # Where it lies below a cache folder, as in `fleet/3f/3f.../input0.npy`
    sha256: str
    size: int
    build: str = ""  # The key of the build that it is a part of; "": it is a file of its own

    @property
    def chunks(self) -> Iterator[tuple[int, int]]:
        """Offset and size of each part that is sent; one for an empty file too."""
        for offset in range(0, max(self.size, 1), CHUNK_BYTES):
            yield offset, min(CHUNK_BYTES, self.size - offset)


def bundles(items: Iterable[Item], most_bytes: int) -> Iterator[tuple[Item, ...]]:
    """Files in the groups in which they are sent: small ones together, up to so many bytes; a larger one alone."""
    bundle: list[Item] = []
    for item in items:
        if bundle and sum(each.size for each in bundle) + item.size > most_bytes:
            yield tuple(bundle)
            bundle = []
        bundle.append(item)
    if bundle:
        yield tuple(bundle)


class Luggage:
    """What an order takes along: its files, and where they lie on this machine."""

    def __init__(self) -> None:
        self.files: dict[Item, Path] = {}

    @property
    def items(self) -> tuple[Item, ...]:
        """The files, as the order names them."""
        return tuple(self.files)

    def pack(self, value: _T) -> _T:
        """The same plain value, in which each path of a file has become its place below a cache."""
        with _reading():
            packed: _T = _with_paths(value, self._put)
        return packed

    def add_build(self, build: Build) -> None:
        """Take a build of this machine's cache along, whole."""
        with _reading():
            for item in build_items(build.cache_key, build.module_sha256):
                self.files[item] = cache_root() / item.place

    def add_kept(self, place: str) -> None:
        """Take a file along that lies at the same place in every cache, such as a right output, if it is still here."""
        path = cache_root() / place
        with _reading():
            if path.is_file():
                self.files[item_of(place)] = path

    def _put(self, path: Path) -> Path:
        sha256 = sha256_of(path)
        place = f"{_FOLDER}/{sha256[:2]}/{sha256}/{path.name}"
        self.files[Item(place=place, sha256=sha256, size=path.stat().st_size)] = path
        return Path(place)


def unreadable(error: OSError) -> RunError:
    """What is said of a file of this machine that a host needs, and that cannot be read."""
    file = error.filename or "a file of the cache"
    return RunError(f"{file}: cannot be read ({error.strerror}); see who removes files of the cache")


@contextlib.contextmanager
def _reading() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise unreadable(error) from error


def unpack(value: _T) -> _T:
    """A packed value with paths in this machine's cache."""
    unpacked: _T = _with_paths(value, lambda path: cache_root() / path)
    return unpacked


def _with_paths(value: Any, change: Any) -> Any:
    """A plain value of dataclasses, tuples, lists and mappings, with each of its paths changed."""
    if isinstance(value, Path):
        return change(value)
    if isinstance(value, tuple | list):
        return type(value)(_with_paths(each, change) for each in value)
    if isinstance(value, Mapping):
        return {key: _with_paths(each, change) for key, each in value.items()}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        before = {each.name: getattr(value, each.name) for each in dataclasses.fields(value) if each.init}
        after = {name: _with_paths(each, change) for name, each in before.items()}
        return replace(value, **after) if after != before else value
    return value


def sha256_of(path: Path) -> str:
    """Hash of a file, which is read again only once it has changed."""
    status = path.stat()
    key = (str(path), status.st_size, status.st_mtime_ns)
    with _hashes_lock:
        known = _hashes.get(key)
    if known is None:
        known = file_sha256(path)
        with _hashes_lock:
            _hashes[key] = known
    return known


def item_of(place: str, build: str = "") -> Item:
    """A file of this machine's cache."""
    path = cache_root() / place
    return Item(place=place, sha256=sha256_of(path), size=path.stat().st_size, build=build)


def build_items(key: str, module_sha256: str | None) -> tuple[Item, ...]:
    """All files of a build in this machine's cache; the last is the one that says that it is whole."""
    root = cache_root()
    folder = BuildCache(root).folder(key)
    changed_ns = max(path.stat().st_mtime_ns for path in (folder, root / _place_of_module(key)))
    known = _builds.get(folder)
    if known is None or known[0] != changed_ns:
        paths = [path for path in folder.iterdir() if path.is_file() and not path.name.startswith(_COMING)]
        paths.sort(key=lambda path: (path.name == BuildCache.FACTS_FILE, path.name))
        items = tuple(item_of(path.relative_to(root).as_posix(), key) for path in paths)
        if any(item.place == _place_of_module(key) and item.sha256 != module_sha256 for item in items):
            raise RunError(f"{folder}: its module has been damaged since it was compiled; remove this folder there")
        known = _builds[folder] = changed_ns, items
    return known[1]


def lacking_here(items: tuple[Item, ...], whose: str, here: str) -> tuple[Item, ...]:
    """Those of the files that this machine's cache lacks."""
    root, cache = cache_root(), BuildCache(cache_root())
    builds = {item.build for item in items if item.build}
    whole = {key: cache.find(key, "") for key in builds}
    lacking = []
    for item in items:
        build = whole.get(item.build)
        is_module = item.place == _place_of_module(item.build)
        if build is not None and is_module and build.module_sha256 != item.sha256:
            raise RunError(
                f"the build {item.build[:16]} is another module on {whose} than on {here}, though all that decides "
                f"it is equal; compile it on both by hand and compare, or empty the cache of one"
            )
        if (build is None or is_module) and not _is_here(root / item.place, item):
            lacking.append(item)
    return tuple(lacking)


def _place_of_module(key: str) -> str:
    root = cache_root()
    return (BuildCache(root).folder(key) / "module.vmfb").relative_to(root).as_posix()


def _is_here(path: Path, item: Item) -> bool:
    try:
        return path.stat().st_size == item.size and sha256_of(path) == item.sha256
    except OSError:
        return False


def write_chunk(item: Item, offset: int, chunk: bytes, sender: str) -> None:
    """Keep a part of a file that comes; the last one is followed by a look at its hash, before anybody can use it."""
    final = cache_root() / item.place
    final.parent.mkdir(parents=True, exist_ok=True)
    part = final.parent / f"{_COMING}{item.sha256[:16]}-{sender}"
    if offset == 0:
        _sweep(final.parent, int(time.time() // _SWEEP_EVERY_S))
    with part.open("wb" if offset == 0 else "r+b") as file:
        file.seek(offset)
        file.write(chunk)
    if offset + len(chunk) < item.size:
        return
    found = file_sha256(part)
    if found != item.sha256:
        part.unlink()
        raise Damaged(f"{item.place}: has come damaged, with the hash {found[:16]} instead of {item.sha256[:16]}")
    part.chmod(0o644)
    part.replace(final)


def use(item: Item) -> bool:
    """Say that a file of this machine's cache is still of use; whether it is there."""
    path = cache_root() / item.place
    try:
        # Its time of change is left, since a hash is known by it.
        os.utime(path, ns=(time.time_ns(), path.stat().st_mtime_ns))
    except PermissionError:  # of somebody else's file
        return True
    except OSError:
        return False
    return True


def trim_sent() -> None:
    """Delete what was sent here and not used for longest, as much as is too much; nothing of the last day.

    A worker goes on for months, so this is for every order with new files; it looks once an hour.
    """
    global _trimmed_s
    if time.monotonic() - _trimmed_s < _TRIM_EVERY_S:
        return
    _trimmed_s = time.monotonic()
    trim((cache_root() / _FOLDER).glob("*/*/*"), LIMIT_BYTES, YOUNG_S)


@lru_cache(maxsize=_SWEPT)
def _sweep(folder: Path, period: int) -> None:  # noqa: ARG001 (once in each)
    """Remove what was sent in part and never to its end; not for each file, since a folder may have thousands."""
    for path in folder.glob(f"{_COMING}*"):
        with contextlib.suppress(OSError):
            if time.time() - path.stat().st_mtime > _SURELY_LEFT_S:
                path.unlink()


def read_chunk(item: Item, offset: int, size: int) -> bytes:
    """A part of a file of this machine's cache."""
    with (cache_root() / item.place).open("rb") as file:
        file.seek(offset)
        return file.read(size)


def small_ones(items: Iterable[Item], most_bytes: int = SMALL_BYTES) -> dict[Item, bytes]:
    """The smallest of some files of this machine's cache, whole, up to so many bytes together."""
    contents: dict[Item, bytes] = {}
    left = most_bytes
    for item in sorted(items, key=lambda item: item.size):
        left -= item.size
        if left < 0:
            break
        contents[item] = read_chunk(item, 0, item.size)
    return contents


def fresh_sender() -> str:
    """A name for one sending of files."""
    return os.urandom(6).hex()
