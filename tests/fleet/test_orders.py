"""What travels, and the files that it names."""

from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import pytest

from harness.compile import BuildCache, CompileRequest
from harness.errors import RunError
from harness.fleet import files
from harness.fleet.files import Luggage, build_items, lacking_here, read_chunk, unpack, write_chunk
from harness.fleet.orders import compile_order, group_order
from harness.models.model import Input
from harness.process import Limits
from harness.stages.context import GivenUp
from harness.toolchain.host_cpu import TargetCpu
from tests.builders import a_model, make_artifact, make_case
from tests.fakes.fake_toolchain import make_fake_toolchain

_T = TypeVar("_T")
_CPU = TargetCpu(name="znver3", features="+avx2")


def _sent(order: _T) -> _T:
    """An order as it arrives."""
    arrived: _T = pickle.loads(pickle.dumps(order))  # noqa: S301 (as Dask does)
    return arrived


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The asker's cache; another machine's beside it is `there`."""
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path / "here"))
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


def test_a_compile_order_is_for_the_cpu_of_the_host_that_measures(here: Path) -> None:
    spec = here / "spec.mlir"
    spec.write_text("spec")
    request = _request(here, "--iree-llvmcpu-target-cpu=host", f"--iree-spec={spec}")
    luggage = Luggage()
    order = compile_order(request, _CPU, luggage)
    assert order.case.compile_flags == (*_CPU.flags, f"--iree-spec={spec}")
    assert {path.name for path in luggage.files.values()} == {"model.mlir", "spec.mlir"}
    assert not order.model.is_absolute()
    assert _sent(order) == order
    others = compile_order(replace(request, host_cpu="Xeon"), replace(_CPU, name="znver4"), Luggage())
    same = compile_order(replace(request, host_cpu="EPYC 2"), _CPU, Luggage())
    assert order.key == same.key != others.key


def test_a_group_order_comes_to_the_same_files_elsewhere(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    request = _request(here, "--fake-code=x")
    build, _ = BuildCache(here / "here").compile(request)
    artifact = make_artifact(request.model, inputs=[Input(shape=(4,))])
    luggage = Luggage()
    order = group_order(
        [request.case],
        a_model(),
        artifact,
        {request.case.name: build},
        luggage,
        peers={},
        toolchains={},
        compile_limits=Limits(),
        call_timeout_s=1.0,
        given_up=GivenUp(keep_going=False),
    )
    sent = {item: luggage.files[item].read_bytes() for item in order.files}
    arrived = _sent(order)
    monkeypatch.setenv("HARNESS_CACHE", str(here / "there"))
    assert lacking_here(arrived.files, "host-a", "host-b") == arrived.files
    for item in arrived.files:
        write_chunk(item, 0, sent[item], "one")
    assert lacking_here(arrived.files, "host-a", "host-b") == ()
    unpacked = unpack(arrived)
    assert unpacked.artifact.mlir.read_bytes() == request.model.read_bytes()
    assert [argument.file.name for argument in unpacked.artifact.arguments] == ["input0.npy"]
    assert BuildCache(here / "there").find(build.cache_key, build.case) == replace(build, cached=True)


def test_a_file_comes_in_parts_and_is_used_only_if_it_is_whole(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "CHUNK_BYTES", 3)
    source = here / "seven.bin"
    source.write_bytes(b"1234567")
    luggage = Luggage()
    place = luggage.pack(source)
    (item,) = luggage.items
    parts = [(offset, source.read_bytes()[offset : offset + size]) for offset, size in item.chunks]
    assert [len(part) for _, part in parts] == [3, 3, 1]
    for offset, part in parts:
        assert not (here / "here" / place).exists()
        write_chunk(item, offset, part, "one")
    assert read_chunk(item, 3, 3) == b"456"
    (here / "here" / place).write_bytes(b"123456X")
    assert lacking_here((item,), "host-a", "host-b") == (item,)
    with pytest.raises(RunError, match="has come damaged"):
        for offset, part in parts:
            write_chunk(item, offset, part.replace(b"7", b"8"), "two")


def test_another_module_under_the_same_key_is_an_error_that_names_both(here: Path) -> None:
    build, _ = BuildCache(here / "here").compile(_request(here))
    items = build_items(build.cache_key, build.module_sha256)
    others = tuple(replace(item, sha256="00" * 32) if item.place.endswith("module.vmfb") else item for item in items)
    assert lacking_here(items, "host-a", "host-b") == ()
    with pytest.raises(RunError, match="is another module on host-a than on host-b"):
        lacking_here(others, "host-a", "host-b")
    (module,) = (here / "here").glob("builds/*/*/module.vmfb")
    module.write_bytes(bytes(module.stat().st_size))
    assert [item.place.split("/")[-1] for item in lacking_here(items, "host-a", "host-b")] == ["module.vmfb"]
    with pytest.raises(RunError, match="has been damaged since it was compiled; remove this folder"):
        build_items(build.cache_key, "00" * 32)
