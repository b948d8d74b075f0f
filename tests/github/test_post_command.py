"""`harness github post` and `harness github issue`, from the command line to what GitHub has then."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from harness.cli import run_command_line
from harness.github.values import ACTIONS_LOGIN
from harness.report.comparison import render_comparison
from tests.github.conftest import TOKEN
from tests.github.fake_github import FakeGitHub
from tests.report.compared import make_comparison, make_timed

MARKER = "<!--harness comparison: suites/esrgan.toml-->"


@pytest.fixture(autouse=True)
def _same_handlers_afterwards() -> Iterator[None]:
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = [signal.getsignal(number) for number in numbers]
    yield
    for number, handler in zip(numbers, before, strict=True):
        signal.signal(number, handler)


@pytest.fixture
def report(tmp_path: Path, github: FakeGitHub, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A comparison, in an environment with a token."""
    monkeypatch.setenv("GITHUB_TOKEN", TOKEN)
    monkeypatch.delenv("GITHUB_REPOSITORY", raising=False)
    monkeypatch.setenv("GITHUB_API_URL", github.url)
    monkeypatch.chdir(tmp_path)
    text = render_comparison(make_comparison([make_timed("net/tuned@cpu", 2.0, 1.1, "regressed")]), "json")
    (tmp_path / "comparison.json").write_text(text)
    return tmp_path / "comparison.json"


def post(report: Path, *options: str) -> int:
    return run_command_line(["github", "post", str(report), "--repo", "o/r", "--pr", "7", "--patience", "0", *options])


def body(github: FakeGitHub) -> str:
    (comment,) = github.comments
    text: str = comment["body"]
    return text


def test_it_says_what_it_did(report: Path, github: FakeGitHub, capsys: pytest.CaptureFixture[str]) -> None:
    url = "https://github.example/o/r/7#1001"
    assert post(report) == 0
    assert capsys.readouterr() == ("", f"created {url}\n")
    assert post(report, "--dashboard-url", "https://o.github.io/r/") == 0
    assert capsys.readouterr() == ("", f"updated {url}\n")
    assert post(report, "--dashboard-url", "https://o.github.io/r/") == 0
    assert capsys.readouterr() == ("", f"{url} says this already; nothing is sent\n")
    assert "[Dashboard](https://o.github.io/r)" in body(github)


def test_published_pictures_are_shown(report: Path, github: FakeGitHub) -> None:
    assert post(report, "--images-url", "https://o.github.io/r/pr-7/") == 0
    assert 'src="https://o.github.io/r/pr-7/forest-light.png"' in body(github)
    assert 'srcset="https://o.github.io/r/pr-7/forest-dark.png"' in body(github)
    assert 'alt="Ratios with their intervals: ' in body(github)


def test_pictures_that_cannot_be_kept_are_left_out(
    report: Path, github: FakeGitHub, capsys: pytest.CaptureFixture[str]
) -> None:
    github.fail("POST", "blobs", status=403, body='{"message": "Resource not accessible by integration"}')
    assert post(report, "--images-branch", "harness-pictures") == 0
    assert "<img" not in body(github)
    said = capsys.readouterr().err
    assert "`permissions: contents: write`" in said
    assert "; the comment goes without pictures\n" in said


def test_a_comment_that_github_finds_too_long_is_posted_in_short(
    report: Path, github: FakeGitHub, capsys: pytest.CaptureFixture[str]
) -> None:
    too_long = '{"message": "Validation Failed", "errors": [{"message": "body is too long (maximum is 65536)"}]}'
    github.fail("POST", "comments", status=422, body=too_long)
    assert post(report) == 0
    assert body(github) == f"{MARKER}\n\n**1 regression.**\n"
    assert capsys.readouterr().err.startswith("the comment is too long for GitHub; a short form is posted\n")


def test_the_token_of_an_app_is_told_by_its_login(report: Path, github: FakeGitHub) -> None:
    github.comment(f"{MARKER}\n\nold", login="iree-bot[bot]")
    assert post(report, "--author", "iree-bot[bot]") == 0
    assert "1 regression" in body(github)
    assert "GET /user" not in github.sent("GET")


def test_the_commits_of_base_and_head_are_linked(report: Path, github: FakeGitHub, tmp_path: Path) -> None:
    base, head = "9b05f1760b" + "0" * 30, "0a1b2c3d4e" + "0" * 30
    github.pull(7, head, base=base)
    pull = {"number": 7, "head": {"sha": head, "ref": "topic", "repo": {"owner": {"login": "o"}}}}
    payload = {"repository": {"full_name": "o/r"}, "pull_request": pull}
    (tmp_path / "event.json").write_text(json.dumps(payload))
    made = make_comparison([make_timed("net/tuned@cpu", 2.0, 1.1, "regressed")])
    label = f"results/base-{base[:10]}/20261121-080000-net"
    report.write_text(render_comparison(replace(made, base=replace(made.base, label=label)), "json"))

    assert run_command_line(["github", "post", str(report), "--repo", "o/r", "--event", "event.json"]) == 0

    assert f"/o/r/commit/{head})" in body(github)
    assert f"/o/r/commit/{base})" in body(github)


