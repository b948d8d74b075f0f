"""Toolchains by version: what a user may write, environments that appear whole or not at all, and why there is none.

The packages are a few kilobytes; what pip prints is that of pip 23.
"""

import sys
import sysconfig
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from harness.errors import ToolchainError
from harness.process import run
from harness.toolchain import Toolchain, get_toolchains, install, install_toolchain, installed_environments
from harness.toolchain.find import being_made, environment_folder
from harness.toolchain.install import (
    newest_release,
    parse_release,
    releases_between,
    releases_named,
    why_it_failed,
)
from tests.fakes.fake_wheels import REVISION, write_wheels

RELEASE = "9.8.0"


def refusal(call: Callable[[], object]) -> str:
    with pytest.raises(ToolchainError) as caught:
        call()
    return str(caught.value)


# --- What a user may write ---


@pytest.mark.parametrize(
    ("written", "release"),
    [
        ("3.12.0", "3.12.0"),
        ("3", "3.0.0"),
        (" iree==3.12 ", "3.12.0"),
        ("v3.12.0.1", "3.12.0.1"),
        ("3.14-rc1", "3.14.0rc1"),
        ("1!3.12", "1!3.12.0"),
    ],
)
def test_a_release(written: str, release: str) -> None:
    assert parse_release(written) == release


@pytest.mark.parametrize("written", ["newest", "", ">=3.12", "iree==", "3.12.0 3.13.0", "--help"])
def test_what_is_no_release(written: str) -> None:
    assert refusal(lambda: parse_release(written)) == (
        f"--toolchain {written}: is no version; write the release, as in --toolchain 3.12.0"
    )


def test_a_range_is_all_that_the_index_has_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    printed = "Available versions: 9.9.0, 9.8.0, 9.8.0-of-old, 9.7.0\n"
    monkeypatch.setattr(install, "run", Mock(return_value=Mock(ok=True, stdout=printed, stderr="")))
    said: list[str] = []
    assert releases_named(["9.9", "iree==9.7.0..9.8"], said.append) == ("9.9.0", "9.7.0", "9.8.0")
    assert said == ["iree==9.7.0..9.8 is 2 releases: 9.7.0, 9.8.0"]
    assert releases_named(["9.8.0..newest"], said.append) == ("9.8.0", "9.9.0")
    assert refusal(lambda: releases_named(["1.0..2.0"], said.append)) == (
        "--toolchain 1.0..2.0: the package index has no release of that range; correct it"
    )
    assert refusal(lambda: releases_named(["1.0.."], said.append)) == (
        "--toolchain 1.0..: a range has two ends, as in 3.0.0..3.13.0"
    )


