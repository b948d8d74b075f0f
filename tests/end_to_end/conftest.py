"""Scenarios that are run once and asserted many times, with the real compiler and runtime."""

import json
import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from unittest import mock

import pytest

from harness.cache import environments_root
from harness.errors import ToolchainError
from harness.toolchain import Toolchain, get_toolchains
from tests.conftest import MadeOnce
from tests.end_to_end.command import Harness
from tests.end_to_end.plugin_package import install
from tests.end_to_end.suites import COMPARED, PRODUCT, SMALL, lay_out_counted

OLDER = "3.12.0"


@pytest.fixture(scope="session")
def older(real_toolchain: Toolchain, request: pytest.FixtureRequest) -> Toolchain:
    """A released pair, kept with pytest's own cache, so that it is downloaded once and not in every session."""
    if real_toolchain.version == OLDER:
        pytest.skip(f"the installed toolchain is {OLDER} itself")
    kept = request.config.cache.mkdir("environments") if request.config.cache is not None else None
    root = environments_root()
    if kept is not None:
        root.parent.mkdir(parents=True, exist_ok=True)
        with suppress(FileExistsError):
            root.symlink_to(kept)
    try:
        # pip would compile all of numpy and sympy first, of which the tests import little.
        with mock.patch.dict(os.environ, PIP_NO_COMPILE="0"):  # means that it does not
            (toolchain,) = get_toolchains((OLDER,), root=root)
    except ToolchainError as error:
        if "cannot be reached" in str(error) or "cannot be installed" in str(error):
            pytest.skip(f"IREE {OLDER} cannot be downloaded here: {error}")
        raise
    return toolchain


@pytest.fixture
def harness(tmp_path: Path) -> Harness:
    """The command, and the small suite."""
    (tmp_path / "small.toml").write_text(SMALL)
    return Harness(tmp_path)


@pytest.fixture
def suite_with(harness: Harness) -> Callable[..., Harness]:
    """Change the small suite by replacing text."""

    def change(*replacements: tuple[str, str]) -> Harness:
        text = SMALL
        for old, new in replacements:
            assert old in text
            text = text.replace(old, new)
        (harness.folder / "small.toml").write_text(text)
        return harness

    return change


def _run(harness: Harness, suite: str) -> Path:
    """Run a suite, and keep what that printed as printed.txt; the run."""
    ended = harness("run", suite)
    assert ended.returncode == 0, ended.stderr
    (harness.folder / "printed.txt").write_text(ended.stdout)
    (path,) = harness.runs()
    return path


def _run_small(folder: Path) -> None:
    limits = '[floors]\nlatency = 0.02\n[gates.copies]\nmetric = "copies"\ncases = "*@cpu"\n'
    (folder / "small.toml").write_text(SMALL + limits)
    _run(Harness(folder), "small.toml")


def _run_compared(folder: Path) -> None:
    (folder / "small.toml").write_text(COMPARED)
    (folder / "product.mlir").write_text(PRODUCT)
    base = _run(Harness(folder), "small.toml").rename(folder / "results/base")
    shutil.copytree(base, folder / "results/head")
    header = json.loads((folder / "results/head/run.json").read_text())
    (folder / "results/head/run.json").write_text(json.dumps({**header, "id": "20260101-000000-small"}))


def _run_counted(folder: Path) -> None:
    lay_out_counted(folder)
    _run(Harness(folder, folder / "packages"), "counted.toml").rename(folder / "results/base")


@pytest.fixture(scope="session")
def small_run(made_once: MadeOnce) -> Harness:
    """A folder in which the small suite was run, with limits and gates; tests only read it."""
    return Harness(made_once("small run", _run_small))


@pytest.fixture
def copied(made_once: MadeOnce, tmp_path: Path) -> MadeOnce:
    """A folder that is filled once in a session, copied for the test to change."""
    return lambda name, fill: Path(shutil.copytree(made_once(name, fill), tmp_path / "here"))


@pytest.fixture
def small_copy(copied: MadeOnce) -> Harness:
    """That run, for the test to change."""
    return Harness(copied("small run", _run_small))


@pytest.fixture
def runs(copied: MadeOnce) -> Harness:
    """Two equal runs of one suite, results/base and results/head, for the test to change."""
    return Harness(copied("compared", _run_compared))


@pytest.fixture
def counted(copied: MadeOnce) -> Harness:
    """A run whose ops were counted, as results/base, for the test to change."""
    folder = copied("counted", _run_counted)
    return Harness(folder, folder / "packages")


@pytest.fixture(scope="session")
def tools(made_once: MadeOnce) -> Path:
    """Where the programs of an environment lie that has the harness's wheel, and the example package's."""
    return made_once("installed", install) / "environment" / "bin"
