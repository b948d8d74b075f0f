"""Files of other tools as runs of a history."""

import json
from pathlib import Path
from typing import Any

import pytest

from harness.cli import run_command_line
from harness.errors import UsageError
from harness.history.imported import ImportOptions, imported_run
from harness.history.series import open_history, series_rows
from harness.records.run import Run
from harness.report.run_report import build_report
from harness.store.folders import folder_names
from harness.store.run_directory import load_run

CONTEXT = {"date": "2026-11-21T04:00:00+01:00", "num_cpus": 2, "iree_version": "3.13.0"}
SUMMARY = {
    "benchmark": {
        "headers": ["Name", "Current Time (ms)", "Status"],
        "rows": [["clip.json", "12.5", "FAILED"], ["unet.json", "N/A", "FAILED"]],
    },
    "compstat": {
        "headers": ["Name", "Current Dispatch Count", "Status"],
        "rows": [["sizes.json", 12, "PASSED"]],
    },
}
NAMED = ("--suite", "nightly", "--device", "gpu", "--machine", "a server")
SAID = ("--toolchain-version", "3.13.0", "--date", "2026-11-22")


def benchmark(function: str = "main", ms: float = 1.5, **fields: Any) -> dict[str, Any]:
    name = f"BM_{function}/process_time/real_time"
    usual = {"name": name, "run_name": name, "run_type": "iteration", "iterations": 4, "time_unit": "ms"}
    return usual | {"real_time": ms, "cpu_time": ms / 2} | fields


def mean(function: str = "main", ms: float = 9.0) -> dict[str, Any]:
    return benchmark(function, ms, run_type="aggregate", aggregate_name="mean")


def document(*benchmarks: dict[str, Any], **context: Any) -> str:
    return json.dumps({"context": CONTEXT | context, "benchmarks": benchmarks})


def imported(tmp_path: Path, text: str, *options: str) -> Run:
    """The run that the command makes of a file."""
    (tmp_path / "night.json").write_text(text)
    results = tmp_path / "results"
    assert (
        run_command_line(["results", "import", str(tmp_path / "night.json"), "--results", str(results), *options]) == 0
    )
    (name,) = folder_names(results)
    return load_run(results / name)


def test_repetitions_are_samples_and_means_only_where_there_are_none(tmp_path: Path) -> None:
    failed = benchmark("worse", 0, error_occurred=True, error_message="no such device")
    rows = [benchmark(), benchmark(ms=2500, time_unit="us"), mean(), mean("other"), failed, benchmark("main/threads:2")]
    report = build_report(imported(tmp_path, document(*rows)))
    latencies = {row.model: row.latency and (row.latency.median_ns, row.latency.rounds) for row in report.rows()}
    assert latencies == {"main": (2e6, 2), "other": (9e6, 1), "worse": None, "main-threads-2": (1.5e6, 1)}
    assert [row.failure.message for row in report.rows() if row.failure] == ["no such device"]
    assert (report.header.started, report.toolchains) == ("2026-11-21T03:00:00+00:00", ("3.13.0",))


def test_nights_are_points_of_one_series_and_a_file_is_taken_once(tmp_path: Path) -> None:
    for day in (20, 21, 21):
        (tmp_path / f"{day}.json").write_text(document(benchmark(), date=f"2026-11-{day}T03:00:00+00:00"))
        arguments = ["--results", str(tmp_path / "results"), *NAMED]
        assert run_command_line(["results", "import", str(tmp_path / f"{day}.json"), *arguments]) == 0
    with open_history(str(tmp_path / "results")) as history:
        (row,) = series_rows(history)
    assert (row.case, row.suite, row.points, row.unit) == ("main/imported@gpu", "nightly", 2, "ns")
    assert (row.last_value, row.machine_class) == (1.5e6, "a server")


def test_a_job_summary_has_times_and_what_failed(tmp_path: Path) -> None:
    imported(tmp_path, json.dumps(SUMMARY), *SAID)
    with open_history(str(tmp_path / "results")) as history:
        found = {(row.model, row.metric, row.unit, row.last_value) for row in series_rows(history)}
        (failed,) = history.query("SELECT model FROM cases WHERE status = 'failed'")["model"]
    assert (found, failed) == ({("clip", "latency", "ns", 12.5e6)}, "unet")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[1", "has another form"),
        ("[1]", "a value in it is of another kind"),
        ("{}", "two tests of one name, or none"),
        ('{"context": 5, "benchmarks": []}', "a value in it is of another kind"),
        (json.dumps({"benchmark": {"rows": [["x"]]}}), "'headers' is missing or unknown"),
        (document(benchmark(time_unit="fortnight")), "'fortnight' is missing or unknown"),
        (document(benchmark(iterations="x")), r"form \(a value in it is of another kind\); give what"),
        (document(benchmark(ms=float("nan"))), "its real_time, nan ms, is no time"),
        (document(benchmark(cpu_time=-1)), "main/.*: its cpu_time, -1 ms, is no time"),
        (
            document(benchmark(), iree_version=""),
            "'' is no release of IREE; give it, as in --toolchain-version",
        ),
        (document(benchmark(), iree_version="foo bar\n"), "'foo bar.*' is no release of IREE; give"),
        (document(benchmark(), date="yesterday"), "its start, 'yesterday', is no time; say when"),
        (document(benchmark(), date="0001-01-01"), "in 1, before anything could be measured; say when it was"),
    ],
)
def test_what_is_wrong_is_said_in_a_sentence(text: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        imported_run(Path("x.json"), text.encode(), ImportOptions([Path("x.json")]))


def test_what_has_no_modules_is_compared_as_recorded_and_not_measured(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for day, ms in ((21, 1.0), (22, 2.0)):
        Path(f"{day}.json").write_text(document(benchmark(ms=ms)))
        assert run_command_line(["results", "import", f"{day}.json", "--suite", "s", "--date", f"2026-11-{day}"]) == 0
    sides = [f"results/{name}" for name in folder_names(Path("results"))]
    assert run_command_line(["compare", *sides, "--no-remeasure", "--across-hosts", "--format", "json"]) == 0
    (row,) = json.loads(capsys.readouterr().out.partition("{")[2].join("{ "))["rows"]
    assert (row["ratio"], row["verdict"]) == (pytest.approx(2.0), "inconclusive")
    for command in (["compare", *sides], ["explain", *sides, "main/imported@unknown"]):
        assert run_command_line(command) == 2
        assert "was imported from 21.json and has no modules" in capsys.readouterr().err
