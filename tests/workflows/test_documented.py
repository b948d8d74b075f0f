"""docs/ci.md: what it tells others to copy is valid, and names what is there."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.workflows.conftest import ROOT

TEXT = (ROOT / "docs/ci.md").read_text()
BLOCKS = re.findall(r"^```yaml\n(.*?)^```$", TEXT, re.DOTALL | re.MULTILINE)
WORKFLOWS = [block for block in BLOCKS if block.startswith("name:")]
COMMIT = "0" * 40


def uses(block: str) -> list[dict[str, Any]]:
    """Its steps that use an action."""
    document = yaml.safe_load(block)
    steps = document if isinstance(document, list) else next(iter(document["jobs"].values()))["steps"]
    return [step for step in steps if "uses" in step]


@pytest.mark.parametrize("block", WORKFLOWS)
def test_a_workflow_to_copy_keeps_githubs_schema(block: str, tmp_path: Path) -> None:
    file = tmp_path / "workflow.yml"
    file.write_text(block.replace("COMMIT", COMMIT))
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.github-workflows", str(file)]
    assert subprocess.run(command, capture_output=True).returncode == 0


def test_both_halves_are_there_and_the_second_follows_the_first() -> None:
    untrusted, trusted = (yaml.safe_load(block) for block in WORKFLOWS)
    assert trusted[True]["workflow_run"]["workflows"] == [untrusted["name"]]
    assert untrusted["permissions"] == {"contents": "read"}
    assert trusted["permissions"] == {}


@pytest.mark.parametrize("block", BLOCKS)
def test_inputs_are_those_of_the_actions_and_releases_are_pinned(block: str) -> None:
    for step in uses(block):
        name, commit = step["uses"].split("@")
        assert commit == "COMMIT" or re.fullmatch(r"[0-9a-f]{40}", commit)
        if name.startswith("OWNER/iree-harness"):
            action = ROOT / name.removeprefix("OWNER/iree-harness").lstrip("/") / "action.yml"
            assert set(step["with"]) <= set(yaml.safe_load(action.read_text())["inputs"])


def test_the_actions_that_are_shown_are_those_that_are_used_here() -> None:
    shown = set(re.findall(r"actions/\S+@[0-9a-f]{40} # v\S+", TEXT))
    here = "".join(file.read_text() for file in (ROOT / ".github/workflows").glob("*.yml"))
    assert shown
    assert {one for one in shown if one not in here} == set()


def test_the_variables_of_the_night_are_those_that_it_reads() -> None:
    nightly = (ROOT / ".github/workflows/nightly.yml").read_text()
    documented = set(re.findall(r"`(HARNESS_[A-Z_]+)`", TEXT))
    assert documented == set(re.findall(r"vars\.(HARNESS_[A-Z_]+)", nightly))


@pytest.mark.parametrize(
    "message",
    [
        "Resource not accessible by integration",
        "the comment goes without pictures",
        "limits how often it may be asked",
        "has moved on since",
        "no open pull request of",
        "have the same head",
        "comments of this suite",
        "No artifact holds a comparison",
        "is no comparison of schema version",
        "have no commit in common here",
        "The history cannot be fetched",
    ],
)
def test_a_message_that_is_explained_is_one_that_is_said(message: str) -> None:
    assert message in TEXT
    if message == "Resource not accessible by integration":  # GitHub's own
        return
    files = [*(ROOT / "harness").rglob("*.py"), *(ROOT / "scripts/ci").glob("*.sh")]
    words = " ".join(" ".join(file.read_text() for file in files).split())
    assert message in words.replace('" f"', "").replace('" "', "")
