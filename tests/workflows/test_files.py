"""Workflows and actions as files: they keep GitHub's schema, and never run a pull request with a token at hand."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.workflows.conftest import ROOT

WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
ACTIONS = [ROOT / "action.yml", ROOT / "post/action.yml"]
SCRIPTS = sorted((ROOT / "scripts/ci").glob("*.sh"))
# What somebody who may not write to the repository chooses.
THEIRS = re.compile(
    r"github\.(event\.(pull_request|issue|comment|review|commits|head_commit|workflow_run\.(head|display|pull))|head_ref)"
)


def names(files: list[Path]) -> list[str]:
    return [str(file.relative_to(ROOT)) for file in files]


def load(file: Path) -> dict[str, Any]:
    """A file, whose key `on` YAML reads as true."""
    document: dict[Any, Any] = yaml.safe_load(file.read_text())
    return {"on" if key is True else key: value for key, value in document.items()}


def jobs(file: Path) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = load(file)["jobs"]
    return found


def steps(file: Path) -> Iterator[dict[str, Any]]:
    """Of all jobs, or of an action."""
    if file in ACTIONS:
        yield from load(file)["runs"]["steps"]
        return
    for job in jobs(file).values():
        yield from job["steps"]


@pytest.mark.parametrize(
    ("schema", "files"),
    [("vendor.github-workflows", WORKFLOWS), ("vendor.github-actions", ACTIONS)],
    ids=["workflows", "actions"],
)
def test_they_keep_githubs_schema(schema: str, files: list[Path]) -> None:
    assert files
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", schema, *map(str, files)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("file", [*WORKFLOWS, *ACTIONS], ids=names([*WORKFLOWS, *ACTIONS]))
def test_a_script_reads_the_environment_and_is_never_made_of_expressions(file: Path) -> None:
    assert [step["run"] for step in steps(file) if "${{" in step.get("run", "")] == []


@pytest.mark.parametrize("file", [*WORKFLOWS, *ACTIONS], ids=names([*WORKFLOWS, *ACTIONS]))
def test_actions_of_others_are_pinned_by_commit(file: Path) -> None:
    used = [step["uses"] for step in steps(file) if "uses" in step]
    for one in used:
        assert one.startswith("./") or re.fullmatch(r"actions/[a-z-]+@[0-9a-f]{40}", one), one
    pinned = re.findall(r"uses: (actions/\S+)(.*)", file.read_text())
    assert [line for line in pinned if not re.fullmatch(r" # v\d+\.\d+\.\d+", line[1])] == []


@pytest.mark.parametrize("file", WORKFLOWS, ids=names(WORKFLOWS))
def test_every_workflow_says_what_it_may(file: Path) -> None:
    permissions = load(file)["permissions"]
    assert set(permissions.values()) <= {"read"}
    for job in jobs(file).values():
        assert job["timeout-minutes"] <= 350


@pytest.mark.parametrize("file", WORKFLOWS, ids=names(WORKFLOWS))
def test_no_checkout_leaves_its_token_behind(file: Path) -> None:
    checkouts = [step for step in steps(file) if step.get("uses", "").startswith("actions/checkout@")]
    assert all(step["with"]["persist-credentials"] is False for step in checkouts)


@pytest.mark.parametrize("file", WORKFLOWS, ids=names(WORKFLOWS))
def test_a_pull_requests_code_runs_without_secrets_and_without_the_right_to_write(file: Path) -> None:
    events = load(file)["on"]
    assert "pull_request_target" not in events
    if "pull_request" in events:
        assert "secrets." not in file.read_text()
        assert "github.token" not in file.read_text()
        assert [name for name, job in jobs(file).items() if "permissions" in job] == []


def test_the_job_that_may_comment_runs_nothing_of_the_pull_request() -> None:
    file = ROOT / ".github/workflows/pull-request-report.yml"
    assert list(load(file)["on"]) == ["workflow_run"]
    (job,) = jobs(file).values()
    assert job["permissions"] == {"actions": "read", "contents": "write", "pull-requests": "write"}
    checkout, post = job["steps"]
    assert checkout["with"]["ref"] == "${{ github.event.repository.default_branch }}"
    assert post["uses"] == "./post"
    assert not any(THEIRS.search(str(step)) for step in job["steps"])
    assert not any("cache" in step.get("uses", "") for step in steps(ROOT / "post/action.yml"))


def test_the_trusted_workflow_follows_the_untrusted_one() -> None:
    untrusted = load(ROOT / ".github/workflows/pull-request.yml")["name"]
    assert load(ROOT / ".github/workflows/pull-request-report.yml")["on"]["workflow_run"]["workflows"] == [untrusted]


@pytest.mark.parametrize("file", [*WORKFLOWS, *ACTIONS], ids=names([*WORKFLOWS, *ACTIONS]))
def test_what_others_choose_is_nowhere_near_a_command(file: Path) -> None:
    for step in steps(file):
        assert not THEIRS.search(
            str({key: step.get(key) for key in ("run", "env", "with")}).replace("github.event.workflow_run.id", "")
        )


@pytest.mark.parametrize("file", ACTIONS, ids=names(ACTIONS))
def test_every_input_of_an_action_is_used_and_described(file: Path) -> None:
    inputs = load(file)["inputs"]
    text = file.read_text()
    assert [name for name in inputs if f"inputs.{name}" not in text] == []
    assert all(value["description"] for value in inputs.values())
    assert set(re.findall(r"inputs\.([a-z-]+)", text)) == set(inputs)


@pytest.mark.parametrize("file", ACTIONS, ids=names(ACTIONS))
def test_every_variable_of_a_step_is_one_that_its_script_reads(file: Path) -> None:
    for step in steps(file):
        script = re.search(r"scripts/ci/([a-z]+\.sh)", step.get("run", ""))
        if script is None:
            continue
        text = "".join((ROOT / "scripts/ci" / one).read_text() for one in (script[1], "base.sh"))
        assert [name for name in step["env"] if name not in text] == []


@pytest.mark.parametrize("script", SCRIPTS, ids=names(SCRIPTS))
def test_scripts_are_bash(script: Path) -> None:
    assert subprocess.run(["bash", "-n", str(script)]).returncode == 0
    if shutil.which("shellcheck"):
        done = subprocess.run(["shellcheck", "-x", str(script)], cwd=ROOT, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout
