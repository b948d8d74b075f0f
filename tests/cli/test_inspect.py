"""Which devices `harness doctor` is asked for, and what `harness new` writes."""

import os
import subprocess
import sys
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest

from harness.cli import inspect, run_command_line
from harness.doctor.examine import diagnose
from harness.errors import ExitCode, SuiteError, ToolchainError
from harness.plugins import PLUGINS, Plugin, apply_plugin
from harness.store.run_directory import load_run
from tests.builders import SUITE, register

GPU = '[devices.gpu]\nuri = "cuda"\nbackend = "cuda"\n'


def test_the_devices_of_suites_and_of_lists_of_suites(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    noted: list[frozenset[str]] = []

    def note(*_: object, asked: frozenset[str], **arguments: Any) -> Any:
        noted.append(asked)
        return diagnose(ToolchainError("no tools"), asked=asked, **arguments)

    monkeypatch.setattr(inspect, "diagnose", note)
    (folder / "gpu.toml").write_text(SUITE + GPU)
    (folder / "all.toml").write_text('name = "all"\nsuites = ["small.toml", "gpu.toml"]\n')
    for suites in ([], ["small.toml"], ["all.toml"]):
        assert inspect.doctor(*map(Path, suites)) in (ExitCode.OK, ExitCode.USAGE)
    assert noted == [frozenset(), {"local-sync"}, {"local-sync", "cuda"}]
    assert "no tools" in capsys.readouterr().out
    with pytest.raises(SuiteError, match=r"gone\.toml: there is no such file"):
        inspect.doctor(Path("gone.toml"))


# --- `harness new`: what it writes works as it is, and nothing is overwritten ---


if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


def test_a_new_plugin_passes_its_own_test_and_runs_in_its_suite(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run_command_line(["new", "plugin", "fold-twice"]) == 0
    there = folder / "fold-twice"
    environment = {**os.environ, "PYTHONPATH": str(there)}
    tested = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"],
        cwd=there,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert tested.returncode == 0, tested.stdout
    assert "2 passed" in tested.stdout
    points = tomllib.loads((there / "pyproject.toml").read_text())["project"]["entry-points"]["harness.plugins"]
    monkeypatch.syspath_prepend(str(there))
    assert isinstance(EntryPoint("fold-twice", points["fold-twice"], PLUGINS.group).load(), Plugin)
    register(monkeypatch, PLUGINS.group, *points.items())
    assert apply_plugin("fold-twice", {}).options == {"limit": 1000}
    monkeypatch.chdir(there)
    assert run_command_line(["run", "example.toml", "--no-measure"]) == 0
    (run,) = (there / "results").iterdir()
    effects = {build.case: build.effects for build in load_run(run).builds}
    (effect,) = effects["product/fold-twice@cpu"]
    assert (effect.matched, effect.changed) == (1, True)


def test_a_new_suite_is_right(folder: Path) -> None:
    assert run_command_line(["new", "suite", "mine", "--out", "suites"]) == 0
    assert run_command_line(["check", "suites/mine.toml"]) == 0
