"""A fleet of real processes on this machine, as its commands start it: who joins, who dies and returns."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest
from filelock import FileLock

from benchmarks.fleet.faults import run_trials
from benchmarks.fleet.processes import HARNESS, Processes, free_port, wait_until
from harness.cache import cache_root
from harness.compare.options import CompareOptions
from harness.compare.pairs import Side
from harness.errors import RunError, UsageError
from harness.fleet.access import Access, access_to, ask, make_fleet
from harness.fleet.bench import FleetBench
from harness.fleet.connection import connect, fleet_now
from harness.fleet.processes import FACTS, MEASURE
from harness.process import Limits
from harness.stages import run as stages_run
from harness.stages.comparing import ComparisonSession, compare_sides
from harness.stages.options import RunOptions
from harness.stages.run import run_suite
from harness.store.folders import COMPARISON
from harness.store.run_directory import load_run
from tests.builders import Notes, make_artifact
from tests.fakes.fake_toolchain import make_fake_toolchain
from tests.fleet.scripted import SUITE

PATIENCE_S = 60.0
Process = subprocess.Popen[bytes]


class _World(Processes):
    """Members of one fleet, which meet over TLS; each host has a cache and temporary files of its own."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.address = f"tls://127.0.0.1:{free_port()}"
        self.make_members()

    def command(self, log: str, *words: str, **environment: str) -> Process:
        return self.start(log, [*HARNESS, "fleet", *words], {"COLUMNS": "160", **environment})

    def worker(self, name: str) -> Process:
        temporary = self.folder / f"{name}-tmp"
        temporary.mkdir(exist_ok=True)
        its = ("--name", name, "--class", f"class of {name}", "--jobs", "1", "--compile-memory", "2", "--as-root")
        own = {"HARNESS_CACHE": str(self.folder / f"{name}-cache"), "TMPDIR": str(temporary)}
        return self.command(name, "worker", "--scheduler", self.address, *its, **own)

    def access(self, address: str = "") -> Access:
        member = self.folder / "configuration/iree-harness/fleet"
        return access_to(address or self.address, "--fleet", member, trust_network=False)

    def status(self) -> Any:
        return fleet_now(ask(self.access(), FACTS), self.address)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[_World]:
    world = _World(tmp_path)
    with world:
        yield world


def test_hosts_join_work_alone_and_leave(world: _World) -> None:
    world.scheduler(world.address, 60.0)
    first, second = world.worker("host-a"), world.worker("host-b")
    for name in ("host-a", "host-b"):
        world.wait_for(name, f"{name} has joined")
    stranger = world.folder / "stranger"
    make_fleet(stranger, 1)
    asking = ("status", "--fleet", world.address)
    refused = {
        "stranger": world.command("stranger", *asking, HARNESS_FLEET_CERTIFICATES=str(stranger)),
        "second": world.command("second", "scheduler", "--listen", world.address, "--as-root"),
    }
    with connect(world.access()) as fleet:
        offers = fleet.run(fleet.offers()).usable
        assert offers["host-a"].machine_class == "class of host-a"
        with pytest.raises(UsageError, match="Dask answers there, but no scheduler of the harness"):
            ask(world.access(offers["host-a"].address), FACTS)

        def order(release: str) -> tuple[str, Limits, set[str], str]:
            from harness.fleet import processes, tasks

            while not Path(release).exists():
                time.sleep(0.02)
            with tasks._alone():
                limits = processes.limits_here(Limits(seconds=10.0, memory_bytes=2**40))
                name = processes.this_host.offer.name
                return name, limits, daskish & set(os.environ), Path(os.environ["TMPDIR"]).name

        daskish = {"PYTHONHASHSEED", "OMP_NUM_THREADS", "MALLOC_TRIM_THRESHOLD_"} - set(os.environ)

        def submit(release: str, number: int) -> Any:
            own = {"workers": [offers["host-b"].address], "resources": {MEASURE: 1}, "pure": False}
            return fleet.client.submit(order, str(world.folder / release), key=f"measure mlp@cpu #{number}", **own)

        running, behind = submit("release", 1), submit("release", 2)
        fleet.run(fleet.tell_waits({"its host host-a has gone": 1}))
        seen = wait_until(lambda: world.status() if world.status()["hosts"][1]["doing"] else None, "a host to work")
        assert [piece["what"] for piece in seen["hosts"][1]["doing"]] == ["measure mlp@cpu"]
        assert seen["waiting"] == [{"why": "its host host-a has gone", "count": 1}]
        with FileLock(world.folder / "host-b-tmp" / f"iree-harness-{os.getuid()}-measures.lock"):
            (world.folder / "release").touch()
            time.sleep(0.5)
            assert not running.done()  # another harness measures there
        limits = Limits(seconds=10.0, memory_bytes=2 * 2**30)
        assert running.result(timeout=PATIENCE_S) == ("host-b", limits, set(), "host-b-tmp")
        behind.result(timeout=PATIENCE_S)
    assert {name: process.wait(PATIENCE_S) for name, process in refused.items()} == dict.fromkeys(refused, 2)
    world.wait_for("stranger", "this machine does not trust the scheduler")
    world.wait_for("second", r"cannot listen there \(Address already in use\)")
    world.wait_for("scheduler", "Dask: .*TLS handshake failed")
    for host in (first, second):
        host.terminate()  # as a service manager does
        assert host.wait(PATIENCE_S) == 0
    assert not world.status()["hosts"]


