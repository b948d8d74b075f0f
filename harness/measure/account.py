"""What the kernel says of a turn beside its wall time: how long its thread had a core, and what it waited for.

Self-contained (standard library only), since a worker loads it by file path under a Python without the harness.
"""

import ctypes
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_SCHEDSTAT = "/proc/thread-self/schedstat"
_TASKS = "/proc/self/task"
# A clock that moves in larger steps than this says too little of a turn of a millisecond.
_COARSE_NS = 20_000
_STEPS = 3


class Account:
    """Reads of this thread's account with the kernel, before and after each turn."""

    def __init__(self, *, on_calling_thread: bool) -> None:
        self._on_calling_thread = on_calling_thread
        self._schedstat = _open(_SCHEDSTAT)
        self._has_thread_clock = _thread_clock_is_fine()
        self._counts_waits = _waits_are_counted()
        self._quotas = [descriptor for file in quota_files() if (descriptor := _open(str(file))) is not None]
        self._sched_getcpu = getattr(ctypes.CDLL(None), "sched_getcpu", None)

    def before(self) -> None:
        """Read what takes microseconds to read, and so stays outside of clocks and counters."""
        self._before = self._read_slowly()
        self._delays_before = self._delays()

    def start(self) -> None:
        """Make the clocks count from here."""
        self._cpu_ns = time.process_time_ns()
        self._thread_ns = time.thread_time_ns()

    def stop(self) -> int:
        """Stop the clocks; CPU nanoseconds of the process since `start`."""
        self._thread_ns = time.thread_time_ns() - self._thread_ns
        return time.process_time_ns() - self._cpu_ns

    def read(self) -> dict[str, Any]:
        """The fields of harness.records.run.Account since `before`; what this system does not tell is None."""
        delays, now = self._delays(), self._read_slowly()
        # Of a thread that has ended since, nothing is known.
        waits = [delay - self._delays_before.get(thread, 0) for thread, delay in delays.items()]
        return {
            **{
                name: None if value is None or (before := self._before[name]) is None else value - before
                for name, value in now.items()
            },
            "delayed_ns": sum(waits) if waits else None,
            "on_calling_thread": self._on_calling_thread,
            "thread_ns": self._thread_ns if self._has_thread_clock else None,
            "core": None if self._sched_getcpu is None else max(self._sched_getcpu(), 0),
        }

    def _read_slowly(self) -> dict[str, int | None]:
        usage = _usage() if self._counts_waits else dict.fromkeys(_SWITCHES_AND_FAULTS)
        return {**usage, "throttled": _throttled(self._quotas)}

    def _delays(self) -> dict[str, int]:
        """Nanoseconds for which each living thread that matters has waited for a core, runnable."""
        if self._schedstat is None:
            return {}
        if self._on_calling_thread:
            return {"": int(os.pread(self._schedstat, 100, 0).split()[1])}
        return dict(_delays_of_threads())


def unavailable_reason() -> str | None:
    """Why turns have no own time here (see harness.stats.pairing), as a sentence; None where they have."""
    if not _waits_are_counted():
        return "this system does not tell how often a thread waits"
    if not _thread_clock_is_fine():
        return "this kernel counts a thread's time in ticks of milliseconds"
    return None


def _open(file: str) -> int | None:
    try:
        return os.open(file, os.O_RDONLY)
    except OSError:
        return None


def _thread_clock_is_fine() -> bool:
    """Whether the thread's clock follows what it does, step by step; some kernels count it in ticks of milliseconds."""
    smallest = 2 * _COARSE_NS
    for _ in range(_STEPS):
        before = now = time.thread_time_ns()
        deadline = time.perf_counter_ns() + 50_000_000
        while now == before and time.perf_counter_ns() < deadline:
            now = time.thread_time_ns()
        if now > before:
            smallest = min(smallest, now - before)
    return smallest <= _COARSE_NS


def _waits_are_counted() -> bool:
    """Whether a sleep shows as a voluntary switch; a system that always says zero would hide all of them."""
    before = _usage()["voluntary"]
    time.sleep(0.0001)
    after = _usage()["voluntary"]
    return before is not None and after is not None and after > before


_SWITCHES_AND_FAULTS = ("voluntary", "involuntary", "minor_faults", "major_faults")


def _usage() -> dict[str, int | None]:
    try:
        import resource

        usage = resource.getrusage(resource.RUSAGE_THREAD)
    except (ImportError, AttributeError):
        return dict.fromkeys(_SWITCHES_AND_FAULTS)
    counts = (usage.ru_nvcsw, usage.ru_nivcsw, usage.ru_minflt, usage.ru_majflt)
    return dict(zip(_SWITCHES_AND_FAULTS, counts, strict=True))


def _delays_of_threads() -> Iterator[tuple[str, int]]:
    for thread in Path(_TASKS).iterdir():
        try:
            yield thread.name, int((thread / "schedstat").read_bytes().split()[1])
        except OSError:  # it has just ended
            continue


def quota_files(root: Path = Path("/")) -> list[Path]:
    """The cpu.stat files of the control groups above this process that have a quota of CPU time, of either version."""
    try:
        lines = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:
        return []
    found = []
    for line in lines:
        _, controllers, group = line.split(":", 2)
        if controllers and "cpu" not in controllers.split(","):
            continue
        top = root / "sys/fs/cgroup" / controllers
        here = top / group.lstrip("/")
        for folder in (here, *here.parents):
            if _has_quota(folder) and (folder / "cpu.stat").is_file():
                found.append(folder / "cpu.stat")
            if folder == top:
                break
    return found


def _has_quota(folder: Path) -> bool:
    for name, unlimited in (("cpu.max", "max"), ("cpu.cfs_quota_us", "-1")):
        try:
            return (folder / name).read_text().split()[0] != unlimited
        except (OSError, IndexError):
            continue
    return False


def _throttled(quotas: list[int]) -> int | None:
    """How often groups were stopped until their next period, since they began; None where one no longer tells."""
    times = 0
    for descriptor in quotas:
        try:
            fields = os.pread(descriptor, 4096, 0).split()
        except OSError:  # the group was removed after this process had moved
            return None
        times += int(fields[fields.index(b"nr_throttled") + 1]) if b"nr_throttled" in fields else 0
    return times
