"""Scenarios that are run once and asserted many times, with the real compiler and runtime."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.conftest import MadeOnce
from tests.end_to_end.command import Ended, Harness, edit, importable
from tests.end_to_end.plugin_package import install
from tests.end_to_end.suites import COMPARED, PRODUCT, SMALL, lay_out_counted


@dataclass(frozen=True)
class Counted(Harness):
    """The command where the plugin of the suite `counted` is as if it were installed."""

    def __call__(self, *arguments: str, **environment: str) -> Ended:
        """Run a command line to its end, in this process."""
        packages = self.folder / "packages"
        with importable(packages):
            return super().__call__(*arguments, PYTHONPATH=str(packages), **environment)


@pytest.fixture
def harness(tmp_path: Path) -> Harness:
    """The command, and the small suite."""
    (tmp_path / "small.toml").write_text(SMALL)
    return Harness(tmp_path)


@pytest.fixture
def suite_with(harness: Harness) -> Callable[..., Harness]:
    """Change the small suite by replacing and appending text."""

    def change(*replacements: tuple[str, str], append: str = "") -> Harness:
        text = SMALL
        for old, new in replacements:
            assert old in text
            text = text.replace(old, new)
        (harness.folder / "small.toml").write_text(text + append)
        return harness

    return change


@pytest.fixture(scope="session")
def small_run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Harness, Ended]:
    """A folder in which the small suite was run, with limits and gates, and what that printed; tests only read it."""
    harness = Harness(tmp_path_factory.mktemp("small run"))
    limits = '[floors]\nlatency = 0.02\n[gates.copies]\nmetric = "copies"\ncases = "*@cpu"\n'
    (harness.folder / "small.toml").write_text(SMALL + limits)
    ended = harness("run", "small.toml")
    assert ended.returncode == 0, ended.stderr
    return harness, ended


@pytest.fixture
def small_copy(small_run: tuple[Harness, Ended], tmp_path: Path) -> Harness:
    """That run, for the test to change."""
    shutil.copytree(small_run[0].folder, tmp_path / "here")
    return Harness(tmp_path / "here")


@pytest.fixture(scope="session")
def tools(made_once: MadeOnce) -> Path:
    """Where the programs of an environment lie that has the harness's wheel, and the example package's."""
    return made_once("installed", install) / "environment" / "bin"


@pytest.fixture(scope="session")
def _compared_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    harness = Harness(tmp_path_factory.mktemp("compared"))
    (harness.folder / "small.toml").write_text(COMPARED)
    (harness.folder / "product.mlir").write_text(PRODUCT)
    ended = harness("run", "small.toml")
    assert ended.returncode == 0, ended.stderr
    (path,) = harness.runs()
    path.rename(path.with_name("base"))
    shutil.copytree(path.with_name("base"), path.with_name("head"))
    edit(path.with_name("head") / "run.json", lambda header: header.update(id="20260101-000000-small"))
    return harness.folder


@pytest.fixture
def runs(_compared_once: Path, tmp_path: Path) -> Harness:
    """Two equal runs of one suite, results/base and results/head, for the test to change."""
    shutil.copytree(_compared_once, tmp_path / "here")
    return Harness(tmp_path / "here")


@pytest.fixture(scope="session")
def _counted_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    harness = Counted(tmp_path_factory.mktemp("counted"))
    lay_out_counted(harness.folder)
    ended = harness("run", "counted.toml")
    assert ended.returncode == 0, ended.stderr
    (path,) = harness.runs()
    path.rename(path.with_name("base"))
    (harness.folder / "stdout.txt").write_text(ended.stdout)
    return harness.folder


@pytest.fixture
def counted(_counted_once: Path, tmp_path: Path) -> Counted:
    """A run whose ops were counted, as results/base, for the test to change."""
    shutil.copytree(_counted_once, tmp_path / "here")
    return Counted(tmp_path / "here")
