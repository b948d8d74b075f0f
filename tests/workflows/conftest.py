"""A repository with a pull request, and a runner that starts the actions' steps in it as GitHub does."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from itertools import takewhile
from pathlib import Path

import pytest

from tests.builders import commit, git
from tests.end_to_end import suites

ROOT = Path(__file__).parents[2]
# What the pull request does: one of three variants becomes slower.
SLOW = '"--iree-llvmcpu-target-cpu=generic", "--iree-opt-level=O0"'


def assigned(file: Path) -> dict[str, str]:
    """What a file of GitHub's says, as the runner reads it: `name=value`, or `name<<END` and lines until `END`."""
    values: dict[str, str] = {}
    lines = iter(file.read_text().split("\n")[:-1])
    for line in lines:
        name, mark, rest = re.split("(<<|=)", line, maxsplit=1)
        values[name] = rest if mark == "=" else "\n".join(takewhile(rest.__ne__, lines))
    return values


@dataclass(frozen=True)
class Job:
    """One job: a checkout, and the files by which its steps and the runner tell each other things."""

    checkout: Path
    temp: Path
    environment: dict[str, str] = field(default_factory=dict)

    def run(self, script: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """Start a step's script in the checkout, in the environment that GitHub gives it and no other."""
        commands = self.temp / "commands"
        if not commands.exists():
            commands.mkdir(parents=True)
            (commands / "harness").symlink_to(Path(sys.executable).with_name("harness"))
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(("GITHUB_", "HARNESS_"))}
        runner = {
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GITHUB_OUTPUT": str(self.temp / "output"),
            "GITHUB_STEP_SUMMARY": str(self.temp / "summary.md"),
            "HARNESS_CACHE": os.environ["HARNESS_CACHE"],
            "PATH": f"{commands}{os.pathsep}{os.environ['PATH']}",
            "RUNNER_TEMP": str(self.temp),
        }
        return subprocess.run(
            [str(ROOT / "scripts/ci" / script), *arguments],
            cwd=self.checkout,
            env={**inherited, **runner, **self.environment, **environment},
            capture_output=True,
            text=True,
            timeout=280,
        )

    def measure(self, status: int = 0, /, **environment: str) -> str:
        """The untrusted half, as quick as it can be, which ends with that status; what it says on stderr."""
        quick = {"HARNESS_ROW_BUDGET": "3", "HARNESS_COMPILE_BUDGET": "0", "HARNESS_CONTROLS": "0"}
        finished = self.run("measure.sh", **{"HARNESS_SUITE": "small.toml", **quick, **environment})
        assert finished.returncode == status, finished.stderr
        return finished.stderr

    def with_fake_harness(self) -> Job:
        """The same job, in which `harness` only does as if."""
        commands = self.temp / "commands"
        commands.mkdir(parents=True)
        fake = Path(__file__).with_name("fake_harness.py")
        (commands / "harness").write_text(f'#!/bin/sh\nexec {sys.executable} -IS {fake} "$@"\n')
        (commands / "harness").chmod(0o755)
        return self

    @property
    def calls(self) -> list[str]:
        """How the fake harness was called."""
        return [shlex.join(json.loads(line)) for line in (self.temp / "calls").read_text().splitlines()]

    @property
    def outputs(self) -> dict[str, str]:
        """The outputs that the steps gave the runner."""
        return assigned(self.temp / "output")

    @property
    def summary(self) -> str:
        """What the job's page shows."""
        return (self.temp / "summary.md").read_text()

    @property
    def upload(self) -> Path:
        """The folder that the job uploads as an artifact."""
        return Path(self.outputs["upload"])

    @property
    def results(self) -> Path:
        """The folder that the job made for what it measured."""
        return self.upload.parent

    @property
    def uploaded(self) -> set[str]:
        """The names of the files that the job uploads."""
        return {file.name for file in self.upload.iterdir()}


@pytest.fixture(scope="session")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`origin`, whose main branch has moved on, and a clone of it on the branch `topic`."""
    folder = tmp_path_factory.mktemp("repository")
    origin, clone = folder / "origin", folder / "clone"
    origin.mkdir()
    git(origin, "init", "--quiet")
    commit(origin, small_toml=suites.COMPARED.replace(SLOW, ""), product_mlir=suites.PRODUCT)
    git(folder, "clone", "--quiet", str(origin), str(clone))
    git(clone, "switch", "--quiet", "--create", "topic")
    commit(clone, small_toml=suites.COMPARED)
    commit(origin, README_md="later, on main\n")
    return folder


@pytest.fixture
def job(repository: Path, tmp_path: Path) -> Job:
    """A job for the pull request from `topic` into main, in a copy of the repository."""
    shutil.copytree(repository, tmp_path / "repository", symlinks=True)
    job = Job(tmp_path / "repository/clone", tmp_path / "runner", {"GITHUB_BASE_REF": "main"})
    git(job.checkout, "remote", "set-url", "origin", str(tmp_path / "repository/origin"))
    return job


@pytest.fixture
def fake(job: Job) -> Job:
    """A job in which nothing is compiled."""
    return job.with_fake_harness()
