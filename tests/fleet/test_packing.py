"""What travels, the files that it names, how these are sent, and what a host does with a row of a comparison."""

import contextlib
import hashlib
import itertools
import json
import os
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.compare.samplers import Module
from harness.compile import BuildCache, CompileRequest
from harness.errors import RunError
from harness.fleet import files, packing, tasks
from harness.fleet import here as here_room
from harness.fleet.files import Item, build_items, lacking_here, messages, read_chunk, small_ones, write_chunk
from harness.fleet.packing import Packed, pack, unpack
from harness.fleet.tasks import Answer, RowMeasured, RowTask
from harness.measure import Known, LoadableModule, session
from harness.models.model import Input
from harness.plugins import Applied
from harness.process import Limits
from tests.builders import make_artifact, make_case
from tests.fakes import fake_worker
from tests.fakes.fake_toolchain import calls, make_fake_toolchain
from tests.fleet.hosts import make_offer


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """This machine's cache is `here`, and another machine's beside it is `there`; both have the same toolchain."""
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path / "here"))
    toolchain = make_fake_toolchain(tmp_path / "tools")
    monkeypatch.setattr(packing, "get_toolchains", lambda *_, **__: (toolchain,))
    return tmp_path


def _request(folder: Path, *flags: str) -> CompileRequest:
    (folder / "model").mkdir(exist_ok=True)
    (folder / "model" / "model.mlir").write_text("module {}\n")
    return CompileRequest(
        case=make_case(compile_flags=flags),
        toolchain=make_fake_toolchain(folder / "tools"),
        model=folder / "model" / "model.mlir",
        model_sha256="ab" * 32,
        function="main",
        host_cpu="EPYC",
        limits=Limits(seconds=10),
    )


def _arrive(packed: Packed, folder: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Any, ...]:
    """What was packed, on the other machine, whose cache got the files that it lacks."""
    sent = {item: path.read_bytes() for item, path in packed.files.items()}
    monkeypatch.setenv("HARNESS_CACHE", str(folder / "there"))
    for item in lacking_here(packed.files, "host-a", "host-b"):
        write_chunk(item, 0, sent[item], "one")
    assert lacking_here(packed.files, "host-a", "host-b") == ()
    return unpack(packed.data)


