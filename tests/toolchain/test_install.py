"""Toolchains by version: what a user may write, environments that appear whole or not at all, and why there is none.

The packages are a few kilobytes; what pip prints is that of pip 23.
"""

import hashlib
import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from harness.errors import ToolchainError
from harness.process import run
from harness.toolchain import (
    Toolchain,
    find_toolchain,
    get_toolchains,
    install,
    install_toolchain,
    installed_environments,
)
from harness.toolchain.find import being_made, environment_folder
from harness.toolchain.install import newest_release, parse_release, releases_between, releases_named, why_it_failed
from tests.fakes.fake_wheels import REVISION, unpack_wheels, write_wheels

RELEASE = "9.8.0"


def refusal(call: Callable[..., object], *arguments: Any, **options: Any) -> str:
    with pytest.raises(ToolchainError) as caught:
        call(*arguments, **options)
    return str(caught.value)


def test_a_release() -> None:
    texts = ("3.12.0", "3", " iree==3.12 ", "v3.12.0.1", "3.14-rc1")
    assert [parse_release(text) for text in texts] == ["3.12.0", "3.0.0", "3.12.0", "3.12.0.1", "3.14.0rc1"]
    for text in ("newest", "", ">=3.12", "iree==", "3.12.0 3.13.0", "--help"):
        wrong = (
            f"--toolchain {text}: is no version; write the release, as in --toolchain 3.12.0, or what CI built, as in "
        )
        assert refusal(parse_release, text) == f"{wrong}--toolchain pr:24701"


def test_a_range_is_all_that_the_index_has_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    printed = "Available versions: 9.9.0, 9.8.0, 9.8.0-of-old, 9.7.0\n"
    monkeypatch.setattr(install, "run", Mock(return_value=Mock(ok=True, stdout=printed, stderr="")))
    said: list[str] = []
    assert releases_named(["9.9", "iree==9.7.0..9.8"], said.append) == ("9.9.0", "9.7.0", "9.8.0")
    assert said == ["iree==9.7.0..9.8 is 2 releases: 9.7.0, 9.8.0"]
    assert releases_named(["9.8.0..newest"], said.append) == ("9.8.0", "9.9.0")
    nothing = "--toolchain 1.0..2.0: the package index has no release of that range; correct it"
    assert refusal(releases_named, ["1.0..2.0"], said.append) == nothing
    one_end = "--toolchain 1.0..: a range has two ends, as in 3.0.0..3.13.0"
    assert refusal(releases_named, ["1.0.."], said.append) == one_end
    monkeypatch.setattr(install, "run", Mock(return_value=Mock(ok=False, stdout="", stderr="a new trouble")))
    unsaid = "the releases from 9.8 to 9.10: pip cannot say which releases iree-base-compiler has; see what `pip index"
    assert refusal(releases_between, "9.8", "9.10").startswith(unsaid)


