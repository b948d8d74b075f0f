"""`harness github post` and `harness github issue`: what may be posted, and what GitHub has then."""

import base64
import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from harness.cli import run_command_line
from harness.errors import RunError
from harness.github.posting import publish, read_figures
from harness.github_api import Client
from harness.report import render
from harness.report.github import render_comment
from tests.github.conftest import TOKEN
from tests.github.fake_github import FakeGitHub
from tests.report.builders import make_comparison, make_row, make_timed

PUBLISHED = Path(__file__).parents[2] / "results/published/esrgan"
BRANCH = "harness-pictures"
MARKER = "<!--harness comparison: suites/esrgan.toml-->"
COMPARISON = make_comparison(
    [make_timed("net/tuned@cpu", 2.0, 1.1, "regressed"), make_row("net/stock@cpu", verdict="identical")]
)
LONG = render(replace(COMPARISON, rows=(replace(COMPARISON.rows[0], reason="|" * 200_000),)), "json")


@pytest.mark.parametrize(
    ("file", "content", "sentence"),
    [
        ("comparison.json", "\xff\xfe", r"is (not JSON|damaged)"),
        ("comparison.json", "[" * 100_000, r"is (not JSON|damaged)"),
        ("comparison.json", LONG, r"has a text of 200,000 characters, which no harness writes"),
        ("run.json", "{", r"run\.json"),
        ("other.json", "{}", r"holds neither comparison\.json nor run\.json; give what"),
    ],
    ids=["no text", "too deep", "too long", "a damaged run", "something else"],
)
def test_figures_that_are_none(tmp_path: Path, file: str, content: str, sentence: str) -> None:
    (tmp_path / file).write_text(content)
    with pytest.raises(RunError, match=sentence) as caught:
        read_figures(tmp_path)
    assert "\n" not in str(caught.value)


def test_a_run_without_a_base_is_read_too_but_nothing_that_is_too_large_or_a_link(tmp_path: Path) -> None:
    assert render_comment(read_figures(PUBLISHED)).startswith("<!--harness report: esrgan-->\n")
    (tmp_path / "comparison.json").write_text(render(COMPARISON, "json"))
    run = tmp_path / "run"
    shutil.copytree(PUBLISHED, run)
    for path, size, sentence in (
        (tmp_path / "comparison.json", 5 * 2**30, "is larger than 128 MiB"),
        (run / "rounds.jsonl", 2**31, "is larger than 1024 MiB; post a run of fewer cases"),
    ):
        with path.open("ab") as file:
            os.truncate(file.fileno(), size)
        with pytest.raises(RunError, match=sentence):
            read_figures(path.parent)
        path.rename(path.with_name("other"))
        path.symlink_to("/etc/passwd")
        with pytest.raises(RunError, match=r"(is a link|holds links); give "):
            read_figures(path.parent)


# --- Posting ---


