"""Comparisons and explanations on disk: every turn at once, whole or not at all, and found, verified and merged."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path

import pytest

from harness.cli import run_command_line
from harness.errors import RunError, UsageError
from harness.progress import Silent
from harness.records.explanation import Explanation
from harness.report import render
from harness.report.explanation_page import explanation_document
from harness.report.rows import rows_of
from harness.store.check import check_folder
from harness.store.folders import find_folder
from harness.store.journal import Begun
from harness.store.kinds import COMPARISON, EXPLANATION, Kind, load_result
from harness.store.merging import merge
from harness.store.sides_directory import ComparisonDirectory, ExplanationDirectory, KeptGeneration
from harness.store.tables import NOTHING_YET, open_tables
from tests.builders import make_round
from tests.report.explanations import make_explanation

NOW = datetime(2026, 11, 22, 14, 0, 0, tzinfo=timezone.utc)


def a_directory(results: Path) -> ComparisonDirectory:
    return ComparisonDirectory.create(results, "small", NOW)


def keep(results: Path) -> tuple[Path, Explanation]:
    """A finished explanation."""
    with ExplanationDirectory.create(results, "esrgan", NOW) as directory:
        explanation = replace(make_explanation(), id=directory.path.name)
        directory.finish(explanation_document(explanation), render(explanation, "markdown", full=True))
    return directory.path, explanation


def test_every_turn_and_every_compile_is_one_line_at_once(tmp_path: Path) -> None:
    with a_directory(tmp_path) as directory:
        for number in range(2):
            directory.keep_round(make_round(number))
            directory.keep_compile("net/fast@cpu", {"generation": number, "base_ns": 1.0, "head_ns": 2.0})
        rounds = [json.loads(line) for line in (directory.path / "rounds.jsonl").read_text().splitlines()]
        assert [measured["round"] for measured in rounds] == [0, 1]
        compiles = [json.loads(line) for line in (directory.path / "compiles.jsonl").read_text().splitlines()]
        assert compiles[1] == {"case": "net/fast@cpu", "generation": 1, "base_ns": 1.0, "head_ns": 2.0}
        assert not COMPARISON.is_at(directory.path)
        directory.finish(b"{}\n", "report\n")
    assert COMPARISON.is_at(directory.path)
    assert (directory.path / COMPARISON.file).read_text() == "{}\n"
    assert (directory.path / "report.md").read_text() == "report\n"


def test_of_one_that_never_began_nothing_is_left_and_what_was_measured_stays(tmp_path: Path) -> None:
    with pytest.raises(RunError), a_directory(tmp_path):
        raise RunError("the modules are gone")
    assert not list(tmp_path.iterdir())
    with pytest.raises(KeyboardInterrupt), a_directory(tmp_path) as directory:
        directory.keep_round(make_round(0))
        raise KeyboardInterrupt
    assert [file.name for file in directory.path.iterdir()] == ["rounds.jsonl"]


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    directory = a_directory(tmp_path)
    directory.path.rmdir()
    with pytest.raises(RunError) as caught:
        directory.keep_round(make_round(0))
    assert str(caught.value) == f"{directory.path}: was removed while it was written; begin it again"
    (directory.path / "rounds.jsonl").mkdir(parents=True)
    with pytest.raises(RunError) as caught:
        directory.keep_round(make_round(0))
    assert str(caught.value) == (
        f"{directory.path}: cannot be written (Is a directory); make room or choose another folder with --results"
    )


def test_nothing_is_left_where_the_end_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(path: Path, content: bytes) -> None:
        if path.name == EXPLANATION.file:
            raise OSError(28, "No space left on device")
        path.write_bytes(content)

    monkeypatch.setattr("harness.store.journal.write_atomically", fail)
    said = "cannot be written \\(No space left on device\\); make room or choose another"
    with pytest.raises(RunError, match=said):
        keep(tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("kind", [COMPARISON, EXPLANATION], ids=lambda kind: kind.name)
def test_one_that_was_stopped_says_how_it_goes_on(tmp_path: Path, kind: Kind[object]) -> None:
    (tmp_path / kind.begun_file).write_text("{}")
    with pytest.raises(RunError, match=f"has not come to its end; go on with `harness {kind.command} --resume"):
        load_result(tmp_path)


def test_one_that_was_stopped_is_told_from_what_is_none(tmp_path: Path) -> None:
    begun = Begun(created=NOW.isoformat(), machine="m", options={}, command=())
    with pytest.raises(KeyboardInterrupt), ExplanationDirectory.create(tmp_path, "esrgan", NOW, begun) as directory:
        directory.keep_generation(KeptGeneration(row="r", metric="alone", modules="m", generation=0))
        raise KeyboardInterrupt
    folder = directory.path
    finding = check_folder(folder, name=folder.name)
    assert (finding.state, finding.why) == ("unfinished", "an explanation that was stopped")
    assert find_folder(tmp_path / "latest", kind="explanation", unfinished=True) == folder
    with pytest.raises(UsageError):
        find_folder(tmp_path / "latest", kind="comparison", unfinished=True)


def test_an_explanation_is_read_found_verified_and_merged_and_has_no_rows(tmp_path: Path) -> None:
    folder, explanation = keep(tmp_path / "there")
    assert folder.name == "20261122-140000-esrgan-explain"
    assert EXPLANATION.load(folder) == explanation
    assert {file.name for file in folder.iterdir()} == {EXPLANATION.file, "report.md", "finished.json"}
    for name in ("latest", "2026"):
        assert find_folder(tmp_path / "there" / name, kind="explanation") == folder
    assert find_folder(tmp_path / "there" / "2026", kind="run") == tmp_path / "there" / "2026"
    (outcome,) = merge([str(tmp_path / "there")], str(tmp_path / "here"), rows_of, str, Silent())
    assert (outcome.name, outcome.fate) == (folder.name, "copied")
    copy = tmp_path / "here" / folder.name
    assert EXPLANATION.load(copy) == explanation
    with open_tables(str(tmp_path / "here"), rows_of, Silent()) as tables:
        assert tables.notes == (NOTHING_YET,)
    assert check_folder(copy, name=folder.name).state == "ok"
    (copy / "report.md").write_text("another\n")
    assert check_folder(copy, name=folder.name).state == "changed"


def test_an_explanation_is_listed_and_a_damaged_one_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    folder, explanation = keep(tmp_path)
    assert run_command_line(["results", "list", str(tmp_path)]) == 0
    listed = capsys.readouterr().out
    assert folder.name in listed and explanation.case in listed
    assert listed.endswith("0 runs, 1 explanation.\n")
    (folder / EXPLANATION.file).write_text("{}")
    assert run_command_line(["results", "list", str(tmp_path), "--format", "json"]) == 0
    printed = capsys.readouterr()
    assert json.loads(printed.out)["explanations"] == []
    assert "is no explanation of schema version 1" in printed.err
