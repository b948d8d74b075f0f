"""Finding a pair: the installed one, what is wrong with others, the compiler's hash; and parts that somebody built."""

import hashlib
import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from harness.errors import ToolchainError
from harness.toolchain import Toolchain, find_toolchain
from harness.toolchain.find import with_own_build
from tests.fakes.fake_wheels import REVISION, unpack_wheels, write_wheels

INSTALL = "pip install 'iree-base-compiler[onnx]' iree-base-runtime"
COMPILER = "iree/compiler/_mlir_libs/iree-compile"


def refusal() -> str:
    with pytest.raises(ToolchainError) as caught:
        find_toolchain()
    return str(caught.value)


def test_the_pair_that_is_installed_here() -> None:
    found = find_toolchain()
    assert found.version == version("iree-base-compiler") == version("iree-base-runtime")
    assert found.python == Path(sys.executable)
    assert found.iree_compile.is_file()
    for tool in ("iree-run-module", "iree-benchmark-module", "iree-dump-module"):
        assert found.runtime_tool(tool).is_file()
    assert (len(found.compiler_sha256), len(found.revision)) == (64, 40)


def test_finding_it_imports_none_of_it(installation: Path) -> None:
    (installation / "iree/compiler/__init__.py").write_text("raise ImportError")
    found = find_toolchain()
    assert (found.version, found.revision) == ("9.8.0", REVISION)
    (installation / "iree/compiler/version.py").write_text("REVISIONS = {}")
    assert find_toolchain().revision == ""


@pytest.mark.parametrize(
    ("gone", "sentence"),
    [
        ("iree_base_compiler-9.8.0.dist-info", f"iree-base-compiler is not installed; run {INSTALL}"),
        ("iree_base_runtime-9.8.0.dist-info", f"iree-base-runtime is not installed; run {INSTALL}"),
        (COMPILER, f"iree-compile is missing from the installed packages; reinstall them: {INSTALL}"),
        (
            "iree/_runtime_libs/iree-run-module",
            f"iree-run-module is missing from the installed packages; reinstall them: {INSTALL}",
        ),
    ],
)
def test_a_part_that_is_missing(gone: str, sentence: str, installation: Path) -> None:
    (installation / gone).rename(installation / "gone")
    assert refusal() == sentence


def test_halves_of_different_releases(installation: Path) -> None:
    (installation / "iree_base_runtime-9.8.0.dist-info").rename(installation / "gone")
    unpack_wheels(write_wheels(installation / "others", "9.8.0", runtime_version="9.7.1"), installation)
    assert refusal() == (
        "iree-base-compiler is 9.8.0 and iree-base-runtime is 9.7.1, and a module of one release may not run in "
        "another; install a pair: pip install 'iree-base-compiler[onnx]==9.8.0' iree-base-runtime==9.8.0"
    )


# --- The compiler's hash ---


def test_it_is_of_the_program_and_the_library_and_is_kept(installation: Path, cache: Path) -> None:
    first = find_toolchain().compiler_sha256
    assert first == hashlib.sha256(b"#!/bin/sh\nlibrary 9.8.0").hexdigest()
    (memo,) = (cache / "toolchains").iterdir()
    for text, found in (('"kept"', "kept"), ("{ torn", first)):
        memo.write_text(text)
        assert find_toolchain().compiler_sha256 == found


@pytest.mark.parametrize("file", ["iree-compile", "libIREECompiler.so"])
@pytest.mark.parametrize("content", [b"new", b"another build"], ids=["newer", "of another size"])
def test_it_is_taken_again_when_a_file_changes(file: str, content: bytes, installation: Path) -> None:
    changed = (installation / COMPILER).with_name(file)
    changed.write_bytes(b"old")
    first = find_toolchain().compiler_sha256
    later_ns = changed.stat().st_mtime_ns + 1
    changed.write_bytes(content)
    os.utime(changed, ns=(later_ns, later_ns))
    assert find_toolchain().compiler_sha256 != first


def test_a_cache_that_cannot_be_written_is_no_error(installation: Path, cache: Path) -> None:
    cache.write_text("a file where a folder belongs")
    assert len(find_toolchain().compiler_sha256) == 64


# --- Parts that somebody built ---

SAYS = f"IREE (https://iree.dev):\n  IREE compiler version 3.14.0rc20261122 @ {REVISION}\n  LLVM version 22.0.0git\n"


@pytest.fixture
def release(installation: Path) -> Toolchain:
    return find_toolchain()


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


def test_a_compiler_is_named_by_its_build_its_folder_or_itself(build: Path, release: Toolchain) -> None:
    assert with_own_build(release) is release
    own = with_own_build(release, compiler=build)
    assert own.iree_compile == build / "tools" / "iree-compile"
    assert (own.version, own.revision) == ("3.14.0rc20261122", REVISION)
    assert (own.python, own.runtime_tools) == (release.python, release.runtime_tools)
    assert all(with_own_build(release, compiler=build / named) == own for named in ("tools", "tools/iree-compile"))
    (build / "lib" / "libIREECompiler.so").write_text("two")
    other = with_own_build(release, compiler=build)
    assert len({release.compiler_sha256, own.compiler_sha256, other.compiler_sha256}) == 3


def test_a_runtime_brings_its_bindings_where_it_has_any(build: Path, release: Toolchain) -> None:
    own = with_own_build(release, runtime=build)
    assert (own.runtime_tools, own.python, own.version) == (build / "tools", release.python, release.version)
    assert own.compiler_sha256 != release.compiler_sha256, "what was asked of the release's tools is not known of these"
    package = build / "runtime" / "bindings" / "python" / "iree" / "runtime"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    own = with_own_build(release, runtime=build)
    asked = [str(own.python), "-I", "-c", "import sys; print(sys.path)"]
    printed = subprocess.run(asked, capture_output=True, text=True, check=True).stdout
    assert str(build / "runtime" / "bindings" / "python") in printed


@pytest.mark.parametrize("says", ["IREE compiler version main", "LLVM"])
def test_a_version_that_is_none_is_the_releases(says: str, build: Path, release: Toolchain) -> None:
    program(build / "tools" / "iree-compile", says)
    assert with_own_build(release, compiler=build).version == "9.8.0"


def test_what_is_no_build(build: Path, release: Toolchain, tmp_path: Path) -> None:
    with pytest.raises(ToolchainError, match="--compiler nowhere: there is no iree-compile; name it, its folder, or"):
        with_own_build(release, compiler=Path("nowhere"))
    with pytest.raises(ToolchainError, match=r"--runtime \S+: there is no iree-run-module"):
        with_own_build(release, runtime=tmp_path)
    program(build / "tools" / "iree-compile", status=1)
    with pytest.raises(ToolchainError, match="exited with status 1; build it again"):
        with_own_build(release, compiler=build)
    (build / "tools" / "iree-compile").chmod(0o644)
    with pytest.raises(ToolchainError, match=r"cannot be started \(Permission denied\); build it again"):
        with_own_build(release, compiler=build)
