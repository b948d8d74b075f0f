"""Whole runs and comparisons over a fleet of real processes on this machine, whose tools are scripted."""

import json
import sys
import threading
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.cache import cache_root
from harness.compare.options import CompareOptions
from harness.compare.pairs import side_of
from harness.errors import PlaceGone, RunError
from harness.fleet import bench
from harness.fleet.bench import FleetBench
from harness.records.comparison import Comparison
from harness.records.run import Run
from harness.stages import run as stages_run
from harness.stages.comparing import ComparisonSession, begun_comparison, compare_sides
from harness.stages.options import RunOptions
from harness.stages.run import run_suite
from harness.store.kinds import COMPARISON
from harness.store.run_directory import load_run
from tests.builders import make_artifact
from tests.fleet.asking import CASES, GENERATIONS
from tests.fleet.world import SUITE, World, once, switch_off, worker_of

_GROUPS = {case.group for case in CASES}


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


def test_a_worker_that_dies_does_its_generation_again_when_it_is_back(two_hosts: World) -> None:
    host, asking = two_hosts.machines["host-a"], two_hosts.asking
    killed = two_hosts.when_measured(2, lambda: worker_of(host).kill(), host="host-a")
    run = asking.run()
    killed.join()
    _assert_whole(run)
    assert {placed.host for placed in run.placed} == {"host-a", "host-b"}
    assert [placed.attempt for placed in run.placed] == [0] * len(_GROUPS)
    assert any("host-a has gone" in line for line in asking.notes.lines)
    assert "host-a is back" in asking.notes.lines
    commands = {build.case: build.command for build in run.builds}
    assert "--iree-llvmcpu-target-cpu=znver3" in commands["a/stock@cpu"]
    assert not any(flag.endswith("=host") for command in commands.values() for flag in command)


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


def test_a_suite_goes_from_its_file_to_its_report(two_hosts: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world = two_hosts
    suite = world.folder / "suite.toml"
    suite.write_text(SUITE + _OF_EACH_HOST)
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


# --- A comparison: head takes 1.2 times as long as base ---

_SIDES = ("base", "head")


@pytest.fixture(autouse=True)
def _sides(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The suites of both sides, and their model in this machine's cache."""
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path / "cache"))
    program = cache_root() / "models" / "a" / "model.mlir"
    program.parent.mkdir(parents=True)
    program.write_text("module @a {}\n")
    artifact = replace(make_artifact(program, arguments=()), name="a", sha256="a" * 64)
    monkeypatch.setattr(stages_run, "materialize_models", lambda *_: {"a": artifact})
    for side in _SIDES:
        variant = f'[variants.stock]\nflags = ["--fake-code={side}"]\n'
        (tmp_path / f"{side}.toml").write_text(SUITE + variant)


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
        files = (world.folder / "results").glob("*-compare/record.jsonl")
        return sum(file.read_text().count('"generation/') for file in files) >= generations

    return once(measured, act)


def measured_on(world: World) -> str:
    """The host that the first rounds of a comparison were measured on."""
    (file,) = (world.folder / "results").glob("*-compare/rounds.jsonl")
    host: str = json.loads(file.read_text().splitlines()[0])["host"]
    return host


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


def test_both_sides_of_a_row_are_measured_on_one_host_also_if_its_worker_dies(two_hosts: World) -> None:
    killed = when_measured(two_hosts, 3, lambda: worker_of(two_hosts.machines[measured_on(two_hosts)]).kill())
    comparison, path = compare(two_hosts, begun(two_hosts))
    killed.join()
    latency = next(row for row in comparison.rows if row.metric == "latency")
    assert (latency.verdict, round(latency.ratio or 0, 3)) == ("regressed", 1.2)
    (host,) = latency.hosts
    assert f"{host} is back" in two_hosts.asking.notes.lines
    hosts = hosts_by_generation(path)
    assert (set(hosts.values()), len(hosts)) == ({host}, latency.generations)
    compiled = next(row for row in comparison.rows if row.metric == "compile-time")
    assert compiled.hosts == (host,)
    assert [record.name for record in comparison.hosts] == [host]
    assert comparison.machine.description.startswith(f"{host}: ")
    assert COMPARISON.load(path).hosts == comparison.hosts


def test_one_whose_scheduler_has_gone_goes_on_without_repeating(world: World) -> None:
    world.hosts("host-a", "host-b")
    killed = when_measured(world, 4, world.started[0].kill)
    with pytest.raises(PlaceGone, match=r"has gone.*; what has arrived is kept: go on with `harness compare --resume"):
        compare(world, begun(world))
    killed.join()
    (kept,) = (world.folder / "results").glob("*-compare/record.jsonl")
    before = [line for line in kept.read_text().splitlines() if '"generation/' in line]
    port = world.address.rpartition(":")[2]
    world.scheduler("scheduler-2", f"tcp://127.0.0.1:{port}")
    for name in ("host-a", "host-b"):
        world.says(name, "has joined", times=2)
    comparison, path = compare(world, again(world))
    latency = next(row for row in comparison.rows if row.metric == "latency")
    assert latency.verdict == "regressed"
    assert len(hosts_by_generation(path)) == latency.generations > len(before)
