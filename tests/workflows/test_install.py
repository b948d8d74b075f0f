"""How the harness gets onto a runner, and in which versions."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.workflows.conftest import ROOT, Job

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


@pytest.fixture
def runner(tmp_path: Path) -> Job:
    """A runner on which nothing is really installed."""
    (tmp_path / "temp").mkdir()
    (tmp_path / "python").write_text(PYTHON)
    (tmp_path / "python").chmod(0o755)
    environment = {"HARNESS_PYTHON": str(tmp_path / "python"), "GITHUB_PATH": str(tmp_path / "temp/path")}
    return Job(checkout=tmp_path, temp=tmp_path / "temp", environment=environment)


def install(runner: Job, **environment: str) -> subprocess.CompletedProcess[str]:
    return runner.run("install.sh", "./source", **environment)


def calls(runner: Job) -> list[str]:
    """Those of pip, without the options that make it quiet, and what its variables were."""
    lines = (runner.temp / "pip").read_text().splitlines()
    return [line.removeprefix("--quiet --disable-pip-version-check ") for line in lines]


def test_without_constraints_the_newest_is_taken(runner: Job) -> None:
    done = install(runner, HARNESS_EXTRAS="halide", HARNESS_PACKAGES="s3fs boto3")
    assert done.returncode == 0, done.stderr
    assert calls(runner) == ["install ./source[halide] s3fs boto3 |  | "]
    assert (runner.temp / "path").read_text() == f"{runner.temp}/harness-commands\n"


def test_constraints_hold_for_what_is_installed_and_for_what_builds_it(runner: Job) -> None:
    file = runner.checkout / "constraints.txt"
    file.write_text("numpy==2.2.0\n")
    done = install(runner, HARNESS_CONSTRAINTS="constraints.txt", HARNESS_PACKAGES="s3fs")
    assert done.returncode == 0, done.stderr
    assert calls(runner) == [f"install ./source s3fs | {file} | {file}"]


def test_with_hashes_nothing_else_is_taken_from_an_index(runner: Job) -> None:
    (runner.checkout / "constraints.txt").write_text(f"numpy==2.2.0 \\\n    --hash=sha256:{'0' * 64}\n")
    done = install(runner, HARNESS_CONSTRAINTS="constraints.txt")
    assert done.returncode == 0, done.stderr
    assert calls(runner) == [
        "install --require-hashes --requirement constraints.txt |  | ",
        "install --no-index --no-build-isolation ./source |  | ",
    ]


def test_constraints_that_are_not_there_are_an_error(runner: Job) -> None:
    """To install something else without a word would be what they are to prevent."""
    done = install(runner, HARNESS_CONSTRAINTS="no/such.txt")
    assert done.returncode == 2
    assert done.stderr == "constraints: there is no file no/such.txt; check out what has it first, or leave it out\n"
    assert not (runner.temp / "pip").exists()


@pytest.mark.parametrize("file", ["action.yml", "post/action.yml"])
def test_both_actions_hand_them_on(file: str) -> None:
    assert "HARNESS_CONSTRAINTS: ${{ inputs.constraints }}" in (ROOT / file).read_text()
