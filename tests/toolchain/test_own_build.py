"""A compiler and a runtime that somebody built, in the place of a release's."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from harness.errors import ToolchainError
from harness.toolchain import Toolchain
from harness.toolchain.own_build import with_own_build

REVISION = "0123456789abcdef0123456789abcdef01234567"
SAYS = f"IREE (https://iree.dev):\n  IREE compiler version 3.14.0rc20261122 @ {REVISION}\n  LLVM version 22.0.0git\n"


@pytest.fixture
def release(tmp_path: Path) -> Toolchain:
    return Toolchain(
        version="3.13.0",
        revision="",
        compiler_sha256="cc" * 32,
        python=Path(sys.executable),
        compiler_tools=tmp_path / "release",
        runtime_tools=tmp_path / "release",
        python_options=("-I",),
    )


def program(file: Path, says: str = "", status: int = 0) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"#!/bin/sh\ncat <<'END'\n{says}\nEND\nexit {status}\n")
    file.chmod(0o755)
    return file


@pytest.fixture
def build(tmp_path: Path) -> Path:
    """IREE's build folder."""
    program(tmp_path / "build" / "tools" / "iree-compile", SAYS)
    program(tmp_path / "build" / "tools" / "iree-run-module")
    (tmp_path / "build" / "lib").mkdir()
    (tmp_path / "build" / "lib" / "libIREECompiler.so").write_text("one")
    return tmp_path / "build"


@pytest.mark.parametrize("named", ["", "tools", "tools/iree-compile"])
def test_a_compiler_is_named_by_its_build_its_folder_or_itself(named: str, build: Path, release: Toolchain) -> None:
    own = with_own_build(release, compiler=build / named)
    assert own.iree_compile == build / "tools" / "iree-compile"
    assert (own.version, own.revision) == ("3.14.0rc20261122", REVISION)
    assert (own.python, own.runtime_tools) == (release.python, release.runtime_tools)


def test_another_build_is_another_compiler(build: Path, release: Toolchain) -> None:
    first = with_own_build(release, compiler=build)
    assert first == with_own_build(release, compiler=build)
    (build / "lib" / "libIREECompiler.so").write_text("two")
    second = with_own_build(release, compiler=build)
    assert len({release.compiler_sha256, first.compiler_sha256, second.compiler_sha256}) == 3


def test_nothing_of_ones_own_is_the_release(release: Toolchain) -> None:
    assert with_own_build(release) is release


def test_a_runtime_brings_its_bindings_where_it_has_any(build: Path, release: Toolchain) -> None:
    own = with_own_build(release, runtime=build)
    assert (own.runtime_tools, own.python, own.version) == (build / "tools", release.python, release.version)
    assert own.compiler_sha256 != release.compiler_sha256, "what was asked of the release's tools is not known of these"
    package = build / "runtime" / "bindings" / "python" / "iree" / "runtime"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    own = with_own_build(release, runtime=build)
    asked = [*own.python_command, "-c", "import sys; print(sys.path)"]
    printed = subprocess.run(asked, capture_output=True, text=True, check=True).stdout
    assert str(build / "runtime" / "bindings" / "python") in printed


def test_a_version_that_is_none_is_the_releases(build: Path, release: Toolchain) -> None:
    program(build / "tools" / "iree-compile", "IREE compiler version main")
    assert with_own_build(release, compiler=build).version == "3.13.0"
    program(build / "tools" / "iree-compile", "LLVM")
    assert with_own_build(release, compiler=build).version == "3.13.0"


def test_what_is_no_build(build: Path, release: Toolchain, tmp_path: Path) -> None:
    with pytest.raises(ToolchainError, match="--compiler nowhere: there is no iree-compile; name it, its folder, or"):
        with_own_build(release, compiler=Path("nowhere"))
    with pytest.raises(ToolchainError, match=r"--runtime \S+: there is no iree-run-module"):
        with_own_build(replace(release), runtime=tmp_path)
    program(build / "tools" / "iree-compile", status=1)
    with pytest.raises(ToolchainError, match="exited with status 1; build it again"):
        with_own_build(release, compiler=build)
    (build / "tools" / "iree-compile").chmod(0o644)
    with pytest.raises(ToolchainError, match=r"cannot be started \(Permission denied\); build it again"):
        with_own_build(release, compiler=build)
