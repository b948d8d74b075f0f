"""A fleet of real processes on this machine, as its commands start it: who joins, what each says, who dies and returns.

Each host has a cache, temporary files and a CPU of its own: what its compiler makes of `host` is in the cache already,
so that nothing is compiled.
"""

import contextlib
import getpass
import json
import os
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock

from harness.cache import cache_root
from harness.errors import PlaceGone, UsageError
from harness.fleet.access import Access, access_to, ask, make_fleet, make_member
from harness.fleet.connection import Fleet, connect
from harness.fleet.offer import Offer
from harness.fleet.scheduler import FACTS
from harness.fleet.status import fleet_now
from harness.fleet.worker import COMPILE, MEASURE
from harness.machine.environment import capture_environment
from harness.machine.identity import processor_identity
from harness.process import Limits
from harness.toolchain import Toolchain
from harness.toolchain.host_cpu import HOST_TARGET, memo_of
from tests.fleet.world import PATIENCE_S, Process, Processes, on_host, wait_for, worker_of


class _World(Processes):
    """Processes with certificates of a fleet."""

    def __init__(self, folder: Path, toolchain: Toolchain) -> None:
        super().__init__(folder)
        self._toolchain = toolchain
        make_fleet(folder / "bench", 1)
        for name in ("host-a", "host-b"):
            make_member(folder / name, folder / "bench", 1)
        make_fleet(folder / "stranger", 1)

    def at(self, folder: str) -> dict[str, str]:
        """The environment of a command that has the certificate of a folder."""
        return {"HARNESS_FLEET_CERTIFICATES": str(self.folder / folder), "COLUMNS": "160"}

    def worker(self, name: str, address: str, cpu: str = "znver3") -> Process:
        """A host with a class of its own, in an environment of its own."""
        cache, temporary = self.folder / f"{name}-cache", self.folder / f"{name}-tmp"
        temporary.mkdir(exist_ok=True)
        asked = memo_of(self._toolchain, HOST_TARGET, processor_identity(capture_environment()))
        memo = cache / asked.relative_to(cache_root())
        memo.parent.mkdir(parents=True, exist_ok=True)
        memo.write_text(json.dumps([cpu, "+avx2", ""]))
        its = ("--name", name, "--class", f"class of {name}", "--jobs", "1", "--compile-memory", "2", "--as-root")
        own = {**self.at(name), "HARNESS_CACHE": str(cache), "TMPDIR": str(temporary)}
        return self.fleet(name, "worker", "--scheduler", address, *its, **own)

    def access(self, address: str) -> Access:
        return access_to(address, "--fleet", self.folder / "bench", trust_network=False)

    @contextlib.contextmanager
    def asked(self, address: str) -> Iterator[Fleet]:
        """The fleet, for this process."""
        with connect(self.access(address)) as fleet:
            yield fleet

    def status(self, address: str) -> Any:
        return fleet_now(ask(self.access(address), FACTS), address)


@pytest.fixture
def world(tmp_path: Path, real_toolchain: Toolchain) -> Iterator[_World]:
    world = _World(tmp_path, real_toolchain)
    yield world
    world.end()


def offers_of(fleet: Fleet) -> Mapping[str, Offer]:
    return fleet.run(fleet.offers()).usable


