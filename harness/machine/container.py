"""The limits that a container (a control group) puts on this process: CPU time and memory."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import PurePosixPath
from typing import Any, TypeVar

from harness.machine.system_files import SystemFiles, as_integer, known

_CGROUPS = "sys/fs/cgroup"
_NO_LIMIT_BYTES = 2**60  # version 1 says "no limit" as a number near 2**63

_T = TypeVar("_T")


def capture_limits(files: SystemFiles) -> dict[str, Any]:
    """Limits of the control groups that this process is in; {} where nothing limits it.

    Returns:
        `cpu_limit_cores` (CPU time per wall time), `cpu_throttled_periods` (how often the group was stopped until its
        next period) and `memory_limit_bytes`, each where known.
    """
    groups = _groups(files)
    cpu_limit = min(_present(_cpu_limit_cores(files, group) for group in groups), default=None)
    throttled = max(_present(_throttled_periods(files, group) for group in groups), default=None)
    return known(
        {
            "cpu_limit_cores": cpu_limit,
            "cpu_throttled_periods": throttled if cpu_limit is not None else None,
            "memory_limit_bytes": min(_present(_memory_limit_bytes(files, group) for group in groups), default=None),
        }
    )


def in_container(files: SystemFiles) -> bool:
    """Whether this process runs in a container, as far as one can tell."""
    if files.exists(".dockerenv") or files.exists("run/.containerenv"):
        return True
    membership = files.text("proc/self/cgroup") or ""
    return any(word in membership for word in ("/docker", "/kubepods", "/lxc", "/libpod", "/containerd"))


def _groups(files: SystemFiles) -> list[str]:
    """Folders of the groups that this process is in, their ancestors included: a parent's limit binds as well.

    Inside a container the path that the kernel names is often not there, since the container sees its own group as the
    root; then the root is what remains.
    """
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


def _throttled_periods(files: SystemFiles, group: str) -> int | None:
    return as_integer(files.fields(f"{group}/cpu.stat").get("nr_throttled"))


def _memory_limit_bytes(files: SystemFiles, group: str) -> int | None:
    limit = files.integer(f"{group}/memory.max")
    if limit is None:
        limit = files.integer(f"{group}/memory.limit_in_bytes")
    return limit if limit is not None and limit < _NO_LIMIT_BYTES else None
