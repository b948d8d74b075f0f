"""Kills the children of a harness that is killed itself, which nothing else would do.

`kill -9`, or the system where memory is short, leaves a harness no time to stop what it started: compilers would go on,
stand still for ever where they are held, and take the cores of the run that goes on afterwards. So a process of its own
knows every child's group, and waits for the end of its standard input, which only the harness holds open. It is begun
with the first child, and begun again where it is killed.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time

# Reads +group and -group, a line each; at the end of its input it kills the groups that are left, stopped or not.
_PROGRAM = """
import os, signal, sys
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, signal.SIG_IGN)
os.chdir("/")
groups = set()
for line in sys.stdin.buffer:
    (groups.add if line[:1] == b"+" else groups.discard)(int(line[1:]))
for group in groups:
    try:
        os.killpg(group, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass
"""
_COMMAND = (sys.executable, "-I", "-S", "-c", _PROGRAM)
# Where it cannot live, a harness does without it.
_MOST_STARTS = 100
_BETWEEN_STARTS_S = 0.02


class Warden:
    """The groups of processes that end with this one."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._groups: set[int] = set()
        self._process: subprocess.Popen[bytes] | None = None
        self._starts = 0

    @property
    def pid(self) -> int | None:
        """Of the process that waits; None: no child was started yet."""
        with self._lock:
            return None if self._process is None else self._process.pid

    def watch(self, group: int) -> None:
        """From now on the group ends with this process."""
        with self._lock:
            self._groups.add(group)
            if self._process is None:
                self._start()
            else:
                self._tell(f"+{group}\n")

    def release(self, group: int) -> None:
        """The group has ended; its number may become another's."""
        with self._lock:
            if group in self._groups:
                self._groups.remove(group)
                self._tell(f"-{group}\n")

    def _start(self) -> None:
        if not hasattr(os, "killpg") or self._starts >= _MOST_STARTS:
            return
        self._starts += 1
        try:
            process = subprocess.Popen(
                _COMMAND,
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        except OSError:
            return
        self._process = process
        self._tell("".join(f"+{group}\n" for group in sorted(self._groups)))
        threading.Thread(target=self._replace, args=(process,), daemon=True).start()

    def _tell(self, lines: str) -> None:
        if self._process is None or self._process.stdin is None:
            return
        try:
            self._process.stdin.write(lines.encode())
            self._process.stdin.flush()
        except OSError:  # it was killed: the next one is told all groups
            return

    def _replace(self, process: subprocess.Popen[bytes]) -> None:
        """Begin another one as soon as this one has ended."""
        process.wait()
        time.sleep(_BETWEEN_STARTS_S)
        with self._lock:
            self._process = None
            self._start()
