"""A fleet of real processes on this machine, as its commands start it: who joins, who dies and returns."""

import getpass
import os
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import psutil
import pytest
from filelock import FileLock

from benchmarks.fleet.processes import HARNESS, Processes, end, free_port, wait_until
from harness.errors import PlaceGone, UsageError
from harness.fleet.access import Access, access_to, ask, make_fleet, make_member
from harness.fleet.connection import Fleet, connect
from harness.fleet.offer import Offer
from harness.fleet.scheduler import FACTS
from harness.fleet.status import fleet_now
from harness.fleet.worker import COMPILE, MEASURE
from harness.process import Limits

PATIENCE_S = 60.0
Process = subprocess.Popen[bytes]


class _World(Processes):
    """Processes with certificates of a fleet; each host has a cache and temporary files of its own."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.address = f"tls://127.0.0.1:{free_port()}"
        make_fleet(folder / "bench", 1)
        for name in ("host-a", "host-b"):
            make_member(folder / name, folder / "bench", 1)
        make_fleet(folder / "stranger", 1)

    def at(self, folder: str, *words: str, log: str = "", **environment: str) -> Process:
        """Start a command that has the certificate of a folder."""
        own = {"HARNESS_FLEET_CERTIFICATES": str(self.folder / folder), "COLUMNS": "160", **environment}
        return self.start(log or folder, [*HARNESS, "fleet", *words], own)

    def bench(self, *words: str, log: str = "bench") -> Process:
        started = self.at("bench", "scheduler", "--listen", self.address, "--as-root", *words, log=log)
        self.wait_for(log, "a scheduler listens|cannot listen")
        return started

    def worker(self, name: str) -> Process:
        temporary = self.folder / f"{name}-tmp"
        temporary.mkdir(exist_ok=True)
        its = ("--name", name, "--class", f"class of {name}", "--jobs", "1", "--compile-memory", "2", "--as-root")
        own = {"HARNESS_CACHE": str(self.folder / f"{name}-cache"), "TMPDIR": str(temporary)}
        return self.at(name, "worker", "--scheduler", self.address, *its, **own)

    def access(self, address: str = "") -> Access:
        return access_to(address or self.address, "--fleet", self.folder / "bench", trust_network=False)

    def status(self) -> Any:
        return fleet_now(ask(self.access(), FACTS), self.address)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[_World]:
    world = _World(tmp_path)
    with world:
        yield world


def offers_of(fleet: Fleet) -> Mapping[str, Offer]:
    return fleet.run(fleet.offers()).usable


def worker_of(host: Process) -> psutil.Process:
    """The worker process of a host, which its nanny started."""
    return next(child for child in psutil.Process(host.pid).children() if "spawn_main" in " ".join(child.cmdline()))


def on_host(fleet: Fleet, function: Callable[..., Any], *arguments: Any, **options: Any) -> Future[Any]:
    """What a function gives on a host."""

    async def ask() -> Any:
        return await fleet.client.submit(function, *arguments, pure=False, **options)

    return fleet.start(ask())


def test_hosts_join_work_die_and_come_back(world: _World) -> None:
    world.bench()
    first, second = world.worker("host-a"), world.worker("host-b")
    for name in ("host-a", "host-b"):
        world.wait_for(name, f"{name} has joined")
    namesake = ("worker", "--scheduler", world.address, "--name", "host-a", "--as-root")
    refused = {
        "stranger": world.at("stranger", "status", "--fleet", world.address),
        "namesake": world.at("host-b", *namesake, log="namesake"),
        "second": world.bench(log="second"),
    }
    changes: list[None] = []
    with connect(world.access()) as fleet:
        fleet.on_change = lambda: changes.append(None)
        offers = offers_of(fleet)
        assert offers["host-a"].machine_class == "class of host-a"
        with pytest.raises(UsageError, match="Dask answers there, but no scheduler of the harness"):
            ask(world.access(offers["host-a"].address), FACTS)

        def order(release: str) -> tuple[str, Limits, set[str], str]:
            from harness.fleet import tasks, worker

            Path(f"{release}.awaited").touch()
            while not Path(release).exists():
                time.sleep(0.02)
            with tasks._alone():
                limits = worker.limits_here(Limits(seconds=10.0, memory_bytes=2**40))
                return worker.host().offer.name, limits, daskish & set(os.environ), Path(os.environ["TMPDIR"]).name

        daskish = {"PYTHONHASHSEED", "OMP_NUM_THREADS", "MALLOC_TRIM_THRESHOLD_"} - set(os.environ)

        def submit(release: str, number: int) -> Any:
            options = {"key": f"measure mlp@cpu #{number}", "resources": {MEASURE: 1}}
            return on_host(fleet, order, str(world.folder / release), workers=[offers["host-b"].address], **options)

        running, behind = submit("release", 1), submit("release", 2)
        fleet.run(fleet.tell_waits({"its host host-a has gone": 1}))
        seen = wait_until(lambda: world.status() if world.status()["hosts"][1]["doing"] else None, "a host to work")
        assert [piece["what"] for piece in seen["hosts"][1]["doing"]] == ["measure mlp@cpu"]
        assert seen["waiting"] == [{"why": "its host host-a has gone", "count": 1}]
        with FileLock(world.folder / "host-b-tmp" / f"iree-harness-{getpass.getuser()}-measures.lock"):
            (world.folder / "release").touch()
            time.sleep(0.5)
            assert not running.done()  # another harness measures there
        limits = Limits(seconds=10.0, memory_bytes=2 * 2**30)
        assert running.result(timeout=PATIENCE_S) == ("host-b", limits, set(), "host-b-tmp")
        behind.result(timeout=PATIENCE_S)
        lost = submit("never", 3)
        wait_until((world.folder / "never.awaited").exists, "a task to begin")
        worker_of(second).kill()
        with pytest.raises(Exception, match="died"):
            lost.result(timeout=PATIENCE_S)
        wait_until(lambda: len(changes) == 2, "a host to leave, and join")
        again = offers_of(fleet)["host-b"]
        assert again.address != offers["host-b"].address
        assert again.toolchains == offers["host-b"].toolchains
        assert on_host(fleet, lambda: 7, resources={COMPILE: 1}).result(timeout=PATIENCE_S) == 7
    assert {name: process.wait(PATIENCE_S) for name, process in refused.items()} == dict.fromkeys(refused, 2)
    world.wait_for("stranger", "this machine does not trust the scheduler")
    world.wait_for("namesake", "the host host-a is there already .*choose another name with --name")
    world.wait_for("second", r"cannot listen there \(Address already in use\)")
    world.wait_for("bench", "Dask: .*TLS handshake failed")
    for host in (first, second):
        host.terminate()  # as a service manager does
        assert host.wait(PATIENCE_S) == 0
    assert not world.status()["hosts"]


def test_a_host_that_hangs_and_a_scheduler_that_dies_come_back(world: _World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.fleet.connection._CONNECT_S", 1.0)
    scheduler, host = world.bench("--lost-after", "3"), world.worker("host-a")
    world.wait_for("host-a", "host-a has joined")
    with connect(world.access()) as fleet:
        assert list(offers_of(fleet)) == ["host-a"]
        worker_of(host).suspend()
        world.wait_for("bench", "(?s)host-a has left.*host-a has joined")
        assert list(offers_of(fleet)) == ["host-a"]
        end(scheduler)
        with pytest.raises(PlaceGone, match="the scheduler has gone"):
            offers_of(fleet)
        assert not fleet.is_connected
        world.wait_for("host-a", "it joins again when a scheduler answers there")
    world.bench(log="again")
    world.wait_for("host-a", "(?s)has joined.*host-a has joined")
    with connect(world.access()) as fleet:
        assert list(offers_of(fleet)) == ["host-a"]
