"""Requests to compile: that never run, to the scripted compiler, and to the installed one, which compiles once."""

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from harness.compile import BuildCache, CompileRequest
from harness.plugins import Applied
from harness.plugins.chain import arrange
from harness.process import Limits
from harness.records.run import Build
from harness.toolchain import Toolchain
from harness.toolchain.tools import merge_flags
from tests.builders import CPU_FLAGS, a_toolchain, make_case
from tests.fakes.fake_toolchain import calls, make_fake_toolchain

LIMITS = Limits(seconds=120, memory_bytes=8 << 30)
_NOWHERE = Path("nowhere")


def a_request(*flags: str, variant: str = "stock", device: str = "cpu", **fields: Any) -> CompileRequest:
    """A request with these flags, in which nothing has to exist."""
    program = {"model": _NOWHERE, "model_sha256": "aa" * 32, "function": "main"}
    usual: dict[str, Any] = {"toolchain": a_toolchain(), **program, "host_cpu": "a processor", "limits": LIMITS}
    return CompileRequest(case=make_case(variant, device=device, compile_flags=flags), **{**usual, **fields})


class FakeCompiler:
    """The scripted compiler and a cache of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.toolchain = make_fake_toolchain(folder / "toolchain")
        self.cache = BuildCache(folder / "cache")
        self._model = folder / "net.mlir"
        self._model.write_text("module {}")

    @property
    def compiles(self) -> int:
        """How often the compiler ran."""
        return len(calls(self.toolchain, "iree-compile"))

    def request(self, *flags: str, **fields: Any) -> CompileRequest:
        """A request, as in `request("--fake-exit=1", variant="broken")`."""
        return a_request(*flags, **{"toolchain": self.toolchain, "model": self._model, **fields})

    def compile(self, *flags: str, **fields: Any) -> tuple[Build, str]:
        """Compile such a request, or take it from the cache."""
        return self.cache.compile(self.request(*flags, **fields))


@pytest.fixture
def fake(tmp_path: Path) -> FakeCompiler:
    return FakeCompiler(tmp_path)


class RealCompiler:
    """The installed compiler and a cache of its own."""

    def __init__(self, folder: Path, toolchain: Toolchain) -> None:
        self.folder = folder
        self.toolchain = toolchain
        self.cache = BuildCache(folder / "cache")

    def request(
        self, *plugins: Applied, text: str, flags: Sequence[str] = (), cpu: Sequence[str] = CPU_FLAGS, **fields: Any
    ) -> CompileRequest:
        """A request to compile a program with plugins and flags."""
        sha256 = hashlib.sha256(text.encode()).hexdigest()
        model = self.folder / f"{sha256}.mlir"
        model.write_text(text)
        own = (*cpu, *flags)
        arranged = arrange(plugins, own, "plugins")
        program = {"model": model, "model_sha256": sha256, "plugins": tuple(plugins), "arranged": arranged}
        merged = merge_flags(own, arranged.compile_flags)
        return a_request(*merged, **{"toolchain": self.toolchain, **program, **fields})

    def build(self, *plugins: Applied, **fields: Any) -> Build:
        """Compile that, or take the build of an earlier test."""
        return self.cache.compile(self.request(*plugins, **fields))[0]


@pytest.fixture(scope="session")
def real(real_toolchain: Toolchain, tmp_path_factory: pytest.TempPathFactory) -> RealCompiler:
    return RealCompiler(tmp_path_factory.mktemp("real"), real_toolchain)
