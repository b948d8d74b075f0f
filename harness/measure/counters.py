"""Hardware event counts of this process, through Linux's perf_event_open: user mode only, which any user may count.

Self-contained (standard library only), since a worker loads it by file path under a Python without the harness.
"""

import ctypes
import errno
import os
import platform
import struct
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

_SYSCALL_NUMBERS = {"x86_64": 298, "aarch64": 241}
_PARANOID = Path("/proc/sys/kernel/perf_event_paranoid")

_INHERIT, _EXCLUDE_KERNEL, _EXCLUDE_HV = 1 << 1, 1 << 5, 1 << 6
_TOTAL_TIME_ENABLED, _TOTAL_TIME_RUNNING = 1 << 0, 1 << 1
_CLOSE_ON_EXEC = 8


class Event(NamedTuple):
    """One kind of event: our name for it, and the kernel's type and config (see linux/perf_event.h)."""

    name: str
    type: int
    config: int


HARDWARE_EVENTS = (
    Event("instructions", 0, 1),
    Event("cycles", 0, 0),
    Event("cache_misses", 0, 3),
    Event("branch_misses", 0, 5),
)


# The first published form of struct perf_event_attr, which every kernel accepts: type, size, config, sample_period,
# sample_type, read_format, flags, wakeup_events, bp_type, bp_addr.
_ATTRIBUTES = struct.Struct("=IIQQQQQIIQ")


class _Reading(NamedTuple):
    events: int
    enabled_ns: int
    running_ns: int


def open_event(event: Event) -> int:
    """Start counting one event of the calling thread and of every thread that it starts from now on."""
    number = _SYSCALL_NUMBERS.get(platform.machine())
    if not sys.platform.startswith("linux") or number is None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    times, flags = _TOTAL_TIME_ENABLED | _TOTAL_TIME_RUNNING, _INHERIT | _EXCLUDE_KERNEL | _EXCLUDE_HV
    attributes = _ATTRIBUTES.pack(event.type, _ATTRIBUTES.size, event.config, 0, 0, times, flags, 0, 0, 0)
    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall.restype = ctypes.c_long
    this_thread, any_cpu, no_group = ctypes.c_int(0), ctypes.c_int(-1), ctypes.c_int(-1)
    which = (this_thread, any_cpu, no_group, ctypes.c_ulong(_CLOSE_ON_EXEC))
    descriptor: int = libc.syscall(ctypes.c_long(number), attributes, *which)
    if descriptor < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return descriptor


class Counters:
    """Counts events of this process from the last `start` on, for as long as it lives.

    Make it on the main thread before anything starts threads. Inheriting events cannot be read in groups; where the
    kernel lets them take turns, counts are scaled to the whole time.
    """

    def __init__(self, events: Sequence[Event] = HARDWARE_EVENTS) -> None:
        self._descriptors: dict[str, int] = {}
        for event in events:
            try:
                self._descriptors[event.name] = open_event(event)
            except OSError:
                continue
        self.start()

    def start(self) -> None:
        """Make later readings count from here; two readings' difference is less exact where counts are scaled."""
        self._started = {name: _reading(descriptor) for name, descriptor in self._descriptors.items()}

    def read(self) -> dict[str, int]:
        """Counts since `start`, by name; an event that never got a counter in that time has none."""
        counts = {
            name: _scaled(self._started[name], _reading(descriptor)) for name, descriptor in self._descriptors.items()
        }
        return {name: count for name, count in counts.items() if count is not None}


def _reading(descriptor: int) -> _Reading:
    return _Reading(*struct.unpack("=QQQ", os.read(descriptor, 24)))


def _scaled(before: _Reading, after: _Reading) -> int | None:
    """Events between two readings; None where the event was to be counted, yet never had a counter."""
    count = after.events - before.events
    enabled_ns = after.enabled_ns - before.enabled_ns
    running_ns = after.running_ns - before.running_ns
    if running_ns == enabled_ns:
        return count
    if running_ns == 0:
        return None
    return round(count * enabled_ns / running_ns)


def unavailable_reason(events: Sequence[Event] = HARDWARE_EVENTS) -> str | None:
    """Why none of the events can be counted here, as a sentence; None where at least one can."""
    if not sys.platform.startswith("linux"):
        return "hardware counters are read through Linux's perf_event_open, and this is not Linux"
    if platform.machine() not in _SYSCALL_NUMBERS:
        return f"hardware counters are read on x86_64 and aarch64 only, and this machine is {platform.machine()}"
    refusal = errno.ENOENT
    for event in events:
        try:
            os.close(open_event(event))
        except OSError as error:
            refusal = error.errno or refusal
        else:
            return None
    try:
        paranoid: int | None = int(_PARANOID.read_text())
    except (OSError, ValueError):
        paranoid = None
    return explain_refusal(refusal, paranoid=paranoid)


def explain_refusal(code: int, *, paranoid: int | None) -> str:
    """What the error number of a refused perf_event_open means here, and what to do, as a sentence."""
    if code in (errno.EACCES, errno.EPERM):
        if paranoid is not None and paranoid > 2:
            return (
                f"hardware counters are forbidden: kernel.perf_event_paranoid is {paranoid}; "
                "set it to 2 with: sudo sysctl kernel.perf_event_paranoid=2"
            )
        return "hardware counters are forbidden here, as containers do by default: allow the call perf_event_open"
    if code in (errno.ENOENT, errno.ENODEV, errno.EOPNOTSUPP):
        return "this (virtual) machine exposes no hardware counters"
    if code == errno.ENOSYS:
        return "this kernel was built without performance events"
    return f"hardware counters cannot be opened: {os.strerror(code)}"
