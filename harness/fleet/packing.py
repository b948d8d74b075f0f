"""Values that travel to hosts: pickled, but for what each machine has of its own; and the files that they name.

A file becomes its place below a cache folder, and goes along where the host lacks it. What this machine has anywhere,
such as a model's program, lies there under its own hash; a build and outputs that were right lie where they always do.
Of a toolchain, a plugin and a peer only the name travels: the host finds its own, and refuses one that is another.
"""

import contextlib
import io
import os
import pickle
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from harness.cache import cache_root, environments_root, trim
from harness.compile import BuildCache
from harness.errors import RunError
from harness.files import file_sha256
from harness.peers.peer import AppliedPeer, apply_peer
from harness.plugins import Applied, apply_plugin
from harness.records.run import Build, OutputRecord
from harness.toolchain import Toolchain, get_toolchains

# A message of Dask holds so much of a file at most; it warns of larger ones.
MESSAGE_BYTES = 8 * 2**20
# So much of files goes with the task or the answer that they belong to.
INLINE_BYTES = 2**20
FOLDER = "fleet"


class Damaged(RunError):
    """A file came with other bytes than it was sent with."""


@dataclass(frozen=True, kw_only=True)
class Item:
    """A file that a task needs or has made."""

    place: str  # Where it lies below a cache folder, as in `fleet/3f/3f.../input0.npy`
    sha256: str
    size: int

    @property
    def chunks(self) -> Iterator[tuple[int, int]]:
        """Offset and size of each part that is sent; one for an empty file too."""
        for offset in range(0, max(self.size, 1), MESSAGE_BYTES):
            yield offset, min(MESSAGE_BYTES, self.size - offset)


@dataclass(frozen=True, kw_only=True)
class Packed:
    """What a task takes, and the files that it names, by where they lie on this machine."""

    data: bytes
    files: dict[Item, Path]

    def with_own_names(self, command: Sequence[str]) -> tuple[str, ...]:
        """A host's command line, in which files have the names that they have here."""
        own = {item.place: path for item, path in self.files.items()}

        def renamed(word: str) -> str:
            flag, equals, value = word.partition("=")
            return next((f"{flag}{equals}{path}" for place, path in own.items() if value.endswith(f"/{place}")), word)

        return tuple(renamed(word) for word in command)


# --- Values ---


def pack(*values: Any) -> Packed:
    """What a task takes, ready to be sent."""
    buffer = io.BytesIO()
    packer = _Packer(buffer)
    with reading():
        packer.dump(values)
    return Packed(data=buffer.getvalue(), files=packer.files)


def unpack(data: bytes) -> tuple[Any, ...]:
    """What a task takes, with the files, toolchains, plugins and peers of this machine."""
    values: tuple[Any, ...] = _Unpacker(io.BytesIO(data)).load()
    return values


class _Packer(pickle.Pickler):
    def __init__(self, buffer: io.BytesIO) -> None:
        super().__init__(buffer, protocol=pickle.HIGHEST_PROTOCOL)
        self.files: dict[Item, Path] = {}

    def persistent_id(self, value: Any) -> tuple[Any, ...] | None:
        """What travels in the place of a value; None: the value itself."""
        match value:
            case Path() if value.is_absolute():
                return "file", self._place(value)
            case {"file": str(file), **others} if Path(file).is_absolute():  # an argument, as workers take it
                return "argument", others, self._place(Path(file))
            case str() if value.startswith("--") and "=/" in value:
                flag, _, name = value.partition("=")
                is_file = os.path.isfile(name)  # noqa: PTH113 (Path's own raises if it is too long)
                return ("flag", flag, self._place(Path(name))) if is_file else None
            case Toolchain():
                return "toolchain", value.version, value.compiler_sha256
            case Applied():
                return "plugin", value.name, value.options, _identity(value)
            case AppliedPeer():
                return "peer", value.name, dict(value.options), value.label
            case Build(failure=None):
                self.files.update({item: cache_root() / item.place for item in build_items(value)})
            case OutputRecord() if (cache_root() / value.file).is_file():
                self.files[item_of(value.file)] = cache_root() / value.file
        return None

    def _place(self, path: Path) -> str:
        if path.is_relative_to(cache_root() / "builds"):  # which goes along with its build
            return path.relative_to(cache_root()).as_posix()
        sha256 = sha256_of(path)
        item = Item(place=f"{FOLDER}/{sha256[:2]}/{sha256}/{path.name}", sha256=sha256, size=path.stat().st_size)
        self.files[item] = path
        return item.place


