"""Holding children in the background still while something is timed.

A compile may take minutes. What is ready is measured meanwhile, and for that time the compilers are stopped (SIGSTOP),
since they would take the cores and caches that are being timed. What stops them is a child of its own, which lets them
go on when its standard input ends: so they do not stand still for ever where the harness is killed.
"""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

# Prints a line when all groups of processes are stopped, and lets them go on at the end of its input.
_HOLDER = """
import os, signal, sys
groups = [int(pid) for pid in sys.argv[1:]]
def send(number):
    for group in groups:
        try:
            os.killpg(group, number)
        except (ProcessLookupError, PermissionError):
            pass
send(signal.SIGSTOP)
print("held", flush=True)
try:
    sys.stdin.read()
finally:
    send(signal.SIGCONT)
"""
HOLDER_COMMAND = (sys.executable, "-I", "-S", "-c", _HOLDER)

Spawn = Callable[[list[str]], "subprocess.Popen[bytes]"]


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
    def hold(self, spawn: Spawn, forget: Callable[[subprocess.Popen[bytes]], None]) -> Iterator[None]:
        """Hold all of them still, and start none."""
        with self._lock:
            self._open.clear()
            groups = [str(pid) for pid in self._children]
            self._since_ns = time.perf_counter_ns()
        holder = spawn([*HOLDER_COMMAND, *groups]) if groups and sys.platform != "win32" else None
        try:
            if holder is not None and holder.stdout is not None:
                holder.stdout.readline()
            yield
        finally:
            if holder is not None:
                for pipe in (holder.stdin, holder.stdout):
                    if pipe is not None:
                        pipe.close()
                holder.wait()
                forget(holder)
            with self._lock:
                self._held_ns += time.perf_counter_ns() - (self._since_ns or time.perf_counter_ns())
                self._since_ns = None
                self._open.set()
