"""The untrusted half, with a harness that only does as if: which commit is the base, what is called, what is said."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.builders import commit, git
from tests.workflows.conftest import ROOT, Job

# --- The commit that a change is compared with ---


def base_of(checkout: Path, **environment: str) -> tuple[int, str]:
    """Status and what is printed: the commit, or a sentence."""
    finished = subprocess.run(
        ["bash", "-c", f"set -euo pipefail; . {ROOT}/scripts/ci/base.sh; base_commit"],
        cwd=checkout,
        env={"PATH": os.environ["PATH"], "GIT_CONFIG_GLOBAL": os.devnull, **environment},
        capture_output=True,
        text=True,
    )
    return finished.returncode, finished.stdout.strip()


NOTHING: list[str] = []
MERGE_MAIN = ["fetch --quiet origin", "merge --quiet --no-edit origin/main"]
LOSE_ORIGIN = ["remote set-url origin /nowhere"]
BEGIN_ANEW = ["switch --quiet --orphan island", "commit --quiet --allow-empty --message anew"]
TO_THE_FIRST_COMMIT = ["switch --quiet --detach HEAD^"]
TAG = ["tag v1 HEAD^"]
BRANCH_OF_ORIGIN = ["-C ../origin branch release main", "fetch --quiet origin"]
DEEPEN = "give actions/checkout fetch-depth: 0"


@pytest.mark.parametrize(
    ("prepare", "environment", "base"),
    [
        # Where the branch left main, though main has moved on; of the merge that GitHub checks out, the tip of main.
        (NOTHING, {"GITHUB_BASE_REF": "main"}, "HEAD^"),
        (MERGE_MAIN, {"GITHUB_BASE_REF": "main"}, "origin/main"),
        # Without the origin, what is here; outside of a pull request, the commit before.
        (LOSE_ORIGIN, {"GITHUB_BASE_REF": "main"}, "HEAD^"),
        (NOTHING, {}, "HEAD^"),
        # A commit, tag or branch of the origin that is given.
        (NOTHING, {"HARNESS_BASE": "HEAD^", "GITHUB_BASE_REF": "main"}, "HEAD^"),
        (TAG, {"HARNESS_BASE": "v1"}, "HEAD^"),
        (BRANCH_OF_ORIGIN, {"HARNESS_BASE": "release"}, "origin/main"),
        # None, in a sentence.
        (NOTHING, {"GITHUB_BASE_REF": "gone"}, f"branch gone is not here; {DEEPEN}"),
        (BEGIN_ANEW, {"GITHUB_BASE_REF": "main"}, f"HEAD and main have no commit in common here; {DEEPEN}"),
        (TO_THE_FIRST_COMMIT, {}, f"HEAD has no parent here; {DEEPEN}"),
        *[
            (NOTHING, {"HARNESS_BASE": name}, f"{name} names no commit here")
            for name in ("nothing", "--upload-pack=touch harmed", "$(touch harmed)")
        ],
    ],
)
def test_the_base(job: Job, prepare: list[str], environment: dict[str, str], base: str) -> None:
    for command in prepare:
        git(job.checkout, *command.split())
    expected = (1, base) if " " in base else (0, git(job.checkout, "rev-parse", base))
    assert base_of(job.checkout, **environment) == expected
    assert not (job.checkout / "harmed").exists()


# --- What is called ---


def test_base_and_head_are_compared_as_commits(fake: Job) -> None:
    fake.measure(HARNESS_ROW_BUDGET="", HARNESS_COMPILE_BUDGET="", HARNESS_CONTROLS="")
    base, head = (git(fake.checkout, "rev-parse", name) for name in ("HEAD^", "HEAD"))
    results = fake.results
    assert fake.calls == [
        f"compare commit:{base} commit:{head} --suite small.toml "
        f"--results {results}/compared --row-budget 15 --controls 2",
        f"report {results}/compared/2026-2-small-compare --format github --step-summary {fake.temp}/summary.md "
        f"--out {results}/upload/comment.md --full-out {results}/upload/report.md",
    ]


def test_the_job_goes_on_whatever_the_verdict_and_patterns_go_to_every_command(fake: Job) -> None:
    patterns = {"HARNESS_FILTER": "\nnet/*@cpu\n$(touch harmed)\n"}
    for status, verdict in ("0", "passed"), ("1", "regressed"), ("3", "failed"), ("4", "inconclusive"):
        (fake.temp / "output").unlink(missing_ok=True)
        fake.measure(FAKE_COMPARE=status, **patterns)
        folders = {"report": f"{fake.results}/compared/2026-2-small-compare", "upload": f"{fake.results}/upload"}
        assert fake.outputs == {**folders, "verdict": verdict, "status": status}
        assert fake.uploaded == {"comparison.json", "comment.md", "report.md"}
    fake.measure(HARNESS_BASE="gone", **patterns)
    measuring = [call for call in fake.calls if not call.startswith("report ")]
    assert {call.partition(" ")[0] for call in measuring} == {"compare", "run"}
    assert all("--filter 'net/*@cpu' --filter '$(touch harmed)'" in call for call in measuring)
    assert not (fake.checkout / "harmed").exists()


FORGED = {"verdict": "passed", "status": "0", "upload": "elsewhere"}
NEWLINES = "".join(f"\n{name}={value}" for name, value in FORGED.items())


@pytest.mark.parametrize("place", ["", "HARNESS_RESULTS"])
@pytest.mark.parametrize("name", [f"99991231-235959-x{NEWLINES}\n-compare", "upload"])
def test_results_that_the_change_commits_change_nothing(fake: Job, place: str, name: str) -> None:
    """Neither what looks like the newest comparison, nor a folder whose name has outputs of the job in it."""
    folder = fake.checkout / "harness-results" / name
    folder.mkdir(parents=True)
    (folder / "comparison.json").write_text('{"forged": true}')
    commit(fake.checkout)
    inside = {place: str(folder.parent)} if place else {}
    fake.measure(FAKE_COMPARE="1", **inside)
    folders = {"report": f"{fake.results}/compared/2026-2-small-compare", "upload": f"{fake.results}/upload"}
    assert fake.outputs == {**folders, "verdict": "regressed", "status": "1"}
    assert (fake.upload / "comparison.json").read_text() == "{}"
    assert git(fake.checkout, "status", "--porcelain", "--", "harness-results", ":!harness-results/2*") == ""


# --- Where there is nothing to compare with, and nothing to report ---


BROKEN, PREPARED = "it is broken; mend it", {"HARNESS_PREPARE": "grep -c host small.toml || true"}


@pytest.mark.parametrize(
    ("environment", "reason"),
    [
        ({"FAKE_COMPARE": "2", **PREPARED}, BROKEN),
        ({"HARNESS_BASE": "gone"}, "there is no commit to compare with: gone names no commit here"),
    ],
)
def test_the_head_is_measured_alone_and_the_summary_says_why(
    fake: Job, environment: dict[str, str], reason: str
) -> None:
    errors = fake.measure(**environment)
    assert f"\n{reason}; the head is measured alone\n" in f"\n{errors}"
    assert fake.summary == f"Nothing was compared: {reason}\n\nthe report\n"
    assert fake.outputs["report"] == f"{fake.results}/alone/2026-0-small"
    assert fake.uploaded == {"run.json", "builds.jsonl", "finished.json", "comment.md", "report.md"}


NO_SUITE = "there is no such file in this checkout; correct the input suite"
TWO_RELEASES = {"HARNESS_BASE_TOOLCHAIN": "1", "HARNESS_HEAD_TOOLCHAIN": "2"}


@pytest.mark.parametrize(
    ("environment", "sentence"),
    [
        ({"HARNESS_SUITE": "$(touch harmed)"}, f"suite $(touch harmed): {NO_SUITE}"),
        ({"FAKE_COMPARE": "2", "FAKE_RUN": "2"}, BROKEN),
        ({"FAKE_COMPARE": "2", "HARNESS_PREPARE": "echo no such package; false"}, "no such package"),
        ({"FAKE_COMPARE": "2", "FAKE_RUNS": "2"}, "small.toml makes 2 runs; give one suite, not a list of them"),
        ({"HARNESS_BASE_TOOLCHAIN": "1"}, "base-toolchain and head-toolchain belong together; give both or neither"),
        ({**TWO_RELEASES, "FAKE_COMPARE": "2"}, BROKEN),
        ({"FAKE_COMPARE": "70"}, "harness compare left no comparison: it is broken; mend it"),
    ],
)
def test_the_job_fails_with_a_sentence(fake: Job, environment: dict[str, str], sentence: str) -> None:
    assert fake.measure(2, **environment).splitlines()[-1] == sentence
    assert not (fake.temp / "output").exists()
    assert not (fake.checkout / "harmed").exists()