def test_releases_are_those_of_which_an_index_has_both_halves(index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for release in ("9.7.0", "9.8.0", "9.9.0", "9.10.0", "9.12.0", "9.11.0rc20261120"):
        write_wheels(index, release)
    for release in ("9.9.0", "9.12.0"):
        next(index.glob(f"iree_base_runtime-{release}-*")).unlink()
    assert releases_between("9.8.0", "9.10.0") == ("9.8.0", "9.10.0")
    assert releases_between("9.11.0", "9.8.0", pre=True) == ("9.8.0", "9.10.0", "9.11.0rc20261120")
    assert newest_release() == "9.10.0"
    monkeypatch.setenv("PIP_PRE", "1")
    assert newest_release() == "9.11.0rc20261120"


@pytest.mark.parametrize(
    ("printed", "sentence"),
    [
        ("No module named pip", "needs pip, which this Python does not have; install pip, or name each of them"),
        (
            "Could not fetch URL https://pypi.org/simple/: connection error: no route",
            "the package index cannot be reached; connect, or name each of them",
        ),
        (
            "a new trouble",
            "pip cannot say which releases iree-base-compiler has; see what `pip index versions iree-base-compiler` "
            "says",
        ),
    ],
)
def test_a_pip_that_does_not_say_its_releases(printed: str, sentence: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(install, "run", Mock(return_value=Mock(ok=False, stdout="", stderr=printed)))
    assert refusal(lambda: releases_between("9.8", "9.10")) == f"the releases from 9.8 to 9.10: {sentence}"


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
    assert get_toolchains((), root=tmp_path) == ()
    refusal(lambda: get_toolchains(("3.3.0", "latest"), root=tmp_path))
    assert asked == ["3.2.0", "3.1.0"], "a wrong one is refused before another is installed"


# --- Environments ---

# What pip does, in a tenth of a second.
_UNPACK = """
import sys, zipfile
from pathlib import Path
folder, wheels = Path(sys.argv[1]), Path(sys.argv[2])
(site,) = folder.glob("lib/python*/site-packages")
for wheel in wheels.glob("*.whl"):
    zipfile.ZipFile(wheel).extractall(site)
"""


@dataclass
class QuickInstaller:
    """Unpacks the wheels of a folder, after a wait for a file where a test says so."""

    wheels: Path
    wait_for: Path | None = None
    started: int = 0

    def commands(self, folder: Path, _: str) -> tuple[tuple[str, ...], ...]:
        """Make an environment without pip, and unpack all wheels in it."""
        self.started += 1
        wait = ("sh", "-c", f'while [ ! -e "{self.wait_for}" ]; do sleep 0.01; done')
        return (
            *((wait,) if self.wait_for is not None else ()),
            (sys.executable, "-m", "venv", "--without-pip", str(folder)),
            (sys.executable, "-c", _UNPACK, str(folder), str(self.wheels)),
        )


@pytest.fixture
def quick(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> QuickInstaller:
    """Installs from a folder of wheels, and counts how often it was asked to."""
    installer = QuickInstaller(write_wheels(tmp_path / "wheels", RELEASE))
    monkeypatch.setattr(install, "commands_for", installer.commands)
    return installer


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


def test_a_pair_is_installed_once_and_overlooks_what_the_user_has_elsewhere(
    quick: QuickInstaller, root: Path, messages: list[str], get: Get, tmp_path: Path
) -> None:
    assert installed_environments(root) == ()
    first = get()
    folder = environment_folder(root, RELEASE)
    assert (first.version, first.revision) == (RELEASE, REVISION)
    assert first.python == folder / "bin" / "python"
    assert first.iree_compile.is_relative_to(folder)
    assert left_in(root) == [folder.name]
    assert get() == first
    assert (quick.started, messages) == (1, ["Installing IREE 9.8.0 (some 200 MB) ..."])
    (environment,) = installed_environments(root)
    assert (environment.version, environment.folder) == (RELEASE, folder)
    assert environment.disk_bytes > 1000

    (tmp_path / "elsewhere" / "numpy").mkdir(parents=True)
    (tmp_path / "elsewhere" / "numpy" / "__init__.py").write_text("raise ImportError('not this one')")
    command = [*first.python_command, "-c", "import numpy, iree.runtime; print(iree.runtime.__file__)"]
    finished = run(command, env={"PYTHONPATH": str(tmp_path / "elsewhere")})
    assert finished.ok, finished.stderr
    assert Path(finished.stdout.strip()).is_relative_to(folder)


@pytest.mark.parametrize("missing", ["bin/python", "iree-compile", "iree_base_runtime-9.8.0.dist-info/METADATA", ""])
def test_one_with_a_part_amiss_is_made_anew(missing: str, quick: QuickInstaller, root: Path, get: Get) -> None:
    first = get()
    folder = environment_folder(root, RELEASE)
    if missing:
        (part,) = [folder / missing] if "bin" in missing else folder.rglob(missing)
        part.unlink()
    else:  # a harness was killed while it made it
        being_made(folder).touch()
        assert installed_environments(root) == ()
    assert get() == first
    assert quick.started == 2
    assert left_in(root) == [folder.name]


def test_two_harnesses_at_once_make_it_once(
    quick: QuickInstaller, tmp_path: Path, messages: list[str], root: Path
) -> None:
    quick.wait_for = tmp_path / "go"
    found: list[Toolchain] = []
    waits = threading.Event()

    def tell(sentence: str) -> None:
        messages.append(sentence)
        if sentence.startswith("Another"):
            waits.set()

    def install_it() -> None:
        found.append(install_toolchain(RELEASE, root=root, on_install=tell))

    threads = [threading.Thread(target=install_it) for _ in range(2)]
    for thread in threads:
        thread.start()
    assert waits.wait(60)
    (tmp_path / "go").touch()
    for thread in threads:
        thread.join()
    assert quick.started == 1
    assert found[0] == found[1]
    assert sorted(messages) == ["Another harness installs IREE 9.8.0 ...", "Installing IREE 9.8.0 (some 200 MB) ..."]


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
    ],
)
def test_packages_that_do_not_work_are_refused_and_not_kept(
    release: str, changes: Any, sentence: str, quick: QuickInstaller, root: Path, tmp_path: Path, get: Get
) -> None:
    quick.wheels = write_wheels(tmp_path / "others", release, **changes)
    assert refusal(get) == sentence
    assert left_in(root) == []


def test_a_cache_that_cannot_be_written(root: Path, get: Get) -> None:
    root.write_text("a file where a folder belongs")
    assert refusal(get) == f"{root}: cannot be written (File exists); make room or set HARNESS_CACHE to another folder"


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


# --- Why it cannot be had ---

REQUIREMENT = "iree-base-compiler[onnx]==3.12.0"
PIP_HAS = f"ERROR: Could not find a version that satisfies the requirement {REQUIREMENT} (from versions: %s)\n"
OTHERS, NONE = PIP_HAS % "2.9.0, 3.8.0, 3.9.0, 3.10.0, 3.11.0, 3.13.0", PIP_HAS % "none"
WHEEL = "https://index.invalid/iree_base_compiler-3.12.0-cp310-cp310-manylinux_2_28_x86_64.whl"
OTHER_TAGS = (
    "  Skipping link: none of the wheel's tags (cp310-cp310-manylinux_2_28_x86_64) are compatible (run pip debug "
    f"--verbose to show compatible tags): {WHEEL} (from https://index.invalid/simple/)\n"
)
OTHER_PYTHON = f"  Link requires a different Python (3.9.2 not in: '>=3.10'): {WHEEL} (from https://index.invalid/)\n"
UNREACHABLE = (
    "Could not fetch URL https://index.invalid/simple/iree-base-compiler/: connection error: HTTPSConnection\n"
)
PAGE_IS_MISSING = "Could not fetch URL https://index.invalid/simple/x/: 404 Client Error: Not Found - skipping\n"
FULL = "ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device\n"


@pytest.mark.parametrize(
    ("printed", "sentence"),
    [
        (UNREACHABLE + NONE, "the package index cannot be reached; connect once to install it"),
        (PAGE_IS_MISSING + OTHERS, "such as 3.8.0, 3.9.0, 3.10.0, 3.11.0, 3.13.0"),
        (OTHER_TAGS + OTHERS, "IREE 3.12.0 has no packages for "),
        (
            OTHER_PYTHON + NONE,
            f"on {sysconfig.get_platform()}; give another release, or run the harness under a Python",
        ),
        # Files of another system beside the one that was taken say nothing.
        (OTHER_TAGS + FULL, "the disk of the cache or of the temporary folder is full; make room"),
        (OTHER_TAGS + "ERROR: hashes do not match\n", "exited with status 1); see what `pip install "),
        (NONE, "no package index that is configured here has iree-base-compiler; check pip's settings"),
        ("The virtual environment was not created since ensurepip is not available.\n", "install its venv package"),
        ("ERROR: https://index.invalid/ says no\n", "see what `pip install "),
    ],
)
def test_why_an_installation_failed(printed: str, sentence: str) -> None:
    why = why_it_failed("3.12.0", printed, "exited with status 1")
    assert sentence in why
    assert "index.invalid" not in why, "a company's own index is nobody else's business"
