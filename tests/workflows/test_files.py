"""Workflows and actions as files, those to copy too: GitHub's schema holds, and no foreign code is beside a token."""

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
CI_PAGE = (ROOT / "docs/ci.md").read_text()
BLOCKS = re.findall(r"^```yaml\n(.*?)^```$", CI_PAGE, re.DOTALL | re.MULTILINE)
WORKFLOWS_TO_COPY = [block for block in BLOCKS if block.startswith("name:")]
# What somebody who may not write to the repository chooses.
THEIRS = re.compile(
    r"github\.(event\.(pull_request|issue|comment|review|commits|head_commit|workflow_run\.(head|display|pull))|head_ref)"
)


def names(files: list[Path]) -> list[str]:
    return [str(file.relative_to(ROOT)) for file in files]


of_workflows = pytest.mark.parametrize("file", WORKFLOWS, ids=names(WORKFLOWS))
of_actions = pytest.mark.parametrize("file", ACTIONS, ids=names(ACTIONS))
of_all = pytest.mark.parametrize("file", [*WORKFLOWS, *ACTIONS], ids=names([*WORKFLOWS, *ACTIONS]))


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


def test_they_keep_githubs_schema(tmp_path: Path) -> None:
    copies = [tmp_path / f"{number}.yml" for number in range(len(WORKFLOWS_TO_COPY))]
    for file, block in zip(copies, WORKFLOWS_TO_COPY, strict=True):
        file.write_text(block.replace("COMMIT", "0" * 40))
    assert len(copies) == 4
    for schema, files in (("github-workflows", [*WORKFLOWS, *copies]), ("github-actions", ACTIONS)):
        command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", f"vendor.{schema}", *map(str, files)]
        checked = subprocess.run(command, capture_output=True, text=True)
        assert checked.returncode == 0, checked.stdout


# --- What may run where ---


@of_all
def test_what_a_step_may(file: Path) -> None:
    """No script is made of expressions, no action of others is unpinned, and nothing that others choose is near."""
    for step in steps(file):
        assert "${{" not in step.get("run", "")
        action = step.get("uses", "./")
        assert action.startswith("./") or re.fullmatch(r"actions/[a-z-]+@[0-9a-f]{40}", action), action
        near = str({key: step.get(key) for key in ("run", "env", "with")})
        assert not THEIRS.search(near.replace("github.event.workflow_run.id", ""))
    pinned = re.findall(r"uses: (actions/\S+)(.*)", file.read_text())
    assert [line for line in pinned if not re.fullmatch(r" # v\d+\.\d+\.\d+", line[1])] == []


@of_workflows
def test_every_workflow_says_what_it_may_and_leaves_no_token_behind(file: Path) -> None:
    assert set(load(file)["permissions"].values()) <= {"read"}
    assert all(job["timeout-minutes"] <= 350 for job in jobs(file).values())
    checkouts = [step for step in steps(file) if step.get("uses", "").startswith("actions/checkout@")]
    assert all(step["with"]["persist-credentials"] is False for step in checkouts)


@of_workflows
def test_a_pull_requests_code_runs_without_secrets_and_without_the_right_to_write(file: Path) -> None:
    events = load(file)["on"]
    assert "pull_request_target" not in events
    if "pull_request" in events:
        assert "secrets." not in file.read_text()
        assert "github.token" not in file.read_text()
        assert [name for name, job in jobs(file).items() if "permissions" in job] == []


def test_the_job_that_may_comment_runs_nothing_of_the_pull_request() -> None:
    file = ROOT / ".github/workflows/pull-request-report.yml"
    untrusted = load(ROOT / ".github/workflows/pull-request.yml")["name"]
    assert load(file)["on"].keys() == {"workflow_run"}
    assert load(file)["on"]["workflow_run"]["workflows"] == [untrusted]
    (job,) = jobs(file).values()
    assert job["permissions"] == {"actions": "read", "contents": "write", "pull-requests": "write"}
    checkout, post = job["steps"]
    assert checkout["with"]["ref"] == "${{ github.event.repository.default_branch }}"
    assert post["uses"] == "./post"
    assert not any(THEIRS.search(str(step)) for step in job["steps"])
    assert not any("cache" in step.get("uses", "") for step in steps(ROOT / "post/action.yml"))
    assert "actions/checkout" not in (ROOT / "post/action.yml").read_text()


# --- Inputs, variables and scripts ---


@of_actions
def test_every_input_of_an_action_is_used_and_described(file: Path) -> None:
    inputs = load(file)["inputs"]
    assert set(re.findall(r"inputs\.([a-z-]+)", file.read_text())) == set(inputs)
    assert all(value["description"] for value in inputs.values())
    assert "HARNESS_CONSTRAINTS: ${{ inputs.constraints }}" in file.read_text()


@pytest.mark.parametrize("script", SCRIPTS, ids=names(SCRIPTS))
def test_scripts_are_bash(script: Path) -> None:
    assert subprocess.run(["bash", "-n", str(script)]).returncode == 0
    if shutil.which("shellcheck"):
        checked = subprocess.run(["shellcheck", "-x", str(script)], cwd=ROOT, capture_output=True, text=True)
        assert checked.returncode == 0, checked.stdout


# --- What docs/ci.md gives to copy, and explains ---


def test_of_the_workflows_to_copy_the_second_follows_the_first() -> None:
    untrusted, trusted = (yaml.safe_load(block) for block in WORKFLOWS_TO_COPY[:2])
    assert trusted[True]["workflow_run"]["workflows"] == [untrusted["name"]]
    assert untrusted["permissions"] == {"contents": "read"}
    assert trusted["permissions"] == {}


def test_the_hosts_of_the_fleet_to_copy_are_never_a_pull_requests() -> None:
    fleet = yaml.safe_load(WORKFLOWS_TO_COPY[3])
    assert fleet[True].keys() == {"schedule", "workflow_dispatch"}
    host, measure = fleet["jobs"]["host"], fleet["jobs"]["measure"]
    assert measure["env"]["HOSTS"] == len(host["strategy"]["matrix"]["host"])
    assert all("self-hosted" in job["runs-on"] and job["timeout-minutes"] <= 350 for job in (host, measure))
    assert "secrets." not in WORKFLOWS_TO_COPY[3]
    runs = [step.get("run", "") for job in (host, measure) for step in job["steps"]]
    assert [run for run in runs if "${{" in run] == []


@pytest.mark.parametrize("block", BLOCKS)
def test_inputs_to_copy_are_those_of_the_actions_and_releases_are_pinned(block: str) -> None:
    document = yaml.safe_load(block)
    jobs_to_copy = [] if isinstance(document, list) else document["jobs"].values()
    copied = [step for job in jobs_to_copy for step in job["steps"]] or document
    for step in copied:
        if "uses" not in step:
            continue
        name, commit = step["uses"].split("@")
        assert commit == "COMMIT" or re.fullmatch(r"[0-9a-f]{40}", commit)
        if name.startswith("OWNER/iree-harness"):
            action = ROOT / name.removeprefix("OWNER/iree-harness").lstrip("/") / "action.yml"
            assert set(step["with"]) <= set(load(action)["inputs"])
