"""Which flags a toolchain knows, asked of its tools once."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from harness import process
from harness.errors import ToolchainError
from harness.toolchain import Toolchain, compiler_flags, runtime_flags

posix = pytest.mark.skipif(sys.platform == "win32", reason="the tools are shell scripts")


@pytest.fixture
def scripted(real_toolchain: Toolchain, tmp_path: Path) -> Toolchain:
    """A toolchain whose tools are for the test to write."""
    return replace(real_toolchain, compiler_tools=tmp_path, runtime_tools=tmp_path)


def write_tool(path: Path, commands: str) -> None:
    path.write_text(f"#!/bin/sh\n{commands}\n")
    path.chmod(0o755)


def test_the_real_compiler_knows_these(real_toolchain: Toolchain) -> None:
    known = compiler_flags(real_toolchain)
    assert known >= {
        "iree-hal-target-device",
        "iree-hal-local-target-device-backends",
        "iree-llvmcpu-target-cpu",
        "iree-opt-level",
        "iree-opt-data-tiling",
        "iree-global-opt-data-tiling",
        "iree-dispatch-creation-data-tiling",
        "iree-preprocessing-pass-pipeline",
        "iree-load-plugin",
        "mlir-print-ir-after-all",
        "o",
    }
    assert len(known) > 1000
    assert "iree-opt-data-tilin" not in known


def test_the_real_runtime_knows_these(real_toolchain: Toolchain) -> None:
    known = runtime_flags(real_toolchain)
    assert known >= {"device", "module", "function", "input", "parameters", "batch_size"}
    assert known >= {"device_allocator", "task_topology_group_count"}
    assert "iree-opt-level" not in known


def test_they_are_kept(real_toolchain: Toolchain, monkeypatch: pytest.MonkeyPatch) -> None:
    first = compiler_flags(real_toolchain), runtime_flags(real_toolchain)
    monkeypatch.setattr(process, "spawn", lambda *_, **__: pytest.fail("a tool is asked again"))
    assert (compiler_flags(real_toolchain), runtime_flags(real_toolchain)) == first


@posix
def test_another_compiler_is_asked_anew(scripted: Toolchain) -> None:
    write_tool(scripted.iree_compile, "echo '  --old - An option'")
    assert compiler_flags(scripted) == {"old"}
    write_tool(scripted.iree_compile, "echo '  --new - An option'")
    assert compiler_flags(scripted) == {"old"}
    assert compiler_flags(replace(scripted, compiler_sha256="1" * 64)) == {"new"}
    assert compiler_flags(replace(scripted, version="3.14.0")) == {"new"}


@posix
def test_what_a_help_text_says_beside_its_flags_is_not_taken_for_one(scripted: Toolchain) -> None:
    write_tool(
        scripted.iree_compile,
        """cat <<'END'
OVERVIEW: a compiler, see --nothing
OPTIONS:
  --first=<string>     - What --second does
    =value             - of the first
  -O                   - A letter
                         --third is not an option here
END""",
    )
    assert compiler_flags(scripted) == {"first", "O"}


@posix
def test_a_tool_that_lists_nothing(scripted: Toolchain) -> None:
    write_tool(scripted.iree_compile, "exit 7")
    with pytest.raises(ToolchainError) as caught:
        compiler_flags(scripted)
    assert str(caught.value) == (
        "iree-compile --help-list-hidden lists no flags (exited with status 7); reinstall the toolchain"
    )


def test_a_tool_that_cannot_be_started(scripted: Toolchain) -> None:
    with pytest.raises(ToolchainError) as caught:
        runtime_flags(scripted)
    assert str(caught.value) == (
        "iree-benchmark-module cannot be started (No such file or directory); reinstall the toolchain"
    )
