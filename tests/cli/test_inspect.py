"""What `harness ir` refuses before it compiles anything, and which devices `harness doctor` is asked for."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import pytest

from harness.cli import inspect
from harness.cli.inspect import ir
from harness.doctor import diagnose
from harness.errors import ExitCode, SuiteError, ToolchainError, UsageError
from harness.metrics import PHASES
from harness.stages.options import IrOptions
from tests.builders import FLAGS, SUITE

Format = Literal["terminal", "markdown", "mlir", "json"]
ONE = "--format mlir prints one phase; say which with --phase"
TABLE = "--ops chooses what the table shows; leave it out with --format "


@pytest.mark.parametrize(
    ("output_format", "phases", "ops", "sentence"),
    [
        ("mlir", (), (), ONE),
        ("mlir", ("flow", "stream"), (), ONE),
        ("mlir", ("flow", "flow"), (), "gone.toml: there is no such file; check the path"),
        ("mlir", ("flow",), ("linalg.*",), f"{TABLE}mlir"),
        ("json", (), ("linalg.*",), f"{TABLE}json"),
        ("markdown", (), (), "gone.toml: there is no such file; check the path"),
        (
            "terminal",
            (),
            ("linalg.*", "hosts:linalg.*"),
            "there is no place 'hosts', as in 'hosts:linalg.*'; write host:... or executables:...",
        ),
        ("terminal", ("flow", "flows"), (), f"there is no phase 'flows'; name one of {', '.join(PHASES)}"),
    ],
)
def test_what_is_refused(output_format: Format, phases: tuple[str, ...], ops: tuple[str, ...], sentence: str) -> None:
    with pytest.raises(UsageError) as caught:
        ir(IrOptions(("gone.toml", "a/b@c"), phases=phases, ops=ops, format=output_format))
    assert (caught.value.exit_code, str(caught.value)) == (ExitCode.USAGE, sentence)


# --- Which devices `harness doctor` is asked for ---


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
