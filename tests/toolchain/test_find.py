"""Finding a pair: the installed one, what is wrong with others, the compiler's hash; and parts that somebody built."""

import hashlib
import os
import subprocess
from pathlib import Path

import pytest

from harness.errors import ToolchainError
from harness.toolchain import Toolchain, find_toolchain
from harness.toolchain.find import with_own_build
from tests.fakes.fake_wheels import REVISION, unpack_wheels, write_wheels

INSTALL = "pip install 'iree-base-compiler[onnx]' iree-base-runtime"
COMPILER = "iree/compiler/_mlir_libs/iree-compile"


def test_finding_it_imports_none_of_it_and_needs_no_cache(installation: Path, cache: Path) -> None:
    (installation / "iree/compiler/__init__.py").write_text("raise ImportError")
    cache.write_text("a file where a folder belongs")
    found = find_toolchain()
    assert (found.version, found.revision, len(found.compiler_sha256)) == ("9.8.0", REVISION, 64)
    (installation / "iree/compiler/version.py").write_text("REVISIONS = {}")
    assert find_toolchain().revision == ""


@pytest.mark.parametrize(
    ("gone", "sentence"),
    [
        ("iree_base_compiler-9.8.0.dist-info", f"iree-base-compiler is not installed; run {INSTALL}"),
        (COMPILER, f"iree-compile is missing from the installed packages; reinstall them: {INSTALL}"),
        (
            "iree_base_runtime-9.8.0.dist-info",  # and in its place lies that of another release
            "iree-base-compiler is 9.8.0 and iree-base-runtime is 9.7.1, and a module of one release may not run in "
            "another; install a pair: pip install 'iree-base-compiler[onnx]==9.8.0' iree-base-runtime==9.8.0",
        ),
    ],
)
def test_what_is_no_pair(gone: str, sentence: str, installation: Path) -> None:
    (installation / gone).rename(installation / "gone")
    if "9.7.1" in sentence:
        unpack_wheels(write_wheels(installation / "others", "9.8.0", runtime_version="9.7.1"), installation)
    with pytest.raises(ToolchainError) as caught:
        find_toolchain()
    assert str(caught.value) == sentence


def test_the_compilers_hash_is_kept_until_its_program_or_library_changes(installation: Path, cache: Path) -> None:
    first = find_toolchain().compiler_sha256
    assert first == hashlib.sha256(b"#!/bin/sh\nlibrary 9.8.0").hexdigest()
    (memo,) = (cache / "toolchains").iterdir()
    for text, found in (('"kept"', "kept"), ("{ torn", first)):
        memo.write_text(text)
        assert find_toolchain().compiler_sha256 == found
    hashes = {first}
    for file, content in (("iree-compile", b"new"), ("libIREECompiler.so", b"old"), ("libIREECompiler.so", b"new")):
        changed = (installation / COMPILER).with_name(file)
        later_ns = changed.stat().st_mtime_ns + 1
        changed.write_bytes(content)
        os.utime(changed, ns=(later_ns, later_ns))
        hashes.add(find_toolchain().compiler_sha256)
    assert len(hashes) == 4, "though the size may stay"


SAYS = f"IREE (https://iree.dev):\n  IREE compiler version 3.14.0rc20261122 @ {REVISION}\n  LLVM version 22.0.0git\n"


@pytest.fixture
def release(installation: Path) -> Toolchain:
    return find_toolchain()


def program(file: Path, says: str = "", status: int = 0) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"#!/bin/sh\ncat <<'END'\n{says}\nEND\nexit {status}\n")
    file.chmod(0o755)


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
    for says in ("IREE compiler version main", "LLVM"):
        program(build / "tools" / "iree-compile", says)
        assert with_own_build(release, compiler=build).version == release.version


def test_a_runtime_brings_its_bindings_where_it_has_any(build: Path, release: Toolchain) -> None:
    own = with_own_build(release, runtime=build)
    assert (own.runtime_tools, own.python, own.version) == (build / "tools", release.python, release.version)
    assert own.compiler_sha256 != release.compiler_sha256, "what was asked of the release's tools is not known of these"
    bindings = build / "runtime" / "bindings" / "python"
    (bindings / "iree" / "runtime").mkdir(parents=True)
    own = with_own_build(release, runtime=build)
    asked = [str(own.python), "-I", "-c", "import sys; print(sys.path)"]
    assert str(bindings) in subprocess.run(asked, capture_output=True, text=True, check=True).stdout


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
