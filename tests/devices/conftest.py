"""A real toolchain, and one whose iree-run-module is a script."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import iree._runtime_libs
import iree.compiler
import pytest

from harness.toolchain.find import Toolchain

ScriptTool = Callable[[str], Toolchain]


def toolchain_at(compiler_tools: Path, runtime_tools: Path) -> Toolchain:
    return Toolchain(
        version="3.13.0",
        revision="",
        compiler_sha256="0" * 64,
        python=Path(sys.executable),
        compiler_tools=compiler_tools,
        runtime_tools=runtime_tools,
    )


@pytest.fixture(scope="session")
def toolchain() -> Toolchain:
    """The pair that is installed beside the tests."""
    compiler, runtime = (Path(next(iter(package.__path__))) for package in (iree.compiler, iree._runtime_libs))
    return toolchain_at(compiler / "_mlir_libs", runtime)


@pytest.fixture
def script_tool(tmp_path: Path) -> ScriptTool:
    """Make a toolchain whose iree-run-module runs these shell commands."""

    def make(commands: str) -> Toolchain:
        tool = tmp_path / "iree-run-module"
        tool.write_text(f"#!/bin/sh\n{commands}\n")
        tool.chmod(0o755)
        return toolchain_at(tmp_path, tmp_path)

    return make