@pytest.fixture(autouse=True)
def report(github: FakeGitHub, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A comparison, and an environment with a token."""
    monkeypatch.setenv("GITHUB_TOKEN", TOKEN)
    monkeypatch.delenv("GITHUB_REPOSITORY", raising=False)
    monkeypatch.setenv("GITHUB_API_URL", github.url)
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    (work / "comparison.json").write_text(render(COMPARISON, "json"))
    return work / "comparison.json"


def post(report: Path, *options: str) -> int:
    return run_command_line(["github", "post", str(report), "--repo", "o/r", "--pr", "7", "--patience", "0", *options])


def test_it_says_what_it_did_and_pictures_on_a_branch_are_published_once_or_left_out(
    report: Path, github: FakeGitHub, capsys: pytest.CaptureFixture[str]
) -> None:
    url = "https://github.example/o/r/7#1001"
    assert post(report) == 0
    assert capsys.readouterr() == ("", f"created {url}\n")
    github.fail("POST", "blobs", status=403, body='{"message": "Resource not accessible by integration"}')
    assert post(report, "--images-branch", BRANCH, "--dashboard-url", "https://o.github.io/r/") == 0
    assert "<img" not in github.bodies[0] and "[Dashboard](https://o.github.io/r)" in github.bodies[0]
    errors = capsys.readouterr().err
    assert "`permissions: contents: write`" in errors and "; the comment goes without pictures\n" in errors
    assert errors.endswith(f"updated {url}\n")
    assert post(report, "--images-branch", BRANCH) == 0
    light, dark = sorted(github.files(BRANCH), reverse=True)
    assert light.endswith("/forest-light.png") and dark.endswith("/forest-dark.png")
    assert f"/o/r/raw/{github.branches[BRANCH]}/{light}" in github.bodies[0]
    github.requests.clear()
    assert post(report.parent, "--images-branch", BRANCH) == 0  # its folder, or its file
    assert set(github.methods) == {"GET"}


def test_a_comment_that_cannot_be_posted_is_kept(
    report: Path, github: FakeGitHub, capsys: pytest.CaptureFixture[str]
) -> None:
    github.fail("POST", "comments", status=403, times=2)
    assert post(report) == 2
    kept, error = capsys.readouterr().err.splitlines()
    assert kept == "The comment is kept in harness-comment.md"
    assert error.startswith("harness: 127.0.0.1:") and "`permissions: pull-requests: write`" in error
    assert Path("harness-comment.md").read_text().startswith(MARKER)
    assert github.comments == []
    # Where no file can be written, it is printed.
    assert post(report, "--keep", "no/such/folder/comment.md") == 2
    assert capsys.readouterr().out.startswith(MARKER)


WHICH = "which pull request is meant has to be said once: with --pr, or with --event"
ONE = ("--pr", "7")


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ((*ONE, "--event", "event.json"), WHICH),
        ((), WHICH),
        ((*ONE, "--images-branch", "a", "--images-url", "https://x"), "leave one of them out"),
        ((*ONE, "--images-branch", "a b"), "is no name of a branch"),
        ((*ONE, "--images-url", "javascript:alert(1)"), "--images-url 'javascript:alert(1)': is no address of "),
    ],
)
def test_options_that_make_no_sense(
    report: Path, github: FakeGitHub, capsys: pytest.CaptureFixture[str], options: tuple[str, ...], sentence: str
) -> None:
    assert run_command_line(["github", "post", str(report), "--repo", "o/r", *options]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert sentence in line
    assert github.requests == []


def test_without_a_token_there_is_a_rehearsal(
    report: Path, github: FakeGitHub, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("GITHUB_TOKEN")
    assert post(report) == 2
    sentence = "GITHUB_TOKEN is not set; set it to a token that may comment, or look with --dry-run"
    assert sentence in capsys.readouterr().err
    assert post(report, "--dry-run", "--images-branch", BRANCH) == 0
    assert capsys.readouterr().out.startswith(MARKER)
    assert github.requests == []


def test_one_issue_of_a_title_is_kept_up_to_date_and_ends_with_a_whole_line(
    github: FakeGitHub, capsys: pytest.CaptureFixture[str]
) -> None:
    for text in ("| a row of a table |\n" * 10_000, "| b |\n"):
        Path("changes.md").write_text(text)
        assert run_command_line(["github", "issue", "changes.md", "--title", "Compiler changes", "--repo", "o/r"]) == 0
        (stored,) = github.issues
        assert len(stored["body"]) <= 65_536
        if len(text) > 100:
            assert stored["body"].splitlines()[-3:] == ["| a row of a table |", "", "_The rest does not fit here._"]
    assert stored["body"] == "<!--harness issue: Compiler changes-->\n\n| b |\n"
    assert capsys.readouterr().err.splitlines()[-1].startswith("updated https://")
    assert run_command_line(["github", "issue", "changes.md", "--title", " ", "--repo", "o/r"]) == 2
    assert "--title: an issue has a title; say what it is about" in capsys.readouterr().err


# --- Pictures on a branch of their own, linked by commit ---


FOLDER = "pr-7/0123456789ab"
FILES = {"forest-light.png": b"\x89PNG light", "forest-dark.png": b"\x89PNG dark"}
PATHS = {f"{FOLDER}/{name}" for name in FILES}


@pytest.mark.usefixtures("waits")
def test_a_branch_without_parents_is_made_and_later_pictures_join_it_though_another_job_is_faster(
    github: FakeGitHub,
) -> None:
    said: list[str] = []

    def say(sentence: str) -> None:
        """Another job's pictures come meanwhile."""
        said.append(sentence)
        github.commit_to(BRANCH, f"pr-9/{len(said)}/forest-light.png")

    client = Client(github.url, TOKEN, patience_s=300, say=say)
    first = publish(client, "o/r", BRANCH, FOLDER, FILES)
    assert github.branches == {BRANCH: first}
    assert github.objects[first]["parents"] == []
    files = github.files(BRANCH)
    assert files.keys() == PATHS
    light = github.objects[files[f"{FOLDER}/forest-light.png"]]
    assert base64.b64decode(light["content"]) == FILES["forest-light.png"]
    github.fail("PATCH", "refs", status=422)
    publish(client, "o/r", BRANCH, "pr-8/ba9876543210", FILES)
    assert said[0] == f"branch {BRANCH} has moved on meanwhile; adding the pictures again"
    assert {Path(path).parts[0] for path in github.files(BRANCH)} == {"pr-7", "pr-8", "pr-9"}
