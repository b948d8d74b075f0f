"""Finding the compiler and runtime pair: the one installed here, ones with a part amiss, and the compiler's hash."""

from __future__ import annotations

import hashlib
import os
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from harness.errors import ExitCode, ToolchainError
from harness.toolchain import find_toolchain
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
