"""Files that a plugin brings: specs, libraries, shared objects. They are known by their content."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import files
from pathlib import Path

from harness.errors import SuiteError

_HASH_DIGITS = 16


@dataclass(frozen=True, kw_only=True)
class PluginFile:
    """One file, either of the plugin's package or written by the plugin.

    Attributes:
        name: What it is called, such as `spec.mlir`.
        path: Where it lies; None where it is written.
        text: What is written; None where it lies in the package.
    """

    name: str
    path: Path | None = None
    text: str | None = None

    @cached_property
    def data(self) -> bytes:
        """Its bytes.

        Raises:
            OSError: It cannot be read.
        """
        return self.text.encode() if self.path is None and self.text is not None else Path(self.path or "").read_bytes()

    @cached_property
    def unique_name(self) -> str:
        """Its name with a hash of its bytes in front of the ending: a command line that names it says its content."""
        name = Path(self.name)
        return f"{name.stem}-{hashlib.sha256(self.data).hexdigest()[:_HASH_DIGITS]}{name.suffix}"

    def put_into(self, folder: Path) -> None:
        """Write it under its unique name.

        Raises:
            OSError: The folder cannot be written.
        """
        (folder / self.unique_name).write_bytes(self.data)


def package_file(package: str, name: str) -> PluginFile:
    """A file that lies in an installed package, as in `package_file(__package__, "spec.mlir")`.

    Raises:
        SuiteError: The package has no such file.
    """
    path = Path(str(files(package).joinpath(name)))
    if not path.is_file():
        raise SuiteError(f"package {package} has no file {name}; install it again, or ask its author")
    return PluginFile(name=path.name, path=path)


def written_file(name: str, text: str) -> PluginFile:
    """A file that the plugin writes, for instance from its options."""
    return PluginFile(name=name, text=text)
