"""Where the pairs that `--toolchain` asks for are kept: one Python environment each."""

from __future__ import annotations

import os
import sys
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from harness.errors import ToolchainError
from harness.toolchain.find import pair_in_environment

_PREFIX = "iree-"


@dataclass(frozen=True, kw_only=True)
class Environment:
    """One pair that was installed for `--toolchain`.

    Attributes:
        disk_bytes: What its files take.
    """

    version: str
    folder: Path
    disk_bytes: int


def environment_folder(root: Path, release: str) -> Path:
    """Where a release's environment lies, complete or not there at all.

    The release of Python is part of the name, since a worker drives its calls through Python: two toolchains under
    different Pythons would differ by that too. So is the system, for caches that several machines share.
    """
    major, minor = sys.version_info[:2]
    return root / f"{_PREFIX}{release}-python{major}.{minor}-{sysconfig.get_platform()}"


def installed_environments(root: Path) -> tuple[Environment, ...]:
    """All pairs that are kept there, by name of their folders; folders that hold no whole pair are passed over."""
    return tuple(_examine(root))


def _examine(root: Path) -> Iterator[Environment]:
    for folder in sorted(root.glob(f"{_PREFIX}*")):
        if not folder.is_dir():
            continue
        try:
            version = pair_in_environment(folder).version
        except ToolchainError:
            continue
        yield Environment(version=version, folder=folder, disk_bytes=_bytes_below(folder))


def _bytes_below(folder: Path) -> int:
    total = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.lstat(os.path.join(parent, name)).st_size  # noqa: PTH118 (thousands of files)
            except OSError:
                continue
    return total
