"""`harness results ...` as a user meets it: what is printed, where, and with which exit status."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from fsspec.implementations.memory import MemoryFileSystem
from syrupy.assertion import SnapshotAssertion

from harness.cli import run_command_line
from tests.store.made import a_comparison, an_unfinished_run, contents, runs

Printed = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Messages have short paths, and tables the same width everywhere."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")


def document(capsys: Printed) -> Any:
    """The JSON on stdout, where nothing else is."""
    return json.loads(capsys.readouterr().out)


def test_merging_says_what_became_of_each(capsys: Printed, snapshot: SnapshotAssertion) -> None:
    first, second, third = runs(Path("from"), 3)
    an_unfinished_run(Path("from"))
    a_comparison(Path("from"))
    (Path("from") / second / "report.md").unlink()
    (Path("from") / second / "report.md").symlink_to("/etc/passwd")
    shutil.copytree(Path("from") / third, Path("into") / third)
    assert run_command_line(["results", "merge", "from", "gone", "--into", "into"]) == 2
    assert capsys.readouterr().out == snapshot
    assert run_command_line(["results", "merge", "from", "--into", "other", "--format", "json"]) == 2
    told = document(capsys)
    assert told["schema_version"] == 1
    assert {outcome["name"]: outcome["fate"] for outcome in told["merged"]}[first] == "copied"


def test_verifying_names_what_is_wrong_and_ends_with_2(capsys: Printed, snapshot: SnapshotAssertion) -> None:
    first, second, third = runs(Path("results"), 3)
    an_unfinished_run(Path("results"))
    a_comparison(Path("results"))
    assert run_command_line(["results", "verify"]) == 0
    capsys.readouterr()
    rounds = Path("results") / first / "rounds.jsonl"
    rounds.write_text(rounds.read_text().replace('"round":1', '"round":7'))
    (Path("results") / second / "builds.jsonl").write_text("{}\n")
    header = Path("results") / third / "run.json"
    header.write_text(header.read_text().replace('"schema_version": 1', '"schema_version": 2'))
    assert run_command_line(["results", "verify"]) == 2
    assert capsys.readouterr().out == snapshot
    assert run_command_line(["results", "verify", "--format", "json"]) == 2
    states = {one["state"] for one in document(capsys)["verified"]}
    assert states == {"ok", "changed", "damaged", "future schema", "unfinished"}


def test_comparisons_are_listed_by_what_they_compare_and_with_the_number_of_other_outputs(capsys: Printed) -> None:
    comparison = a_comparison(Path("results"))
    assert run_command_line(["results", "list"]) == 0
    listed = capsys.readouterr().out
    assert f"{comparison.name}  IREE 3.13.0 against IREE 3.12.0  " in listed
    assert "outputs differ" not in listed
    a_comparison(Path("results"), day=1, verdict="outputs differ")
    assert run_command_line(["results", "list"]) == 0
    assert "improved  outputs differ\n" in capsys.readouterr().out


def test_every_command_works_on_a_url(capsys: Printed) -> None:
    url = "memory://bucket/all"
    names = runs(Path("from"), 2)
    for words in (
        ["tag", "--results", "from", names[0], "quiet"],
        ["merge", "from", "--into", url],
        ["tag", "--results", url, names[1], "loud"],
        ["verify", url],
        ["list", url],
        ["merge", url, "--into", "back"],
    ):
        assert run_command_line(["results", *words]) == 0
    there = {path.removeprefix("/bucket/all/") for path in MemoryFileSystem().find("/bucket/all")}
    assert {f"{name}/rounds.jsonl" for name in names} < there
    assert not [path for path in there if "tables" in path]
    back = contents(Path("back"))
    assert back.items() >= contents(Path("from")).items()
    assert len([name for name in back if name.startswith("marks/")]) == 2
    assert capsys.readouterr().err.count("harness:") == 0
