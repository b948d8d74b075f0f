"""Toolchains by version: what a user may write, environments that appear whole or not at all, and why there is none.

The packages are a few kilobytes; what pip and uv print is that of pip 23 and uv 0.13.
"""

from __future__ import annotations

import sys
import sysconfig
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from harness.errors import ToolchainError
from harness.process import run
from harness.toolchain import Toolchain, get_toolchains, install, install_toolchain, installed_environments
from harness.toolchain.find import environment_folder
from harness.toolchain.install import Installer, choose_installer, why_it_failed
from tests.fakes.fake_wheels import REVISION, write_wheels

posix = pytest.mark.skipif(sys.platform == "win32", reason="the installer is a shell script")
RELEASE = "9.8.0"


def refusal(call: Callable[[], object]) -> str:
    with pytest.raises(ToolchainError) as caught:
        call()
    return str(caught.value)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The releases that are installed, or would be."""
    releases: list[str] = []

    def remember(release: str, **_: object) -> str:
        releases.append(release)
        return f"installed {release}"

    monkeypatch.setattr(install, "install_toolchain", remember)
    monkeypatch.setattr(install, "newest_release", lambda _: "9.9.0")
    return releases


def test_the_order_is_the_users_and_each_comes_once(
    real_toolchain: Toolchain, tmp_path: Path, asked: list[str]
) -> None:
    toolchains = get_toolchains(("3.2.0", f"iree=={real_toolchain.version}", "3.1", "3.2"), root=tmp_path)
    assert toolchains == ("installed 3.2.0", real_toolchain, "installed 3.1.0")  # type: ignore[comparison-overlap]
    assert asked == ["3.2.0", "3.1.0"]
    assert get_toolchains((), root=tmp_path) == ()


def test_a_wrong_one_is_refused_before_another_is_installed(tmp_path: Path, asked: list[str]) -> None:
    refusal(lambda: get_toolchains(("3.2.0", "latest"), root=tmp_path))
    assert asked == []


def test_nothing_is_needed_beside_the_harness(
    tmp_path: Path, asked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(install, "find_toolchain", Mock(side_effect=ToolchainError("nothing is installed")))
    get_toolchains(("3.2.0",), root=tmp_path)
    assert asked == ["3.2.0"]


@pytest.mark.parametrize("written", ["newest", "iree==newest"])
def test_the_user_reads_which_release_is_the_newest(written: str, tmp_path: Path, asked: list[str]) -> None:
    messages: list[str] = []
    get_toolchains([written], root=tmp_path, on_install=messages.append)
    assert (asked, messages) == (["9.9.0"], ["The newest release of IREE is 9.9.0"])


# --------------------------------------------------------------------------------------------------------- environments

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
            (
                "sh",
                "-c",
                f"printf '#!{folder}/bin/python -I\\nprint(28)\\n' > {folder}/bin/tool; chmod +x {folder}/bin/tool",
            ),
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
def messages() -> list[str]:
    """What the user reads while it takes long."""
    return []


Get = Callable[[], Toolchain]


@pytest.fixture
def get(root: Path, messages: list[str]) -> Get:
    return lambda: install_toolchain(RELEASE, root=root, on_install=messages.append)


def left_in(root: Path) -> list[str]:
    """Everything in the folder but locks."""
    return sorted(file.name for file in root.iterdir() if file.suffix != ".lock")


@posix
def test_a_pair_is_installed_once(quick: type[QuickInstaller], root: Path, messages: list[str], get: Get) -> None:
    first = get()
    folder = environment_folder(root, RELEASE)
    assert (first.version, first.revision) == (RELEASE, REVISION)
    assert first.python == folder / "bin" / "python"
    assert first.iree_compile.is_relative_to(folder)
    assert first.runtime_tool("iree-run-module").is_file()
    assert left_in(root) == [folder.name]
    assert get() == first
    assert (quick.started, messages) == (1, ["Installing IREE 9.8.0 (some 200 MB) ..."])


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
    quick: type[QuickInstaller], tmp_path: Path, messages: list[str], get: Get
) -> None:
    quick.wait_for = tmp_path / "go"
    found: list[Toolchain] = []
    waits = threading.Event()

    def tell(sentence: str) -> None:
        messages.append(sentence)
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
    assert sorted(messages) == ["Another harness installs IREE 9.8.0 ...", "Installing IREE 9.8.0 (some 200 MB) ..."]


@posix
@pytest.mark.parametrize(
    ("release", "changes", "sentence"),
    [
        ("9.9.0", {}, "the package index gave IREE 9.9.0 for 9.8.0; give --toolchain 9.9.0"),
        (
            RELEASE,
            {"runtime": "raise ImportError('libomp.so: cannot open shared object file')"},
            "the runtime of IREE 9.8.0 does not start here (Python exited with status 1: ImportError: libomp.so: "
            "cannot open shared object file); give another release",
        ),
        (
            RELEASE,
            {"tools": False},
            "iree-compile is missing from the installed packages; give another version with --toolchain",
        ),
        (
            RELEASE,
            {"runtime_version": "9.8.1"},
            "iree-base-compiler is 9.8.0 and iree-base-runtime is 9.8.1, and a module of one release may not run in "
            "another; give another version with --toolchain",
        ),
    ],
    ids=["another release", "a runtime that does not start", "no tools", "halves of different releases"],
)
def test_packages_that_do_not_work_are_refused_and_not_kept(
    release: str, changes: Any, sentence: str, quick: type[QuickInstaller], root: Path, tmp_path: Path, get: Get
) -> None:
    quick.wheels = write_wheels(tmp_path / "others", release, **changes)
    assert refusal(get) == sentence
    assert left_in(root) == []


def test_a_cache_that_cannot_be_written(root: Path, get: Get) -> None:
    root.write_text("a file where a folder belongs")
    assert refusal(get) == f"{root}: cannot be written (File exists); make room or set HARNESS_CACHE to another folder"


@posix
def test_those_that_are_here(quick: type[QuickInstaller], root: Path, get: Get) -> None:
    assert installed_environments(root) == ()
    get()
    (environment,) = installed_environments(root)
    assert (environment.version, environment.folder) == (RELEASE, environment_folder(root, RELEASE))
    assert environment.disk_bytes > 1000


@posix
def test_its_programs_run_when_they_are_called_by_path(quick: type[QuickInstaller], root: Path, get: Get) -> None:
    tool = get().python.with_name("tool")
    assert run([str(tool)]).stdout == "28\n"
    assert tool.stat().st_mode & 0o111


# -------------------------------------------------------------------------------------------------- the real installers


def test_pip_installs_it_once_and_says_what_it_has(
    index: Path, root: Path, get: Get, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_wheels(index, RELEASE)
    monkeypatch.setenv("PIP_USER", "1")  # as some users have it; pip refuses it in an environment
    first = get()
    assert first.version == RELEASE
    assert refusal(lambda: install_toolchain("9.9.0", root=root, on_install=lambda _: None)) == (
        "the package index has no IREE 9.9.0; give a release that it has, such as 9.8.0"
    )
    assert left_in(root) == [environment_folder(root, RELEASE).name]
    monkeypatch.setenv("PIP_FIND_LINKS", "")
    assert get() == first


@posix
def test_uv_is_taken_where_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    uv = tmp_path / "uv"
    uv.touch(mode=0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert choose_installer() == Installer(uv=str(uv))
    uv.unlink()
    assert choose_installer() == Installer(uv=None)


# ------------------------------------------------------------------------------------------------- why it cannot be had

HERE = f"Python {sys.version_info[0]}.{sys.version_info[1]} on {sysconfig.get_platform()}"
PACKAGES = ("iree-base-compiler[onnx]==3.12.0", "iree-base-runtime==3.12.0", "numpy")

PIP_HAS_OTHERS = """\
ERROR: Could not find a version that satisfies the requirement iree-base-compiler[onnx]==3.12.0 (from versions: 2.9.0, \
3.8.0, 3.9.0, 3.10.0, 3.11.0, 3.13.0)
ERROR: No matching distribution found for iree-base-compiler[onnx]==3.12.0
"""
PIP_HAS_NONE = """\
ERROR: Could not find a version that satisfies the requirement iree-base-compiler[onnx]==3.12.0 (from versions: none)
ERROR: No matching distribution found for iree-base-compiler[onnx]==3.12.0
"""
PIP_OTHER_TAGS = (
    "  Skipping link: none of the wheel's tags (cp310-cp310-manylinux_2_28_x86_64) are compatible (run pip debug "
    "--verbose to show compatible tags): https://index.invalid/iree_base_compiler-3.12.0-cp310-cp310-manylinux_2_28_"
    "x86_64.whl (from https://index.invalid/simple/)\n"
)
PIP_OTHER_PYTHON = (
    "  Link requires a different Python (3.9.2 not in: '>=3.10'): https://index.invalid/iree_base_compiler-3.12.0-cp310-"
    "cp310-manylinux_2_28_x86_64.whl (from https://index.invalid/simple/) (requires-python:>=3.10)\n"
)
PIP_UNREACHABLE = """\
WARNING: Retrying (Retry(total=0, connect=None, read=None, redirect=None, status=None)) after connection broken by \
'NewConnectionError('<HTTPSConnection object>: Failed to establish a new connection: [Errno -3] Temporary failure in \
name resolution')': /simple/iree-base-compiler/
Could not fetch URL https://index.invalid/simple/iree-base-compiler/: connection error: HTTPSConnectionPool(\
host='index.invalid', port=443): Max retries exceeded with url: /simple/iree-base-compiler/
"""
PIP_PAGE_IS_MISSING = "Could not fetch URL https://index.invalid/simple/x/: 404 Client Error: Not Found - skipping\n"
UV_HAS_OTHERS = """\
error: No solution found when resolving dependencies
  cause: Because there is no version of iree-base-compiler[onnx]==3.12.0 and you require \
