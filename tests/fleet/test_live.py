"""A fleet of real processes on this machine: who joins, what each says, who dies and comes back.

Each host has a cache, temporary files and a CPU of its own: what its compiler makes of `host` is in the cache already,
so that nothing is compiled.
"""

import contextlib
import getpass
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock

from harness.cache import cache_root
from harness.errors import PlaceGone, UsageError
from harness.fleet.access import access_to, ask
from harness.fleet.certificates import make_fleet, make_member
from harness.fleet.connection import Fleet, connect
from harness.fleet.offer import Offer
from harness.fleet.scheduler import FACTS, by_reason
from harness.fleet.worker import COMPILE, MEASURE
from harness.machine.environment import capture_environment
from harness.machine.identity import processor_identity
from harness.process import Limits
from harness.toolchain import Toolchain
from harness.toolchain.host_cpu import HOST_TARGET, memo_of
from tests.fleet.world import on_host, switch_off, wait_for, worker_of

_COMMAND = [sys.executable, "-c", "from harness.cli import main; main()", "fleet"]
_PATIENCE_S = 60.0


@dataclass(frozen=True)
class _Process:
    """A scheduler or a worker, and what it has said so far."""

    started: subprocess.Popen[bytes]
    log: Path

    def says(self, pattern: str, times: int = 1) -> re.Match[str]:
        """Wait until it has said something so many times; the last one."""

        def said() -> re.Match[str] | None:
            found = list(re.finditer(pattern, self.log.read_text()))
            assert len(found) >= times or self.started.poll() is None, self.log.read_text()
            return found[-1] if len(found) >= times else None

        match = wait_for(said)
        assert isinstance(match, re.Match)
        return match

    def end(self) -> int:
        """Ask it to end, as a service manager does; its exit status."""
        self.started.terminate()
        return self.started.wait(_PATIENCE_S)


@dataclass(frozen=True)
class _World:
    """Certificates of a fleet, and its processes."""

    folder: Path
    toolchain: Toolchain
    processes: list[_Process] = field(default_factory=list)

    def start(self, name: str, *arguments: str, cpu: str = "znver3") -> _Process:
        """Start `harness fleet ...` as another machine would, in an environment of its own."""
        cache, temporary = self.folder / f"{name}-cache", self.folder / f"{name}-tmp"
        temporary.mkdir(exist_ok=True)
        asked = memo_of(self.toolchain, HOST_TARGET, processor_identity(capture_environment()))
        memo = cache / asked.relative_to(cache_root())
        memo.parent.mkdir(parents=True, exist_ok=True)
        memo.write_text(json.dumps([cpu, "+avx2", ""]))
        log = self.folder / f"{name}-{len(self.processes)}.log"
        own = {"HARNESS_CACHE": str(cache), "TMPDIR": str(temporary), "COLUMNS": "160"}
        with log.open("wb") as file:
            started = subprocess.Popen(
                [*_COMMAND, *arguments, "--certificates", str(self.folder / name)],
                stdout=file,
                stderr=subprocess.STDOUT,
                env={**os.environ, **own},
                start_new_session=True,
            )
        self.processes.append(_Process(started, log))
        return self.processes[-1]

    def start_scheduler(self, listen: str = "tls://127.0.0.1:0", lost_after: str = "60") -> tuple[_Process, str]:
        """A scheduler, and the address that it has."""
        scheduler = self.start("bench", "scheduler", "--listen", listen, "--lost-after", lost_after, "--as-root")
        return scheduler, scheduler.says(r"(\S+): a scheduler listens")[1]

    def start_worker(self, name: str, address: str, cpu: str = "znver3") -> _Process:
        """A host with a class of its own."""
        its = ("--name", name, "--class", f"class of {name}", "--jobs", "1", "--compile-memory", "2", "--as-root")
        return self.start(name, "worker", "--scheduler", address, *its, cpu=cpu)

    @contextlib.contextmanager
    def asked(self, address: str) -> Iterator[Fleet]:
        """The fleet, for this process."""
        with connect(access_to(address, "--fleet", self.folder / "bench", trust_network=False)) as fleet:
            yield fleet


@pytest.fixture
def world(tmp_path: Path, real_toolchain: Toolchain) -> Iterator[_World]:
    make_fleet(tmp_path / "bench", "bench", 1)
    for name in ("host-a", "host-b"):
        make_member(tmp_path / name, tmp_path / "bench", name, 1)
    make_fleet(tmp_path / "stranger", "stranger", 1)
    world = _World(tmp_path, real_toolchain)
    yield world
    switch_off(*(process.started for process in world.processes))
    for process in world.processes:
        process.started.wait()


