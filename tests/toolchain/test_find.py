"""Finding a pair: the installed one, what is wrong with others, the compiler's hash; and parts that somebody built."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

import pytest

from harness.errors import ExitCode, ToolchainError
from harness.toolchain import Toolchain, find_toolchain
from harness.toolchain.find import with_own_build
from tests.toolchain.conftest import Installation, Package

INSTALL = "pip install 'iree-base-compiler[onnx]' iree-base-runtime"


def refusal() -> str:
    with pytest.raises(ToolchainError) as caught:
        find_toolchain()
    assert caught.value.exit_code == ExitCode.USAGE
    return str(caught.value)


def test_the_pair_that_is_installed_here() -> None:
    found = find_toolchain()
    assert found.version == version("iree-base-compiler") == version("iree-base-runtime")
    assert found.python == Path(sys.executable)
    assert found.iree_compile.is_file()
    for tool in ("iree-run-module", "iree-benchmark-module", "iree-dump-module"):
        assert found.runtime_tool(tool).is_file()
    assert len(found.compiler_sha256) == 64
    assert len(found.revision) == 40


def test_finding_it_imports_none_of_it(installation: Installation) -> None:
    assert find_toolchain().version == "3.13.0"  # and its modules are empty folders


@pytest.mark.parametrize(
    ("gone", "sentence"),
    [
        ("iree-base-compiler", f"iree-base-compiler is not installed; run {INSTALL}"),
        ("iree-base-runtime", f"iree-base-runtime is not installed; run {INSTALL}"),
        (
            "iree.compiler",
            f"iree-base-compiler is installed without its module iree.compiler; reinstall it: {INSTALL}",
        ),
        (
            "iree._runtime_libs",
            f"iree-base-runtime is installed without its module iree._runtime_libs; reinstall it: {INSTALL}",
        ),
        (
            "compiler/_mlir_libs/iree-compile",
            f"iree-compile is missing from the installed packages; reinstall them: {INSTALL}",
        ),
        (
            "runtime/iree-run-module",
            f"iree-run-module is missing from the installed packages; reinstall them: {INSTALL}",
        ),
    ],
)
def test_a_part_that_is_missing(gone: str, sentence: str, installation: Installation) -> None:
    installation.packages.pop(gone, None)
    installation.modules.pop(gone, None)
    (installation.root / gone).unlink(missing_ok=True)
    assert refusal() == sentence


def test_halves_of_different_releases(installation: Installation) -> None:
    installation.packages["iree-base-runtime"] = Package("3.12.1")
    assert refusal() == (
        "iree-base-compiler is 3.13.0 and iree-base-runtime is 3.12.1, and a module of one release may not run in "
        "another; install a pair: pip install 'iree-base-compiler[onnx]==3.13.0' iree-base-runtime==3.13.0"
    )


@pytest.mark.parametrize(
    ("text", "revision"),
    [
        (
            'REVISIONS = {"IREE": "89ece87b89852100c0a4ac3d515e14842d090967"}',
            "89ece87b89852100c0a4ac3d515e14842d090967",
        ),
        ("REVISIONS = {}", ""),
        (None, ""),
    ],
    ids=["a commit", "no commit", "no file"],
)
def test_the_commit_that_a_release_names(text: str | None, revision: str, installation: Installation) -> None:
    if text is not None:
        (installation.compiler_tools.parent / "version.py").write_text(text)
    assert find_toolchain().revision == revision


# ------------------------------------------------------------------------------------------------- the compiler's hash


def compiler_hash() -> str:
    return find_toolchain().compiler_sha256


def test_it_is_of_the_program_and_the_library(installation: Installation) -> None:
    (installation.compiler_tools / "iree-compile").write_bytes(b"program")
    (installation.compiler_tools / "libIREECompiler.so").write_bytes(b"library")
    assert compiler_hash() == hashlib.sha256(b"programlibrary").hexdigest()


def test_it_is_kept(installation: Installation, cache: Path) -> None:
    first = compiler_hash()
    (memo,) = (cache / "toolchains").iterdir()
    memo.write_text('"kept"')
    assert compiler_hash() == "kept"
    memo.write_text("{ torn")
    assert compiler_hash() == first


@pytest.mark.parametrize("file", ["iree-compile", "libIREECompiler.so"])
@pytest.mark.parametrize("content", [b"", b"another build"], ids=["newer", "of another size"])
def test_it_is_taken_again_when_a_file_changes(file: str, content: bytes, installation: Installation) -> None:
    changed = installation.compiler_tools / file
    changed.write_bytes(b"old")
    first = compiler_hash()
    later_ns = changed.stat().st_mtime_ns + 1
    changed.write_bytes(content or b"new")
    os.utime(changed, ns=(later_ns, later_ns))
    assert compiler_hash() != first


def test_a_cache_that_cannot_be_written_is_no_error(installation: Installation, cache: Path) -> None:
    cache.write_text("a file where a folder belongs")
    assert compiler_hash() == hashlib.sha256(b"").hexdigest()


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
