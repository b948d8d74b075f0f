"""Finding the compiler and runtime pair: the one installed here, ones with a part amiss, and the compiler's hash."""

from __future__ import annotations

import hashlib
import os
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from harness.errors import ExitCode, ToolchainError
from harness.toolchain import find, find_toolchain
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


@pytest.mark.parametrize("package", ["iree-base-compiler", "iree-base-runtime"])
def test_a_half_that_is_not_installed(package: str, installation: Installation) -> None:
    del installation.packages[package]
    assert refusal() == f"{package} is not installed; run {INSTALL}"


def test_halves_of_different_releases(installation: Installation) -> None:
    installation.packages["iree-base-runtime"] = Package("3.12.1")
    assert refusal() == (
        "iree-base-compiler is 3.13.0 and iree-base-runtime is 3.12.1, and a module of one release may not run in "
        "another; install a pair: pip install 'iree-base-compiler[onnx]==3.13.0' iree-base-runtime==3.13.0"
    )


@pytest.mark.parametrize(
    ("tool", "name"),
    [("compiler/_mlir_libs/iree-compile", "iree-compile"), ("runtime/iree-run-module", "iree-run-module")],
)
def test_a_tool_that_is_missing(tool: str, name: str, installation: Installation) -> None:
    (installation.root / tool).unlink()
    assert refusal() == f"{name} is missing from the installed packages; reinstall them: {INSTALL}"


@pytest.mark.parametrize(
    ("module", "package"), [("iree.compiler", "iree-base-compiler"), ("iree._runtime_libs", "iree-base-runtime")]
)
def test_a_module_that_is_missing(module: str, package: str, installation: Installation) -> None:
    del installation.modules[module]
    assert refusal() == f"{package} is installed without its module {module}; reinstall it: {INSTALL}"


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
def test_it_is_taken_again_when_a_file_changes(file: str, installation: Installation) -> None:
    first = compiler_hash()
    (installation.compiler_tools / file).write_bytes(b"another build")
    assert compiler_hash() != first


def test_it_is_taken_again_when_a_file_of_the_same_size_is_newer(installation: Installation) -> None:
    library = installation.compiler_tools / "libIREECompiler.so"
    library.write_bytes(b"old")
    first = compiler_hash()
    before = library.stat().st_mtime_ns
    library.write_bytes(b"new")
    os.utime(library, ns=(before + 1, before + 1))
    assert compiler_hash() != first


def test_a_cache_that_cannot_be_written_is_no_error(installation: Installation, cache: Path) -> None:
    cache.write_text("a file where a folder belongs")
    assert compiler_hash() == hashlib.sha256(b"").hexdigest()


def test_the_real_one_is_found_again_without_reading_the_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    first = compiler_hash()

    class NoHash:
        """Stands in for hashlib; the stamp of names, sizes and times may be hashed, the files may not."""

        @staticmethod
        def sha256(*data: bytes) -> object:
            assert data, "the files are hashed again"
            return hashlib.sha256(*data)

    monkeypatch.setattr(find, "hashlib", NoHash)
    assert compiler_hash() == first
