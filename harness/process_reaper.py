"""Kills the children of a harness that is killed itself, which nothing else would do.

A process of its own knows every child's group, and waits for the end of its standard input, which only the harness
holds open. A child that it was not told of in the last moment has a mark in its environment, found in /proc.
"""

import atexit
import os
import secrets
import subprocess
import sys
import threading

# Reads +group and -group, a line each, and an empty line from a harness that ends by itself; at the end of its input it
# kills the groups that are left, stopped or not, and, unless that line came, those with the mark. It looks twice, since
# a child has the mark only when its program begins.
_PROGRAM = """
import os, signal, sys, time
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, signal.SIG_IGN)
os.chdir("/")
groups = set()
killed = True
for line in sys.stdin.buffer:
    if line == b"\\n":
        killed = False
    else:
        (groups.add if line[:1] == b"+" else groups.discard)(int(line[1:]))
for _ in range(2):
    for name in os.listdir("/proc") if killed and os.path.isdir("/proc") else ():
        try:
            with open(f"/proc/{int(name)}/environ", "rb") as file:
                if os.fsencode(sys.argv[1]) in file.read().split(b"\\0"):
                    groups.add(int(name))
        except (OSError, ValueError):
            pass
    for group in groups:
        try:
            os.killpg(group, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            pass
    groups.clear()
    time.sleep(0.05)
"""
_MARK = "HARNESS_STARTED_BY"


class Reaper:
    """The groups of processes that end with this one."""

    def __init__(self) -> None:
        # As long in every process, since the size of its environment moves a program's memory.
        self._mark = f"{os.getpid():010d}-{secrets.token_hex(8)}"
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        atexit.register(self._dismiss)

    @property
    def pid(self) -> int | None:
        """Of the process that waits; None: no child was started yet."""
        return None if self._process is None else self._process.pid

    def begin(self) -> dict[str, str]:
        """Be there before a child is; the variable that its environment needs."""
        with self._lock:
            if self._process is None:
                self._start()
        return {_MARK: self._mark}

    def watch(self, group: int) -> None:
        """From now on the group ends with this process."""
        self._tell(f"+{group}\n")

    def release(self, group: int) -> None:
        """The group has ended; its number may become another's."""
        self._tell(f"-{group}\n")

    def _start(self) -> None:
        try:
            self._process = subprocess.Popen(
                (sys.executable, "-I", "-S", "-c", _PROGRAM, f"{_MARK}={self._mark}"),
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        except OSError:  # a harness does without it
            return

    def _dismiss(self) -> None:
        """What a child left running on purpose, such as a cache's server, stays where this process ends by itself."""
        self._tell("\n")
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.close()
            self._process.returncode = 0  # it outlives this process, and nobody waits for it

    def _tell(self, line: str) -> None:
        with self._lock:
            if self._process is None or self._process.stdin is None:
                return
            try:
                self._process.stdin.write(line.encode())
                self._process.stdin.flush()
            except OSError:  # somebody killed it
                return
