"""What a host does with a row of a comparison: its tools and workers are scripted."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from harness.compare.samplers import Module
from harness.compile import BuildCache, CompileRequest
from harness.fleet import files, packing, tasks
from harness.fleet import here as here_room
from harness.fleet.files import lacking_here, write_chunk
from harness.fleet.tasks import Answer, RowMeasured, RowTask
from harness.measure import Known, LoadableModule, session
from harness.process import Limits
from tests.builders import make_case
from tests.fakes import fake_worker
from tests.fakes.fake_toolchain import calls, make_fake_toolchain
from tests.fleet.hosts import make_offer


class World:
    """A client's folder and a host's beside it."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder, self._monkeypatch = folder, monkeypatch
        self.theirs = make_fake_toolchain(folder / "their tools")
        self._at("here")
        (folder / "x.npy").write_bytes(b"x")
        (folder / "weights.irpa").write_bytes(b"w")
        (folder / "spec.mlir").write_text("spec")
        self.sides = self._module("base"), self._module("head")

    def _at(self, cache: str) -> None:
        self._monkeypatch.setenv("HARNESS_CACHE", str(self.folder / cache))

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

    def measure(self, number: int = 0, known: dict[str, Known] | None = None, **row: Any) -> Answer:
        """A generation of the row on the host, to which its files have come."""
        self._at("here")
        base, head = self.sides
        packed = RowTask(name="net/stock@cpu", base=base, head=head, **row).packed(number, known or {})
        sent = {item: path.read_bytes() for item, path in packed.files.items()}
        self._at("there")
        for item in lacking_here(packed.files, "here", "there"):
            write_chunk(item, 0, sent[item], "one")
        return tasks.measure_row(packed.data, tuple(packed.files))


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    world = World(tmp_path, monkeypatch)
    monkeypatch.setattr(packing, "get_toolchains", lambda *_, **__: (world.theirs,))
    monkeypatch.setattr(tasks, "_alone", contextlib.nullcontext)
    plugin = SimpleNamespace(offer=make_offer("host-a"), limits=Limits(seconds=5.0))
    monkeypatch.setattr(here_room, "_host", plugin)
    monkeypatch.setattr(session, "WORKER", Path(fake_worker.__file__))
    script = {"log": str(tmp_path / "turns"), "per_call_ns": {"head": 2_000_000}}
    monkeypatch.setenv("FAKE_WORKER", json.dumps(script))
    return world


def test_a_host_measures_both_sides_with_its_own_tools_and_files(world: World, tmp_path: Path) -> None:
    first = world.measure(seed=7, call_limit_s=5.0).value
    assert isinstance(first, RowMeasured)
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
    second = world.measure(1, dict(first.known), seed=7, call_limit_s=5.0).value
    assert isinstance(second, RowMeasured) and second.known == first.known
    requests = [json.loads(line) for line in (tmp_path / "turns").read_text().splitlines()][len(requests) :]
    assert "calibrate" not in {request["op"] for request in requests}
    assert [request["case"] for request in requests if request["op"] == "load"] == ["head", "base"]


def test_a_host_compiles_both_sides_anew(world: World, tmp_path: Path) -> None:
    measured = world.measure(limits=Limits(seconds=60)).value
    assert isinstance(measured, RowMeasured) and measured.generation.log_ratio is not None
    commands = [call.arguments for call in calls(world.theirs, "iree-compile")]
    assert ["--fake-code=base" in command for command in commands] == [True, False]
    (spec,) = {flag.partition("=")[2] for command in commands for flag in command if flag.startswith("--iree-spec")}
    assert spec.startswith(str(tmp_path / "there")) and Path(spec).read_text() == "spec"


def test_a_host_says_which_side_fails_and_whether_its_device_is_gone(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    refuse = {"log": str(world.folder / "turns"), "per_call_ns": {}, "refuse_load": ["head"]}
    monkeypatch.setenv("FAKE_WORKER", json.dumps(refuse))
    assert world.measure(call_limit_s=5.0).value.message == "the head's module: module not for this device"
    monkeypatch.setattr(tasks, "why_gone", lambda *_: "device vulkan is gone: no Vulkan device; install a driver")
    lost = world.measure(call_limit_s=5.0)
    assert lost == Answer(trouble="its device vulkan is gone: no Vulkan device; install a driver")


def test_a_host_says_what_of_its_own_is_wrong(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packing, "get_toolchains", lambda *_, **__: (_ for _ in ()).throw(OSError(28, "No space left")))
    assert world.measure().trouble == "its disk is full; make room there, or set HARNESS_CACHE or TMPDIR"
    monkeypatch.setattr(packing, "get_toolchains", lambda *_, **__: (_ for _ in ()).throw(MemoryError))
    assert world.measure().trouble == "its memory is full"
    monkeypatch.setattr(files, "use", lambda _: False)
    assert world.measure().trouble.endswith("is gone, which was sent here; leave the cache alone while it is used")
