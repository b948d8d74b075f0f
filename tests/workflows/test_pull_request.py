"""A pull request from its code to its comment: measured with the real compiler, posted to a GitHub that runs here."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.report import render
from harness.store.run_directory import load_run
from tests.builders import git
from tests.github.conftest import TOKEN
from tests.github.fake_github import SHA, FakeGitHub, running_github, workflow_run
from tests.report.builders import make_comparison, make_timed
from tests.workflows.conftest import Job

SLOW = "product/slow@cpu"


def test_what_it_changes_is_measured_and_nothing_else_and_the_checkout_stays_as_it_was(job: Job) -> None:
    # The budget is enough on the busiest machine; it stops when it knows.
    job.measure(HARNESS_ROW_BUDGET="60", HARNESS_PREPARE="grep -o 'target-cpu=[a-z]*' small.toml")
    assert (job.outputs["verdict"], job.outputs["status"]) == ("regressed", "1")
    comparison = json.loads((job.upload / "comparison.json").read_text())
    verdicts = {row["case"]: row["verdict"] for row in comparison["rows"] if row["metric"] == "latency"}
    identical = dict.fromkeys(("product/stock@cpu", "product/inert@cpu"), "identical")
    assert verdicts == {SLOW: "regressed", **identical}
    for side, revision in (("base", "HEAD^"), ("head", "HEAD")):
        assert comparison[side]["commit"] == git(job.checkout, "rev-parse", revision)
        assert load_run(job.results / "compared" / comparison[side]["run"]).header.purpose == "compare"
    assert any(SLOW in note and "differently" in note for note in comparison["notes"])
    assert job.uploaded == {"comparison.json", "comment.md", "report.md"}
    assert f"`{SLOW}`" in job.summary and "1 regression" in job.summary
    assert git(job.checkout, "worktree", "list").count("\n") == 0
    assert git(job.checkout, "status", "--porcelain") == ""


# --- The trusted half ---


@pytest.fixture
def github() -> Iterator[FakeGitHub]:
    """The GitHub that has the pull request, number 7."""
    with running_github() as github:
        github.pull(7, SHA, owner="fork")
        yield github


@pytest.fixture
def artifact(tmp_path: Path) -> Path:
    """What the untrusted half uploaded."""
    folder = tmp_path / "artifacts/harness-comparison"
    folder.mkdir(parents=True)
    comparison = make_comparison([make_timed(SLOW, 2.0, 1.1, "regressed")])
    (folder / "comparison.json").write_text(render(comparison, "json"))
    return folder


@pytest.fixture
def trusted(artifact: Path, github: FakeGitHub, tmp_path: Path) -> Job:
    """A job on workflow_run, after the artifact was downloaded; its checkout has nothing of the pull request."""
    (tmp_path / "event.json").write_text(json.dumps(workflow_run(owner="fork")))
    (tmp_path / "checkout").mkdir()
    environment = {
        "GITHUB_API_URL": github.url,
        "GITHUB_EVENT_PATH": str(tmp_path / "event.json"),
        "GITHUB_REPOSITORY": "o/r",
        "GITHUB_TOKEN": TOKEN,
        "HARNESS_ARTIFACTS": str(artifact.parent),
        "NO_PROXY": "127.0.0.1",
    }
    return Job(checkout=tmp_path / "checkout", temp=tmp_path / "runner", environment=environment)


def post(trusted: Job, **environment: str) -> None:
    """The trusted half, which shows the token nowhere."""
    finished = trusted.run("post.sh", **environment)
    assert finished.returncode == 0, finished.stderr
    assert TOKEN not in finished.stdout + finished.stderr


def test_the_comment_leads_to_the_run_its_artifacts_its_commit_and_its_pictures(
    trusted: Job, github: FakeGitHub
) -> None:
    post(trusted, HARNESS_IMAGES_BRANCH="harness-pictures")
    (body,) = github.bodies
    assert f"`{SLOW}`" in body
    assert "[Workflow run](https://github.com/o/r/actions/runs/5)" in body
    assert "(https://github.com/o/r/actions/runs/5#artifacts)" in body
    assert f"({github.url}/o/r/commit/{SHA})" in body
    assert f"{github.url}/o/r/raw/{github.branches['harness-pictures']}/pr-7/" in body


def test_nothing_but_figures_is_read_from_the_artifact(trusted: Job, artifact: Path, github: FakeGitHub) -> None:
    """A pull request's code wrote all of it; tests of report and of commands show what is made of figures."""
    for name in ("comment.md", "report.md", "pr.txt", "number"):
        (artifact / name).write_text("9\n![](https://evil.example/pixel.png)")
    post(trusted)
    (body,) = github.bodies
    assert "evil.example" not in body
    sent = [(request.method, request.path) for request in github.requests if request.method != "GET"]
    assert sent == [("POST", "/repos/o/r/issues/7/comments")]


def test_the_environment_of_the_job_is_in_no_comment(trusted: Job, artifact: Path, github: FakeGitHub) -> None:
    file = artifact / "comparison.json"
    file.unlink()
    file.symlink_to("/proc/self/environ")
    post(trusted)
    assert github.comments == []
