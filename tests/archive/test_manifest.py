"""What a finished folder says of its own files."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from harness.errors import RunError
from harness.store.dropped import mark_dropped, read_dropped
from harness.store.manifest import FileRecord, describe_file, read_manifest
from harness.store.run_directory import RunDirectory, load_run
from tests.archive.made import a_comparison, a_run, an_old_run, an_unfinished_run
from tests.builders import make_header


def test_a_finished_run_has_hash_and_size_of_every_file_of_it(tmp_path: Path) -> None:
    with RunDirectory.create(tmp_path, make_header()) as directory:
        directory.log("net/stock@cpu", "a tool's words")
        directory.finish(lambda _: "# Report\n")
    manifest = read_manifest(directory.path)
    assert manifest is not None
    assert sorted(manifest) == ["logs/net,stock@cpu.stderr.txt", "report.md", "run.json"]
    assert manifest["report.md"] == FileRecord(sha256=hashlib.sha256(b"# Report\n").hexdigest(), bytes=9)


def test_so_has_a_finished_comparison(tmp_path: Path) -> None:
    folder = a_comparison(tmp_path)
    manifest = read_manifest(folder)
    assert manifest is not None
    assert sorted(manifest) == ["comparison.json", "report.md", "rounds.jsonl"]
    assert all(describe_file(folder / name) == record for name, record in manifest.items())


@pytest.mark.parametrize("name", ["../run.json", "/etc/passwd", "logs/../../x", ".hidden", "a/b", "", "run.json\n"])
def test_a_manifest_that_names_what_no_folder_has_is_damaged(tmp_path: Path, name: str) -> None:
    folder = a_run(tmp_path)
    (folder / "finished.json").write_text(json.dumps({"files": {name: {"sha256": "0" * 64, "bytes": 1}}}))
    with pytest.raises(RunError) as caught:
        read_manifest(folder)
    assert str(caught.value) == f"{folder / 'finished.json'}: is damaged; take it from a backup"


def test_what_is_not_finished_or_old_has_none(tmp_path: Path) -> None:
    assert read_manifest(an_unfinished_run(tmp_path)) is None
    assert read_manifest(an_old_run(tmp_path)) is None


@pytest.mark.parametrize(
    "files", ["[]", '{"run.json": 1}', '{"run.json": {"sha256": "x", "bytes": 1}}', '{"run.json": {"bytes": 1}}']
)
def test_a_damaged_one_is_named(tmp_path: Path, files: str) -> None:
    folder = a_run(tmp_path)
    (folder / "finished.json").write_text(f'{{"finished": "", "files": {files}}}')
    with pytest.raises(RunError, match=r"finished.json: is damaged; take it from a backup"):
        read_manifest(folder)


def test_a_run_whose_turns_were_dropped_says_when(tmp_path: Path) -> None:
    folder = a_run(tmp_path)
    turns = describe_file(folder / "rounds.jsonl")
    mark_dropped(folder, turns)
    assert load_run(folder).turns_dropped == ""  # they are still there: it was stopped before it deleted them
    (folder / "rounds.jsonl").unlink()
    dropped = read_dropped(folder)
    assert dropped is not None
    assert (dropped.turns, load_run(folder).turns_dropped) == (turns, dropped.when)
    assert load_run(folder).rounds == ()


@pytest.mark.parametrize("text", ["", "[]", "{}", json.dumps({"dropped": "yesterday", "files": {"rounds.jsonl": {}}})])
def test_a_damaged_marker_is_named(tmp_path: Path, text: str) -> None:
    folder = a_run(tmp_path)
    (folder / "rounds.jsonl").unlink()
    (folder / "turns-dropped.json").write_text(text)
    with pytest.raises(RunError, match=r"turns-dropped.json: is damaged"):
        load_run(folder)
