"""Running a list of suites, each in turn whatever became of the one before; and how loud commands are."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from junitparser import JUnitXml

from harness.cli import compare, inspect, run, run_command_line
from harness.cli.run import run_list
from harness.errors import CaseError, Interrupted, NothingSelected, RunError, SuiteError
from harness.progress import Progress, Terminal
from harness.records.run import Failure, Run
from harness.report.run_report import build_report
from harness.stages.change import Change
from harness.stages.options import RunOptions
from harness.suite.load import SuiteList
from tests.report.builders import make_release_run, make_small_run

OPTIONS = RunOptions(Path("night.toml"), compile_timeout_s=60.0, call_timeout_s=60.0)
SMALL = make_small_run()
BROKEN = replace(SMALL.builds[0], case="mm/inert@local-sync", failure=Failure(stage="compile", message="no"))
FAILED = replace(SMALL, builds=(*SMALL.builds[:2], BROKEN))

Ends = Run | Exception


class Scripted:
    """Stands for running: what becomes of each suite by its name, and what was asked of it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, **ends: Ends) -> None:
        self.ends = ends
        self.asked: list[RunOptions] = []
        monkeypatch.setattr(run, "run_one", self._run)
        monkeypatch.setattr(run, "load_run", lambda path: ends[path.name])

    def suites(self, **settings: Any) -> SuiteList:
        """All of them, as a list."""
        files = tuple(Path(f"{name}.toml") for name in self.ends)
        return SuiteList(name="night", description="", path=Path("night.toml"), suites=files, **settings)

    def _run(self, arguments: RunOptions) -> Path:
        assert arguments.suite is not None
        self.asked.append(arguments)
        end = self.ends[arguments.suite.stem]
        if isinstance(end, Exception):
            raise end
        return Path("results") / arguments.suite.stem


@pytest.mark.parametrize(
    ("ends", "status"),
    [
        ((SMALL, FAILED), 3),
        ((FAILED, SuiteError("two.toml: name is missing; add it")), 2),
        ((CaseError("model", "two.toml: no room"), SMALL), 3),
        ((SMALL, NothingSelected("two.toml: --tag x matches no case")), 0),
    ],
)
def test_each_suite_runs_in_turn_and_the_weightiest_status_counts(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], ends: tuple[Ends, Ends], status: int
) -> None:
    scripted = Scripted(monkeypatch, one=ends[0], two=ends[1])
    assert run_list(scripted.suites(), OPTIONS, "markdown") == status
    assert [arguments.suite for arguments in scripted.asked] == [Path("one.toml"), Path("two.toml")]
    shown = capsys.readouterr()
    assert "one.toml: suite 1 of 2\n" in shown.err
    if ends[0] is SMALL:
        assert "| one.toml | 2 | 0 | 0 | 1 | 0 | results/one |" in shown.out, "a table closes"
    if status == 2:
        assert shown.out.endswith("\n\n- two.toml: name is missing; add it\n")


