"""Holding children in the background still while something is timed.

A compile may take minutes. What is ready is measured meanwhile, and for that time the compilers are stopped (SIGSTOP),
since they would take the cores and caches that are being timed. Where the harness is killed meanwhile, its warden
(warden.py) kills them, stopped or not.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class Gate:
    """Which children may be held still, whether they are, and for how long they have been."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open = threading.Event()
        self._open.set()
        self._children: set[int] = set()
        self._held_ns = 0
        self._since_ns: int | None = None

    def start(self, spawn: Callable[[], subprocess.Popen[bytes]]) -> subprocess.Popen[bytes]:
        """Start a child that may be held still; while others are, it waits."""
        while True:
            self._open.wait()
            with self._lock:
                if self._open.is_set():
                    child = spawn()
                    self._children.add(child.pid)
                    return child

    def end(self, child: subprocess.Popen[bytes]) -> None:
        """A child has ended."""
        with self._lock:
            self._children.discard(child.pid)

    def held_ns(self) -> int:
        """For how long children have been held still, all in all: nanoseconds."""
        with self._lock:
            return self._held_ns + (0 if self._since_ns is None else time.perf_counter_ns() - self._since_ns)

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Hold all of them still, and start none."""
        with self._lock:
            self._open.clear()
            self._since_ns = time.perf_counter_ns()
            self._signal(stop=True)
        try:
            yield
        finally:
            with self._lock:
                self._signal(stop=False)
                self._held_ns += time.perf_counter_ns() - (self._since_ns or time.perf_counter_ns())
                self._since_ns = None
                self._open.set()

    def _signal(self, *, stop: bool) -> None:
        if not hasattr(os, "killpg"):
            return
        for group in self._children:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(group, signal.SIGSTOP if stop else signal.SIGCONT)
