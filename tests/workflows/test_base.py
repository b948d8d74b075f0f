"""Which commit a change is compared with."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from tests.workflows.conftest import ROOT, Job, commit, git


def base_of(checkout: Path, **environment: str) -> tuple[int, str]:
    """Status and what is printed: the commit, or a sentence."""
    done = subprocess.run(
        ["bash", "-c", f"set -euo pipefail; . {ROOT}/scripts/ci/base.sh; base_commit"],
        cwd=checkout,
        env={"PATH": os.environ["PATH"], "GIT_CONFIG_GLOBAL": os.devnull, **environment},
        capture_output=True,
        text=True,
    )
    return done.returncode, done.stdout.strip()


def test_where_the_branch_left_main_though_main_has_moved_on(job: Job) -> None:
    assert base_of(job.checkout, GITHUB_BASE_REF="main") == (0, git(job.checkout, "rev-parse", "HEAD^"))


def test_of_the_merge_that_github_checks_out_the_tip_of_main(job: Job) -> None:
    git(job.checkout, "fetch", "--quiet", "origin")
    tip = git(job.checkout, "rev-parse", "origin/main")
    git(job.checkout, "merge", "--quiet", "--no-edit", "origin/main")
    assert base_of(job.checkout, GITHUB_BASE_REF="main") == (0, tip)


def test_a_shallow_checkout_is_deepened(job: Job, tmp_path: Path) -> None:
    url = f"file://{job.checkout}"
    git(tmp_path, "clone", "--quiet", "--depth", "1", "--branch", "topic", url, "shallow")
    git(tmp_path / "shallow", "remote", "set-url", "origin", f"file://{tmp_path / 'repository/origin'}")
    git(tmp_path / "repository/origin", "fetch", "--quiet", str(job.checkout), "topic:topic")
    found = base_of(tmp_path / "shallow", GITHUB_BASE_REF="main")
    assert found == (0, git(job.checkout, "rev-parse", "topic^"))


def test_without_the_origin_what_is_here_is_taken(job: Job) -> None:
    git(job.checkout, "remote", "set-url", "origin", "/nowhere")
    assert base_of(job.checkout, GITHUB_BASE_REF="main") == (0, git(job.checkout, "rev-parse", "HEAD^"))


def test_a_branch_that_is_nowhere(job: Job) -> None:
    assert base_of(job.checkout, GITHUB_BASE_REF="gone") == (
        1,
        "branch gone is not here; give actions/checkout fetch-depth: 0",
    )


def test_unrelated_histories(job: Job) -> None:
    git(job.checkout, "switch", "--quiet", "--orphan", "island")
    commit(job.checkout, x_md="x\n")
    status, sentence = base_of(job.checkout, GITHUB_BASE_REF="main")
    assert (status, sentence) == (
        1,
        "HEAD and main have no commit in common here; give actions/checkout fetch-depth: 0",
    )


def test_outside_a_pull_request_the_commit_before(job: Job) -> None:
    assert base_of(job.checkout) == (0, git(job.checkout, "rev-parse", "HEAD^"))


def test_a_commit_branch_or_tag_that_is_given(job: Job) -> None:
    wanted = git(job.checkout, "rev-parse", "HEAD^")
    git(job.checkout, "tag", "v1", wanted)
    for name in (wanted, wanted[:12], "v1", "HEAD^"):
        assert base_of(job.checkout, HARNESS_BASE=name, GITHUB_BASE_REF="main") == (0, wanted)


def test_a_branch_of_the_origin_that_is_given(job: Job) -> None:
    wanted = git(job.checkout.parent / "origin", "rev-parse", "main")
    git(job.checkout.parent / "origin", "branch", "release", wanted)
    assert base_of(job.checkout, HARNESS_BASE="release") == (0, wanted)


def test_a_name_of_nothing(job: Job) -> None:
    for name in ("nothing", "--all", "--upload-pack=touch harmed", "$(touch harmed)"):
        assert base_of(job.checkout, HARNESS_BASE=name) == (1, f"{name} names no commit here")
    assert not (job.checkout / "harmed").exists()


def test_a_first_commit_has_none_before(job: Job) -> None:
    git(job.checkout, "switch", "--quiet", "--detach", "HEAD^")
    assert base_of(job.checkout)[1] == "HEAD has no parent here; give actions/checkout fetch-depth: 0"
