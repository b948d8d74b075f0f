"""Requests to compile: to the scripted compiler, and to the installed one, which compiles equal requests once."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from harness.compile import BuildCache, CompileRequest
from harness.plugins import Applied
from harness.plugins.chain import arrange
from harness.process import Limits
from harness.records.run import Build
from harness.toolchain import Toolchain
from harness.toolchain.tools import merge_flags
from tests.builders import CPU_FLAGS, PRODUCT, make_case
from tests.fakes.fake_toolchain import make_fake_toolchain

MakeRequest = Callable[..., CompileRequest]

FAKE_LIMITS = Limits(seconds=60)
REAL_LIMITS = Limits(seconds=120, memory_bytes=8 << 30)


@pytest.fixture
def fake(tmp_path: Path) -> Toolchain:
    return make_fake_toolchain(tmp_path / "toolchain")


@pytest.fixture
def cache(tmp_path: Path) -> BuildCache:
    return BuildCache(tmp_path / "cache")


@pytest.fixture
def make_request(tmp_path: Path, fake: Toolchain) -> MakeRequest:
    """Requests to the fake compiler, as in `make_request("--fake-exit=1", variant="broken")`."""

    def make(
        *flags: str,
        variant: str = "stock",
        device: str = "cpu",
        limits: Limits = FAKE_LIMITS,
        toolchain: Toolchain = fake,
    ) -> CompileRequest:
        model = tmp_path / "net.mlir"
        model.write_text("module {}")
        return CompileRequest(
            case=make_case(variant, device=device, compile_flags=flags),
            toolchain=toolchain,
            model=model,
            model_sha256="00" * 32,
            function="main",
            host_cpu="a processor",
            limits=limits,
        )

    return make


class RealCompiler:
    """The installed compiler and a cache of its own."""

    def __init__(self, folder: Path, toolchain: Toolchain) -> None:
        self.folder = folder
        self.toolchain = toolchain
        self.cache = BuildCache(folder / "cache")

    def request(
        self,
        *plugins: Applied,
        text: str = PRODUCT,
        flags: Sequence[str] = (),
        cpu: Sequence[str] = CPU_FLAGS,
        function: str = "main",
        limits: Limits = REAL_LIMITS,
        toolchain: Toolchain | None = None,
    ) -> CompileRequest:
        """A request to compile a program with plugins and flags."""
        sha256 = hashlib.sha256(text.encode()).hexdigest()
        model = self.folder / f"{sha256}.mlir"
        model.write_text(text)
        own = (*cpu, *flags)
        arranged = arrange(plugins, own, "plugins")
        case = make_case(compile_flags=merge_flags(own, arranged.compile_flags), run_flags=arranged.run_flags)
        return CompileRequest(
            case=replace(case, plugins=tuple(plugin.name for plugin in plugins)),
            toolchain=toolchain or self.toolchain,
            model=model,
            model_sha256=sha256,
            function=function,
            host_cpu="this one",
            limits=limits,
            plugins=tuple(plugins),
            arranged=arranged,
        )

    def build(self, *plugins: Applied, text: str = PRODUCT, flags: Sequence[str] = ()) -> Build:
        """Compile that, or take the build of an earlier test."""
        return self.cache.compile(self.request(*plugins, text=text, flags=flags))[0]


@pytest.fixture(scope="session")
def real(real_toolchain: Toolchain, tmp_path_factory: pytest.TempPathFactory) -> RealCompiler:
    return RealCompiler(tmp_path_factory.mktemp("real"), real_toolchain)
