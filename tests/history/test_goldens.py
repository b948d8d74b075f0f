"""Golden times of a history, and what is written of them."""

import json
from pathlib import Path
from typing import Any

import pytest

from harness.cli import goldens, run_command_line
from harness.errors import UsageError
from harness.history.goldens import Proposal, propose, write_goldens
from harness.records.run import Run
from harness.suite.toml_file import read_content
from tests.history.made import NEWEST, make_night, store

HERE = {"machine": {"class": "a processor, 2 cores"}}
Printed = pytest.CaptureFixture[str]


def night(number: int, toolchain: str = NEWEST, **facts: Any) -> Run:
    facts = {"environment": HERE, "rounds": 12, **facts}
    return make_night(number, toolchains=(toolchain,), same_modules=True, dispatches=number, **facts)


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
    assert row["counts"]["golden_dispatch_count"] == 2, "of the latest run"
    assert run_command_line([*ask, "--filter", "zz*"]) == 2
    assert "no case that was asked for has a time" in capsys.readouterr().err
    monkeypatch.setattr(goldens, "environment_here", lambda: {"machine": {"class": "another"}})
    assert run_command_line(ask) == 2
    assert (
        "has no run of nightly on another, but of a machine of which nothing is known; a proc"
        in capsys.readouterr().err
    )


def test_a_configuration_keeps_its_keys_and_its_names_and_gates_allow_the_factor(tmp_path: Path) -> None:
    config, toml = tmp_path / "cpu.json", tmp_path / "gates.toml"
    before = {"config_name": "cpu", "golden_times_ms": {"net/stock@cpu": 9.0, "x/y": 1.0}, "tolerance_factor": 1.5}
    config.write_text(json.dumps(before))
    for out in (config, toml):
        write_goldens(out, found())
    written, gates = json.loads(config.read_text()), read_content(toml)[0]["gates"]
    times = written["golden_times_ms"]
    assert (written["config_name"], times["x/y"], list(times)[2:]) == ("cpu", 1.0, ["net/tiled@cpu"])
    assert times["net/stock@cpu"] == pytest.approx(2.0, rel=0.05)
    cases = {"net.stock.cpu": "net/stock@cpu", "net.tiled.cpu": "net/tiled@cpu"}
    assert {name: gate["cases"] for name, gate in gates.items()} == cases
    rows = {row.case: row for row in found()}
    assert written["tolerance_factor"] == max(row.golden.factor or 0 for row in rows.values())
    for gate in gates.values():
        row = rows[gate["cases"]]
        assert gate["at_most"] == pytest.approx(row.latency_ns * (row.golden.factor or 0))


def test_tests_of_models_are_found_by_their_names_and_their_modules(tmp_path: Path) -> None:
    tests: dict[str, dict[str, Any]] = {
        "net": {"type": "benchmark", "modules": ["modules/a"], "golden_time_ms": 9},
        "sizes": {"type": "compstat", "module": "modules/a"},
        "other": {"type": "compstat", "module": "modules/b"},
        "right": {"type": "quality", "modules": ["modules/a"]},
    }
    for name, test in tests.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(test))
    write_goldens(tmp_path, found("net/stock@*"))
    net, sizes, *others = (json.loads((tmp_path / f"{name}.json").read_text()) for name in tests)
    assert net["golden_time_ms"] == pytest.approx(2.0, rel=0.05) and net["tolerance_factor"] > 1
    assert (sizes["golden_dispatch_count"], sizes["golden_binary_size"] > 0) == (2, True)
    assert others == [tests["other"], tests["right"]]


def test_files_that_are_none_of_upstream_s_are_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no test in it is named as net/stock@cpu"):
        write_goldens(tmp_path, found())
    (tmp_path / "bad.json").write_text("[1]")
    for out in (tmp_path, tmp_path / "bad.json"):
        with pytest.raises(UsageError, match=r"bad\.json: is no JSON object"):
            write_goldens(out, found())
