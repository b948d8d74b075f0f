"""Processes of a fleet on this machine: scheduler, hosts and asker, each with what it says in a file."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TypeVar

from harness.fleet.access import make_fleet

HARNESS = (sys.executable, "-c", "from harness.cli import main; main()")
_START_S = 180.0
_T = TypeVar("_T")


class Processes:
    """Processes that end with this context."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._environment = dict(os.environ)
        self._all: list[subprocess.Popen[bytes]] = []
        folder.mkdir(parents=True, exist_ok=True)

    def __enter__(self) -> Processes:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for process in self._all:
            end(process)

    def start(
        self, name: str, command: Sequence[str], environment: Mapping[str, str] | None = None
    ) -> subprocess.Popen[bytes]:
        """Start a process in a group of its own; what it says goes to a file of that name."""
        log = self.log(name)
        with log.open("wb") as file:
            started = subprocess.Popen(
                [str(word) for word in command],
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                env={**self._environment, **(environment or {})},
                start_new_session=True,
            )
        self._all.append(started)
        return started

    def log(self, name: str) -> Path:
        """What a process said since it was started last."""
        return self.folder / f"{name}.log"

    def wait_for(self, name: str, pattern: str) -> None:
        """Wait until a process has said something.

        Raises:
            RuntimeError: It does not say it.
        """
        log = self.log(name)
        wait_until(lambda: re.search(pattern, log.read_text(errors="replace")), f"{name} to say {pattern}")

    def make_members(self) -> None:
        """Make a fleet, of which all processes are members from here on, so that they may meet over TLS."""
        configuration = self.folder / "configuration"
        make_fleet(configuration / "iree-harness" / "fleet", 1)
        self._environment["XDG_CONFIG_HOME"] = str(configuration)

    def scheduler(self, address: str, lost_after_s: float) -> subprocess.Popen[bytes]:
        """The harness's own scheduler."""
        command = [*HARNESS, "fleet", "scheduler", "--as-root", "--listen", address, "--lost-after", str(lost_after_s)]
        started = self.start("scheduler", command)
        self.wait_for("scheduler", "a scheduler listens")
        return started


def wait_until(condition: Callable[[], _T | None], what: str, patience_s: float = _START_S) -> _T:
    """What a condition gives once it gives something.

    Raises:
        RuntimeError: It takes too long.
    """
    deadline = time.monotonic() + patience_s
    while not (found := condition()):
        if time.monotonic() > deadline:
            raise RuntimeError(f"{what}: waited {patience_s:.0f} s in vain")
        time.sleep(0.05)
    return found


def end(process: subprocess.Popen[bytes]) -> None:
    """End a process with all that it started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def free_port() -> int:
    """A port that nobody listens at."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
