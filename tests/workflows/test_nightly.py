"""A night: the history is restored, grows, is kept, and tells what changed."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.workflows.conftest import Job, git

HARNESS = """\
#!/bin/sh
echo "$@" >> "$RUNNER_TEMP/calls"
case "$1 $2" in
run\\ *)
    shift
    while [ "$1" != --results ]; do shift; done
    [ "$FAKE_RUN" = 2 ] || mkdir -p "$2/a-run"
    exit $FAKE_RUN ;;
history\\ *) shift; while [ "$1" != --out ]; do shift; done; echo "| change |" > "$2"; exit $FAKE_HISTORY ;;
"results merge") mkdir -p "$5"; cp -r "$3"/. "$5" ;;
"results compact") mkdir -p "$3/history"; echo {} > "$3/history/index.json" ;;
esac
"""


@pytest.fixture
def night(tmp_path: Path) -> Job:
    """A runner with a repository that has no history yet, and a harness that does as if."""
    remote = tmp_path / "server/o/r"
    remote.mkdir(parents=True)
    git(remote, "init", "--quiet", "--bare")
    return a_night(tmp_path, "first")


def a_night(folder: Path, name: str) -> Job:
    temp = folder / name
    (temp / "commands").mkdir(parents=True)
    (temp / "commands/harness").write_text(HARNESS)
    (temp / "commands/harness").chmod(0o755)
    (folder / "checkout").mkdir(exist_ok=True)
    environment = {
        "GITHUB_ENV": str(temp / "env"),
        "GITHUB_REPOSITORY": "o/r",
        "GITHUB_SERVER_URL": f"file://{folder}/server",
        "HARNESS_HISTORY": str(temp / "history/results"),
        "HARNESS_REFERENCE": "3.12.0",
        "HARNESS_SUITE": "suites/nightly.toml",
        "FAKE_RUN": "0",
        "FAKE_HISTORY": "0",
    }
    return Job(checkout=folder / "checkout", temp=temp, environment=environment)


def step(job: Job, script: str, action: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return job.run(script, action, **environment)


def kept(night: Job, branch: str = "harness-history") -> list[str]:
    """The files of the branch."""
    remote = Path(night.environment["GITHUB_SERVER_URL"].removeprefix("file://")) / "o/r"
    return git(remote, "ls-tree", "-r", "--name-only", branch).splitlines()


def test_the_first_night_makes_the_branch_and_the_next_adds_to_it(night: Job, tmp_path: Path) -> None:
    for number, job in enumerate((night, a_night(tmp_path, "second"))):
        restored = step(job, "history.sh", "restore")
        assert restored.returncode == 0, restored.stderr
        place = job.temp / "history/results"
        assert (job.temp / "env").read_text() == f"HARNESS_HISTORY={place}\n"
        assert len(list(place.iterdir())) == number
        (place / f"run-{number}").mkdir()
        (place / f"run-{number}/run.json").write_text("{}")
        pushed = step(job, "history.sh", "push")
        assert pushed.returncode == 0, pushed.stderr
    assert kept(night) == ["results/run-0/run.json", "results/run-1/run.json"]


def test_what_somebody_else_pushed_meanwhile_is_merged_with(night: Job, tmp_path: Path) -> None:
    other = a_night(tmp_path, "other")
    for job, name in ((night, "ours"), (other, "theirs")):
        assert step(job, "history.sh", "restore").returncode == 0
        (job.temp / "history/results" / name).mkdir()
        (job.temp / "history/results" / name / "run.json").write_text("{}")
    assert step(other, "history.sh", "push").returncode == 0
    pushed = step(night, "history.sh", "push")
    assert pushed.returncode == 0, pushed.stderr
    assert "has moved on meanwhile" in pushed.stderr
    assert kept(night) == ["results/history/index.json", "results/ours/run.json", "results/theirs/run.json"]


def test_a_history_that_cannot_be_fetched_is_not_begun_anew(night: Job) -> None:
    finished = step(night, "history.sh", "restore", GITHUB_REPOSITORY="o/gone")
    assert finished.returncode == 2
    assert finished.stderr.splitlines()[-1].startswith("The history cannot be fetched from file://")


def test_a_history_at_a_url_needs_no_branch(night: Job) -> None:
    url = {"HARNESS_HISTORY_URL": "s3://bucket/results"}
    assert step(night, "history.sh", "restore", **url).returncode == 0
    assert (night.temp / "env").read_text() == "HARNESS_HISTORY=s3://bucket/results\n"
    assert step(night, "history.sh", "push", **url).returncode == 0
    assert not (night.temp / "history").exists()


def test_the_token_is_in_no_command_line_and_no_file(night: Job) -> None:
    finished = step(night, "history.sh", "restore", GITHUB_TOKEN="ghs_secret")  # noqa: S106
    assert "ghs_secret" not in finished.stdout + finished.stderr
    for file in night.temp.rglob("*"):
        assert not file.is_file() or b"ghs_secret" not in file.read_bytes()


def test_the_newest_release_is_measured_beside_the_reference(night: Job) -> None:
    finished = step(night, "nightly.sh", "measure", HARNESS_TURNS="90d")
    assert finished.returncode == 0, finished.stderr
    new, history = night.temp / "new-runs", night.environment["HARNESS_HISTORY"]
    assert (night.temp / "calls").read_text().splitlines() == [
        f"run suites/nightly.toml --toolchain 3.12.0 --toolchain newest --results {new}",
        f"results merge {new} --into {history}",
        f"results compact {history}",
        f"results gc {history} --older-than 90d",
    ]
    assert night.outputs() == {"status": "0"}


def test_a_night_with_a_failing_case_is_a_point_too(night: Job) -> None:
    assert step(night, "nightly.sh", "measure", FAKE_RUN="3").returncode == 0
    assert night.outputs() == {"status": "3"}
    assert (Path(night.environment["HARNESS_HISTORY"]) / "a-run").is_dir()


def test_a_night_that_measured_nothing_is_an_error(night: Job) -> None:
    assert step(night, "nightly.sh", "measure", FAKE_RUN="2").returncode == 2
    assert "merge" not in (night.temp / "calls").read_text()


@pytest.mark.parametrize(("status", "changed"), [("0", "false"), ("1", "true"), ("3", "true")])
def test_changes_go_to_the_summary_and_decide_about_the_issue(night: Job, status: str, changed: str) -> None:
    assert step(night, "nightly.sh", "report", FAKE_HISTORY=status).returncode == 0
    assert night.summary() == "| change |\n"
    assert night.outputs() == {
        "changes": str(night.temp / "changes.md"),
        "changed": changed,
        "site": str(night.temp / "site"),
    }


def test_a_history_that_cannot_be_read_is_an_error(night: Job) -> None:
    assert step(night, "nightly.sh", "report", FAKE_HISTORY="2").returncode == 2


@pytest.mark.parametrize("script", ["nightly.sh", "history.sh"])
def test_usage(night: Job, script: str) -> None:
    finished = step(night, script, "dance")
    assert finished.returncode == 2
    assert finished.stderr.startswith(f"usage: {script} ")
    assert os.access(Path(__file__).parents[2] / "scripts/ci" / script, os.X_OK)
