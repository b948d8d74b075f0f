"""Environments that appear whole or not at all, and are there for good; the packages are a few kilobytes."""

from __future__ import annotations

import os
import shutil
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.errors import ToolchainError
from harness.process import run
from harness.toolchain import Toolchain, install, install_toolchain, installed_environments
from harness.toolchain.find import environment_folder
from harness.toolchain.install import Installer
from tests.fakes.fake_wheels import REVISION, write_wheels

posix = pytest.mark.skipif(sys.platform == "win32", reason="the installer is a shell script")
RELEASE = "9.8.0"
# What uv and pip do, in a tenth of a second.
_UNPACK = """
import sys, zipfile
from pathlib import Path
folder, wheels = Path(sys.argv[1]), Path(sys.argv[2])
(site,) = folder.glob("lib/python*/site-packages")
for wheel in wheels.glob("*.whl"):
    zipfile.ZipFile(wheel).extractall(site)
"""


class QuickInstaller(Installer):
    """Unpacks the wheels of a folder, after a wait for a file where a test says so."""

    wheels: Path
    wait_for: Path | None = None
    started: int = 0

    def commands(self, folder: Path, release: str) -> tuple[tuple[str, ...], ...]:
        """Make an environment without pip, and unpack all wheels in it."""
        del release
        type(self).started += 1
        wait = ("sh", "-c", f'while [ ! -e "{self.wait_for}" ]; do sleep 0.01; done')
        return (
            *((wait,) if self.wait_for is not None else ()),
            (sys.executable, "-m", "venv", "--without-pip", str(folder)),
            (sys.executable, "-c", _UNPACK, str(folder), str(self.wheels)),
        )


@pytest.fixture
def quick(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> type[QuickInstaller]:
    """Installs from tmp_path / "wheels", and counts how often it was asked to."""

    class Quick(QuickInstaller):
        wheels = tmp_path / "wheels"

    write_wheels(Quick.wheels, RELEASE)
    monkeypatch.setattr(install, "choose_installer", lambda: Quick(uv=None))
    return Quick


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "environments"


@pytest.fixture
def told() -> list[str]:
    """What the user is told while it takes long."""
    return []


Get = Callable[[], Toolchain]


@pytest.fixture
def get(root: Path, told: list[str]) -> Get:
    return lambda: install_toolchain(RELEASE, root=root, on_install=told.append)


def left_in(root: Path) -> list[str]:
    """Everything in the folder but locks."""
    return sorted(file.name for file in root.iterdir() if file.suffix != ".lock")


@posix
def test_a_pair_is_installed_once(quick: type[QuickInstaller], root: Path, told: list[str], get: Get) -> None:
    first = get()
    folder = environment_folder(root, RELEASE)
    assert (first.version, first.revision) == (RELEASE, REVISION)
    assert first.python == folder / "bin" / "python"
    assert first.iree_compile.is_relative_to(folder)
    assert first.runtime_tool("iree-run-module").is_file()
    assert left_in(root) == [folder.name]
    assert get() == first
    assert (quick.started, told) == (1, ["Installing IREE 9.8.0 (some 200 MB) ..."])


@posix
def test_it_runs_where_it_was_moved_to_and_overlooks_what_the_user_has_elsewhere(
    quick: type[QuickInstaller], get: Get, tmp_path: Path
) -> None:
    found = get()
    (tmp_path / "elsewhere" / "numpy").mkdir(parents=True)
    (tmp_path / "elsewhere" / "numpy" / "__init__.py").write_text("raise ImportError('not this one')")
    command = [*found.python_command, "-c", "import numpy, iree.runtime; print(iree.runtime.__file__)"]
    finished = run(command, env={"PYTHONPATH": str(tmp_path / "elsewhere")})
    assert finished.ok, finished.stderr
    assert Path(finished.stdout.strip()).is_relative_to(found.python.parents[1])


@posix
@pytest.mark.parametrize("missing", ["bin/python", "iree-compile", "iree_base_runtime-9.8.0.dist-info/METADATA"])
def test_one_with_a_part_amiss_is_made_anew(missing: str, quick: type[QuickInstaller], root: Path, get: Get) -> None:
    first = get()
    folder = environment_folder(root, RELEASE)
    (part,) = [folder / missing] if "bin" in missing else folder.rglob(missing)
    part.unlink()
    assert get() == first
    assert quick.started == 2
    assert left_in(root) == [folder.name]


@posix
def test_what_a_killed_harness_left_is_removed_and_never_used(
    quick: type[QuickInstaller], root: Path, get: Get
) -> None:
    folder = environment_folder(root, RELEASE)
    (root / f".making-{folder.name}-abc" / "environment").mkdir(parents=True)
    other = root / f".making-{environment_folder(root, '9.7.0').name}-abc"  # another harness may be making that one
    other.mkdir()
    assert installed_environments(root) == ()
    get()
    assert left_in(root) == [other.name, folder.name]


@posix
def test_two_harnesses_at_once_make_it_once(
    quick: type[QuickInstaller], tmp_path: Path, told: list[str], get: Get
) -> None:
    quick.wait_for = tmp_path / "go"
    found: list[Toolchain] = []
    waits = threading.Event()

    def tell(sentence: str) -> None:
        told.append(sentence)
        if sentence.startswith("Another"):
            waits.set()

    threads = [
        threading.Thread(
            target=lambda: found.append(install_toolchain(RELEASE, root=tmp_path / "environments", on_install=tell))
        )
        for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    assert waits.wait(60)
    (tmp_path / "go").touch()
    for thread in threads:
        thread.join()
    assert quick.started == 1
    assert found[0] == found[1]
    assert sorted(told) == ["Another harness installs IREE 9.8.0 ...", "Installing IREE 9.8.0 (some 200 MB) ..."]


@posix
@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        (
            {"runtime": "raise ImportError('libomp.so: cannot open shared object file')"},
            "the runtime of IREE 9.8.0 does not start here (Python exited with status 1: ImportError: libomp.so: "
            "cannot open shared object file); give another --toolchain",
        ),
        (
            {"tools": False},
            "iree-compile is missing from the installed packages; give another version with --toolchain",
        ),
        (
            {"runtime_version": "9.8.1"},
            "iree-base-compiler is 9.8.0 and iree-base-runtime is 9.8.1, and a module of one release may not run in "
            "another; give another version with --toolchain",
        ),
    ],
    ids=["a runtime that does not start", "no tools", "halves of different releases"],
)
def test_packages_that_do_not_work_are_refused_and_not_kept(
    changes: dict[str, str | bool], sentence: str, quick: type[QuickInstaller], root: Path, tmp_path: Path, get: Get
) -> None:
    quick.wheels = write_wheels(tmp_path / "others", RELEASE, **changes)  # type: ignore[arg-type]
    with pytest.raises(ToolchainError) as caught:
        get()
    assert str(caught.value) == sentence
    assert left_in(root) == []