def test_what_travels_names_the_files_and_the_toolchain_of_where_it_is(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (here / "spec.mlir").write_text("spec")
    request = _request(here, "--fake-code=x", f"--iree-spec={here / 'spec.mlir'}", "--iree-other=/no/file")
    build, _ = BuildCache(here / "here").compile(request)
    artifact = make_artifact(request.model, inputs=[Input(shape=(4,))])
    packed = pack(request, artifact, build)
    arrived, its_artifact, its_build = _arrive(packed, here, monkeypatch)
    assert arrived.toolchain == request.toolchain
    assert arrived.model.is_relative_to(here / "there") and arrived.model.read_text() == "module {}\n"
    assert its_artifact.mlir == arrived.model
    assert [argument.file.name for argument in its_artifact.arguments] == ["input0.npy"]
    same, spec, other = arrived.case.compile_flags
    assert (same, other) == ("--fake-code=x", "--iree-other=/no/file")
    assert Path(spec.removeprefix("--iree-spec=")).read_text() == "spec"
    assert packed.with_own_names(arrived.case.compile_flags) == request.case.compile_flags
    assert BuildCache(here / "there").find(build.cache_key, build.case) == replace(
        its_build, cached=True, command=build.command
    )


def test_another_toolchain_or_plugin_of_that_name_is_refused(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    request = _request(here)
    data = pack(replace(request.toolchain, compiler_sha256="00" * 32)).data
    with pytest.raises(
        RunError, match=r"its IREE 0\.0\.0 is another build than the client's; install the same packages"
    ):
        unpack(data)
    plugin: Any = SimpleNamespace(name="pad", version="1")
    applied = Applied(plugin=plugin, options={}, steps=(), sources_sha256="5e")
    data = pack(applied).data
    for found, is_same in ((applied, True), (replace(applied, sources_sha256="77"), False)):
        monkeypatch.setattr(packing, "apply_plugin", lambda *_, found=found: found)
        if is_same:
            assert unpack(data) == (applied,)
        else:
            with pytest.raises(RunError, match="its plugin pad is another than the client's"):
                unpack(data)


def test_a_file_that_is_needed_and_that_is_gone_is_one_sentence(tmp_path: Path) -> None:
    gone = tmp_path / "weights.irpa"
    with pytest.raises(RunError) as caught:
        pack({"parameters": gone})
    assert str(caught.value) == (
        f"{gone}: cannot be read (No such file or directory); see who removes files of the cache"
    )


def test_a_file_comes_in_parts_and_is_used_only_if_it_is_whole(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MESSAGE_BYTES", 3)
    source = here / "seven.bin"
    source.write_bytes(b"1234567")
    packed = pack(source)
    (item,) = packed.files
    parts = list(itertools.chain(*messages(packed.files)))
    assert [(offset, data) for _, offset, data in parts] == [(0, b"123"), (3, b"456"), (6, b"7")]
    for _, offset, part in parts:
        assert not (here / "here" / item.place).exists()
        write_chunk(item, offset, part, "one")
    assert read_chunk(item, 3, 3) == b"456"
    (here / "here" / item.place).write_bytes(b"123456X")
    assert lacking_here((item,), "host-a", "host-b") == (item,)
    with pytest.raises(RunError, match="has come damaged"):
        for _, offset, part in parts:
            write_chunk(item, offset, part.replace(b"7", b"8"), "two")


@given(sizes=st.lists(st.integers(0, 250)))
def test_small_files_go_together_and_larger_ones_in_parts(
    sizes: list[int], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("files")
    sent = {}
    for number, size in enumerate(sizes):
        (folder / str(number)).write_bytes(bytes(size))
        sent[Item(place=str(number), sha256="", size=size)] = folder / str(number)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(files, "MESSAGE_BYTES", 100)
        found = list(messages(sent))
    lengths = [sum(len(data) for *_, data in message) for message in found]
    assert all(length <= 100 for length in lengths) and sum(lengths) == sum(sizes)
    assert all(one + len(after[0][2]) > 100 for one, after in zip(lengths, found[1:], strict=False))


def test_another_module_under_the_same_key_is_an_error_that_names_both(here: Path) -> None:
    build, _ = BuildCache(here / "here").compile(_request(here))
    items = build_items(build)
    others = tuple(replace(item, sha256="00" * 32) if item.place.endswith("module.vmfb") else item for item in items)
    assert lacking_here(items, "host-a", "host-b") == ()
    with pytest.raises(RunError, match="is another module on host-a than on host-b"):
        lacking_here(others, "host-a", "host-b")
    (module,) = (here / "here").glob("builds/*/*/module.vmfb")
    module.write_bytes(bytes(module.stat().st_size))
    assert [item.place.split("/")[-1] for item in lacking_here(items, "host-a", "host-b")] == ["module.vmfb"]
    with pytest.raises(RunError, match="has been damaged since it was compiled; remove this folder"):
        build_items(build)


def test_what_was_sent_and_is_no_longer_used_makes_room(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "LIMIT_BYTES", 2)
    files._trim_sent.cache_clear()
    sent = {}
    for name in ("old", "needed", "young"):
        sha256 = hashlib.sha256(name.encode()).hexdigest()
        sent[name] = Item(place=f"fleet/{sha256[:2]}/{sha256}/{name}", sha256=sha256, size=len(name))
        write_chunk(sent[name], 0, name.encode(), "")
        if name != "young":
            os.utime(here / "here" / sent[name].place, (0, 0))
    assert tasks.receive([(sent["needed"], 0, b"needed")], "").trouble == ""
    assert [name for name, item in sent.items() if (here / "here" / item.place).exists()] == ["needed", "young"]


def test_an_answer_has_the_smallest_of_its_files_whole(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "SMALL_BYTES", 100)
    (here / "here").mkdir()
    items = [Item(place=f"{size}", sha256="", size=size) for size in (70, 20, 0, 30)]
    for item in items:
        (here / "here" / item.place).write_bytes(b"x" * item.size)
    assert {item.size: len(data) for item, data in small_ones(items).items()} == {0: 0, 20: 20, 30: 30}


# --- What a host does with a row of a comparison ---


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