def test_hosts_join_work_die_and_come_back(world: _World) -> None:
    address = world.scheduler("bench", "tls://127.0.0.1:0", **world.at("bench"))
    first, second = world.worker("host-a", address), world.worker("host-b", address, cpu="znver4")
    for name in ("host-a", "host-b"):
        world.says(name, f"{name} has joined")
    refused = {
        "stranger": world.fleet("stranger", "status", "--fleet", address, **world.at("stranger")),
        "namesake": world.fleet(
            "namesake", "worker", "--scheduler", address, "--name", "host-a", "--as-root", **world.at("host-b")
        ),
        "second": world.fleet("second", "scheduler", "--listen", address, "--as-root", **world.at("bench")),
    }
    changes: list[None] = []
    with world.asked(address) as fleet:
        fleet.on_change = lambda: changes.append(None)
        offers = offers_of(fleet)
        cpus = {name: next(iter(offer.toolchains.values())).cpu for name, offer in offers.items()}
        assert {name: cpu and cpu.name for name, cpu in cpus.items()} == {"host-a": "znver3", "host-b": "znver4"}
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
                return worker.host().offer.name, limits, daskish & set(os.environ), os.environ["TMPDIR"]

        daskish = {"PYTHONHASHSEED", "OMP_NUM_THREADS", "MALLOC_TRIM_THRESHOLD_"} - set(os.environ)
        lock = FileLock(world.folder / "host-b-tmp" / f"iree-harness-{getpass.getuser()}-measures.lock")

        def submit(release: str, number: int) -> Any:
            options = {"key": f"measure mlp@cpu #{number}", "resources": {MEASURE: 1}}
            return on_host(fleet, order, str(world.folder / release), workers=[offers["host-b"].address], **options)

        running, behind = submit("release", 1), submit("release", 2)
        fleet.run(fleet.tell_waits({"its host host-a has gone": 1}))
        seen = wait_for(lambda: world.status(address)["hosts"][1]["doing"] and world.status(address))
        assert [piece["what"] for piece in seen["hosts"][1]["doing"]] == ["measure mlp@cpu"]
        assert seen["waiting"] == [{"why": "its host host-a has gone", "count": 1}]
        with lock:  # another harness measures there
            (world.folder / "release").touch()
            time.sleep(0.5)
            assert not running.done()
        host, limits, added, temporary = running.result(timeout=PATIENCE_S)
        assert (host, limits) == ("host-b", Limits(seconds=10.0, memory_bytes=2 * 2**30))
        assert (added, Path(temporary).name) == (set(), "host-b-tmp")
        behind.result(timeout=PATIENCE_S)

        lost = submit("never", 3)
        wait_for((world.folder / "never.awaited").exists)
        worker_of(second).kill()
        with pytest.raises(Exception, match="died"):
            lost.result(timeout=PATIENCE_S)
        wait_for(lambda: len(changes) == 2)  # it has left, and joined
        again = offers_of(fleet)["host-b"]
        assert again.address != offers["host-b"].address
        assert again.toolchains == offers["host-b"].toolchains
        assert on_host(fleet, lambda: 7, resources={COMPILE: 1}).result(timeout=PATIENCE_S) == 7
    assert {name: process.wait(PATIENCE_S) for name, process in refused.items()} == dict.fromkeys(refused, 2)
    world.says("second", r"cannot listen there \(Address already in use\)")
    world.says("stranger", "this machine does not trust the scheduler")
    world.says("bench", "Dask: .*TLS handshake failed")
    world.says("namesake", "the host host-a is there already .*choose another name with --name")
    for host_process in (first, second):
        host_process.terminate()  # as a service manager does
        assert host_process.wait(PATIENCE_S) == 0
    assert not world.status(address)["hosts"]


def test_a_host_that_hangs_and_a_scheduler_that_dies_come_back(world: _World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.fleet.connection._CONNECT_S", 1.0)
    address = world.scheduler("bench", "tls://127.0.0.1:0", "--lost-after", "3", **world.at("bench"))
    host = world.worker("host-a", address)
    world.says("host-a", "host-a has joined")
    with world.asked(address) as fleet:
        assert list(offers_of(fleet)) == ["host-a"]
        worker_of(host).suspend()
        world.says("bench", "host-a has left")
        world.says("bench", "host-a has joined", times=2)
        assert list(offers_of(fleet)) == ["host-a"]
        world.started[0].kill()
        world.started[0].wait()
        with pytest.raises(PlaceGone, match="the scheduler has gone"):
            offers_of(fleet)
        assert not fleet.is_connected
        world.says("host-a", "it joins again when a scheduler answers there")
    world.scheduler("again", address, **world.at("bench"))
    world.says("host-a", "host-a has joined", times=2)
    with world.asked(address) as fleet:
        assert list(offers_of(fleet)) == ["host-a"]