@posix
def test_another_release_than_the_one_asked_for(
    quick: type[QuickInstaller], root: Path, tmp_path: Path, get: Get
) -> None:
    quick.wheels = write_wheels(tmp_path / "others", "9.9.0")
    with pytest.raises(ToolchainError) as caught:
        get()
    assert str(caught.value) == "the package index gave IREE 9.9.0 for 9.8.0; give --toolchain 9.9.0"
    assert left_in(root) == []


def test_a_cache_that_cannot_be_written(root: Path, get: Get) -> None:
    root.write_text("a file where a folder belongs")
    with pytest.raises(ToolchainError) as caught:
        get()
    assert str(caught.value) == (
        f"{root}: cannot be written (File exists); make room or set HARNESS_CACHE to another folder"
    )


@posix
def test_those_that_are_here(quick: type[QuickInstaller], root: Path, get: Get) -> None:
    assert installed_environments(root) == ()
    get()
    (one,) = installed_environments(root)
    assert (one.version, one.folder) == (RELEASE, environment_folder(root, RELEASE))
    assert one.disk_bytes >= sum(file.stat().st_size for file in one.folder.rglob("*.whl"))
    assert one.disk_bytes > 1000


# ------------------------------------------------------------------------------------------------- the real installers


@pytest.fixture
def offline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of wheels that is all pip knows of, and no uv."""
    wheels = write_wheels(tmp_path / "wheels", RELEASE)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheels))
    monkeypatch.setattr(shutil, "which", lambda _: None)
    return wheels


def test_pip_installs_it_and_is_not_asked_again(offline: Path, get: Get, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_USER", "1")  # as some users have it; pip refuses it in an environment
    first = get()
    assert first.version == RELEASE
    monkeypatch.setenv("PIP_FIND_LINKS", "")
    assert get() == first


def test_pip_says_what_it_has(offline: Path, root: Path) -> None:
    with pytest.raises(ToolchainError) as caught:
        install_toolchain("9.9.0", root=root, on_install=lambda _: None)
    assert str(caught.value) == "the package index has no IREE 9.9.0; give a --toolchain that it has, such as 9.8.0"
    assert left_in(root) == []


@posix
def test_uv_is_taken_where_it_is(
    quick: type[QuickInstaller], root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()  # the real choice
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    uv = tmp_path / "bin" / "uv"
    uv.parent.mkdir()
    uv.write_text(
        f"""#!/bin/sh
echo "$@" >> "{tmp_path}/calls"
case "$1" in
venv) exec "{sys.executable}" -m venv --without-pip "$5" ;;
esac
cat > "{tmp_path}/unpack.py" <<'END'
{_UNPACK}
END
exec "{sys.executable}" "{tmp_path}/unpack.py" "$(dirname "$(dirname "$4")")" "{quick.wheels}"
"""
    )
    uv.chmod(0o755)
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path / "cache"))
    assert install_toolchain(RELEASE, root=root, on_install=lambda _: None).version == RELEASE
    first, second = (tmp_path / "calls").read_text().splitlines()
    assert first.startswith(f"venv --no-project --python {sys.executable} ")
    assert second.endswith("--only-binary :all: iree-base-compiler[onnx]==9.8.0 iree-base-runtime==9.8.0 numpy")
