"""A comparison over a fleet of real processes on this machine, with scripted tools: head takes 1.2 times as long."""

from __future__ import annotations

import json
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.cache import cache_root
from harness.compare.options import CompareOptions
from harness.compare.pairs import side_of
from harness.errors import PlaceGone
from harness.fleet.bench import FleetBench
from harness.records.comparison import Comparison
from harness.stages import run as stages_run
from harness.stages.comparing import ComparisonSession, begun_comparison, compare_sides
from harness.stages.options import RunOptions
from harness.store.kinds import COMPARISON
from harness.store.run_directory import load_run
from tests.builders import make_artifact
from tests.fleet.world import World, once, worker_of

_SUITE = """\
name = "small"
baseline = "stock"
[models.a]
mlir = "models/a/model.mlir"
function = "main"
inputs = [{ shape = [4] }]
[variants.stock]
flags = ["--fake-code=SIDE"]
[devices.cpu]
uri = "local-sync"
backend = "llvm-cpu"
compile_flags = ["--iree-hal-target-device=local", "--iree-llvmcpu-target-cpu=host"]
"""
_SIDES = ("base", "head")


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path / "cache"))
    world = World(tmp_path)
    write_sides(tmp_path, monkeypatch)
    yield world
    world.end()


@pytest.fixture
def two_hosts(lasting: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    """For tests that leave both hosts as they find them."""
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path / "cache"))
    write_sides(tmp_path, monkeypatch)
    return lasting.for_another_run(tmp_path)


def write_sides(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The suites of both sides, and their model in this machine's cache."""
    program = cache_root() / "models" / "a" / "model.mlir"
    program.parent.mkdir(parents=True)
    program.write_text("module @a {}\n")
    artifact = replace(make_artifact(program, arguments=()), name="a", sha256="a" * 64)
    monkeypatch.setattr(stages_run, "materialize_models", lambda *_: {"a": artifact})
    for side in _SIDES:
        (folder / f"{side}.toml").write_text(_SUITE.replace("SIDE", side))


def compare(world: World, session: ComparisonSession) -> tuple[Comparison, Path]:
    """Compare a suite with another one, whose runs are made first where there are none."""
    with world.asking.asked() as fleet, session:
        session.executor, session.progress = FleetBench(fleet), world.asking.notes
        runs = [
            session.run_of_side(
                side,
                RunOptions(world.folder / f"{side}.toml", results=session.options.results, measure=False),
                [world.asking.toolchain],
            )
            for side in _SIDES
        ]
        base, head = (side_of(load_run(run, rounds=False), str(run)) for run in runs)
        assert base.run.host_of_group == head.run.host_of_group
        toolchains = {world.asking.toolchain.version: world.asking.toolchain}
        return compare_sides(base, head, toolchains, session)


def begun(world: World, **options: Any) -> ComparisonSession:
    results = world.folder / "results"
    chosen = CompareOptions(
        results=results, by_name=True, metric="compile-time", compile_budget=2.0, fleet=world.address, **options
    )
    return ComparisonSession(chosen, _SIDES, ["compare"])


def again(world: World) -> ComparisonSession:
    (path,) = (world.folder / "results").glob("*-compare")
    going, folder = begun_comparison(CompareOptions(resume=path, fleet=world.address))
    return ComparisonSession(going, folder=folder)


def when_measured(world: World, generations: int, act: Any) -> threading.Thread:
    """Do something once so many generations of latency are on disk."""

    def measured() -> bool:
        files = (world.folder / "results").glob("*-compare/generations.jsonl")
        return sum(len(file.read_text().splitlines()) for file in files) >= generations

    return once(measured, act)


def hosts_by_generation(path: Path) -> dict[int, str]:
    """Of the latency row, as its turns say; each generation has one host and no round twice."""
    rounds = [json.loads(line) for line in (path / "rounds.jsonl").read_text().splitlines()]
    assert max(Counter((each["generation"], each["round"]) for each in rounds).values()) == 1
    hosts = {
        each["generation"]: {other["host"] for other in rounds if other["generation"] == each["generation"]}
        for each in rounds
    }
    assert sorted(hosts) == list(range(len(hosts)))
    return {number: min(names) for number, names in hosts.items() if len(names) == 1}


def test_both_sides_of_a_row_are_measured_on_one_host(two_hosts: World) -> None:
    comparison, path = compare(two_hosts, begun(two_hosts))
    latency = next(row for row in comparison.rows if row.metric == "latency")
    assert (latency.verdict, round(latency.ratio or 0, 3)) == ("regressed", 1.2)
    (host,) = latency.hosts
    assert set(hosts_by_generation(path).values()) == {host.host}
    assert host.generations == latency.generations
    compiled = next(row for row in comparison.rows if row.metric == "compile-time")
    assert [each.host for each in compiled.hosts] == [host.host]
    assert [record.name for record in comparison.hosts] == [host.host]
    assert comparison.machine.description.startswith(f"{host.host}: ")
    assert COMPARISON.load(path).hosts == comparison.hosts


def test_a_row_that_is_spread_is_measured_on_all_hosts_while_workers_die(two_hosts: World) -> None:
    killed = when_measured(two_hosts, 3, lambda: worker_of(two_hosts.machines["host-a"]).kill())
    comparison, path = compare(two_hosts, begun(two_hosts, spread=True))
    killed.join()
    latency = next(row for row in comparison.rows if row.metric == "latency")
    assert latency.verdict == "regressed"
    assert [host.host for host in latency.hosts] == ["host-a", "host-b"]
    hosts = hosts_by_generation(path)
    assert [hosts[number] for number in range(4)] == ["host-a", "host-a", "host-b", "host-b"]
    assert len(hosts) == latency.generations
    assert "host-a is back" in two_hosts.asking.notes.lines


def test_one_whose_scheduler_has_gone_goes_on_without_repeating(world: World) -> None:
    world.hosts("host-a", "host-b")
    killed = when_measured(world, 4, world.scheduler.kill)
    with pytest.raises(PlaceGone, match=r"has gone.*; what has arrived is kept: go on with `harness compare --resume"):
        compare(world, begun(world, spread=True))
    killed.join()
    (kept,) = (world.folder / "results").glob("*-compare/generations.jsonl")
    before = kept.read_text().splitlines()
    port = world.address.rpartition(":")[2]
    command = [sys.executable, "-c", "from harness.cli import main; main()", "fleet", "scheduler", "--as-root"]
    world.start("scheduler-2", [*command, "--listen", f"tcp://127.0.0.1:{port}"])
    world.says("scheduler-2", "a scheduler listens")
    for name in ("host-a", "host-b"):
        world.says(name, r"has joined(?s:.*)has joined")
    comparison, path = compare(world, again(world))
    latency = next(row for row in comparison.rows if row.metric == "latency")
    assert latency.verdict == "regressed"
    assert [host.host for host in latency.hosts] == ["host-a", "host-b"]
    assert len(hosts_by_generation(path)) == latency.generations > len(before)
