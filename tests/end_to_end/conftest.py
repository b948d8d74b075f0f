"""A suite that takes seconds: tiny models through the real tools."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from harness.records.run import Run
from harness.store.run_directory import load_run

CPU = """\
[devices.cpu]
uri = "local-sync"
backend = "llvm-cpu"
compile_flags = [
    "--iree-hal-target-device=local",
    "--iree-hal-local-target-device-backends=llvm-cpu",
    "--iree-llvmcpu-target-cpu=host",
]
pin = true

[measure]
budget_s = 0.3
generations = 3
"""

_SUITE = (
    """
name = "small"
description = "a tiny block in a few forms"
baseline = "stock"

[models.tiny]
builder = "residual-dense-block"
params = { height = 4, width = 4, channels = 8, growth = 4 }

[variants.stock]

[variants.channels-last]
flags = [
    "--iree-preprocessing-pass-pipeline=builtin.module(util.func(iree-preprocessing-convert-conv-to-channels-last))",
]

[variants.inert]
description = "func.func where util.func is meant, so that nothing matches"
flags = [
    "--iree-preprocessing-pass-pipeline=builtin.module(func.func(iree-preprocessing-convert-conv-to-channels-last))",
]

"""
    + CPU
)


@dataclass(frozen=True)
class Harness:
    """The `harness` command, run as a user would in a folder that holds small.toml."""

    folder: Path

    def __call__(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run it to its end."""
        return subprocess.run(
            self.command(*arguments), cwd=self.folder, capture_output=True, text=True, timeout=240, check=False
        )

    def command(self, *arguments: str) -> list[str]:
        """The command line, for tests that start it themselves."""
        return [str(Path(sys.executable).with_name("harness")), *arguments]

    def runs(self) -> list[Path]:
        """All run directories, oldest first."""
        return sorted(path for path in (self.folder / "results").iterdir() if path.is_dir())

    def run(self) -> Run:
        """The only run."""
        (path,) = self.runs()
        return load_run(path)


@pytest.fixture
def harness(tmp_path: Path) -> Harness:
    """The command, and the small suite."""
    (tmp_path / "small.toml").write_text(_SUITE)
    return Harness(tmp_path)


@pytest.fixture
def suite_with(harness: Harness) -> Callable[..., Harness]:
    """Change the small suite by replacing and appending text."""

    def change(*replacements: tuple[str, str], append: str = "") -> Harness:
        text = _SUITE
        for old, new in replacements:
            assert old in text
            text = text.replace(old, new)
        (harness.folder / "small.toml").write_text(text + append)
        return harness

    return change


@pytest.fixture(scope="session")
def twice(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which the suite of compared.py was run twice."""
    from tests.end_to_end.compared import PRODUCT, SUITE

    folder = tmp_path_factory.mktemp("twice")
    (folder / "small.toml").write_text(SUITE)
    (folder / "product.mlir").write_text(PRODUCT)
    for name in ("base", "head"):
        finished = Harness(folder)("run", "small.toml", "--results", f"{name} run")
        assert finished.returncode == 0, finished.stderr
        (path,) = (folder / f"{name} run").iterdir()
        shutil.copytree(path, folder / "results" / name)
    return folder


@pytest.fixture(scope="session")
def counted_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which the suite of counted.py was run."""
    from tests.end_to_end.counted import WithPackages, lay_out

    folder = tmp_path_factory.mktemp("counted")
    lay_out(folder)
    finished = WithPackages(folder)("run", "counted.toml", "--results", "run")
    assert finished.returncode == 0, finished.stderr
    (path,) = (folder / "run").iterdir()
    shutil.copytree(path, folder / "results/base")
    (folder / "stdout.txt").write_text(finished.stdout)
    return folder


@pytest.fixture
def counted(counted_once: Path, tmp_path: Path) -> Harness:
    """That run as results/base, for the test to change."""
    from tests.end_to_end.counted import WithPackages

    shutil.copytree(counted_once, tmp_path / "here")
    return WithPackages(tmp_path / "here")


@pytest.fixture
def runs(twice: Path, tmp_path: Path) -> Harness:
    """Two runs of one suite, results/base and results/head, for the test to change."""
    shutil.copytree(twice, tmp_path / "here")
    return Harness(tmp_path / "here")