def test_hosts_join_work_die_and_come_back(world: _World) -> None:
    scheduler, address = world.start_scheduler()
    first = world.start_worker("host-a", address)
    second = world.start_worker("host-b", address, cpu="znver4")
    first.says("host-a has joined")
    second.says("host-b has joined")
    stranger = world.start("stranger", "status", "--fleet", address)
    namesake = world.start("host-b", "worker", "--scheduler", address, "--name", "host-a", "--as-root")
    second_scheduler = world.start("bench", "scheduler", "--listen", address, "--as-root")
    changes: list[tuple[str, str]] = []
    with world.asked(address) as fleet:
        fleet.on_change = lambda change, name: changes.append((name, change))
        offers = offers_of(fleet)
        assert sorted(offers) == ["host-a", "host-b"]
        cpus = {name: next(iter(offer.toolchains.values())).cpu for name, offer in offers.items()}
        assert {name: cpu and cpu.name for name, cpu in cpus.items()} == {"host-a": "znver3", "host-b": "znver4"}
        assert offers["host-a"].machine_class == "class of host-a"
        with pytest.raises(UsageError, match="Dask answers there, but no scheduler of the harness"):
            ask(access_to(offers["host-a"].address, "--fleet", world.folder / "bench", trust_network=False), FACTS)

        def order(release: str) -> tuple[Offer, Limits, set[str], str]:
            from harness.fleet import worker

            Path(f"{release}.awaited").touch()
            while not Path(release).exists():
                time.sleep(0.02)
            asked = Limits(seconds=10.0, memory_bytes=2**40)
            return worker.host(), worker.limits_here(asked), daskish & set(os.environ), os.environ["TMPDIR"]

        daskish = {"PYTHONHASHSEED", "OMP_NUM_THREADS", "MALLOC_TRIM_THRESHOLD_"} - set(os.environ)

        at_b = {"workers": [offers["host-b"].address]}

        def submit(release: Path, number: int) -> Any:
            key = f"measure mlp@cpu #{number}"
            return on_host(fleet, order, str(release), key=key, resources={MEASURE: 1}, **at_b)

        release = world.folder / "release"
        running, behind = submit(release, 1), submit(release, 2)
        fleet.run(fleet.tell_waits(by_reason([("its host host-a has gone", "esrgan@hip")])))
        seen = wait_for(lambda: _status(world, address, lambda now: now["hosts"][1]["doing"] and now["waiting"]))
        assert [piece["what"] for piece in seen["hosts"][1]["doing"]] == ["measure mlp@cpu"]
        why = {each["why"] for each in seen["waiting"]}
        assert why == {"its host host-a has gone", "its host host-b is busy"}
        release.touch()
        host, limits, added, temporary = running.result(timeout=_PATIENCE_S)
        assert host == offers["host-b"]
        assert limits == Limits(seconds=10.0, memory_bytes=2 * 2**30)
        assert (added, Path(temporary).name) == (set(), "host-b-tmp")
        behind.result(timeout=_PATIENCE_S)

        def alone() -> int:
            from harness.fleet import tasks

            with tasks._alone():
                return 7

        with FileLock(world.folder / "host-b-tmp" / f"iree-harness-{getpass.getuser()}-measures.lock"):
            waits = on_host(fleet, alone, **at_b)
            wait_for(lambda: changes == [("host-b", "waits")])
        assert waits.result(timeout=_PATIENCE_S) == 7

        lost = submit(world.folder / "never", 3)
        wait_for((world.folder / "never.awaited").exists)
        worker_of(second.started).kill()
        with pytest.raises(Exception, match="died"):
            lost.result(timeout=_PATIENCE_S)
        wait_for(lambda: [change for _, change in changes] == ["waits", "left", "joined"])
        again = offers_of(fleet)["host-b"]
        assert again.address != offers["host-b"].address
        assert again.toolchains == offers["host-b"].toolchains
        assert on_host(fleet, lambda: 7, resources={COMPILE: 1}).result(timeout=_PATIENCE_S) == 7
    assert [each.started.wait(_PATIENCE_S) for each in (stranger, namesake, second_scheduler)] == [2, 2, 2]
    second_scheduler.says(r"cannot listen there \(Address already in use\)")
    stranger.says("this machine does not trust the scheduler")
    scheduler.says("Dask: .*TLS handshake failed")
    namesake.says("the host host-a is there already .*choose another name with --name")
    assert [process.end() for process in (first, second)] == [0, 0]
    assert not _status(world, address, bool)["hosts"]


def offers_of(fleet: Fleet) -> Mapping[str, Offer]:
    return fleet.run(fleet.offers()).usable


def _status(world: _World, address: str, holds: Callable[[Any], Any]) -> Any:
    """The status as JSON, where something holds for it; else None."""
    from harness.fleet.status import fleet_now, status_json

    facts = ask(access_to(address, "--fleet", world.folder / "bench", trust_network=False), FACTS)
    now = json.loads(status_json(fleet_now(facts, address)))
    return now if holds(now) else None


def test_a_host_that_hangs_and_a_scheduler_that_dies_come_back(world: _World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.fleet.connection._CONNECT_S", 1.0)
    scheduler, address = world.start_scheduler(lost_after="3")
    host = world.start_worker("host-a", address)
    host.says("host-a has joined")
    with world.asked(address) as fleet:
        assert list(offers_of(fleet)) == ["host-a"]
        assert fleet.is_connected
        worker_of(host.started).suspend()
        scheduler.says("host-a is silent for more than 5 s, and is given up")
        scheduler.says("host-a has joined", times=2)
        assert list(offers_of(fleet)) == ["host-a"]
        scheduler.started.kill()
        scheduler.started.wait()
        with pytest.raises(PlaceGone, match="the scheduler has gone"):
            offers_of(fleet)
        assert not fleet.is_connected
        host.says("it joins again when a scheduler answers there")
    world.start_scheduler(address)
    host.says("host-a has joined", times=2)
    with world.asked(address) as fleet:
        assert list(offers_of(fleet)) == ["host-a"]
    assert host.end() == 0
