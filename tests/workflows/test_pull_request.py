"""A pull request from its code to its comment: measured with the real compiler, posted to a GitHub that runs here."""

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from harness.store.run_directory import load_run
from tests.builders import git
from tests.conftest import MadeOnce
from tests.github.conftest import TOKEN
from tests.github.fake_github import FakeGitHub, running_github, workflow_run
from tests.workflows.conftest import Job, job_in, job_of

TUNED = "product/tuned@cpu"
MARKER = "<!--harness comparison: small.toml-->"


@pytest.fixture(scope="session")
def measured(repository: Path, made_once: MadeOnce) -> Job:
    """A job that has measured the pull request; tests only read it."""

    def measure(folder: Path) -> None:
        # The budget is enough on the busiest machine; it stops when it knows.
        prepare = "grep -o 'target-cpu=[a-z]*' small.toml"
        job_in(repository, folder).measure(HARNESS_ROW_BUDGET="60", HARNESS_PREPARE=prepare)

    return job_of(made_once("measured", measure))


# --- The untrusted half ---


def test_what_it_changes_is_measured_and_nothing_else_and_the_checkout_stays_as_it_was(measured: Job) -> None:
    assert (measured.outputs["verdict"], measured.outputs["status"]) == ("regressed", "1")
    comparison = json.loads((measured.upload / "comparison.json").read_text())
    verdicts = {row["case"]: row["verdict"] for row in comparison["rows"] if row["metric"] == "latency"}
    assert verdicts == {TUNED: "regressed", "product/stock@cpu": "identical"}
    for side, revision in (("base", "HEAD^"), ("head", "HEAD")):
        assert comparison[side]["commit"] == git(measured.checkout, "rev-parse", revision)
        assert load_run(measured.results / "compared" / comparison[side]["run"]).header.purpose == "compare"
    assert any(TUNED in note and "differently" in note for note in comparison["notes"])
    assert measured.uploaded == {"comparison.json", "comment.md", "report.md"}
    assert f"`{TUNED}`" in measured.summary and "1 regression" in measured.summary
    assert git(measured.checkout, "worktree", "list").count("\n") == 0
    assert git(measured.checkout, "status", "--porcelain") == ""


# --- The trusted half ---


@pytest.fixture
def github() -> Iterator[FakeGitHub]:
    """The GitHub that has the pull request, number 7."""
    with running_github() as github:
        yield github


@pytest.fixture
def trusted(measured: Job, github: FakeGitHub, tmp_path: Path) -> Job:
    """A job on workflow_run, after the artifact was downloaded; its checkout has nothing of the pull request."""
    sha = git(measured.checkout, "rev-parse", "HEAD")
    github.pull(7, sha, owner="fork")
    (tmp_path / "event.json").write_text(json.dumps(workflow_run(owner="fork", head_sha=sha)))
    (tmp_path / "checkout").mkdir()
    shutil.copytree(measured.upload, tmp_path / "artifacts/harness-comparison")
    return Job(
        checkout=tmp_path / "checkout",
        temp=tmp_path / "runner",
        environment={
            "GITHUB_API_URL": github.url,
            "GITHUB_EVENT_PATH": str(tmp_path / "event.json"),
            "GITHUB_REPOSITORY": "o/r",
            "GITHUB_TOKEN": TOKEN,
            "HARNESS_ARTIFACTS": str(tmp_path / "artifacts"),
            "NO_PROXY": "127.0.0.1",
        },
    )


def post(trusted: Job, **environment: str) -> subprocess.CompletedProcess[str]:
    """The trusted half, which shows the token nowhere."""
    finished = trusted.run("post.sh", **environment)
    assert finished.returncode == 0, finished.stderr
    assert TOKEN not in finished.stdout + finished.stderr
    return finished


def test_the_comment_is_created_then_left_then_updated(trusted: Job, github: FakeGitHub) -> None:
    post(trusted, HARNESS_IMAGES_BRANCH="harness-pictures")
    (comment,) = github.comments
    body = comment["body"]
    assert body.startswith(f"{MARKER}\n")
    assert f"`{TUNED}`" in body
    assert "[Workflow run](https://github.com/o/r/actions/runs/5)" in body
    assert "(https://github.com/o/r/actions/runs/5#artifacts)" in body
    assert f"({github.url}/o/r/commit/{github.pulls[0]['head']['sha']})" in body
    urls = re.findall(rf"{re.escape(github.url)}/o/r/raw/([0-9a-f]{{40}})/(pr-7/[0-9a-f]{{12}}/forest-\w+\.png)", body)
    assert {commit for commit, _ in urls} == {github.branches["harness-pictures"]}
    assert {path for _, path in urls} == github.files("harness-pictures").keys()

    github.requests.clear()
    again = post(trusted, HARNESS_IMAGES_BRANCH="harness-pictures")
    assert set(github.methods) == {"GET"}
    assert "says this already; nothing is sent" in again.stderr

    comment["body"] = f"{MARKER}\n\nof an earlier push"
    post(trusted)
    (comment,) = github.comments
    assert f"`{TUNED}`" in comment["body"]


def test_nothing_but_figures_is_read_from_the_artifact(trusted: Job, github: FakeGitHub) -> None:
    """A pull request's code wrote all of it, so each name in it may be an attack."""
    folder = Path(trusted.environment["HARNESS_ARTIFACTS"]) / "harness-comparison"
    for name in ("comment.md", "report.md", "pr.txt", "number"):
        (folder / name).write_text("9\n![](https://evil.example/pixel.png)")
    document = json.loads((folder / "comparison.json").read_text())
    attack = "</details><script>alert(1)</script>![x](https://evil.example/x.png) @admin | `\n# Approved\n<!--harness"
    for row in document["rows"]:
        row["case"] = row["model"] = row["variant"] = row["reason"] = attack
    document["notes"] = [attack]
    document["head"]["label"] = document["base"]["label"] = attack
    (folder / "comparison.json").write_text(json.dumps(document))
    post(trusted)
    (body,) = github.bodies
    shown = MarkdownIt("commonmark", {"html": True}).enable("table").render(body)
    for harm in ("<script", "<h1>", 'src="https://evil', 'href="https://evil', "Approved</h"):
        assert harm not in shown
    assert not re.search(r">[^<]*(?<!<code>)@admin", re.sub(r"<(code|pre)[^>]*>.*?</\1>", "", shown, flags=re.DOTALL))
    assert shown.count("<details>") == shown.count("</details>")
    sent = [(request.method, request.path) for request in github.requests if request.method != "GET"]
    assert sent == [("POST", "/repos/o/r/issues/7/comments")]


def test_the_environment_of_the_job_is_in_no_comment(trusted: Job, github: FakeGitHub) -> None:
    file = Path(trusted.environment["HARNESS_ARTIFACTS"]) / "harness-comparison/comparison.json"
    file.unlink()
    file.symlink_to("/proc/self/environ")
    post(trusted)
    assert github.comments == []
