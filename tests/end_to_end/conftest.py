"""Scenarios that are run once and asserted many times, with the real compiler and runtime."""

import json
import shutil
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import pytest

from tests.conftest import MadeOnce
from tests.end_to_end.command import Ended, Harness, edit
from tests.end_to_end.plugin_package import install, lay_out
from tests.end_to_end.suites import COMPARED, PRODUCT, SMALL, lay_out_counted


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
def small_run(made_once: MadeOnce) -> tuple[Harness, Ended]:
    """A folder in which the small suite was run, with limits and gates, and what that printed; tests only read it."""

    def run(folder: Path) -> None:
        limits = '[floors]\nlatency = 0.02\n[gates.copies]\nmetric = "copies"\ncases = "*@cpu"\n'
        (folder / "small.toml").write_text(SMALL + limits)
        ended = Harness(folder)("run", "small.toml")
        assert ended.returncode == 0, ended.stderr
        (folder / "ended.json").write_text(json.dumps(asdict(ended)))

    folder = made_once("small run", run)
    return Harness(folder), Ended(**json.loads((folder / "ended.json").read_text()))


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
def packages(made_once: MadeOnce) -> Path:
    """A folder with the example package, for Python's path."""
    return made_once("packages", lay_out)


@pytest.fixture(scope="session")
def _compared_once(made_once: MadeOnce) -> Path:
    def run(folder: Path) -> None:
        harness = Harness(folder)
        (folder / "small.toml").write_text(COMPARED)
        (folder / "product.mlir").write_text(PRODUCT)
        ended = harness("run", "small.toml")
        assert ended.returncode == 0, ended.stderr
        (path,) = harness.runs()
        path.rename(path.with_name("base"))
        shutil.copytree(path.with_name("base"), path.with_name("head"))
        edit(path.with_name("head") / "run.json", lambda header: header.update(id="20260101-000000-small"))

    return made_once("compared", run)


@pytest.fixture
def runs(_compared_once: Path, tmp_path: Path) -> Harness:
    """Two equal runs of one suite, results/base and results/head, for the test to change."""
    shutil.copytree(_compared_once, tmp_path / "here")
    return Harness(tmp_path / "here")


@pytest.fixture(scope="session")
def _counted_once(made_once: MadeOnce) -> Path:
    def run(folder: Path) -> None:
        harness = Harness(folder, folder / "packages")
        lay_out_counted(folder)
        ended = harness("run", "counted.toml")
        assert ended.returncode == 0, ended.stderr
        (path,) = harness.runs()
        path.rename(path.with_name("base"))
        (folder / "stdout.txt").write_text(ended.stdout)

    return made_once("counted", run)


@pytest.fixture
def counted(_counted_once: Path, tmp_path: Path) -> Harness:
    """A run whose ops were counted, as results/base, for the test to change."""
    shutil.copytree(_counted_once, tmp_path / "here")
    return Harness(tmp_path / "here", tmp_path / "here/packages")
