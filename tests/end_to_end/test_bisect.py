"""Bisects with the real compiler and runtime: a repository's commits, as docs/bisect.md has them, and flags."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.end_to_end.command import Harness

DOCUMENT = Path(__file__).parents[2] / "docs" / "bisect.md"


def test_git_bisect_run_finds_the_commit_that_the_document_says(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    (shown,) = re.findall(r"^```sh\n(.*?)^```", DOCUMENT.read_text(), re.DOTALL | re.MULTILINE)
    for who in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{who}_NAME", "Ada")
        monkeypatch.setenv(f"GIT_{who}_EMAIL", "ada@example.org")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    ended = harness.shell(shown)
    assert ended.returncode == 0, ended.stderr + ended.stdout
    assert ended.stdout.splitlines()[-1] == "The first bad commit: Convolutions as matmuls"


FLAGGED = """
[variants.several]
flags = [
    "--iree-llvmcpu-loop-unrolling",
    "--iree-global-opt-use-im2col-for-convs",
    "--iree-llvmcpu-loop-interleaving",
]
"""


def test_the_flag_that_makes_the_difference_is_found_by_counting(suite_with: Callable[..., Harness]) -> None:
    harness = suite_with(("[devices.cpu]", f"{FLAGGED}\n[devices.cpu]"))
    what = ("--case", "tiny/several@cpu", "--over", "flags", "--metric", "dispatches")
    ended = harness("bisect", "small.toml", *what, "--format", "json")
    assert ended.returncode == 0, ended.stderr
    assert "iree-benchmark-module" not in ended.stderr, "counts need no clock"
    found = json.loads(ended.stdout)
    assert [cause["parts"] for cause in found["causes"]] == [[2]]
    assert found["parts"][1] == "--iree-global-opt-use-im2col-for-convs"
    assert found["causes"][0]["size"]["head_value"] > found["causes"][0]["size"]["base_value"]
    assert found["error"] == 0
    printed = harness("report", "latest", "--format", "json")
    assert (printed.returncode, json.loads(printed.stdout)) == (0, found)
