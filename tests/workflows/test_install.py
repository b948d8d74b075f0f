"""How the harness gets onto a runner, and in which versions."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.workflows.conftest import Job

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
        (
            "",
            {"HARNESS_EXTRAS": "halide", "HARNESS_PACKAGES": "s3fs boto3"},
            ["install ./source[halide] s3fs boto3 |  | "],
        ),
        # Constraints hold for what is installed and for what builds it.
        ("numpy==2.2.0\n", {"HARNESS_PACKAGES": "s3fs"}, ["install ./source s3fs | {file} | {file}"]),
        # With hashes nothing else is taken from an index.
        (
            HASHES,
            {},
            [
                "install --require-hashes --requirement constraints.txt |  | ",
                "install --no-index --no-build-isolation ./source |  | ",
            ],
        ),
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
