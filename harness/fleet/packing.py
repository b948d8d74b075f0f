"""Values that travel to hosts: pickled, but for what each machine has of its own.

A file becomes its place below a cache folder, and goes along where the host lacks it; so do the files that flags name,
those of builds, and outputs that were right. Of a toolchain, a plugin and a peer only the name travels: the host finds
its own, and refuses one that is another.
"""

import io
import pickle
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.cache import cache_root, environments_root
from harness.errors import RunError
from harness.fleet.files import FOLDER, Item, build_items, item_of, reading, sha256_of
from harness.peers.peer import AppliedPeer, apply_peer
from harness.plugins import Applied, apply_plugin
from harness.records.run import Build, OutputRecord
from harness.toolchain import Toolchain, get_toolchains


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
            case str() if value.startswith("--") and "=/" in value:
                flag, _, name = value.partition("=")
                return ("flag", flag, self._place(Path(name))) if _is_file(name) else None
            case Toolchain():
                return "toolchain", value.version, value.compiler_sha256
            case Applied():
                return "plugin", value.name, value.options, _identity(value)
            case AppliedPeer():
                return "peer", value.name, dict(value.options), value.label
            case Build(failure=None):
                for item in build_items(value):
                    self.files[item] = cache_root() / item.place
            case OutputRecord() if (cache_root() / value.file).is_file():
                self.files[item_of(value.file)] = cache_root() / value.file
        return None

    def _place(self, path: Path) -> str:
        builds = cache_root() / "builds"
        if path.is_relative_to(builds):  # which goes along with its build
            return path.relative_to(cache_root()).as_posix()
        sha256 = sha256_of(path)
        item = Item(place=f"{FOLDER}/{sha256[:2]}/{sha256}/{path.name}", sha256=sha256, size=path.stat().st_size)
        self.files[item] = path
        return item.place


def _is_file(name: str) -> bool:
    try:
        return Path(name).is_file()
    except (OSError, ValueError):  # too long for a path, or with a zero byte
        return False


class _Unpacker(pickle.Unpickler):
    def persistent_load(self, found: tuple[Any, ...]) -> Any:
        """This machine's own, of what travels by name."""
        match found:
            case "file", place:
                return cache_root() / place
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