iree-base-compiler[onnx]==3.12.0, we can conclude that your requirements are unsatisfiable.
"""
UV_OTHER_TAGS = """\
error: No solution found when resolving dependencies
  cause: Because iree-base-compiler[onnx]==3.12.0 has no wheels with a matching Python implementation tag (e.g., \
`cp39`) and you require iree-base-compiler[onnx]==3.12.0, we can conclude that your requirements are unsatisfiable.
"""
UV_UNREACHABLE = """\
error: Request failed after 3 retries in 10.4s
  cause: Failed to fetch: https://index.invalid/simple/iree-base-compiler/
  cause: error sending request for url (https://index.invalid/simple/iree-base-compiler/)
  cause: tcp connect error
"""
UV_OFFLINE = """\
error: No solution found when resolving dependencies
  cause: Because iree-base-compiler==3.12.0 needs to be downloaded from a registry and you require \
iree-base-compiler[onnx]==3.12.0, we can conclude that your requirements are unsatisfiable.

hint: Packages were unavailable because the network was disabled. When the network is disabled, registry packages may \
only be read from the cache.
"""
UV_NO_INDEX = """\
  cause: Because iree-base-compiler was not found in the provided package locations and you require \
iree-base-compiler[onnx]==3.12.0, we can conclude that your requirements are unsatisfiable.
"""
FULL = "ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device\n"
UV_FULL = "error: Failed to install: numpy\n  cause: failed to copy file: No space left on device (os error 28)\n"
NO_ENSUREPIP = "The virtual environment was not created successfully because ensurepip is not available.\n"


NO_NETWORK = (
    "IREE 3.12.0 is not in the cache, and the package index cannot be reached; connect once to install it, and later "
    "runs need no network"
)
OTHER_PYTHON = (
    f"IREE 3.12.0 has no packages for {HERE}; give another release, or run the harness under a Python that it is for"
)
NO_INDEX = (
    "IREE 3.12.0 is not in the cache, and no package index that is configured here has iree-base-compiler; check the "
    "settings of pip and uv (PIP_NO_INDEX, UV_NO_INDEX, their configuration files)"
)
DISK_FULL = (
    "IREE 3.12.0 cannot be installed: the disk of the cache or of the temporary folder is full; make room (an "
    "environment takes about 700 MB), or set HARNESS_CACHE or TMPDIR to another disk"
)
BY_HAND = (
    "IREE 3.12.0 cannot be installed (the installer exited with status 1); see what `pip install 'x[onnx]==3.12.0'` "
    "says"
)


@pytest.mark.parametrize(
    ("printed", "sentence"),
    [
        (PIP_UNREACHABLE + PIP_HAS_NONE, NO_NETWORK),
        (UV_UNREACHABLE, NO_NETWORK),
        (UV_OFFLINE, NO_NETWORK),
        (
            PIP_PAGE_IS_MISSING + PIP_HAS_OTHERS,
            "the package index has no IREE 3.12.0; give a release that it has, such as 3.8.0, 3.9.0, 3.10.0, "
            "3.11.0, 3.13.0",
        ),
        (UV_HAS_OTHERS, "the package index has no IREE 3.12.0; give a release that it has"),
        (PIP_OTHER_TAGS + PIP_HAS_OTHERS, OTHER_PYTHON),
        (PIP_OTHER_PYTHON + PIP_HAS_NONE, OTHER_PYTHON),
        (UV_OTHER_TAGS, OTHER_PYTHON),
        # Files of another system beside the one that was taken say nothing.
        (PIP_OTHER_TAGS + FULL, DISK_FULL),
        (PIP_OTHER_TAGS + "ERROR: hashes do not match\n", BY_HAND),
        (PIP_HAS_NONE, NO_INDEX),
        (UV_NO_INDEX, NO_INDEX),
        (UV_FULL, DISK_FULL),
        (
            NO_ENSUREPIP,
            "this Python cannot make environments; install its venv package (Debian's python3-venv), or uv",
        ),
        ("ERROR: https://index.invalid/ says no\n", BY_HAND),
    ],
)
def test_why_an_installation_failed(printed: str, sentence: str) -> None:
    # A company's own index, which pip and uv print, is nobody else's business.
    assert why_it_failed("3.12.0", printed, "exited with status 1", "pip install 'x[onnx]==3.12.0'") == sentence


def test_the_commands_of_pip_and_of_uv() -> None:
    folder = Path("there")
    python = str(folder / "bin" / "python")
    assert Installer(uv=None).commands(folder, "3.12.0") == (
        (sys.executable, "-I", "-m", "venv", "there"),
        (python, "-I", "-m", "pip", "install", "-vv", "--no-input", "--only-binary", ":all:", *PACKAGES),
    )
    assert Installer(uv="/bin/uv").commands(folder, "3.12.0") == (
        ("/bin/uv", "venv", "--no-project", "--python", sys.executable, "there"),
        ("/bin/uv", "pip", "install", "--python", python, "--only-binary", ":all:", *PACKAGES),
    )
    by_hand = "install 'iree-base-compiler[onnx]==3.12.0' iree-base-runtime==3.12.0 numpy"
    assert Installer(uv=None).by_hand("3.12.0") == f"pip {by_hand}"
    assert Installer(uv="/bin/uv").by_hand("3.12.0") == f"uv pip {by_hand}"