def test_releases_are_those_of_which_an_index_has_both_halves(index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for release in ("9.7.0", "9.8.0", "9.9.0", "9.10.0", "9.12.0", "9.11.0rc20261120"):
        write_wheels(index, release)
    for release in ("9.9.0", "9.12.0"):
        next(index.glob(f"iree_base_runtime-{release}-*")).unlink()
    assert releases_between("9.11.0", "9.8.0", pre=True) == ("9.8.0", "9.10.0", "9.11.0rc20261120")
    assert newest_release() == "9.10.0"
    monkeypatch.setenv("PIP_PRE", "1")
    assert newest_release() == "9.11.0rc20261120"


def test_the_order_is_the_users_and_each_comes_once(
    real_toolchain: Toolchain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def remember(release: str, **_: object) -> str:
        asked.append(release)
        return release

    monkeypatch.setattr(install, "install_toolchain", remember)
    toolchains = get_toolchains(("3.2.0", f"iree=={real_toolchain.version}", "3.1", "3.2"), root=tmp_path)
    assert list(map(str, toolchains)) == ["3.2.0", str(real_toolchain), "3.1.0"]
    assert get_toolchains((), root=tmp_path) == ()
    refusal(get_toolchains, ("3.3.0", "latest"), root=tmp_path)
    assert asked == ["3.2.0", "3.1.0"], "a wrong one is refused before another is installed"


# What pip does, in a tenth of a second, once the file is there that a test names.
_UNPACK = """
import sys, time, zipfile
from pathlib import Path
folder, wheels, awaited = map(Path, sys.argv[1:])
while not awaited.exists():
    time.sleep(0.01)
(site,) = folder.glob("lib/python*/site-packages")
for wheel in wheels.glob("*.whl"):
    zipfile.ZipFile(wheel).extractall(site)
"""


class Installer:
    """Installs the release from a folder of wheels, without pip, and keeps what the user reads meanwhile."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "environments"
        self.folder = environment_folder(self.root, RELEASE)
        self.wheels = write_wheels(folder / "wheels", RELEASE)
        self.awaited = folder
        self.started = 0
        self.said: list[str] = []

    def commands(self, folder: Path, _: str) -> tuple[tuple[str, ...], ...]:
        """Make an environment, and unpack all wheels in it."""
        self.started += 1
        return (
            (sys.executable, "-m", "venv", "--without-pip", str(folder)),
            (sys.executable, "-c", _UNPACK, str(folder), str(self.wheels), str(self.awaited)),
        )

    def get(self, on_install: Callable[[str], None] | None = None) -> Toolchain:
        """The release, installed where it is not here."""
        return install_toolchain(RELEASE, root=self.root, on_install=on_install or self.said.append)

    def left(self) -> list[str]:
        """Everything in the folder but locks."""
        return sorted(file.name for file in self.root.iterdir() if file.suffix != ".lock")


@pytest.fixture
def quick(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Installer:
    installer = Installer(tmp_path)
    monkeypatch.setattr(install, "commands_for", installer.commands)
    return installer


def test_a_pair_is_installed_once_and_overlooks_what_the_user_has_elsewhere(quick: Installer, tmp_path: Path) -> None:
    assert installed_environments(quick.root) == ()
    first = quick.get()
    assert (first.version, first.revision) == (RELEASE, REVISION)
    assert first.python == quick.folder / "bin" / "python"
    assert first.iree_compile.is_relative_to(quick.folder)
    assert quick.left() == [quick.folder.name]
    assert quick.get() == first
    assert (quick.started, quick.said) == (1, ["Installing IREE 9.8.0 (some 200 MB) ..."])
    (environment,) = installed_environments(quick.root)
    assert (environment.version, environment.folder) == (RELEASE, quick.folder)
    assert environment.disk_bytes > 1000

    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "numpy.py").write_text("raise ImportError('not this one')")
    command = [*first.python_command, "-c", "import numpy, iree.runtime; print(iree.runtime.__file__)"]
    finished = run(command, env={"PYTHONPATH": str(tmp_path / "elsewhere")})
    assert Path(finished.stdout.strip()).is_relative_to(quick.folder)


@pytest.mark.parametrize("missing", ["python", "iree-compile", ""])
def test_one_with_a_part_amiss_is_made_anew(missing: str, quick: Installer) -> None:
    first = quick.get()
    if missing:
        next(quick.folder.rglob(missing)).unlink()
    else:  # a harness was killed while it made it
        being_made(quick.folder).touch()
        assert installed_environments(quick.root) == ()
    assert quick.get() == first
    assert (quick.started, quick.left()) == (2, [quick.folder.name])


def test_two_harnesses_at_once_make_it_once(quick: Installer, tmp_path: Path) -> None:
    quick.awaited = tmp_path / "go"

    def tell(sentence: str) -> None:
        quick.said.append(sentence)
        if sentence.startswith("Another"):
            quick.awaited.touch()

    threads = [threading.Thread(target=quick.get, args=[tell]) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert quick.started == 1
    assert sorted(quick.said) == ["Another harness installs IREE 9.8.0 ...", "Installing IREE 9.8.0 (some 200 MB) ..."]


BROKEN = {"runtime": "raise ImportError('libomp.so: cannot open shared object file')"}


@pytest.mark.parametrize(
    ("release", "changes", "sentence"),
    [
        ("9.9.0", {}, "the package index gave IREE 9.9.0 for 9.8.0; give --toolchain 9.9.0"),
        (
            RELEASE,
            BROKEN,
            "the runtime of IREE 9.8.0 does not start here (Python exited with status 1: ImportError: libomp.so: "
            "cannot open shared object file); give another release",
        ),
    ],
)  # fmt: skip
def test_packages_that_do_not_work_are_refused_and_not_kept(
    release: str, changes: Any, sentence: str, quick: Installer, tmp_path: Path
) -> None:
    quick.wheels = write_wheels(tmp_path / "others", release, **changes)
    assert refusal(quick.get) == sentence
    assert quick.left() == []


def test_pip_installs_it_once_and_says_what_it_has(index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installer = Installer(index.parent)
    monkeypatch.setenv("PIP_USER", "1")  # as some users have it; pip refuses it in an environment
    first = installer.get()
    assert first.version == RELEASE
    assert refusal(install_toolchain, "9.9.0", root=installer.root, on_install=installer.said.append) == (
        "the package index has no IREE 9.9.0 for this Python; give a release that it has, such as 9.8.0"
    )
    assert installer.left() == [installer.folder.name]
    monkeypatch.setenv("PIP_FIND_LINKS", "")
    assert installer.get() == first


OTHERS = (
    "ERROR: Could not find a version that satisfies the requirement iree-base-compiler "
    "(from versions: 2.9.0, 3.8.0, 3.9.0, 3.10.0, 3.11.0, 3.13.0)\n"
)
UNREACHABLE = "Could not fetch URL https://index.invalid/iree-base-compiler/: connection error: HTTPSConnection\n"
PAGE_IS_MISSING = "Could not fetch URL https://index.invalid/simple/x/: 404 Client Error: Not Found - skipping\n"
FULL = "ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device\n"


@pytest.mark.parametrize(
    ("printed", "sentence"),
    [
        (UNREACHABLE, "is not in the cache, and the package index cannot be reached; connect to it once"),
        (PAGE_IS_MISSING + OTHERS, "such as 3.8.0, 3.9.0, 3.10.0, 3.11.0, 3.13.0"),
        (FULL, "IREE 3.12.0 (about 700 MB) is not in the cache, and the disk of the cache or of the temporary"),
        ("ERROR: hashes do not match\n", "exited with status 1); see what `pip install "),
    ],
)
def test_why_an_installation_failed(printed: str, sentence: str) -> None:
    why = why_it_failed("3.12.0", printed, "exited with status 1")
    assert sentence in why
    assert "index.invalid" not in why, "a company's own index is nobody else's business"


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
