"""What GitHub shows of a comparison or a run: the command, and commands without paths of the machine."""

import json
from dataclasses import asdict, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest

from harness.cli import run_command_line
from harness.records.comparison import Comparison, MachineFacts, Row
from harness.records.run import Run
from harness.report import render
from harness.report.github import portable, render_comment
from harness.report.run_report import build_report
from harness.store.work_directory import ComparisonDirectory
from tests.history.made import make_night, step, store
from tests.report.builders import MACHINE, RUN_URL, SELFCHECK, make_comparison, make_row, make_side, make_timed

ENVIRONMENT = {"machine": {"id": "3f2a91c04b7e"}, "cpu": {"model": "AMD EPYC"}}
ACTIONS = {
    "GITHUB_SERVER_URL": "https://github.com",
    "GITHUB_REPOSITORY": "org/repo",
    "GITHUB_RUN_ID": "123",
}


@pytest.fixture(autouse=True)
def _outside_of_actions(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*ACTIONS, "GITHUB_STEP_SUMMARY"):
        monkeypatch.delenv(name, raising=False)


def a_night(results: Path, night: int, **environment: Any) -> Path:
    """A run of one night; from the second on, the newest compiler is slower by 30 %."""
    run = make_night(night, compiler=step(1, 1.3), generations=6, environment={**ENVIRONMENT, **environment})
    return store(results, run)


@pytest.fixture
def nights(tmp_path: Path) -> tuple[Path, Path]:
    """Base and head."""
    return a_night(tmp_path, 0), a_night(tmp_path, 1)


def keep(results: Path, base: Path, head: Path, row: Row, *, day: int = 1, **given: Any) -> Path:
    """A comparison of two runs with that row."""
    created = datetime(2026, 2, day, tzinfo=timezone.utc)
    with ComparisonDirectory.create(results, "nightly", created) as directory:
        comparison = make_comparison(
            [row],
            id=directory.path.name,
            created=created.isoformat(),
            base=make_side("base", "3.12.0", run=base.name),
            head=make_side("head", "3.13.0", run=head.name),
            **given,
        )
        directory.finish(render(comparison, "json").encode(), "# A comparison\n")
    return directory.path


def report(*words: str | Path) -> int:
    """The exit status."""
    return run_command_line(["report", *map(str, words)])


def refusal(capsys: pytest.CaptureFixture[str], *words: str | Path) -> str:
    """The sentence that says what is wrong."""
    assert report(*words) == 2
    said = capsys.readouterr()
    assert said.out == ""
    lines = [line for line in said.err.splitlines() if line.startswith("harness: ")]
    assert len(lines) == 1
    return lines[0]


# --- Two runs ---


def test_what_two_runs_recorded_is_compared_and_not_kept(
    nights: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    base, head = nights
    assert report(head, "--base", base, "--format", "github") == 1
    said = capsys.readouterr()
    assert "**🚩 Needs attention: 2 regressions, " in said.out
    assert "> ⚠️ These are recorded numbers, taken at different times: " in said.out
    assert f"`harness compare {base} {head}` measures both" in said.err
    command = f"harness compare results/{base.name} results/{head.name} --no-remeasure --format markdown --full"
    assert f"The full report, with every row and setting, is printed by `{command}`" in said.out
    assert sorted(tmp_path.iterdir()) == sorted(nights)
    # What was measured side by side is better, the newest of it.
    keep(tmp_path, base, head, make_timed("old/v@d", 1.0, 2.0, "regressed"), day=1)
    newest = keep(tmp_path, base, head, make_timed("new/v@d", 1.0, 1.0, "unchanged"), day=2)
    assert report(head, "--base", base, "--format", "json") == 0
    said = capsys.readouterr()
    assert json.loads(said.out)["id"] == newest.name
    assert f"{newest} compares these two runs" in said.err


def test_what_cannot_be_compared_is_told_in_a_sentence(
    nights: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    base, head = nights
    kept = keep(tmp_path, base, head, make_row("m/v@d", verdict="identical"))
    other = a_night(tmp_path, 2, machine={"id": "77ab00c1d2e3"})
    for words, said in (
        ((head, "--base", head), "is given twice"),
        ((kept, "--base", base), f"{kept}: is a comparison, which has its base already"),
        ((head, "--base", kept), f"--base {kept}: is a comparison"),
        ((head, "--base", tmp_path / "nothing"), f"{tmp_path / 'nothing'}: there is no such folder"),
        ((head, "--across-hosts"), "give the other one with --base"),
        ((other, "--base", base), "were measured on different machines"),
    ):
        assert said in refusal(capsys, *words)
    assert report(other, "--base", base, "--across-hosts", "--format", "github") == 1
    assert "--no-remeasure --across-hosts --format markdown --full" in capsys.readouterr().out


# --- For GitHub ---


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    """A comparison with one regression."""
    return keep(tmp_path, Path("base"), Path("head"), make_timed("m/v@d", 1.0, 1.2, "regressed"))


def test_comment_full_report_and_summary(
    kept: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    comment, full, summary = (tmp_path / name for name in ("comment.md", "report.md", "summary.md"))
    summary.write_text("An earlier step.\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    assert report(kept, "--format", "github", "--out", comment, "--full-out", full) == 1
    said = capsys.readouterr()
    assert said.out == ""
    assert f"The job's summary was appended to {summary}." in said.err
    assert comment.read_text().startswith("<!--harness comparison: suites/esrgan.toml-->\n\n## Abbreviated")
    assert "## Full Benchmark Summary of `suites/esrgan.toml`" in full.read_text()
    assert summary.read_text().startswith("An earlier step.\n\n<!--harness comparison")
    length = summary.stat().st_size
    report(kept, "--format", "markdown")  # which writes no summary
    assert summary.stat().st_size == length
    report(kept, "--format", "github", "--full")
    assert "## Full Benchmark Summary of `suites/esrgan.toml`" in capsys.readouterr().out


def test_links_of_actions_are_found_by_themselves(
    kept: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in ACTIONS.items():
        monkeypatch.setenv(name, value)
    addresses = ("--dashboard-url", "https://org.github.io/d/", "--images-url", "https://org.github.io/p/")
    report(kept, "--format", "github", "--head-commit", "0A1B2C3D4E5F", *addresses)
    text = capsys.readouterr().out
    assert 'srcset="https://org.github.io/p/forest-dark.png"><img alt="' in text
    assert f"For more information: [Workflow run]({RUN_URL}) · [Dashboard](https://org.github.io/d/)" in text
    assert "@ commit [`0a1b2c3d4e`](https://github.com/org/repo/commit/0a1b2c3d4e5f)" in text


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--run-url", "https://e.org"), "--run-url is for --format github; give that too, or leave --run-url out"),
        (("--full-out", "x.md"), "--full-out is for --format github"),
        (("--format", "github", "--run-url", "javascript:x"), "--run-url 'javascript:x': is no address of the web"),
        (("--format", "github", "--images-url", "out/"), "--images-url 'out/': is no address of the web"),
        (("--format", "github", "--head-commit", "0a1b2c3"), "of which repository is not known outside of GitHub"),
        (("--format", "github", "--head-commit", "main"), "--head-commit 'main': is no hash of a commit"),
    ],
)
def test_options_without_effect_or_sense_are_refused(
    kept: Path, words: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert said in refusal(capsys, kept, *words)


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
