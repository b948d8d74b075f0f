"""What GitHub shows of a comparison or a run: the command, and commands without paths of the machine."""

from dataclasses import asdict, replace
from pathlib import Path

import pytest

from harness.cli import run_command_line
from harness.records.comparison import Comparison, MachineFacts
from harness.records.run import Run
from harness.report import render
from harness.report.github import portable, render_comment
from harness.report.run_report import build_report
from tests.report.builders import MACHINE, RUN_URL, SELFCHECK, make_comparison, make_side, make_timed
from tests.store.made import a_comparison

ACTIONS = {"GITHUB_SERVER_URL": "https://github.com", "GITHUB_REPOSITORY": "org/repo", "GITHUB_RUN_ID": "123"}


def test_comment_full_report_and_summary_in_a_job_of_actions(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = a_comparison(tmp_path, verdict="regressed")

    def report(*words: str | Path) -> int:
        return run_command_line(["report", str(kept), *map(str, words)])

    comment, full, summary = (tmp_path / name for name in ("comment.md", "report.md", "summary.md"))
    summary.write_text("An earlier step.\n")
    for name, value in {**ACTIONS, "GITHUB_STEP_SUMMARY": str(summary)}.items():
        monkeypatch.setenv(name, value)
    assert report("--format", "github", "--out", comment, "--full-out", full) == 1
    said = capsys.readouterr()
    assert said.out == ""
    assert f"The job's summary was appended to {summary}." in said.err
    assert comment.read_text().startswith("<!--harness comparison: suites/esrgan.toml-->\n\n## Abbreviated")
    assert f"For more information: [Workflow run]({RUN_URL})" in comment.read_text()
    assert "## Full Benchmark Summary of `suites/esrgan.toml`" in full.read_text()
    assert summary.read_text().startswith("An earlier step.\n\n<!--harness comparison")
    length = summary.stat().st_size
    report("--format", "markdown")  # which writes no summary
    assert summary.stat().st_size == length
    report("--format", "github", "--full")
    assert "## Full Benchmark Summary of `suites/esrgan.toml`" in capsys.readouterr().out


RUNNER = "/ci/temporary/results"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("harness compare /t/r/old /t/r/new", "harness compare results/old results/new"),
        ("harness compare --within /t/r/a/ --results /t/r", "harness compare --within results/a"),
        ("harness compare --within=/t/r/a --results=/t", "harness compare --within=results/a"),
        ("harness compare a b --format json --filter c", "harness compare a b --filter c"),
        ("harness compare a b --suite /src/suites/ours.toml", "harness compare a b --suite ours.toml"),
        ("harness compare C:\\runs\\old D:/new", "harness compare results/old results/new"),
        (
            "harness compare iree==3.12.0 results/new --controls 2",
            "harness compare iree==3.12.0 results/new --controls 2",
        ),
        ("harness compare a b --results", "harness compare a b"),
        ("", ""),
    ],
)
def test_commands_have_folders_by_their_names(given: str, said: str) -> None:
    assert portable(given.split()) == said.split()


def measured_on_a_runner() -> Comparison:
    """All places that may hold a path."""
    repro = (f"harness compare {RUNNER}/old {RUNNER}/new --filter mm/stock@cpu", "# base: module 0123")
    return make_comparison(
        [make_timed("mm/stock@cpu", 1.0, 1.2, "regressed", repro=repro)],
        base=make_side(f"{RUNNER}/old", "3.12.0", suite="/tmp/base-tree/suites/ours.toml"),  # noqa: S108
        head=make_side(f"{RUNNER}/new", "3.13.0", suite="suites/ours.toml"),
        machine=MachineFacts(description=MACHINE, selfcheck=replace(SELFCHECK, suite="/home/me/review/checked.toml")),
        command=("harness", "compare", f"{RUNNER}/old", f"{RUNNER}/new", "--results", RUNNER, "--format", "json"),
    )


def test_a_comment_has_no_folder_of_the_runner_and_the_full_report_keeps_them(small_run: Run) -> None:
    text = render_comment(measured_on_a_runner())
    assert "/home/" not in text
    assert "/tmp/" not in text  # noqa: S108
    assert "| given as | results/old | results/new |" in text
    assert "harness compare results/old results/new --filter mm/stock@cpu\n# base: module 0123" in text
    assert "\nharness compare results/old results/new\n" in text
    assert "(checked with checked.toml)" in text
    command = f"harness compare {RUNNER}/old {RUNNER}/new --results {RUNNER}"
    assert command in render(measured_on_a_runner(), "markdown", full=True)
    checked = {"selfcheck": asdict(replace(SELFCHECK, suite="/home/me/checked.toml"))}
    header = replace(small_run.header, environment=small_run.header.environment | checked)
    assert "(checked with checked.toml)" in render_comment(build_report(replace(small_run, header=header)))
