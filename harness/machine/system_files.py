"""What Linux says of itself in /proc and /sys, below a root that tests can replace; and the limits of a container."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, TypeVar

_CGROUPS = "sys/fs/cgroup"
_NO_LIMIT_BYTES = 2**60  # version 1 says "no limit" as a number near 2**63


@dataclass(frozen=True)
class SystemFiles:
    """Small text files below a root. What does not exist or may not be read is None: the caller leaves it out."""

    root: Path = Path("/")

    def text(self, path: str) -> str | None:
        """A file's text without white space around it; None where there is none."""
        try:
            return (self.root / path).read_text(errors="replace").strip("\0 \t\n") or None
        except OSError:
            return None

    def integer(self, path: str) -> int | None:
        """A file that holds one decimal number."""
        return as_integer(self.text(path))

    def matching(self, pattern: str) -> list[str]:
        """Paths below the root that match a glob pattern, sorted."""
        try:
            return sorted(path.relative_to(self.root).as_posix() for path in self.root.glob(pattern))
        except OSError:
            return []


def as_integer(text: str | None) -> int | None:
    """A decimal number, or None where it is none (`max`, `<unsupported>`, nothing)."""
    try:
        return int(text) if text is not None else None
    except ValueError:
        return None


def known(facts: dict[str, Any]) -> dict[str, Any]:
    """The facts without those that are None."""
    return {name: value for name, value in facts.items() if value is not None}


_T = TypeVar("_T")


def capture_limits(files: SystemFiles) -> dict[str, Any]:
    """Limits of the control groups that this process is in; {} where nothing limits it."""
    groups = _groups(files)
    cpu_limit = min(_present(_cpu_limit_cores(files, group) for group in groups), default=None)
    counts = (
        re.search(r"^nr_throttled (\d+)", files.text(f"{group}/cpu.stat") or "", re.MULTILINE) for group in groups
    )
    throttled = max((int(count[1]) for count in _present(counts)), default=None)
    return known(
        {
            "cpu_limit_cores": cpu_limit,
            "cpu_throttled_periods": throttled if cpu_limit is not None else None,
            "memory_limit_bytes": min(_present(_memory_limit_bytes(files, group) for group in groups), default=None),
        }
    )


def _groups(files: SystemFiles) -> list[str]:
    """Folders of this process's groups and their ancestors; in a container often only the root is there."""
    folders: dict[str, None] = {}  # a set that keeps order
    for line in (files.text("proc/self/cgroup") or "").splitlines():
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        for controller in controllers.split(","):
            base = f"{_CGROUPS}/{controller}" if controller else _CGROUPS
            group = PurePosixPath(path.lstrip("/"))
            for part in (group, *group.parents):
                folders[base if part == PurePosixPath() else f"{base}/{part}"] = None
    return list(folders)


def _present(values: Iterable[_T | None]) -> list[_T]:
    return [value for value in values if value is not None]


def _cpu_limit_cores(files: SystemFiles, group: str) -> float | None:
    unified = (files.text(f"{group}/cpu.max") or "").split()
    if len(unified) == 2:
        quota_us, period_us = as_integer(unified[0]), as_integer(unified[1])
    else:
        quota_us, period_us = files.integer(f"{group}/cpu.cfs_quota_us"), files.integer(f"{group}/cpu.cfs_period_us")
    if quota_us is None or quota_us <= 0 or not period_us:
        return None
    return round(quota_us / period_us, 3)


def _memory_limit_bytes(files: SystemFiles, group: str) -> int | None:
    limit = files.integer(f"{group}/memory.max")
    if limit is None:
        limit = files.integer(f"{group}/memory.limit_in_bytes")
    return limit if limit is not None and limit < _NO_LIMIT_BYTES else None
