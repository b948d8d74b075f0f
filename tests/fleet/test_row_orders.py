"""A row of a comparison on its way to a host, and what a host does with it: its tools and workers are scripted."""

from __future__ import annotations

import contextlib
import json
import pickle
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeVar

import pytest

from harness.compare.remeasure import Work
from harness.compare.samplers import Module
from harness.compile import BuildCache, CompileRequest
from harness.fleet import here as here_room
from harness.fleet import tasks
from harness.fleet.files import Luggage, lacking_here, write_chunk
from harness.fleet.orders import Trouble
from harness.fleet.row_orders import RowMeasured, RowOrder, compile_times_order, latency_order
from harness.measure import LoadableModule, session
from harness.process import Limits
from tests.builders import make_case
from tests.fakes import fake_worker
from tests.fakes.fake_toolchain import calls, make_fake_toolchain
from tests.fleet.hosts import make_offer

_T = TypeVar("_T")


class World:
    """An asker's folder and a host's beside it."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder, self._monkeypatch = folder, monkeypatch
        self.theirs = make_fake_toolchain(folder / "their tools")
        monkeypatch.setenv("HARNESS_CACHE", str(folder / "here"))
        (folder / "x.npy").write_bytes(b"x")
        (folder / "weights.irpa").write_bytes(b"w")
        (folder / "spec.mlir").write_text("spec")
        self.work = Work(
            name="net/stock@cpu",
            pair=SimpleNamespace(),  # type: ignore[arg-type]
            base=self._module("base"),
            head=self._module("head"),
            control=False,
        )

    def _module(self, side: str) -> Module:
        """A side, which its compiler takes 0.2 s for in head's case; its plugin gave it a file."""
        own = make_fake_toolchain(self.folder / "tools")
        flags = (f"--fake-code={side}", f"--iree-spec={self.folder / 'spec.mlir'}")
        mlir = self.folder / f"{side}.mlir"
        mlir.write_text("module {}\n")
        request = CompileRequest(
            case=make_case(compile_flags=flags),
            toolchain=own,
            model=mlir,
            model_sha256="ab" * 32,
            function="main",
            host_cpu="EPYC",
            limits=Limits(seconds=10),
        )
        builds = BuildCache(self.folder / "here")
        build, _ = builds.compile(request)
        loadable = LoadableModule(
            name=request.case.name,
            module=builds.module(build),
            function="main",
            arguments=({"file": str(self.folder / "x.npy"), "scalar": True},),
            parameters={"model": self.folder / "weights.irpa"},
            run_flags=(),
            toolchain=own,
        )
        return Module(case=request.case, loadable=loadable, mlir=mlir, files=(self.folder / "spec.mlir",), build=build)

    def arrive(self, order: RowOrder, luggage: Luggage) -> RowOrder:
        """The order on the host, whose files have come too."""
        sent = {item: path.read_bytes() for item, path in luggage.files.items()}
        self._monkeypatch.setenv("HARNESS_CACHE", str(self.folder / "there"))
        for item in lacking_here(order.files, "here", "there"):
            write_chunk(item, 0, sent[item], "one")
        arrived: RowOrder = pickle.loads(pickle.dumps(order))  # noqa: S301 (as Dask does)
        return arrived


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    world = World(tmp_path, monkeypatch)
    changed: Any = {"get_toolchains": lambda *_, **__: (world.theirs,), "_alone": contextlib.nullcontext}
    for name, thing in changed.items():
        monkeypatch.setattr(tasks, name, thing)
    plugin = SimpleNamespace(offer=make_offer("host-a"), limits=Limits(seconds=5.0))
    monkeypatch.setattr(here_room, "_host", plugin)
    monkeypatch.setattr(session, "WORKER", Path(fake_worker.__file__))
    script = {"log": str(tmp_path / "turns"), "per_call_ns": {"head": 2_000_000}}
    monkeypatch.setenv("FAKE_WORKER", json.dumps(script))
    return world


def test_a_host_measures_both_sides_with_its_own_tools_and_files(world: World, tmp_path: Path) -> None:
    order = world.arrive(*latency_order(world.work, {"VK": "/there"}, seed=7, call_limit_s=5.0))
    first = tasks.measure_row(order, 0, {})
    assert isinstance(first, RowMeasured)
    assert first.generation is not None and first.known is not None
    assert (first.generation.host, first.generation.base, first.generation.head) == ("host-a", 1e6, 2e6)
    assert {timed.host for timed in first.rounds} == {"host-a"}
    requests = [json.loads(line) for line in (tmp_path / "turns").read_text().splitlines()]
    loads = [request for request in requests if request["op"] == "load"]
    assert [load["case"] for load in loads] == ["base", "head"]
    paths = [
        path for load in loads for path in (load["module"], load["arguments"][0]["file"], *load["parameters"].values())
    ]
    assert all(path.startswith(str(tmp_path / "there")) and Path(path).is_file() for path in paths)
    assert loads[0]["module"] != loads[1]["module"]
    second = tasks.measure_row(order, 1, first.known)
    assert isinstance(second, RowMeasured) and second.known == first.known
    requests = [json.loads(line) for line in (tmp_path / "turns").read_text().splitlines()][len(requests) :]
    assert "calibrate" not in {request["op"] for request in requests}
    assert [request["case"] for request in requests if request["op"] == "load"] == ["head", "base"]


def test_a_host_compiles_both_sides_anew(world: World, tmp_path: Path) -> None:
    order = world.arrive(*compile_times_order(world.work, Limits(seconds=60)))
    measured = tasks.measure_row(order, 0, {})
    assert isinstance(measured, RowMeasured), measured
    assert measured.generation is not None and measured.generation.log_ratio is not None
    commands = [call.arguments for call in calls(world.theirs, "iree-compile")]
    assert ["--fake-code=base" in command for command in commands] == [True, False]
    (spec,) = {flag.partition("=")[2] for command in commands for flag in command if flag.startswith("--iree-spec")}
    assert spec.startswith(str(tmp_path / "there")) and Path(spec).read_text() == "spec"


def test_a_host_says_what_it_lacks_and_which_side_fails(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    order = world.arrive(*latency_order(world.work, {}, seed=0, call_limit_s=5.0))
    refuse = {"log": str(world.folder / "turns"), "per_call_ns": {}, "refuse_load": ["head"]}
    monkeypatch.setenv("FAKE_WORKER", json.dumps(refuse))
    failed = tasks.measure_row(order, 0, {})
    assert isinstance(failed, RowMeasured) and failed.failure is not None
    assert failed.failure.message == "the head's module: module not for this device"
    with monkeypatch.context() as patch:
        patch.setattr(tasks, "why_gone", lambda *_: "device vulkan is gone: no Vulkan device; install a driver")
        lost = tasks.measure_row(order, 0, {})
    assert lost == Trouble(message="its device vulkan is gone: no Vulkan device; install a driver")
    gone = world.folder / "there" / order.files[0].place
    gone.unlink()
    trouble = tasks.measure_row(order, 0, {})
    assert isinstance(trouble, Trouble)
    assert trouble.message == f"{gone} is gone, which was sent here; leave the cache alone while it is used"
