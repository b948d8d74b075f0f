"""Requests to the installed compiler, with plugins; and a small program for them."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

from harness.compile import CompileRequest
from harness.plugins import Applied, PluginFile
from harness.plugins.chain import arrange
from harness.process import Limits
from harness.toolchain import Toolchain
from harness.toolchain.tools import merge_flags
from tests.builders import CPU_FLAGS, make_case

EXAMPLE = Path(__file__).parent.parent / "example_plugins"
_LIMITS = Limits(seconds=120, memory_bytes=8 << 30)
PRODUCT = (EXAMPLE / "product.mlir").read_text()


def example_file(name: str) -> PluginFile:
    """A file of the example package."""
    return PluginFile(name=name, path=EXAMPLE / "example_plugins" / name)


def real_request(
    folder: Path,
    toolchain: Toolchain,
    *plugins: Applied,
    text: str = PRODUCT,
    flags: tuple[str, ...] = (),
    function: str = "main",
    limits: Limits = _LIMITS,
) -> CompileRequest:
    """A request to compile a program with plugins and flags for this CPU."""
    model = folder / "program.mlir"
    model.write_text(text)
    own = (*CPU_FLAGS, *flags)
    arranged = arrange(plugins, own, "plugins")
    case = make_case(compile_flags=merge_flags(own, arranged.compile_flags), run_flags=arranged.run_flags)
    return CompileRequest(
        case=replace(case, plugins=tuple(one.name for one in plugins)),
        toolchain=toolchain,
        model=model,
        model_sha256=hashlib.sha256(text.encode()).hexdigest(),
        function=function,
        host_cpu="this one",
        limits=limits,
        plugins=tuple(plugins),
        arranged=arranged,
    )
