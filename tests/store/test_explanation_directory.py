"""Explanations on disk: whole or not at all, found by name, verified and merged like runs."""

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
from harness.store.archive import compact
from harness.store.check import check_folder, verify
from harness.store.folders import find_folder, look_into
from harness.store.journal import Begun
from harness.store.kinds import COMPARISON, EXPLANATION, Kind, load_result
from harness.store.merging import merge
from harness.store.remote import open_place
from harness.store.sides_directory import ExplanationDirectory, KeptGeneration
from harness.store.tables import NOTHING_YET, open_tables
from tests.report.explanations import make_explanation

NOW = datetime(2026, 11, 22, 14, 0, 0, tzinfo=timezone.utc)


def keep(results: Path, **facts: object) -> tuple[Path, Explanation]:
    with ExplanationDirectory.create(results, "esrgan", NOW) as directory:
        explanation = replace(make_explanation(), id=directory.path.name, **facts)  # type: ignore[arg-type]
        directory.finish(explanation_document(explanation), render(explanation, "markdown", full=True))
    return directory.path, explanation


def test_it_is_read_as_it_was_kept(tmp_path: Path) -> None:
    folder, explanation = keep(tmp_path)
    assert folder.name == "20261122-140000-esrgan-explain"
    assert EXPLANATION.is_at(folder)
    assert EXPLANATION.load(folder) == explanation
    assert {file.name for file in folder.iterdir()} == {EXPLANATION.file, "report.md", "finished.json"}


@pytest.mark.parametrize("kind", [COMPARISON, EXPLANATION], ids=lambda kind: kind.name)
def test_one_that_was_stopped_says_how_it_goes_on(tmp_path: Path, kind: Kind[object]) -> None:
    (tmp_path / kind.begun_file).write_text("{}")
    with pytest.raises(RunError, match=f"has not come to its end; go on with `harness {kind.command} --resume"):
        load_result(tmp_path)


def test_nothing_is_left_where_it_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(path: Path, content: bytes) -> None:
        if path.name == EXPLANATION.file:
            raise OSError(28, "No space left on device")
        path.write_bytes(content)

    monkeypatch.setattr("harness.store.journal.write_atomically", fail)
    said = "cannot be written \\(No space left on device\\); make room or choose another"
    with pytest.raises(RunError, match=said), ExplanationDirectory.create(tmp_path, "esrgan", NOW) as directory:
        directory.finish(b"{}", "report")
    assert not list(tmp_path.iterdir())


def test_it_is_found_by_its_kind(tmp_path: Path) -> None:
    folder, _ = keep(tmp_path)
    for name in ("latest", "2026", folder.name):
        assert find_folder(tmp_path / name) == folder
        assert find_folder(tmp_path / name, kind="explanation") == folder
    assert find_folder(tmp_path / "2026", kind="run") == tmp_path / "2026"


def test_it_is_verified(tmp_path: Path) -> None:
    folder, _ = keep(tmp_path)
    finding = check_folder(folder, name=folder.name)
    assert (finding.kind, finding.state, finding.hashed) == ("explanation", "ok", True)
    (folder / "report.md").write_text("another\n")
    assert check_folder(folder, name=folder.name).state == "changed"
    (folder / EXPLANATION.file).write_text("{}")
    (finding,) = verify(open_place(str(tmp_path)), Silent())
    assert finding.state == "damaged"
    (folder / "run.json").write_text("{}")
    with pytest.raises(RunError, match=r"has both run\.json and explanation\.json, which no folder does"):
        look_into(folder)


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


def test_it_is_merged_and_no_table_has_rows_of_it(tmp_path: Path) -> None:
    folder, explanation = keep(tmp_path / "there")
    (outcome,) = merge([str(tmp_path / "there")], str(tmp_path / "here"), rows_of, str, Silent())
    assert (outcome.name, outcome.fate) == (folder.name, "copied")
    assert EXPLANATION.load(tmp_path / "here" / folder.name) == explanation
    with open_tables(str(tmp_path / "here"), rows_of, Silent()) as tables:
        assert tables.notes == (NOTHING_YET,)
    compacted = compact(open_place(str(tmp_path / "here")), rows_of, Silent())
    assert (compacted.runs, compacted.comparisons, compacted.left_out) == ((), (), {})


def test_it_is_listed_and_a_damaged_one_is_told(
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
