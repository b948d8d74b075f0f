"""A folder as a toolchain: what it is called, that it is known by its content, and what is no toolchain."""

import os
import subprocess
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.cache import environments_root
from harness.errors import ToolchainError
from harness.toolchain import Toolchain, get_toolchains, release_named, releases_named
from harness.toolchain.find import environment_folder
from harness.toolchain.own import in_public, kind_named, own_named, own_toolchains, revision_of
from tests.fakes.fake_wheels import REVISION, unpack_wheels, write_wheel, write_wheels

SAYS = f"IREE (https://iree.dev):\n  IREE compiler version 9.9.0rc20261122 @ {REVISION}\n  LLVM version 22.0.0git\n"
SLOW = "a debug build or one with assertions, so its compile times are not comparable"


def program(file: Path, says: str = "", status: int = 0) -> None:
    """A program that says this, and writes what it is told to write."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f'#!/bin/sh\n[ "$2" = -o ] && touch "$3"\ncat <<\'END\'\n{says}\nEND\nexit {status}\n')
    file.chmod(0o755)


@pytest.fixture
def build(tmp_path: Path, installation: Path) -> Path:
    """IREE's build folder, with the runtime's bindings."""
    folder = tmp_path / "Build O2"
    program(folder / "tools" / "iree-compile", SAYS)
    for tool in ("run-module", "benchmark-module", "dump-module", "dump-parameters"):
        program(folder / "tools" / f"iree-{tool}")
    (folder / "lib").mkdir()
    (folder / "lib" / "libIREECompiler.so").write_text("one")
    (folder / "runtime/bindings/python/iree/runtime").mkdir(parents=True)
    (folder / "runtime/bindings/python/iree/_runtime.so").write_text("one")
    return folder


@pytest.fixture
def wheels(tmp_path: Path) -> Path:
    return write_wheels(tmp_path / "pair", "9.8.0")


def the(place: Path, said: list[str] | None = None) -> Toolchain:
    """The toolchain that a place is named for."""
    label = release_named(str(place), (said if said is not None else []).append)
    (found,) = get_toolchains([label], root=environments_root())
    assert found.version == label
    return found


def test_a_build_is_called_by_its_version_its_folder_and_its_content(build: Path) -> None:
    said: list[str] = []
    own = the(build, said)
    assert own.version.startswith("9.9.0rc20261122+local.build.o2.")
    assert said == [f"{build} is {own.version}, commit {REVISION[:10]}"]
    assert (own.iree_compile, own.runtime_tools) == (build / "tools" / "iree-compile", build / "tools")
    assert own.revision == REVISION
    assert all(the(build / named) == own for named in ("tools", "tools/iree-compile"))
    asked = [str(own.python), "-I", "-c", "import sys; print(sys.path)"]
    path = subprocess.run(asked, capture_output=True, text=True, check=True).stdout
    assert str(build / "runtime/bindings/python") in path
    for says in ("IREE compiler version main", "LLVM"):
        program(build / "tools" / "iree-compile", says)
        assert the(build).version.startswith("0.0.0+local.build.o2.")
    program(build / "tools" / "iree-compile", f"{SAYS}  Optimized build with assertions.\n")
    (remark,) = the(build, said).remarks
    assert (remark, said[-1]) == (SLOW, f"{said[-1].partition('; ')[0]}; {SLOW}")
    long = build.rename(build.with_name("x" * 200))
    assert the(long).version.startswith(f"9.9.0rc20261122+local.{'x' * 40}.")


def test_what_lies_behind_a_link_is_noticed_when_it_is_built_again(build: Path, tmp_path: Path) -> None:
    link = tmp_path / "link" / "iree-compile"
    link.parent.mkdir()
    link.symlink_to(build / "tools" / "iree-compile")
    before = {place: the(place).version for place in (link, link.parent)}
    (build / "lib" / "libIREECompiler.so").write_text("two")
    assert [place for place, label in before.items() if the(place).version == label] == []
    assert str(build / "runtime/bindings/python") in the(link).python.read_text()


@pytest.mark.parametrize(
    ("says", "installed", "chosen"),
    [
        ("9.10.1", ("9.9.0", "9.10.0", "9.12.0"), "9.10.0"),
        ("9.6.0", ("9.9.0", "9.7.0", "9.8.0"), "9.7.0"),
        ("9.99.0", ("9.9.0", "9.10.0"), "9.10.0"),
        ("main", ("9.9.0", "9.10.0"), "9.10.0"),
    ],
)
def test_a_build_runs_under_the_nearest_release_and_is_the_same_under_each(
    says: str, installed: tuple[str, ...], chosen: str, build: Path, tmp_path: Path, installation: Path
) -> None:
    program(build / "tools" / "iree-compile", f"IREE compiler version {says} @ {REVISION}")
    (build / "tools" / "iree-run-module").unlink()  # so the release's are taken
    label = the(build).version
    for file in installation.glob("iree_base_*"):
        file.rename(tmp_path / file.name)
    with pytest.raises(ToolchainError, match="runs under a release's Python, and none is here; give --toolchain newe"):
        the(build)
    for release in installed:
        folder = environment_folder(environments_root(), release)
        program(folder / "bin/python")
        unpack_wheels(write_wheels(tmp_path / release, release), folder / "lib/python3.11/site-packages")
    own = the(build)
    assert (own.version, own.runtime_tools.is_relative_to(environment_folder(environments_root(), chosen))) == (
        label,
        True,
    )


def test_what_is_built_again_is_another_one_and_what_is_touched_the_same(build: Path, wheels: Path) -> None:
    library, (wheel,) = build / "lib" / "libIREECompiler.so", wheels.glob("iree_base_compiler-*")
    before = the(build).version, release_named(str(wheels), print)
    os.utime(library)
    with zipfile.ZipFile(wheel) as archive:
        files = {name: archive.read(name).decode() for name in archive.namelist() if ".dist-info" not in name}
    write_wheel(wheels, "iree-base-compiler", "9.8.0", files, "Provides-Extra: onnx\n")
    assert (the(build).version, release_named(str(wheels), print)) == before
    assert [one.version for one in own_toolchains()] == [before[0]], "wheels are known by their environment"
    library.write_text("two")
    write_wheel(wheels, "iree-base-compiler", "9.8.0", files | {"iree/compiler/new.py": ""}, "Provides-Extra: onnx\n")
    after = the(build).version, release_named(str(wheels), print)
    assert not set(before) & set(after)
    with pytest.raises(ToolchainError, match=f"was built again since, and is {after[0].replace('+', '[+]')} now"):
        get_toolchains([before[0]], root=environments_root())
    (build / "tools" / "iree-compile").unlink()
    with pytest.raises(ToolchainError, match="Build O2 holds no toolchain any more; give another folder"):
        get_toolchains([before[0]], root=environments_root())


def test_a_word_that_is_kept_names_no_folder_of_a_toolchain(build: Path) -> None:
    label, flags = f"iree=={the(build).version}", "--a " * 2000
    given = (f"{build}/", f"iree=={build}/tools", f"{build.parent}/newest", "newest", build.name, flags)
    assert tuple(map(in_public, given)) == (label, label, label, "newest", build.name, flags)
    assert (kind_named(f"{build.parent}/newest"), kind_named("newest")) == ("a build", None)
    assert kind_named(f"{build}/lib/newest") is None


def test_wheels_are_installed_once_and_stay_when_they_are_gone(wheels: Path, index: Path) -> None:
    write_wheels(index, "9.7.0")  # numpy's among them
    own = the(wheels)
    assert own.version.startswith("9.8.0+local.pair.")
    assert revision_of(wheels) == own.revision == REVISION
    for wheel in wheels.glob("*.whl"):
        wheel.unlink()
    assert (get_toolchains([own.version], root=environments_root()), revision_of(wheels)) == ((own,), "")
    assert own.iree_compile.is_relative_to(environments_root())


def test_wheels_that_were_replaced_are_not_installed_under_the_label_of_before(wheels: Path, index: Path) -> None:
    label = release_named(str(wheels), print)
    files = {"iree/compiler/new.py": ""}
    write_wheel(wheels, "iree-base-compiler", "9.8.0", files, "Provides-Extra: onnx\n")
    with pytest.raises(ToolchainError, match="pair was built again since, and is 9"):
        get_toolchains([label], root=environments_root())


def test_an_environment_of_the_users_is_used_where_it_lies(tmp_path: Path, wheels: Path) -> None:
    environment = tmp_path / "environment"
    unpack_wheels(wheels, environment / "lib/python3.11/site-packages")
    (environment / "pyvenv.cfg").touch()
    program(environment / "bin/python")
    program(environment / "bin/iree-compile")
    own = the(environment)
    assert own.version.startswith("9.8.0+local.environment.")
    assert own.python == environment / "bin/python"
    (tmp_path / "path").mkdir()
    (tmp_path / "path/iree-compile").symlink_to(environment / "bin/iree-compile")
    assert all(
        the(place) == own for place in (environment / "bin", environment / "bin/iree-compile", tmp_path / "path")
    )
    own.python.unlink()
    with pytest.raises(ToolchainError, match="environment again with a pair of IREE, or give another f"):
        the(environment)


def test_newest_of_a_folder_is_what_was_built_last(build: Path, tmp_path: Path) -> None:
    for number, name in enumerate(("old", "new")):
        program(tmp_path / "builds" / name / "tools" / "iree-compile", SAYS)
        (tmp_path / "builds" / name / "runtime/bindings/python/iree/runtime").mkdir(parents=True)
        os.utime(tmp_path / "builds" / name / "tools" / "iree-compile", (number, number))
    (label,) = releases_named([str(tmp_path / "builds/newest")], print)
    assert "+local.new." in label


def test_a_build_without_a_runtime_goes_through_a_releases_if_that_loads_its_modules(
    build: Path, tmp_path: Path, real_toolchain: Toolchain
) -> None:
    (build / "runtime").rename(build / "gone")
    with pytest.raises(ToolchainError, match="has no Python runtime, and the one of IREE"):
        the(build)
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "tools").symlink_to(real_toolchain.compiler_tools)
    said: list[str] = []
    label = own_named(tmp_path / "real", said.append)
    assert said[-1].startswith(f"{tmp_path / 'real'} is {label}, commit ")
    assert said[-1].endswith("; measured through the runtime of 9.8.0")


def no_pair(folder: Path) -> None:
    next(folder.glob("iree_base_runtime-*")).unlink()


def another_python(folder: Path) -> None:
    for wheel in folder.glob("iree_base_compiler-*"):
        wheel.rename(wheel.with_name("iree_base_compiler-9.8.0-cp27-cp27m-any.whl"))


def damaged(folder: Path) -> None:
    """Its directory is whole, and the file in it that states the commit is not."""
    (wheel,) = folder.glob("iree_base_compiler-*")
    wheel.write_bytes(wheel.read_bytes().replace(REVISION.encode(), REVISION[::-1].encode(), 1))


@pytest.mark.parametrize(
    ("spoil", "sentence"),
    [
        (no_pair, "iree_base_runtime-*.whl is not there; give a pair that is"),
        (damaged, "any.whl: cannot be read (Bad CRC-32 for file 'iree/compiler/version.py'); build it again"),
        (
            lambda folder: (folder / "iree_base_compiler-foo.whl").touch(),
            "compiler-foo'; give it the name that it was built ",
        ),
        (
            lambda folder: program(folder / "tools/iree-compile"),
            "holds a build and wheels; move the wheels to a folder",
        ),
        (another_python, "iree_base_compiler-9.8.0-cp27-cp27m-any.whl is not for Python 3."),
        (lambda folder: write_wheels(folder, "9.9.0"), "put each pair into a folder"),
        (lambda folder: [file.unlink() for file in folder.glob("iree*")], "holds no toolchain (numpy-99.0-py3-none"),
        (lambda folder: folder.rename(folder.with_name("gone")), "is no version, and there is no such folder; correct"),
    ],
)
def test_what_is_no_toolchain(spoil: Callable[[Path], object], sentence: str, wheels: Path) -> None:
    spoil(wheels)
    with pytest.raises(ToolchainError) as caught:
        own_named(wheels, print)
    assert sentence in str(caught.value)


def test_a_compiler_that_does_not_start_says_so(build: Path) -> None:
    program(build / "tools" / "iree-compile", status=1)
    with pytest.raises(ToolchainError, match="exited with status 1; build it again"):
        the(build)
    (build / "tools" / "iree-compile").chmod(0o644)
    with pytest.raises(ToolchainError, match=r"cannot be started \(Permission denied\); build it again"):
        the(build)
    assert kind_named(str(build.parent)) is None
