"""What travels, the files that it names, how these are sent, and what a host does with a row of a comparison."""

import contextlib
import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from harness.compare.samplers import Module
from harness.compile import BuildCache, CompileRequest
from harness.errors import RunError
from harness.fleet import packing, processes, tasks
from harness.fleet.packing import Item, Packed, build_items, lacking, pack, read_chunk, small_ones, unpack
from harness.fleet.tasks import Answer, RowTask
from harness.measure import Calibration, session
from harness.models.model import Input
from harness.plugins import Applied
from harness.process import Limits
from tests.builders import a_loadable, make_artifact
from tests.compile.conftest import a_request
from tests.fakes import fake_worker
from tests.fakes.fake_toolchain import make_fake_toolchain
from tests.fleet.scripted import make_offer


class World:
    """A client's folder, whose cache is `here`, and a host's cache `there` beside it."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder, self._monkeypatch = folder, monkeypatch
        self.theirs = make_fake_toolchain(folder / "their tools")
        self.spec = folder / "spec.mlir"
        self.spec.write_text("spec")
        self.at("here")

    def at(self, cache: str) -> None:
        """Be on one of both machines."""
        self._monkeypatch.setenv("HARNESS_CACHE", str(self.folder / cache))

    def request(self, *flags: str) -> CompileRequest:
        """A compile, whose plugin gave it a file."""
        model = self.folder / "model" / "model.mlir"
        model.parent.mkdir(exist_ok=True)
        model.write_text("module {}\n")
        tools = make_fake_toolchain(self.folder / "tools")
        return a_request(*flags, f"--iree-spec={self.spec}", toolchain=tools, model=model)

    def arrive(self, packed: Packed) -> dict[Item, bytes]:
        """Go to the host, with the files of what was packed."""
        sent = {item: path.read_bytes() for item, path in packed.files.items()}
        self.at("there")
        return sent

    def _module(self, side: str) -> Module:
        request, builds = self.request(f"--fake-code={side}"), BuildCache(self.folder / "here")
        (self.folder / "x.npy").write_bytes(b"x")
        (self.folder / "weights.irpa").write_bytes(b"w")
        build, _ = builds.compile(request)
        loadable = a_loadable(
            request.case.name,
            request.toolchain,
            module=builds.module(build),
            arguments=({"file": str(self.folder / "x.npy"), "scalar": True},),
            parameters={"model": self.folder / "weights.irpa"},
        )
        return Module(case=request.case, loadable=loadable, mlir=request.model, files=(self.spec,), build=build)

    def measure(self, number: int = 0, known: dict[str, Calibration] | None = None, **row: Any) -> Answer:
        """A generation of a row on the host, to which its files come along."""
        self.at("here")
        task = RowTask(name="net/stock@cpu", base=self._module("base"), head=self._module("head"), **row)
        packed = task.packed(number, known or {}, {})
        return tasks.measure_row(packed.data, tuple(packed.files), self.arrive(packed))


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    world = World(tmp_path, monkeypatch)
    monkeypatch.setattr(packing, "get_toolchains", lambda *_, **__: (world.theirs,))
    monkeypatch.setattr(tasks, "_alone", contextlib.nullcontext)
    monkeypatch.setattr(
        processes, "this_host", SimpleNamespace(offer=make_offer("host-a"), limits=Limits(seconds=5.0)), False
    )
    monkeypatch.setattr(session, "WORKER", Path(fake_worker.__file__))
    script = {"log": str(tmp_path / "turns"), "per_call_ns": {"head": 2_000_000}}
    monkeypatch.setenv("FAKE_WORKER", json.dumps(script))
    return world


def test_what_travels_names_the_files_and_the_toolchain_of_where_it_is(world: World) -> None:
    request, there = world.request("--fake-code=x", "--iree-other=/no/file"), world.folder / "there"
    build, _ = BuildCache(world.folder / "here").compile(request)
    packed = pack(request, make_artifact(request.model, inputs=[Input(shape=(4,))]), build)
    packing.write_small(world.arrive(packed))
    assert lacking(packed.files) == ()
    arrived, its_artifact, its_build = unpack(packed.data)
    assert arrived.toolchain == world.theirs
    assert arrived.model.is_relative_to(there) and arrived.model.read_text() == "module {}\n"
    assert its_artifact.mlir == arrived.model
    assert [argument.file.name for argument in its_artifact.arguments] == ["input0.npy"]
    same, other, spec = arrived.case.compile_flags
    assert (same, other) == ("--fake-code=x", "--iree-other=/no/file")
    assert Path(spec.removeprefix("--iree-spec=")).read_text() == "spec"
    assert packed.with_own_names(arrived.case.compile_flags) == request.case.compile_flags
    found = BuildCache(there).find(build.cache_key, build.case)
    assert found == replace(its_build, cached=True, command=build.command)


def test_another_toolchain_or_plugin_of_that_name_is_refused(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    data = pack(replace(world.request().toolchain, compiler_sha256="00" * 32)).data
    with pytest.raises(
        RunError, match=r"its IREE 0\.0\.0 is another build than the client's; install the same packages"
    ):
        unpack(data)
    plugin: Any = SimpleNamespace(name="pad", version="1")
    applied = Applied(plugin=plugin, options={}, steps=(), sources_sha256="5e")
    data = pack(applied).data
    monkeypatch.setattr(packing, "apply_plugin", lambda *_: applied)
    assert unpack(data) == (applied,)
    monkeypatch.setattr(packing, "apply_plugin", lambda *_: replace(applied, sources_sha256="77"))
    with pytest.raises(RunError, match="its plugin pad is another than the client's"):
        unpack(data)


def test_a_large_file_comes_in_parts_and_is_used_only_if_it_is_whole(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packing, "MESSAGE_BYTES", 3)
    source = world.folder / "seven.bin"
    source.write_bytes(b"1234567")
    (item,) = pack(source).files
    parts = [(offset, read_chunk(source, offset, size)) for offset, size in item.chunks]
    assert parts == [(0, b"123"), (3, b"456"), (6, b"7")]
    for offset, part in parts:
        assert lacking([item]) == (item,)
        assert tasks.receive(item, offset, part, "one").trouble == ""
    assert tasks.send(item, 3, 3).value == b"456"
    (world.folder / "here" / item.place).write_bytes(b"123456X")
    assert tasks.lacking((item,)).value == (item,)
    for offset, part in parts:
        answer = tasks.receive(item, offset, part.replace(b"7", b"8"), "two")
    assert "has come damaged" in answer.trouble


def test_the_smallest_files_go_along_in_their_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packing, "INLINE_BYTES", 100)
    found = {Item(place=f"{size}", sha256="", size=size): tmp_path / f"{size}" for size in (70, 20, 0, 30)}
    for item, path in found.items():
        path.write_bytes(b"x" * item.size)
    assert [(item.size, len(data)) for item, data in small_ones(found).items()] == [(20, 20), (0, 0), (30, 30)]


def test_a_module_that_was_damaged_is_not_used_and_another_one_is_told_and_not_replaced(world: World) -> None:
    build, _ = BuildCache(world.folder / "here").compile(world.request())
    items = build_items(build)
    (module,) = (item for item in items if item.place.endswith("/module.vmfb"))
    answer = tasks.lacking((replace(module, sha256="0" * 64),))
    assert "is another module than that of another host, though all that decides it is equal" in answer.trouble
    path = world.folder / "here" / module.place
    path.write_bytes(bytes(path.stat().st_size))
    assert lacking(items) == (module,)
    with pytest.raises(RunError, match="has been damaged since it was compiled; remove this folder"):
        build_items(build)
    with pytest.raises(RunError, match=r"gone: cannot be read \(No such file or directory\); see who removes files"):
        pack(world.folder / "gone")


# --- What a host does with a row of a comparison ---


def test_a_host_measures_both_sides_with_its_own_tools_and_files(world: World, tmp_path: Path) -> None:
    first, rounds, told = world.measure(seed=7, call_limit_s=5.0).value
    assert (first.base, first.head) == (1e6, 2e6)
    assert rounds
    requests = [json.loads(line) for line in (tmp_path / "turns").read_text().splitlines()]
    loads = [request for request in requests if request["op"] == "load"]
    assert [load["case"] for load in loads] == ["base", "head"]
    for load in loads:
        for path in (load["module"], load["arguments"][0]["file"], *load["parameters"].values()):
            assert path.startswith(str(tmp_path / "there")) and Path(path).is_file()
    assert loads[0]["module"] != loads[1]["module"]
    *_, known = world.measure(1, told, seed=7, call_limit_s=5.0).value
    assert known == told
    requests = [json.loads(line) for line in (tmp_path / "turns").read_text().splitlines()][len(requests) :]
    assert "calibrate" not in {request["op"] for request in requests}
    assert [request["case"] for request in requests if request["op"] == "load"] == ["head", "base"]


def test_a_host_says_which_side_fails_and_what_of_its_own_is_wrong(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    refuse = {"log": str(world.folder / "turns"), "per_call_ns": {}, "refuse_load": ["head"]}
    monkeypatch.setenv("FAKE_WORKER", json.dumps(refuse))
    assert world.measure(call_limit_s=5.0).value.message == "the head's module: module not for this device"
    monkeypatch.setattr(tasks, "why_gone", lambda *_: "device vulkan is gone: no Vulkan device")
    assert world.measure(call_limit_s=5.0) == Answer(trouble="its device vulkan is gone: no Vulkan device")
    full = OSError(28, "No space left")
    monkeypatch.setattr(packing, "get_toolchains", lambda *_, **__: (_ for _ in ()).throw(full))
    assert world.measure().trouble == "[Errno 28] No space left"
    monkeypatch.setattr(packing, "use", lambda _: False)
    assert world.measure().trouble.endswith("is gone, which was sent here; leave the cache alone while it is used")