def test_a_host_that_hangs_is_given_up_and_comes_back(world: _World) -> None:
    world.scheduler(world.address, 3.0)
    host = world.worker("host-a")
    world.wait_for("host-a", "host-a has joined")
    (worker,) = (each for each in psutil.Process(host.pid).children() if "spawn_main" in " ".join(each.cmdline()))
    worker.suspend()
    world.wait_for("scheduler", "(?s)host-a has left.*host-a has joined")


_HOSTS = ("host-a", "host-b")


@pytest.fixture(scope="module")
def two_hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Access]:
    """Where the scheduler of two hosts listens, whose caches last from test to test."""
    folder = tmp_path_factory.mktemp("fleet")
    access = access_to(f"tcp://127.0.0.1:{free_port()}", "--fleet", None, trust_network=False)
    with Processes(folder) as processes:
        processes.scheduler(str(access), 60.0)
        command = [sys.executable, "-m", "tests.fleet.fake_host", str(access)]
        for name in _HOSTS:
            processes.start(name, [*command, name, str(folder / name)])
        for name in _HOSTS:
            processes.wait_for(name, "has joined")
        yield access


@pytest.fixture(autouse=True)
def _cached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The model of suites is in this machine's cache, and so are they."""
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path / "cache"))
    program = cache_root() / "models" / "a" / "model.mlir"
    program.parent.mkdir(parents=True)
    program.write_text("module @a {}\n")
    artifact = replace(make_artifact(program, arguments=()), name="a", sha256="a" * 64)
    monkeypatch.setattr(stages_run, "materialize_models", lambda *_: {"a": artifact})


def test_a_run_whose_worker_scheduler_and_asker_are_killed_has_everything_once() -> None:
    faults = ("worker killed", "scheduler killed", "asker killed")
    (trial,) = run_trials(range(143, 144), dict.fromkeys(faults, 1))
    assert {fault.split(":")[0] for fault in trial.faults} == set(faults)
    assert trial.audit is not None
    assert (trial.audit.lost, trial.audit.twice, trial.audit.reasons) == ((), (), ())
    assert trial.audit.whole == trial.audit.generations


_OF_EACH_HOST = """
on = "host-*"
hosts = "each"
[devices.gpu]
uri = "hip"
backend = "rocm"
[variants.stock]
[variants.fast]
flags = ["--fake-code=fast"]
[measure]
budget_s = 1
generations = 2
"""


def test_a_suite_goes_from_its_file_to_its_report(two_hosts: Access, tmp_path: Path) -> None:
    suite, toolchains = cache_root() / "suite.toml", [make_fake_toolchain(tmp_path / "tools")]
    suite.write_text(SUITE + _OF_EACH_HOST)
    options = RunOptions(suite, results=tmp_path / "results")
    with connect(two_hosts) as fleet:
        path = run_suite(options, Notes(), toolchains, FleetBench(fleet))
    run = load_run(path)
    assert run.finished
    assert run.header.settings["fleet"] == str(two_hosts)
    assert run.host_of_group == {"a@cpu.host-a": "host-a", "a@cpu.host-b": "host-b"}
    assert {timed.host for timed in run.rounds} == set(_HOSTS)
    skips = {case.device: case.skip for case in run.header.cases}
    assert skips.pop("gpu") is not None
    assert skips == {"cpu.host-a": None, "cpu.host-b": None}
    assert len({build.module_sha256 for build in run.builds}) == 2  # and the two hosts share them
    flags = {flag for build in run.builds for flag in build.command if "target-cpu=" in flag}
    assert flags == {"--iree-llvmcpu-target-cpu=znver3"}  # what `host` means there
    with pytest.raises(RunError, match=f"hosts of a fleet measured it; go on with --fleet {two_hosts}"):
        (path / "finished.json").unlink()
        run_suite(replace(options, resume=path), Notes(), toolchains)


def test_both_sides_of_a_row_are_measured_on_one_host(two_hosts: Access, tmp_path: Path) -> None:
    """The head takes 1.2 times as long as the base."""
    results, sides = tmp_path / "results", ("base", "head")
    toolchain = make_fake_toolchain(tmp_path / "tools")
    chosen = CompareOptions(
        results=results, by_name=True, metric="compile-time", compile_budget=2.0, fleet=str(two_hosts)
    )
    with connect(two_hosts) as fleet, ComparisonSession(chosen, sides, ["compare"]) as session:
        session.executor, session.progress = FleetBench(fleet), Notes()
        runs = []
        for side in sides:
            suite = cache_root() / f"{side}.toml"
            suite.write_text(f'{SUITE}[variants.stock]\nflags = ["--fake-code={side}"]\n')
            run = session.run_of_side(side, RunOptions(suite, results=results, measure=False), [toolchain])
            runs.append(Side(load_run(run, rounds=False), str(run)))
        base, head = runs
        assert base.run.host_of_group == head.run.host_of_group
        comparison, path = compare_sides(
            base, head, {record: toolchain for side in runs for record in side.toolchains.values()}, session
        )
    latency, compiled = (
        next(row for row in comparison.rows if row.metric == metric) for metric in ("latency", "compile-time")
    )
    assert (latency.verdict, round(latency.ratio or 0, 3)) == ("regressed", 1.2)
    (host,) = latency.hosts
    assert compiled.hosts == (host,)
    rounds = [json.loads(line) for line in (path / "rounds.jsonl").read_text().splitlines()]
    assert {each["host"] for each in rounds} == {host}
    assert len({(each["generation"], each["round"]) for each in rounds}) == len(rounds)
    assert {each["generation"] for each in rounds} == set(range(latency.generations))
    assert [record.name for record in comparison.hosts] == [host]
    assert comparison.machine.description.startswith(f"{host}: ")
    assert COMPARISON.load(path).hosts == comparison.hosts
