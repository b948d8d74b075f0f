"""Whole runs and comparisons over a fleet of real processes on this machine, whose tools are scripted."""

import json
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.fleet.faults import run_trials
from benchmarks.fleet.processes import Processes, free_port, wait_until
from harness.cache import cache_root
from harness.compare.options import CompareOptions
from harness.compare.pairs import side_of
from harness.errors import RunError
from harness.fleet.access import access_to
from harness.fleet.bench import FleetBench
from harness.fleet.connection import connect
from harness.stages import run as stages_run
from harness.stages.comparing import ComparisonSession, compare_sides
from harness.stages.options import RunOptions
from harness.stages.run import run_suite
from harness.store.kinds import COMPARISON
from harness.store.run_directory import load_run
from tests.builders import Notes, make_artifact
from tests.fakes.fake_toolchain import make_fake_toolchain
from tests.fleet.hosts import SUITE
from tests.fleet.test_live import Process, worker_of

_HOSTS = ("host-a", "host-b")


class World(Processes):
    """A scheduler and two hosts, with caches that last from test to test."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.access = access_to(f"tcp://127.0.0.1:{free_port()}", "--fleet", None, trust_network=False)
        self.scheduler(str(self.access), 60.0)
        command = [sys.executable, "-m", "tests.fleet.fake_host", str(self.access)]
        self.machines: dict[str, Process] = {
            name: self.start(name, [*command, name, str(folder / name)]) for name in _HOSTS
        }
        for name in _HOSTS:
            self.wait_for(name, "has joined")


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    world = World(tmp_path_factory.mktemp("fleet"))
    with world:
        yield world


@pytest.fixture(autouse=True)
def _cached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The model of suites is in this machine's cache, and so are they."""
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path / "cache"))
    program = cache_root() / "models" / "a" / "model.mlir"
    program.parent.mkdir(parents=True)
    program.write_text("module @a {}\n")
    artifact = replace(make_artifact(program, arguments=()), name="a", sha256="a" * 64)
    monkeypatch.setattr(stages_run, "materialize_models", lambda *_: {"a": artifact})


def test_a_run_whose_worker_and_asker_are_killed_has_everything_once() -> None:
    (trial,) = run_trials(range(10, 11), {"worker killed": 1, "asker killed": 1})
    assert trial.audit is not None
    assert (trial.audit.lost, trial.audit.twice, trial.audit.reasons) == ((), (), ())
    assert trial.audit.whole == trial.audit.generations
    assert {fault.split(":")[0] for fault in trial.faults} == {"worker killed", "asker killed"}


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


def test_a_suite_goes_from_its_file_to_its_report(world: World, tmp_path: Path) -> None:
    suite, toolchains = cache_root() / "suite.toml", [make_fake_toolchain(tmp_path / "tools")]
    suite.write_text(SUITE + _OF_EACH_HOST)
    options = RunOptions(suite, results=tmp_path / "results")
    with connect(world.access) as fleet:
        path = run_suite(options, Notes(), toolchains, FleetBench(fleet))
    run = load_run(path)
    assert run.finished
    assert run.header.settings["fleet"] == str(world.access)
    assert run.host_of_group == {"a@cpu.host-a": "host-a", "a@cpu.host-b": "host-b"}
    assert {timed.host for timed in run.rounds} == set(_HOSTS)
    skips = {case.device: case.skip for case in run.header.cases}
    assert skips.pop("gpu") is not None
    assert skips == {"cpu.host-a": None, "cpu.host-b": None}
    assert len({build.module_sha256 for build in run.builds}) == 2  # and the two hosts share them
    flags = {flag for build in run.builds for flag in build.command if "target-cpu=" in flag}
    assert flags == {"--iree-llvmcpu-target-cpu=znver3"}  # what `host` means there
    with pytest.raises(RunError, match=f"hosts of a fleet measured it; go on with --fleet {world.access}"):
        (path / "finished.json").unlink()
        run_suite(replace(options, resume=path), Notes(), toolchains)


def test_both_sides_of_a_row_are_measured_on_one_host_also_if_its_worker_dies(world: World, tmp_path: Path) -> None:
    """The head takes 1.2 times as long as the base."""
    results, sides, notes = tmp_path / "results", ("base", "head"), Notes()
    toolchain = make_fake_toolchain(tmp_path / "tools")

    def kill_its_worker() -> None:
        def begun() -> list[Path]:
            return [file for file in results.glob("*-compare/rounds.jsonl") if file.stat().st_size]

        (rounds,) = wait_until(begun, "a first round")
        worker_of(world.machines[json.loads(rounds.read_text().splitlines()[0])["host"]]).kill()

    chosen = CompareOptions(
        results=results, by_name=True, metric="compile-time", compile_budget=2.0, fleet=str(world.access)
    )
    killer = threading.Thread(target=kill_its_worker)
    with connect(world.access) as fleet, ComparisonSession(chosen, sides, ["compare"]) as session:
        session.executor, session.progress = FleetBench(fleet), notes
        runs = []
        for side in sides:
            suite = cache_root() / f"{side}.toml"
            suite.write_text(f'{SUITE}[variants.stock]\nflags = ["--fake-code={side}"]\n')
            run = session.run_of_side(side, RunOptions(suite, results=results, measure=False), [toolchain])
            runs.append(side_of(load_run(run, rounds=False), str(run)))
        base, head = runs
        assert base.run.host_of_group == head.run.host_of_group
        killer.start()
        comparison, path = compare_sides(base, head, {toolchain.version: toolchain}, session)
    killer.join()
    latency, compiled = (
        next(row for row in comparison.rows if row.metric == metric) for metric in ("latency", "compile-time")
    )
    assert (latency.verdict, round(latency.ratio or 0, 3)) == ("regressed", 1.2)
    (host,) = latency.hosts
    assert compiled.hosts == (host,)
    assert f"{host} is back" in notes.lines
    rounds = [json.loads(line) for line in (path / "rounds.jsonl").read_text().splitlines()]
    assert {each["host"] for each in rounds} == {host}
    assert len({(each["generation"], each["round"]) for each in rounds}) == len(rounds)
    assert {each["generation"] for each in rounds} == set(range(latency.generations))
    assert [record.name for record in comparison.hosts] == [host]
    assert comparison.machine.description.startswith(f"{host}: ")
    assert COMPARISON.load(path).hosts == comparison.hosts
