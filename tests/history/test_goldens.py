"""Golden times, what IREE's own gate makes of noise with them, and what is written of them."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.cli import goldens, run_command_line
from harness.errors import UsageError
from harness.history.goldens import Golden, golden_of, goldens_page, propose, written
from harness.records.run import Run
from harness.report.terminal import to_terminal
from harness.stats.pairing import FloatArray
from harness.suite.toml_file import read_content
from tests.history.made import NEWEST, make_night, store

TIMES = st.lists(st.floats(1e3, 1e9), min_size=12, max_size=12).map(np.array)
HERE = {"machine": {"class": "a processor, 2 cores"}}
Printed = pytest.CaptureFixture[str]


def night(number: int, toolchain: str = NEWEST, **facts: Any) -> Run:
    facts = {"environment": HERE, "rounds": 12, **facts}
    return make_night(number, toolchains=(toolchain,), same_modules=True, **facts)


def found(*patterns: str) -> list[Golden]:
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
    (tmp_path / "bad.json").write_text("[1]")
    assert run_command_line([*ask, "--out", str(tmp_path / "bad.json")]) == 2
    assert "false alarms at 1.1" in capsys.readouterr().out, "what was found is said before it cannot be written"
    assert (len(document["runs"]), row["generations"], row["case"]) == (2, 4, "net/stock@cpu")
    assert row["golden_ns"] == pytest.approx(2e6, rel=0.05)
    assert run_command_line(["goldens"]) == 2
    assert "give either a suite, as in `harness goldens suites/esrgan.toml`, or --resume" in capsys.readouterr().err
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
    assert after["tolerance_factor"] == 1.5, "x/y, which was not measured, may need it"
    config.write_text(json.dumps(before | {"tolerance_factor": 1.0}))
    assert json.loads(written(config, found()))["tolerance_factor"] == max(row.factor or 0 for row in found())


def test_few_generations_give_no_wide_factor(tmp_path: Path) -> None:
    wide, ok = (golden_of([np.full(12, ns) for ns in times], 1.1, "net") for times in ([1, 1.2], [1, 1.2] * 4))
    assert wide.factor is not None and wide.factor > 4
    with pytest.raises(UsageError, match=r"a factor of .*: net has 2 generations, too few; .* 8 or more"):
        written(tmp_path / "x.json", [wide])
    assert json.loads(written(tmp_path / "x.json", [ok]))["tolerance_factor"] == ok.factor
    pages = [to_terminal(goldens_page([row], [night(1)], 1.1)) for row in (wide, ok)]
    assert ["net has 2 generations, too few;" in page for page in pages] == [True, False]


def test_gates_allow_each_case_what_medians_of_processes_need(tmp_path: Path) -> None:
    of_medians = propose([night(1), night(2)], 1.1, (), medians=True)
    (tmp_path / "gates.toml").write_text(written(tmp_path / "gates.toml", of_medians))
    gates, rows = read_content(tmp_path / "gates.toml")[0]["gates"], {row.case: row for row in of_medians}
    assert list(gates) == ["net-stock-cpu", "net-tiled-cpu"]
    for gate in gates.values():
        row = rows[gate["cases"]]
        assert gate["at_most"] == pytest.approx(row.golden_ns * (row.factor or 0))
    shortest = {row.case: row for row in found()}
    assert all(row.golden_ns > shortest[row.case].golden_ns for row in of_medians), "they are no shortest of ten"


def test_a_benchmark_of_a_model_is_found_by_its_name(tmp_path: Path) -> None:
    for name in ("net", "other"):
        (tmp_path / f"{name}.json").write_text(json.dumps({"type": "benchmark", "golden_time_ms": 9}))
    net = json.loads(written(tmp_path / "net.json", found("net/stock@*")))
    assert net["type"] == "benchmark" and net["tolerance_factor"] > 1
    assert net["golden_time_ms"] == pytest.approx(2.0, rel=0.05)
    with pytest.raises(UsageError, match="no case that was asked for is named other"):
        written(tmp_path / "other.json", found("net/stock@*"))
    (tmp_path / "bad.json").write_text("[1]")
    with pytest.raises(UsageError, match=r"bad\.json: is no JSON object"):
        written(tmp_path / "bad.json", found())


# --- What the gate makes of noise ---


def process(random: np.random.Generator) -> FloatArray:
    """Calls of one process, which differ less than processes do."""
    level = 1e6 * math.exp(0.02 * random.standard_normal())
    return np.asarray(level * np.exp(0.01 * random.random(20)))


@given(st.lists(TIMES, min_size=2, max_size=6), st.floats(1.001, 2))
def test_golden_times_and_alarms_are_within_what_was_measured(generations: list[FloatArray], factor: float) -> None:
    found = golden_of(generations, factor)
    every = np.concatenate(generations)
    assert every.min() * 0.999 <= found.golden_ns <= every.max() * 1.001
    assert 0 <= found.false_alarms <= found.at_most <= 1
    if found.factor is not None:  # none where the generations agree to the last bit
        assert golden_of(generations, found.factor).false_alarms <= 0.01


def test_ten_calls_in_a_row_are_slow_together_only_where_a_slow_stretch_is_as_long() -> None:
    short, long = (np.array([1.0] * (30 - slow) + [2.0] * slow) for slow in (9, 12))
    alarms = [golden_of([np.ones(30), calls], 1.5).false_alarms for calls in (short, long)]
    assert alarms == pytest.approx([0, 3 / 30 / 2])


def test_one_process_says_nothing_of_others() -> None:
    found = golden_of([np.array([3.0, 2.0])], 1.1)
    assert [found.golden_ns, found.at_most] == pytest.approx([2, 0.95])
    assert (found.low_ns, found.factor, found.false_alarms) == (None, None, 0)


@pytest.mark.parametrize("number", [3, 5, 20])
def test_the_factor_fails_one_process_in_a_hundred(number: int) -> None:
    random, alarms = np.random.default_rng(number), []
    for _ in range(100):
        found = golden_of([process(random) for _ in range(number)], 1.1)
        later = np.array([process(random)[:10].min() for _ in range(50)])
        alarms.append(np.mean(later > found.golden_ns * (found.factor or 0)))
    assert 0.002 < np.mean(alarms) < 0.02
