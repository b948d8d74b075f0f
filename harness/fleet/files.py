"""Files that tasks need: known by place and hash, sent where they are lacking, checked before they are used.

Every file has a place below a host's cache folder. What this machine has anywhere, such as a model's program, lies
under its own hash; a build lies where the content-addressed BuildCache has it, whole; outputs that were right lie under
a hash too.
"""

import contextlib
import os
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from harness.cache import cache_root, trim
from harness.compile import BuildCache
from harness.errors import RunError
from harness.files import file_sha256
from harness.records.run import Build
from harness.verify.kept import LIMIT_BYTES, YOUNG_S

# A message of Dask holds so much of files at most; it warns of larger ones.
MESSAGE_BYTES = 8 * 2**20
# What is smaller goes unasked, or with the answer that it belongs to.
SMALL_BYTES = 2**20
FOLDER = "fleet"
_TRIM_EVERY_S = 3600.0

# Parts of files, each with where it begins.
Message = list[tuple["Item", int, bytes]]


class Damaged(RunError):
    """A file came with other bytes than it was sent with."""


@dataclass(frozen=True, kw_only=True)
class Item:
    """A file that a task needs or has made."""

    place: str  # Where it lies below a cache folder, as in `fleet/3f/3f.../input0.npy`
    sha256: str
    size: int
    build: str = ""  # The key of the build that it is a part of; "": it is a file of its own

    @property
    def chunks(self) -> Iterator[tuple[int, int]]:
        """Offset and size of each part that is sent; one for an empty file too."""
        for offset in range(0, max(self.size, 1), MESSAGE_BYTES):
            yield offset, min(MESSAGE_BYTES, self.size - offset)


@contextlib.contextmanager
def reading() -> Iterator[None]:
    """Say in one sentence which file of this machine's own cannot be read."""
    try:
        yield
    except OSError as error:
        file = error.filename or "a file of the cache"
        raise RunError(f"{file}: cannot be read ({error.strerror}); see who removes files of the cache") from error


def sha256_of(path: Path) -> str:
    """Hash of a file, which is read again only once it has changed."""
    status = path.stat()
    return _sha256_at(path, status.st_size, status.st_mtime_ns)


@lru_cache(maxsize=100_000)
def _sha256_at(path: Path, size: int, changed_ns: int) -> str:  # noqa: ARG001 (what tells that it has changed)
    return file_sha256(path)


def item_of(place: str, build: str = "") -> Item:
    """A file of this machine's cache."""
    path = cache_root() / place
    return Item(place=place, sha256=sha256_of(path), size=path.stat().st_size, build=build)


def build_items(build: Build) -> tuple[Item, ...]:
    """All files of a build in this machine's cache; the last is the one that says that it is whole."""
    cache = BuildCache(cache_root())
    folder, module = cache.folder(build.cache_key), cache.module(build)
    changed_ns = max(path.stat().st_mtime_ns for path in (folder, module))
    items = _items_at(folder, build.cache_key, changed_ns)
    if any(item.place == _place(module) and item.sha256 != build.module_sha256 for item in items):
        raise RunError(f"{folder}: its module has been damaged since it was compiled; remove this folder there")
    return items


@lru_cache(maxsize=100_000)
def _items_at(folder: Path, key: str, changed_ns: int) -> tuple[Item, ...]:  # noqa: ARG001 (likewise)
    paths = sorted(folder.iterdir(), key=lambda path: (path.name == BuildCache.FACTS_FILE, path.name))
    return tuple(item_of(_place(path), key) for path in paths if path.is_file())


def _place(path: Path) -> str:
    return path.relative_to(cache_root()).as_posix()


def lacking_here(items: Iterable[Item], whose: str, here: str) -> tuple[Item, ...]:
    """Those of the files that this machine's cache lacks."""
    root, cache = cache_root(), BuildCache(cache_root())
    items = tuple(items)
    whole = {key: cache.find(key, "") for key in {item.build for item in items if item.build}}
    lacking = []
    for item in items:
        build = whole.get(item.build)
        is_module = build is not None and item.place == _place(cache.module(build))
        if build is not None and is_module and build.module_sha256 != item.sha256:
            raise RunError(
                f"the build {item.build[:16]} is another module on {whose} than on {here}, though all that decides "
                f"it is equal; compile it on both by hand and compare, or empty the cache of one"
            )
        if (build is None or is_module) and not _is_here(root / item.place, item):
            lacking.append(item)
    return tuple(lacking)


def _is_here(path: Path, item: Item) -> bool:
    try:
        return path.stat().st_size == item.size and sha256_of(path) == item.sha256
    except OSError:
        return False


def messages(files: Mapping[Item, Path]) -> Iterator[Message]:
    """Files in the messages in which they are sent: small ones together, a large one in parts."""
    message: Message = []
    for item, path in files.items():
        with path.open("rb") as file:
            for _, size in item.chunks:
                if message and sum(len(data) for *_, data in message) + size > MESSAGE_BYTES:
                    yield message
                    message = []
                message.append((item, file.tell(), file.read(size)))
    if message:
        yield message


def write_chunk(item: Item, offset: int, chunk: bytes, sender: str) -> None:
    """Keep a part of a file that comes; after the last one its hash is checked, before anybody can use it."""
    final = cache_root() / item.place
    part = cache_root() / FOLDER / "coming" / item.sha256[:2] / f"{item.sha256}-{sender}"
    for folder in (final.parent, part.parent):
        folder.mkdir(parents=True, exist_ok=True)
    with part.open("wb" if offset == 0 else "r+b") as file:
        file.seek(offset)
        file.write(chunk)
    if offset + len(chunk) < item.size:
        return
    found = file_sha256(part)
    if found != item.sha256:
        part.unlink()
        raise Damaged(f"{item.place}: has come damaged, with the hash {found[:16]} instead of {item.sha256[:16]}")
    part.replace(final)


def read_chunk(item: Item, offset: int, size: int) -> bytes:
    """A part of a file of this machine's cache."""
    with (cache_root() / item.place).open("rb") as file:
        file.seek(offset)
        return file.read(size)


def small_ones(items: Iterable[Item]) -> dict[Item, bytes]:
    """The smallest of some files of this machine's cache, whole, as many as go with an answer."""
    contents: dict[Item, bytes] = {}
    left = SMALL_BYTES
    for item in sorted(items, key=lambda item: item.size):
        left -= item.size
        if left < 0:
            break
        contents[item] = read_chunk(item, 0, item.size)
    return contents


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

    A worker goes on for months, so this is for every task with new files; it looks once an hour.
    """
    _trim_sent(int(time.monotonic() // _TRIM_EVERY_S))


@lru_cache(maxsize=1)
def _trim_sent(hour: int) -> None:  # noqa: ARG001 (once in each)
    trim((cache_root() / FOLDER).glob("*/*/*"), LIMIT_BYTES, YOUNG_S)
