"""A fleet of real processes on this machine, whose tools are scripted, and one run on it."""

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

_PATIENCE_S = 60.0
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


class World:
    """A scheduler, hosts, and one run."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.processes: list[subprocess.Popen[bytes]] = []
        self.machines: dict[str, subprocess.Popen[bytes]] = {}
        command = [sys.executable, "-c", "from harness.cli import main; main()", "fleet", "scheduler", "--as-root"]
        self.scheduler = self.start("scheduler", [*command, "--listen", "tcp://127.0.0.1:0"])
        self.address = self.says("scheduler", r"(\S+): a scheduler listens")
        self.asking = Asking(folder, self.address)

    def start(self, name: str, command: list[str]) -> subprocess.Popen[bytes]:
        """A process of its own."""
        with (self.folder / f"{name}.log").open("ab") as log:
            started = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, start_new_session=True)
        self.processes.append(started)
        return started

    def hosts(self, *names: str) -> list[subprocess.Popen[bytes]]:
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

    def end(self) -> None:
        """Kill all processes."""
        switch_off(*self.processes)
        for process in self.processes:
            process.wait()

    def says(self, name: str, pattern: str) -> str:
        """Wait until a process has said something."""
        log = self.folder / f"{name}.log"
        match = wait_for(lambda: re.search(pattern, log.read_text()))
        return str(match[match.lastindex or 0])

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
    deadline = time.monotonic() + _PATIENCE_S
    while not (found := condition()):
        assert time.monotonic() < deadline, "it took too long"
        time.sleep(0.05)
    return found


def worker_of(host: subprocess.Popen[bytes]) -> psutil.Process:
    """The worker process of a host, which its nanny started."""
    return next(child for child in psutil.Process(host.pid).children() if "spawn_main" in " ".join(child.cmdline()))


def switch_off(*machines: subprocess.Popen[bytes]) -> None:
    """Switch machines off."""
    for machine in machines:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(machine.pid, signal.SIGKILL)
