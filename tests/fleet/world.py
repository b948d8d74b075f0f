"""A fleet of real processes on this machine."""

from __future__ import annotations

import contextlib
import copy
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import psutil

from harness.fleet.access import access_to, ask
from harness.fleet.connection import Fleet
from harness.fleet.scheduler import FACTS
from harness.store.run_directory import load_run
from tests.fleet.asking import Asking

PATIENCE_S = 60.0
Process = subprocess.Popen[bytes]
# Of one model; each of the variants says how its compiler makes its code.
SUITE = """\
name = "small"
baseline = "stock"
[models.a]
mlir = "models/a/model.mlir"
function = "main"
inputs = [{ shape = [4] }]
[devices.cpu]
uri = "local-sync"
backend = "llvm-cpu"
compile_flags = ["--iree-hal-target-device=local", "--iree-llvmcpu-target-cpu=host"]
"""


class Processes:
    """Processes of their own, and what each has said, by name."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.started: list[Process] = []

    def start(self, name: str, command: list[str], **environment: str) -> Process:
        """Start one."""
        with self._log(name).open("ab") as log:
            own = {**os.environ, **environment}
            self.started.append(
                subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, env=own, start_new_session=True)
            )
        return self.started[-1]

    def fleet(self, name: str, *arguments: str, **environment: str) -> Process:
        """Start `harness fleet ...`."""
        command = [sys.executable, "-c", "from harness.cli import main; main()", "fleet", *arguments]
        return self.start(name, command, **environment)

    def scheduler(self, name: str, listen: str, *arguments: str, **environment: str) -> str:
        """Start a scheduler; its address."""
        self.fleet(name, "scheduler", "--listen", listen, "--as-root", *arguments, **environment)
        return self.says(name, r"(\S+): a scheduler listens")

    def _log(self, name: str) -> Path:
        return self.folder / f"{name}.log"

    def says(self, name: str, pattern: str, times: int = 1) -> str:
        """Wait until a process has said something so many times."""
        found = wait_for(lambda: list(re.finditer(pattern, self._log(name).read_text()))[times - 1 :])
        return str(found[-1][found[-1].lastindex or 0])

    def end(self) -> None:
        """Kill all."""
        switch_off(*self.started)
        for process in self.started:
            process.wait()


class World(Processes):
    """A scheduler, hosts whose tools are scripted, and one run."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.machines: dict[str, Process] = {}
        self.address = self.scheduler("scheduler", "tcp://127.0.0.1:0")
        self.asking = Asking(folder, self.address)

    def hosts(self, *names: str) -> list[Process]:
        """Hosts that have joined."""
        command = [sys.executable, "-m", "tests.fleet.fake_host", self.address]
        self.machines |= {name: self.start(name, [*command, name, str(self.folder / name)]) for name in names}
        for name in names:
            self.says(name, "has joined")
        return [self.machines[name] for name in names]

    def for_another_run(self, folder: Path) -> World:
        """The same processes, for a run in another folder, once all of the hosts are there."""
        access = access_to(self.address, "--fleet", None, trust_network=False)
        wait_for(lambda: len(ask(access, FACTS)["hosts"]) == len(self.machines))
        other = copy.copy(self)
        other.folder, other.asking = folder, Asking(folder, self.address)
        return other

    def when_measured(self, generations: int, act: Callable[[], object], host: str = "") -> threading.Thread:
        """Do something once so many generations are on disk."""

        def measured() -> bool:
            rounds = load_run(self.asking.directory.path).rounds
            return len({(each.group, each.generation) for each in rounds if host in ("", each.host)}) >= generations

        return once(measured, act)


def on_host(fleet: Fleet, function: Callable[..., Any], *arguments: Any, **options: Any) -> Future[Any]:
    """What a function gives on a host."""

    async def ask() -> Any:
        return await fleet.client.submit(function, *arguments, pure=False, **options)

    return fleet.start(ask())


def once(condition: Callable[[], Any], act: Callable[[], object]) -> threading.Thread:
    """Do something in a thread once a condition is true."""

    def wait() -> None:
        wait_for(condition)
        act()

    thread = threading.Thread(target=wait)
    thread.start()
    return thread


def wait_for(condition: Callable[[], Any]) -> Any:
    """What a condition gives once it is true."""
    deadline = time.monotonic() + PATIENCE_S
    while not (found := condition()):
        assert time.monotonic() < deadline, "it took too long"
        time.sleep(0.05)
    return found


def worker_of(host: Process) -> psutil.Process:
    """The worker process of a host, which its nanny started."""
    return next(child for child in psutil.Process(host.pid).children() if "spawn_main" in " ".join(child.cmdline()))


def switch_off(*machines: Process) -> None:
    """Switch machines off."""
    for machine in machines:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(machine.pid, signal.SIGKILL)