# --- What goes wrong ---


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        ({"status": 401}, "the token is wrong or has expired"),
        ({"status": 403}, "`permissions: pull-requests: write`"),
        ({"status": 404}, "there is no such thing, or the token may not see it"),
        ({"status": 422}, "as it was sent"),
        ({"status": 500}, "post again later, or give a longer --patience"),
        ({"kind": "reset"}, "could not be reached, or ended the connection"),
        ({"status": 429, "headers": {"Retry-After": "7"}}, "post again then, or give --patience 7"),
        ({"status": 200, "body": "{}"}, "shows no comment when asked to write to #7 of o/r; look whether there is one"),
        ({"status": 204, "body": ""}, "shows no comment when asked to write to #7 of o/r"),
    ],
)
def test_the_comment_is_kept(
    report: Path, github: FakeGitHub, capsys: pytest.CaptureFixture[str], fault: dict[str, str], says: str
) -> None:
    github.fail("POST", "comments", **fault)  # type: ignore[arg-type]  # a fault's fields, by name
    assert post(report) == 2
    kept, sentence = capsys.readouterr().err.splitlines()
    assert kept == "The comment is kept in harness-comment.md"
    assert sentence.startswith("harness: 127.0.0.1:")
    assert says in sentence
    assert Path("harness-comment.md").read_text().startswith(MARKER)
    assert github.comments == []


def test_where_no_file_can_be_written_the_comment_is_printed(
    report: Path, github: FakeGitHub, capsys: pytest.CaptureFixture[str]
) -> None:
    github.fail("POST", "comments", status=403)
    assert post(report, "--keep", "no/such/folder/comment.md") == 2
    assert capsys.readouterr().out.startswith(MARKER)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--event", "event.json"], "has to be said once: with --pr, or with --event"),
        (["--images-branch", "a", "--images-url", "https://x"], "leave one of them out"),
        (["--images-branch", "a b"], "is no name of a branch"),
        (["--images-url", "javascript:alert(1)"], "is no address of the web"),
        (["--run-url", "https://"], "--run-url 'https://': is no address of the web"),
        (["--dashboard-url", "file:///etc"], "is no address of the web"),
        (["--api-url", "http://api.github.com"], "is not https"),
    ],
)
def test_options_that_make_no_sense(
    report: Path, github: FakeGitHub, capsys: pytest.CaptureFixture[str], options: list[str], says: str
) -> None:
    assert post(report, *options) == 2
    said = capsys.readouterr().err
    assert says in said
    assert len(said.splitlines()) == 1
    assert github.requests == []


def test_a_repository_has_to_be_said(report: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line(["github", "post", str(report), "--pr", "7"]) == 2
    assert capsys.readouterr().err == ("harness: which repository is meant has to be said: give --repo owner/name\n")


def test_without_a_token(
    report: Path, github: FakeGitHub, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("GITHUB_TOKEN")
    assert post(report) == 2
    assert "GITHUB_TOKEN is not set; set it to a token that may comment, or look with --dry-run" in (
        capsys.readouterr().err
    )
    assert post(report, "--dry-run") == 0
    printed = capsys.readouterr()
    assert printed.out.startswith(MARKER)
    assert printed.err == "would write to #7 of o/r\n"
    assert github.requests == []


# --- Issues ---


def issue(*options: str) -> int:
    given = ["--title", "Compiler changes", "--repo", "o/r", "--patience", "0", *options]
    return run_command_line(["github", "issue", "changes.md", *given])


@pytest.mark.usefixtures("report")
def test_one_issue_of_a_title_is_kept_up_to_date(github: FakeGitHub, capsys: pytest.CaptureFixture[str]) -> None:
    for text in ("| a |\n", "| b |\n"):
        Path("changes.md").write_text(text)
        assert issue() == 0
    (found,) = github.issues
    assert found["body"] == "<!--harness issue: Compiler changes-->\n\n| b |\n"
    assert found["user"]["login"] == ACTIONS_LOGIN
    assert capsys.readouterr().err.splitlines()[-1].startswith("updated https://")


@pytest.mark.usefixtures("report")
def test_a_report_that_is_too_long_for_an_issue_ends_with_a_whole_line(github: FakeGitHub) -> None:
    Path("changes.md").write_text("| a row of a table |\n" * 10_000)
    assert issue() == 0
    lines = github.issues[0]["body"].splitlines()
    assert lines[-3:] == ["| a row of a table |", "", "_The rest does not fit here._"]
    assert len(github.issues[0]["body"]) <= 65_536


@pytest.mark.usefixtures("report")
def test_a_report_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert issue() == 2
    assert capsys.readouterr().err.startswith("harness: changes.md: cannot be read")
