"""Golden times of a history, and what is written of them."""

import json
from pathlib import Path
from typing import Any

import pytest

from harness.cli import goldens, run_command_line
from harness.errors import UsageError
from harness.history.goldens import Proposal, propose, written
from harness.records.run import Run
from harness.suite.toml_file import read_content
from tests.history.made import NEWEST, make_night, store

HERE = {"machine": {"class": "a processor, 2 cores"}}
Printed = pytest.CaptureFixture[str]


def night(number: int, toolchain: str = NEWEST, **facts: Any) -> Run:
    facts = {"environment": HERE, "rounds": 12, **facts}
    return make_night(number, toolchains=(toolchain,), same_modules=True, **facts)


def found(*patterns: str) -> list[Proposal]:
    return propose([night(1), night(2)], 1.1, patterns)


def test_generations_of_all_runs_here_under_the_latest_toolchain_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Printed
) -> None:
    monkeypatch.setattr(goldens, "environment_here", lambda: HERE)
    for run in (night(0, "3.11.0"), night(1), night(2), night(3, environment={})):
        store(tmp_path, run)
    ask = ["goldens", "nightly", "--no-measure", "--results", str(tmp_path)]
    assert run_command_line([*ask, "--format", "json", "--filter", "*/stock@*"]) == 0
    document = json.loads(capsys.readouterr().out)
    (row,) = document["goldens"]
    assert (len(document["runs"]), row["golden"]["generations"], row["case"]) == (2, 4, "net/stock@cpu")
    assert row["golden"]["golden_ns"] == pytest.approx(2e6, rel=0.05)
    assert run_command_line([*ask, "--filter", "zz*"]) == 2
    assert "no case that was asked for has a time" in capsys.readouterr().err
    monkeypatch.setattr(goldens, "environment_here", lambda: {"machine": {"class": "another"}})
    assert run_command_line(ask) == 2
    assert "none of its 4 runs of nightly was measured on another; measure here" in capsys.readouterr().err


def test_a_configuration_keeps_its_keys_and_its_names(tmp_path: Path) -> None:
    config = tmp_path / "cpu.json"
    before = {"config_name": "cpu", "golden_times_ms": {"net/stock@cpu": 9.0, "x/y": 1.0}, "tolerance_factor": 1.5}
    config.write_text(json.dumps(before))
    after = json.loads(written(config, found()))
    times = after["golden_times_ms"]
    assert (after["config_name"], times["x/y"], list(times)[2:]) == ("cpu", 1.0, ["net/tiled@cpu"])
    assert times["net/stock@cpu"] == pytest.approx(2.0, rel=0.05)
    assert after["tolerance_factor"] == max(row.golden.factor or 0 for row in found())


def test_gates_allow_each_case_its_factor(tmp_path: Path) -> None:
    (tmp_path / "gates.toml").write_text(written(tmp_path / "gates.toml", found()))
    gates, rows = read_content(tmp_path / "gates.toml")[0]["gates"], {row.case: row for row in found()}
    assert list(gates) == ["net-stock-cpu", "net-tiled-cpu"]
    for gate in gates.values():
        row = rows[gate["cases"]]
        assert gate["at_most"] == pytest.approx(row.latency_ns * (row.golden.factor or 0))


def test_a_benchmark_of_a_model_is_found_by_its_name(tmp_path: Path) -> None:
    for name in ("net", "other"):
        (tmp_path / f"{name}.json").write_text(json.dumps({"type": "benchmark", "golden_time_ms": 9}))
    net = json.loads(written(tmp_path / "net.json", found("net/stock@*")))
    assert net["type"] == "benchmark" and net["tolerance_factor"] > 1
    assert net["golden_time_ms"] == pytest.approx(2.0, rel=0.05)
    with pytest.raises(UsageError, match="no case is named other, but net"):
        written(tmp_path / "other.json", found("net/stock@*"))
    (tmp_path / "bad.json").write_text("[1]")
    with pytest.raises(UsageError, match=r"bad\.json: is no JSON object"):
        written(tmp_path / "bad.json", found())