class _Unpacker(pickle.Unpickler):
    def persistent_load(self, found: tuple[Any, ...]) -> Any:
        """This machine's own, of what travels by name."""
        match found:
            case "file", place:
                return cache_root() / place
            case "argument", others, place:
                return {**others, "file": str(cache_root() / place)}
            case "flag", flag, place:
                return f"{flag}={cache_root() / place}"
            case "toolchain", version, sha256:
                return _toolchain(version, sha256)
            case "plugin", name, options, identity:
                return _plugin(name, options, identity)
            case "peer", name, options, label:
                return apply_peer(name, options, label)
        raise pickle.UnpicklingError(f"{found!r} is known to no harness")


def _toolchain(version: str, compiler_sha256: str) -> Toolchain:
    """The toolchain of that version, installed here if need be."""
    (toolchain,) = get_toolchains((version,), root=environments_root())
    if toolchain.compiler_sha256 != compiler_sha256:
        raise RunError(f"its IREE {version} is another build than the client's; install the same packages on both")
    return toolchain


def _identity(applied: Applied) -> tuple[str, ...]:
    """What tells whether a plugin with these options is the same on two machines."""
    return applied.plugin.version, applied.sources_sha256, *(file.unique_name for file in applied.files)


def _plugin(name: str, options: dict[str, Any], identity: tuple[str, ...]) -> Applied:
    applied = apply_plugin(name, options)
    if _identity(applied) != identity:
        raise RunError(f"its plugin {name} is another than the client's; install the same package on both")
    return applied


# --- Files ---


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


def item_of(place: str) -> Item:
    """A file of this machine's cache."""
    path = cache_root() / place
    return Item(place=place, sha256=sha256_of(path), size=path.stat().st_size)


def build_items(build: Build) -> tuple[Item, ...]:
    """All files of a build in this machine's cache; the last is the one that says that it is whole."""
    cache = BuildCache(cache_root())
    folder, module = cache.folder(build.cache_key), cache.module(build)
    if sha256_of(module) != build.module_sha256:
        raise RunError(f"{folder}: its module has been damaged since it was compiled; remove this folder there")
    paths = sorted(folder.iterdir(), key=lambda path: (path.name == BuildCache.FACTS_FILE, path.name))
    return tuple(item_of(path.relative_to(cache_root()).as_posix()) for path in paths if path.is_file())


def lacking(items: Iterable[Item]) -> tuple[Item, ...]:
    """Those of the files that this machine's cache lacks."""
    found = tuple(item for item in items if not _is_here(item))
    for item in found:
        _require_no_other_module(item)
    return found


def _require_no_other_module(item: Item) -> None:
    """A compile that gives other bytes on another host is told, and neither module takes the other's place."""
    cache, path = BuildCache(cache_root()), cache_root() / item.place
    kept = cache.find(path.parent.name, "")
    if kept is not None and path == cache.module(kept) and path.is_file() and sha256_of(path) == kept.module_sha256:
        raise RunError(
            f"{path.parent}: is another module than that of another host, though all that decides it is equal; compile "
            "it on both by hand and compare, or remove this folder"
        )


def _is_here(item: Item) -> bool:
    path = cache_root() / item.place
    try:
        return path.stat().st_size == item.size and sha256_of(path) == item.sha256
    except OSError:
        return False


def small_ones(files: Mapping[Item, Path]) -> dict[Item, bytes]:
    """The smallest of some files, whole and in their order, as many as go along with a message."""
    left, chosen = INLINE_BYTES, set[Item]()
    for item in sorted(files, key=lambda item: item.size):
        left -= item.size
        if left >= 0:
            chosen.add(item)
    return {item: path.read_bytes() for item, path in files.items() if item in chosen}


def read_chunk(path: Path, offset: int, size: int) -> bytes:
    """A part of a file."""
    with path.open("rb") as file:
        file.seek(offset)
        return file.read(size)


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


def write_small(contents: Mapping[Item, bytes]) -> None:
    """Keep files that came along with a message, as far as this machine lacks them."""
    for item in lacking(contents):
        write_chunk(item, 0, contents[item], os.urandom(6).hex())


def use(item: Item) -> bool:
    """Say that a file of this machine's cache is still of use; whether it is there."""
    path = cache_root() / item.place
    with contextlib.suppress(OSError):  # of somebody else's file, or of none
        # Its time of change is left, since a hash is known by it.
        os.utime(path, ns=(time.time_ns(), path.stat().st_mtime_ns))
    return path.is_file()


@lru_cache(maxsize=1)
def trim_sent(hour: int) -> None:  # noqa: ARG001 (once in each)
    """Delete what was sent here and not used for longest, as much as is too much; nothing of the last day."""
    trim((cache_root() / FOLDER).glob("*/*/*"))
