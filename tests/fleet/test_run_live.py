"""A whole run over a fleet of real processes on this machine, whose tools are scripted."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from harness.errors import RunError
from harness.fleet import bench
from harness.fleet.bench import FleetBench
from harness.records.run import Run
from harness.stages import run as stages_run
from harness.stages.options import RunOptions
from harness.stages.run import run_suite
from harness.store.run_directory import load_run
from tests.fleet.asking import CASES, GENERATIONS
from tests.fleet.world import World, switch_off, worker_of

_GROUPS = {case.group for case in CASES}


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path / "cache"))
    world = World(tmp_path)
    yield world
    world.end()


@pytest.fixture
def two_hosts(lasting: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    """For tests that leave both hosts as they find them."""
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path / "cache"))
    return lasting.for_another_run(tmp_path)


def _assert_whole(run: Run) -> None:
    """Each case is compiled, checked and timed as often as it should be, nothing twice, each group on one host."""
    names = sorted(case.name for case in CASES)
    assert sorted(build.case for build in run.builds) == names
    assert sorted(check.case for check in run.checks) == names
    assert sorted(reference.case for reference in run.references) == names
    assert not any(build.failure for build in run.builds)
    assert not any(check.failure for check in run.checks)
    assert not any(reference.failure for reference in run.references)
    assert not run.lost
    assert {timed.generation for timed in run.rounds} == set(range(GENERATIONS))
    turns = [(timed.group, timed.generation, timed.round) for timed in run.rounds]
    assert len(turns) == len(set(turns))
    assert {group for group, _, _ in turns} == _GROUPS
    assert {timed.host for timed in run.rounds} <= {host.name for host in run.hosts}
    assert all(timed.host == run.host_of_group[timed.group] for timed in run.rounds)


def test_a_run_over_two_hosts_is_whole(two_hosts: World) -> None:
    run = two_hosts.asking.run()
    _assert_whole(run)
    assert {placed.host for placed in run.placed} == {"host-a", "host-b"}
    commands = {build.case: build.command for build in run.builds}
    assert "--iree-llvmcpu-target-cpu=znver3" in commands["a/stock@cpu"]
    assert not any(flag.endswith("=host") for command in commands.values() for flag in command)


def test_a_worker_that_dies_does_its_generation_again_when_it_is_back(two_hosts: World) -> None:
    host, asking = two_hosts.machines["host-a"], two_hosts.asking
    killed = two_hosts.when_measured(2, lambda: worker_of(host).kill(), host="host-a")
    run = asking.run()
    killed.join()
    _assert_whole(run)
    assert [placed.attempt for placed in run.placed] == [0] * len(_GROUPS)
    assert any("host-a has gone" in line for line in asking.notes.lines)
    assert "host-a is back" in asking.notes.lines


def test_a_run_waits_for_a_host_that_has_gone_since_it_was_planned(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    (host,) = world.hosts("host-a")

    def go_and_come_back(_: Path) -> None:
        switch_off(host)
        world.says("scheduler", "host-a has left")
        threading.Timer(0.5, world.hosts, ["host-a"]).start()

    monkeypatch.setattr(bench, "trim_outputs", go_and_come_back)
    _assert_whole(world.asking.run())


def test_a_run_whose_asker_was_killed_goes_on_without_repeating(two_hosts: World) -> None:
    command = [sys.executable, "-m", "tests.fleet.asking", str(two_hosts.folder), two_hosts.address]
    asker = two_hosts.start("asker", command)
    two_hosts.when_measured(5, lambda: switch_off(asker)).join()
    asker.wait()
    rounds = two_hosts.asking.directory.path / "rounds.jsonl"
    rounds.write_text("".join(rounds.read_text().splitlines(keepends=True)[:-1]))  # as if it had been writing
    before = load_run(rounds.parent)
    run = two_hosts.asking.run()
    _assert_whole(run)
    assert run.rounds[: len(before.rounds)] == before.rounds


def test_a_scheduler_that_goes_away_ends_the_run_with_how_to_go_on(world: World) -> None:
    world.hosts("host-a")
    killed = world.when_measured(1, world.scheduler.kill)
    gone = r"the scheduler has gone; what has arrived is kept: go on with .* --fleet tcp://"
    with pytest.raises(RunError, match=gone):
        world.asking.run()
    killed.join()
    assert load_run(world.asking.directory.path).rounds


_SUITE = """\
name = "small"
baseline = "stock"
[models.a]
mlir = "models/a/model.mlir"
function = "main"
inputs = [{ shape = [4] }]
[variants.stock]
[variants.fast]
flags = ["--fake-code=fast"]
[devices.cpu]
uri = "local-sync"
backend = "llvm-cpu"
compile_flags = ["--iree-hal-target-device=local", "--iree-llvmcpu-target-cpu=host"]
on = "host-*"
hosts = "each"
[devices.gpu]
uri = "hip"
backend = "rocm"
[measure]
budget_s = 1
generations = 2
"""


def test_a_suite_goes_from_its_file_to_its_report(two_hosts: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world = two_hosts
    suite = world.folder / "suite.toml"
    suite.write_text(_SUITE)
    monkeypatch.setattr(stages_run, "materialize_models", lambda *_: {"a": world.asking.artifacts["a"]})
    options = RunOptions(suite, results=world.folder / "results")
    with world.asking.asked() as fleet:
        path = run_suite(options, world.asking.notes, [world.asking.toolchain], FleetBench(fleet))
    run = load_run(path)
    assert run.finished
    assert run.header.settings["fleet"] == world.address
    assert run.host_of_group == {"a@cpu.host-a": "host-a", "a@cpu.host-b": "host-b"}
    assert {timed.host for timed in run.rounds} == {"host-a", "host-b"}
    skips = {case.device: case.skip for case in run.header.cases}
    assert skips.pop("gpu") is not None
    assert skips == {"cpu.host-a": None, "cpu.host-b": None}
    assert len({build.module_sha256 for build in run.builds}) == 2  # and the two hosts share them
    with pytest.raises(RunError, match=f"hosts of a fleet measured it; go on with --fleet {world.address}"):
        (path / "finished.json").unlink()
        run_suite(replace(options, resume=path), world.asking.notes, [world.asking.toolchain])