def test_the_list_s_settings_hold_for_each_suite_and_the_command_line_s_before_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What the newest release is, is asked once for all suites."""
    answers = iter(["9.9.0", "9.10.0"])
    monkeypatch.setattr("harness.toolchain.install.newest_release", lambda _: next(answers))
    scripted = Scripted(monkeypatch, one=SMALL, two=SMALL)
    asked = replace(OPTIONS, budget_s=1.0, toolchains=("3.12", "newest"))
    run_list(scripted.suites(budget_s=5.0, generations=2), asked, "terminal")
    settings = [(one.budget_s, one.generations, one.toolchains) for one in scripted.asked]
    assert settings == [(1.0, 2, ("3.12.0", "9.9.0"))] * 2


def test_one_document_for_other_programs(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    scripted = Scripted(monkeypatch, one=SMALL, two=SuiteError("two.toml: no"))
    assert run_list(scripted.suites(), OPTIONS, "json") == 2
    document = json.loads(capsys.readouterr().out)
    assert (document["schema_version"], document["list"]) == (1, "night.toml")
    assert [one["exit_status"] for one in document["suites"]] == [0, 2]
    assert [one["run"]["id"] for one in document["reports"]] == [SMALL.header.id]


def test_one_document_for_ci_systems(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    unmatched = NothingSelected("three.toml: --tag x matches no case")
    scripted = Scripted(monkeypatch, one=FAILED, two=SuiteError("two.toml: no"), three=unmatched)
    assert run_list(scripted.suites(), OPTIONS, "junit") == 2
    suites = JUnitXml.fromstring(capsys.readouterr().out.encode())
    counts = [(one.name, one.tests, one.failures, one.errors, one.skipped) for one in suites]
    assert counts == [(SMALL.header.suite_name, 3, 1, 0, 0), ("two", 1, 0, 1, 0)]


def test_who_stops_it_sees_what_there_is_and_how_to_go_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stopped = Interrupted("interrupted; go on with `harness run --resume results/two`", run=Path("results/two"))
    scripted = Scripted(monkeypatch, one=SMALL, two=stopped, three=SMALL)
    monkeypatch.setattr(run, "load_run", lambda _: SMALL)
    with pytest.raises(Interrupted) as caught:
        run_list(scripted.suites(), OPTIONS, "terminal")
    assert str(caught.value) == f"{stopped}; not begun were three.toml"
    assert len(scripted.asked) == 2
    _, table = capsys.readouterr().out.split("\nSuites")
    assert "results/two" in table and "two.toml: interrupted" in table and "three.toml" not in table


# --- bench: the report, and after it the largest change ---


@pytest.mark.parametrize("output", ["terminal", "json"])
def test_a_bench_ends_with_its_largest_change_and_what_shows_it(
    output: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    report = build_report(make_release_run({"net": [1.0, 3.0]}, "3.4.0", "3.5.0"))
    monkeypatch.setattr(inspect, "write_bench", lambda *_: (Path("small.toml"), ()))
    monkeypatch.setattr(inspect, "_run_variants", lambda *_, **__: report)
    monkeypatch.setattr(inspect, "explained", lambda change, *_: replace(change, cause="a matmul is scalar"))
    written: list[tuple[Path, str]] = []

    def write(change: Change, out: Path) -> Path:
        written.append((out, change.cause))
        return out

    monkeypatch.setattr(Change, "reproduced_in", write)
    line = ["bench", "net.mlir", "--format", output, "--save", "shown"]
    assert run_command_line(line) == run_command_line([*line, "--no-explain"]) == 0
    out, err = capsys.readouterr()
    said, silent = (out, err) if output == "terminal" else (err, out)
    assert said.count("net/stock@local-sync goes from 1.00 ms on IREE 3.4.0 to 3.0") == 2
    assert "times [2.99, 3.01]): a matmul is scalar.\n" in said and "goes from" not in silent
    assert written == [(Path("shown"), "a matmul is scalar"), (Path("shown"), "")]


# --- --quiet and --verbose: one declaration, the same in every long command ---


@pytest.mark.parametrize("line", ["run small.toml", "selfcheck small.toml", "bench net.mlir --flags= --flags="])
def test_a_command_hands_on_what_it_is_told(line: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """To the run that it makes, and by whom it is watched."""
    seen: list[tuple[type[Progress], bool]] = []

    def make(options: RunOptions, progress: Progress, *_: object, **__: object) -> Path:
        seen.append((type(progress), options.verbose))
        raise RunError("that is enough")

    for module in (run, compare):
        monkeypatch.setattr(module, "run_suite", make)
    monkeypatch.setattr(inspect, "write_bench", lambda *_: (Path("small.toml"), ()))
    for loud in ("--quiet", "--verbose"):
        assert run_command_line([*line.split(), loud]) == 2
    assert seen == [(Progress, False), (Terminal, True)]
