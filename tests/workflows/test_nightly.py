"""A night: the history is restored, grows, is kept, and shows what changed; and how the harness gets onto a runner."""

from pathlib import Path

import pytest

from tests.builders import git
from tests.workflows.conftest import Job, assigned


@pytest.fixture
def night(tmp_path: Path) -> Job:
    """A runner with a repository that has no history yet, and a harness that only does as if."""
    remote = tmp_path / "server/o/r"
    remote.mkdir(parents=True)
    git(remote, "init", "--quiet", "--bare")
    return a_night(tmp_path, "first")


def a_night(folder: Path, name: str) -> Job:
    (folder / "checkout").mkdir(exist_ok=True)
    environment = {
        "GITHUB_ENV": str(folder / name / "env"),
        "GITHUB_REPOSITORY": "o/r",
        "GITHUB_SERVER_URL": f"file://{folder}/server",
        "HARNESS_HISTORY": str(folder / name / "history/results"),
        "HARNESS_REFERENCE": "3.12.0",
        "HARNESS_SUITE": "suites/nightly.toml",
    }
    return Job(checkout=folder / "checkout", temp=folder / name, environment=environment).with_fake_harness()


def step(job: Job, script: str, action: str, *, status: int = 0, **environment: str) -> str:
    """Run a step, which ends with that status; what it says on stderr."""
    finished = job.run(script, action, **environment)
    assert finished.returncode == status, finished.stderr
    return finished.stderr


def add_run(job: Job, name: str) -> None:
    folder = job.temp / "history/results" / name
    folder.mkdir()
    (folder / "run.json").write_text("{}")


def stored(folder: Path) -> list[str]:
    """The files of the history's branch."""
    return git(folder / "server/o/r", "ls-tree", "-r", "--name-only", "harness-history").splitlines()


def test_the_first_night_makes_the_branch_and_the_next_adds_to_it(night: Job, tmp_path: Path) -> None:
    for number, job in enumerate((night, a_night(tmp_path, "second"))):
        step(job, "history.sh", "restore")
        place = job.temp / "history/results"
        assert assigned(job.temp / "env") == {"HARNESS_HISTORY": str(place)}
        assert len(list(place.iterdir())) == number
        add_run(job, f"run-{number}")
        step(job, "history.sh", "push")
    assert stored(tmp_path) == ["results/run-0/run.json", "results/run-1/run.json"]


def test_what_another_job_pushed_meanwhile_is_merged_with(night: Job, tmp_path: Path) -> None:
    other = a_night(tmp_path, "other")
    for job, name in ((night, "ours"), (other, "theirs")):
        step(job, "history.sh", "restore")
        add_run(job, name)
    step(other, "history.sh", "push")
    assert "has moved on meanwhile" in step(night, "history.sh", "push")
    assert stored(tmp_path) == ["results/ours/run.json", "results/theirs/run.json"]
    assert night.calls[-1].endswith(f"--into {night.temp}/history-1/results")


def test_a_history_that_cannot_be_fetched_is_not_begun_anew(night: Job) -> None:
    errors = step(night, "history.sh", "restore", status=2, GITHUB_REPOSITORY="o/gone")
    assert errors.splitlines()[-1].startswith("The history cannot be fetched from file://")


def test_the_token_is_in_no_command_line_and_no_file(night: Job) -> None:
    finished = night.run("history.sh", "restore", GITHUB_TOKEN="ghs_secret")  # noqa: S106
    assert "ghs_secret" not in finished.stdout + finished.stderr
    for file in night.temp.rglob("*"):
        assert not file.is_file() or b"ghs_secret" not in file.read_bytes()


@pytest.mark.parametrize(("status", "changed"), [("0", "false"), ("1", "true"), ("3", "true")])
def test_a_night_measures_beside_the_reference_and_changes_go_to_the_summary_and_the_issue(
    night: Job, tmp_path: Path, status: str, changed: str
) -> None:
    """A night with a failing case is a point of the history too; searches lie in the cache, for the next night."""
    step(night, "nightly.sh", "measure", FAKE_RUN="3")
    step(night, "nightly.sh", "report", FAKE_HISTORY=status)
    step(night, "nightly.sh", "bisect", FAKE_HISTORY=status, HARNESS_CACHE=str(tmp_path), HARNESS_BISECT_BUDGET="600")
    runs, history, changes = night.temp / "new-runs", night.environment["HARNESS_HISTORY"], night.temp / "changes.md"
    assert night.calls[:2] == [
        f"run suites/nightly.toml --toolchain 3.12.0 --toolchain newest --results {runs}",
        f"results merge {runs} --into {history}",
    ]
    options = f"--changes --format markdown --out {changes} --bisect 600 --bisect-results {tmp_path}/bisects"
    assert night.calls[-1] == f"history {history} {options}"
    assert (Path(history) / "2026-0-small").is_dir()
    assert "the report\n" in night.summary
    site = str(night.temp / "site")
    assert night.outputs == {"status": "3", "changes": str(changes), "changed": changed, "site": site}


# --- Installing ---

# Instead of Python: `-m venv FOLDER` makes an environment of this very script, and pip's calls are kept.
PYTHON = """\
#!/bin/sh
if [ "$2" = venv ]; then
    mkdir -p "$3/bin"
    cp "$0" "$3/bin/python"
    printf '#!/bin/sh\\necho 0.1.0\\n' > "$3/bin/harness"
    chmod +x "$3/bin/harness"
else
    shift 2
    echo "$* | $PIP_CONSTRAINT | $PIP_BUILD_CONSTRAINT" >> "$RUNNER_TEMP/pip"
fi
"""
NO_INDEX = "install --no-index --no-build-isolation ./source"
HASHES = f"numpy==2.2.0 \\\n    --hash=sha256:{'0' * 64}\n"


@pytest.fixture
def runner(tmp_path: Path) -> Job:
    """A runner on which nothing is really installed."""
    (tmp_path / "temp").mkdir()
    (tmp_path / "python").write_text(PYTHON)
    (tmp_path / "python").chmod(0o755)
    environment = {"HARNESS_PYTHON": str(tmp_path / "python"), "GITHUB_PATH": str(tmp_path / "temp/path")}
    return Job(checkout=tmp_path, temp=tmp_path / "temp", environment=environment)


@pytest.mark.parametrize(
    ("constraints", "environment", "calls"),
    [
        # Without constraints the newest is taken.
        ("", {"HARNESS_EXTRAS": "halide", "HARNESS_PACKAGES": "s3fs"}, ["install ./source[halide] s3fs |  | "]),
        # Constraints hold for what is installed and for what builds it.
        ("numpy==2.2.0\n", {"HARNESS_PACKAGES": "s3fs"}, ["install ./source s3fs | {file} | {file}"]),
        # With hashes nothing else is taken from an index.
        (HASHES, {}, ["install --require-hashes --requirement constraints.txt |  | ", f"{NO_INDEX} |  | "]),
    ],
)
def test_what_is_installed(runner: Job, constraints: str, environment: dict[str, str], calls: list[str]) -> None:
    file = runner.checkout / "constraints.txt"
    if constraints:
        file.write_text(constraints)
        environment = {**environment, "HARNESS_CONSTRAINTS": "constraints.txt"}
    finished = runner.run("install.sh", "./source", **environment)
    assert finished.returncode == 0, finished.stderr
    lines = (runner.temp / "pip").read_text().splitlines()
    quiet = "--quiet --disable-pip-version-check "
    assert [line.removeprefix(quiet) for line in lines] == [call.format(file=file) for call in calls]
    assert (runner.temp / "path").read_text() == f"{runner.temp}/harness-commands\n"
