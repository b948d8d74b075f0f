"""`harness results ...` as a user meets it: what is printed, where, and with which exit status."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from fsspec.implementations.memory import MemoryFileSystem
from syrupy.assertion import SnapshotAssertion

from harness.cli import run_command_line
from tests.store.made import a_comparison, a_run, an_unfinished_run, contents, runs

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


def test_merging_without_trouble_ends_with_0(capsys: Printed) -> None:
    runs(Path("from"), 1)
    assert run_command_line(["results", "merge", "from"]) == 0
    assert contents(Path("from")) == contents(Path("results"))
    assert capsys.readouterr().out.endswith("1 copied.\n")


def test_verifying_names_what_is_wrong_and_ends_with_2(capsys: Printed, snapshot: SnapshotAssertion) -> None:
    first, second, third = runs(Path("results"), 3)
    an_unfinished_run(Path("results"))
    a_comparison(Path("results"))
    (Path("results") / "pictures").mkdir()
    assert run_command_line(["results", "compact"]) == 0
    capsys.readouterr()
    assert run_command_line(["results", "verify"]) == 0
    capsys.readouterr()
    rounds = Path("results") / first / "rounds.jsonl"
    rounds.write_text(rounds.read_text().replace('"round":1', '"round":7'))
    (Path("results") / second / "builds.jsonl").write_text("{}\n")
    header = Path("results") / third / "run.json"
    header.write_text(header.read_text().replace('"schema_version": 1', '"schema_version": 2'))
    assert run_command_line(["results", "verify"]) == 2
    out = capsys.readouterr().out
    part = next(Path("results/history").iterdir()).name
    assert out.replace(part, "tables-00000000") == snapshot
    assert run_command_line(["results", "verify", "--format", "json"]) == 2
    assert {one["state"] for one in document(capsys)["verified"]} == {
        "ok",
        "changed",
        "damaged",
        "future schema",
        "unfinished",
        "not a run",
    }


def test_many_folders_that_are_ok_are_only_counted(capsys: Printed) -> None:
    for number in range(45):
        (Path("results") / f"empty-{number}").mkdir(parents=True)
    a_run(Path("results"))
    assert run_command_line(["results", "verify"]) == 0
    assert capsys.readouterr().out == "1 ok, 45 not a run.\n"


def test_comparisons_are_listed_by_what_they_compare_and_where_only_rows_are_left_by_their_runs(
    capsys: Printed,
) -> None:
    comparison = a_comparison(Path("results"))
    assert run_command_line(["results", "list"]) == 0
    assert f"{comparison.name}  IREE 3.13.0 against IREE 3.12.0  " in capsys.readouterr().out
    assert run_command_line(["results", "compact"]) == 0
    shutil.rmtree(comparison)
    capsys.readouterr()
    assert run_command_line(["results", "list", "--format", "json"]) == 0
    (listed,) = document(capsys)["comparisons"]
    assert (listed["comparison"], listed["rows"], listed["outputs_differ"]) == (comparison.name, 1, 0)
    assert re.fullmatch(r"2\S+ against 2\S+", listed["compares"])


def test_a_comparison_with_other_outputs_is_listed_with_their_number(capsys: Printed) -> None:
    a_comparison(Path("results"))
    assert run_command_line(["results", "list"]) == 0
    assert "outputs differ" not in capsys.readouterr().out
    a_comparison(Path("results"), day=1, verdict="outputs differ")
    assert run_command_line(["results", "list"]) == 0
    assert "improved  outputs differ\n" in capsys.readouterr().out


def test_compacting_says_sizes_before_and_after(capsys: Printed) -> None:
    runs(Path("results"), 2)
    a_comparison(Path("results"))
    an_unfinished_run(Path("results"))
    assert run_command_line(["results", "compact"]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert printed.startswith("20260201-000000-small: unfinished: ")
    assert "2 runs and 1 comparison compacted, from " in printed
    assert "history/ has 1 part, 0 bytes before and " in printed
    assert run_command_line(["results", "compact", "--format", "json"]) == 0
    assert document(capsys)["compacted"]["runs"] == []


def test_dropping_old_turns(capsys: Printed) -> None:
    first, _ = runs(Path("results"), 2)
    run_command_line(["results", "compact"])
    a_run(Path("results"), 2)
    capsys.readouterr()
    assert run_command_line(["results", "gc", "--older-than", "7d", "--dry-run"]) == 0
    planned = capsys.readouterr().out
    assert planned.count("  would go") == 3
    assert "history/" not in planned
    assert run_command_line(["results", "gc", "--older-than", "900y", "--dry-run"]) == 0
    assert capsys.readouterr().out == "No turns are as old as that: those of 3 younger runs stay.\n"
    assert len(list(Path("results").glob("*/rounds.jsonl"))) == 3
    assert run_command_line(["results", "gc", "--older-than", "7d", "--format", "json"]) == 0
    rows = document(capsys)["dropped"]["rows"]
    assert {row["name"]: row["dropped"] for row in rows}[first]
    assert not list(Path("results").glob("*/rounds.jsonl"))


@pytest.mark.parametrize("command", ["compact", "verify", "gc"])
def test_a_folder_that_is_not_there_is_one_sentence(capsys: Printed, command: str) -> None:
    options = ["--older-than", "1d"] if command == "gc" else []
    assert run_command_line(["results", command, "gone", *options]) == 2
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == (
        "",
        "harness: gone: there is no such folder; give one that holds runs\n",
    )


@pytest.mark.parametrize("command", ["compact", "verify", "gc"])
def test_an_empty_folder_is_nothing_wrong(capsys: Printed, command: str) -> None:
    Path("results").mkdir()
    options = ["--older-than", "1d"] if command == "gc" else []
    assert run_command_line(["results", command, *options]) == 0
    assert capsys.readouterr().out.count("\n") == 1


def test_every_command_works_on_a_url(tmp_path: Path, capsys: Printed) -> None:
    url = "memory://bucket/all"
    names = runs(Path("from"), 2)
    assert run_command_line(["results", "merge", "from", "--into", url]) == 0
    assert run_command_line(["results", "compact", url]) == 0
    assert run_command_line(["results", "verify", url]) == 0
    assert run_command_line(["results", "gc", url, "--older-than", "1d"]) == 0
    there = {path.removeprefix("/bucket/all/") for path in MemoryFileSystem().find("/bucket/all")}
    assert {path for path in there if "rounds" in path} == set()
    assert {f"{name}/turns-dropped.json" for name in names} < there
    assert {f"{name}/tables/points.parquet" for name in names} < there
    assert len([path for path in there if path.startswith("history/") and path.endswith("points.parquet")]) == 1
    assert run_command_line(["results", "verify", url]) == 0
    assert run_command_line(["results", "merge", url, "--into", "back"]) == 0
    assert {path.name for path in Path("back").glob("2*")} == set(names)
    assert capsys.readouterr().err.count("harness:") == 0
