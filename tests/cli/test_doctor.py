"""Which devices `harness doctor` is asked for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from harness.cli import inspect
from harness.doctor import diagnose
from harness.errors import ExitCode, SuiteError, ToolchainError
from tests.builders import FLAGS, SUITE

GPU = '[devices.gpu]\nuri = "cuda"\nbackend = "cuda"\n'


def test_the_devices_of_suites_and_of_lists_of_suites(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    noted: list[frozenset[str]] = []

    def note(*_: object, asked: frozenset[str], **arguments: Any) -> Any:
        noted.append(asked)
        return diagnose(ToolchainError("no tools"), asked=asked, **arguments)

    monkeypatch.setattr(inspect, "diagnose", note)
    (tmp_path / "net.mlir").touch()
    (tmp_path / "flags.toml").write_text(FLAGS)
    (tmp_path / "small.toml").write_text(SUITE)
    (tmp_path / "gpu.toml").write_text(SUITE + GPU)
    (tmp_path / "all.toml").write_text('name = "all"\nsuites = ["small.toml", "gpu.toml"]\n')
    for suites in ([], ["small.toml"], ["all.toml"]):
        assert inspect.doctor(*(tmp_path / suite for suite in suites)) in (ExitCode.OK, ExitCode.USAGE)
    assert noted == [frozenset(), {"local-sync"}, {"local-sync", "cuda"}]
    assert "no tools" in capsys.readouterr().out
    with pytest.raises(SuiteError, match=r"gone\.toml: there is no such file"):
        inspect.doctor(tmp_path / "gone.toml")
