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
BLOCKS = re.findall(r"^```yaml\n(.*?)^```$", (ROOT / "docs/ci.md").read_text(), re.DOTALL | re.MULTILINE)
WORKFLOWS_TO_COPY = [block for block in BLOCKS if block.startswith("name:")]
# What somebody who may not write to the repository chooses.
THEIRS = re.compile(
    r"github\.(event\.(pull_request|issue|comment|review|commits|head_commit|workflow_run\.(head|display|pull))|head_ref)"
)
of_workflows = pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.name)
of_all = pytest.mark.parametrize("file", [*WORKFLOWS, *ACTIONS], ids=lambda file: str(file.relative_to(ROOT)))


def load(file: Path) -> dict[str, Any]:
    """A file, whose key `on` YAML reads as true."""
    document: dict[Any, Any] = yaml.safe_load(file.read_text())
    return {"on" if key is True else key: value for key, value in document.items()}


def steps(file: Path) -> Iterator[dict[str, Any]]:
    """Of all jobs, or of an action."""
    document = load(file)
    for job in [document["runs"]] if file in ACTIONS else document["jobs"].values():
        yield from job["steps"]


def test_they_keep_githubs_schema_and_scripts_are_bash(tmp_path: Path) -> None:
    copies = [tmp_path / f"{number}.yml" for number in range(len(WORKFLOWS_TO_COPY))]
    for file, block in zip(copies, WORKFLOWS_TO_COPY, strict=True):
        file.write_text(block.replace("COMMIT", "0" * 40))
    assert len(copies) == 4
    check = [sys.executable, "-m", "check_jsonschema", "--builtin-schema"]
    commands = [
        [*check, "vendor.github-workflows", *map(str, [*WORKFLOWS, *copies])],
        [*check, "vendor.github-actions", *map(str, ACTIONS)],
    ]
    scripts = sorted(map(str, (ROOT / "scripts/ci").glob("*.sh")))
    commands += [["bash", "-n", script] for script in scripts]
    commands += [["shellcheck", "-x", *scripts]] if shutil.which("shellcheck") else []
    for command in commands:
        checked = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
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
def test_a_workflow_says_what_it_may_leaves_no_token_behind_and_gives_a_pull_request_no_secret(file: Path) -> None:
    document = load(file)
    jobs, events = document["jobs"], document["on"]
    assert set(document["permissions"].values()) <= {"read"}
    assert all(job["timeout-minutes"] <= 350 for job in jobs.values())
    checkouts = [step for step in steps(file) if step.get("uses", "").startswith("actions/checkout@")]
    assert all(step["with"]["persist-credentials"] is False for step in checkouts)
    assert "pull_request_target" not in events
    if "pull_request" in events:
        assert not re.search(r"secrets\.|github\.token", file.read_text())
        assert [name for name, job in jobs.items() if "permissions" in job] == []


def test_the_job_that_may_comment_runs_nothing_of_the_pull_request() -> None:
    file = ROOT / ".github/workflows/pull-request-report.yml"
    untrusted = load(ROOT / ".github/workflows/pull-request.yml")["name"]
    assert load(file)["on"].keys() == {"workflow_run"}
    assert load(file)["on"]["workflow_run"]["workflows"] == [untrusted]
    (job,) = load(file)["jobs"].values()
    assert job["permissions"] == {"actions": "read", "contents": "write", "pull-requests": "write"}
    checkout, post = job["steps"]
    assert checkout["with"]["ref"] == "${{ github.event.repository.default_branch }}"
    assert post["uses"] == "./post"
    assert not any(THEIRS.search(str(step)) for step in job["steps"])
    assert not any("cache" in step.get("uses", "") for step in steps(ROOT / "post/action.yml"))
    assert "actions/checkout" not in (ROOT / "post/action.yml").read_text()


def test_every_input_of_an_action_is_used_and_described() -> None:
    for file in ACTIONS:
        inputs = load(file)["inputs"]
        assert set(re.findall(r"inputs\.([a-z-]+)", file.read_text())) == set(inputs)
        assert all(value["description"] for value in inputs.values())


# --- What docs/ci.md gives to copy ---


def test_of_the_workflows_to_copy_the_second_follows_the_first_and_a_fleets_hosts_are_never_a_pull_requests() -> None:
    untrusted, trusted, _, fleet = map(yaml.safe_load, WORKFLOWS_TO_COPY)
    assert trusted[True]["workflow_run"]["workflows"] == [untrusted["name"]]
    assert (untrusted["permissions"], trusted["permissions"]) == ({"contents": "read"}, {})
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
    for step in (step for step in copied if "uses" in step):
        name, commit = step["uses"].split("@")
        assert commit == "COMMIT" or re.fullmatch(r"[0-9a-f]{40}", commit)
        if name.startswith("OWNER/iree-harness"):
            action = ROOT / name.removeprefix("OWNER/iree-harness").lstrip("/") / "action.yml"
            assert set(step["with"]) <= set(load(action)["inputs"])
