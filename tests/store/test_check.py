"""Looking at one folder: what it is, whether it is whole, and whether it is as it was."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.errors import RunError
from harness.report.rows import rows_of
from harness.store.check import Finding, check_folder
from harness.store.database import write_tables
from harness.store.files import FileRecord, describe_file, mark_dropped, read_dropped, read_manifest
from harness.store.folders import is_id, is_known, is_name
from harness.store.run_directory import RunDirectory, load_run
from tests.builders import make_header
from tests.history.made import make_night, store
from tests.store.made import a_comparison, a_run, an_old_run, an_unfinished_run


def look(folder: Path) -> Finding:
    """What a look at a folder under its own name finds, in one sentence."""
    finding = check_folder(folder, name=folder.name)
    assert "\n" not in finding.why
    return finding


def test_what_is_whole_is_ok_and_says_whether_hashes_were_compared(tmp_path: Path) -> None:
    for folder, kind, hashed in (
        (a_run(tmp_path), "run", True),
        (a_comparison(tmp_path), "comparison", True),
        (an_old_run(tmp_path, 1), "run", False),
    ):
        finding = look(folder)
        assert (finding.state, finding.kind, finding.hashed, finding.why) == ("ok", kind, hashed, "")


def test_a_run_that_goes_on_is_unfinished(tmp_path: Path) -> None:
    finding = look(an_unfinished_run(tmp_path))
    assert finding.state == "unfinished"
    assert "harness run --resume" in finding.why


def test_what_is_neither_is_told(tmp_path: Path) -> None:
    (tmp_path / "pictures").mkdir()
    (tmp_path / "stopped").mkdir()
    (tmp_path / "stopped" / "rounds.jsonl").touch()
    assert look(tmp_path / "pictures").state == "not a run"
    assert look(tmp_path / "stopped").state == "unfinished"


def test_a_figure_that_was_changed_by_hand_is_found(tmp_path: Path) -> None:
    file = a_run(tmp_path) / "rounds.jsonl"
    file.write_text(file.read_text().replace('"round":1', '"round":7'))
    assert look(file.parent).state == "changed"
    assert look(file.parent).why == f"{file}: is not as it was when the run was finished"


@given(cut=st.integers(min_value=1, max_value=4000))
@settings(max_examples=10)
def test_a_file_that_was_cut_is_found_wherever_it_was_cut(tmp_path_factory: pytest.TempPathFactory, cut: int) -> None:
    file = a_run(tmp_path_factory.mktemp("results")) / "builds.jsonl"
    os.truncate(file, max(file.stat().st_size - cut, 0))
    assert look(file.parent).state in ("damaged", "changed")


def test_without_hashes_a_last_line_that_was_cut_is_found_all_the_same(tmp_path: Path) -> None:
    file = an_old_run(tmp_path) / "rounds.jsonl"
    os.truncate(file, file.stat().st_size - 5)
    assert look(file.parent).state == "damaged"
    assert look(file.parent).why == f"{file}: its last line is cut short; take it from a backup"


def test_a_file_that_is_gone_or_came_later_is_found(tmp_path: Path) -> None:
    folder = a_run(tmp_path)
    (folder / "lost.jsonl").write_text("")
    assert (look(folder).state, "was not there when" in look(folder).why) == ("changed", True)
    (folder / "lost.jsonl").unlink()
    (folder / "rounds.jsonl").unlink()
    assert (look(folder).state, "rounds.jsonl: is gone" in look(folder).why) == ("damaged", True)


def test_what_others_put_beside_is_a_remark(tmp_path: Path) -> None:
    folder = a_run(tmp_path)
    (folder / "plot.svg").touch()
    assert (look(folder).state, look(folder).why) == ("ok", "holds plot.svg beside")


def test_dropped_turns_are_no_damage_unless_the_marker_tells_of_others(tmp_path: Path) -> None:
    folder = a_run(tmp_path)
    mark_dropped(folder, describe_file(folder / "rounds.jsonl"))
    (folder / "rounds.jsonl").unlink()
    assert look(folder).state == "ok"
    assert look(folder).why.startswith("its raw turns were dropped on ")
    marker = json.loads((folder / "turns-dropped.json").read_text())
    marker["files"]["rounds.jsonl"]["bytes"] += 1
    (folder / "turns-dropped.json").write_text(json.dumps(marker))
    assert look(folder).state == "changed"


def test_tables_that_an_old_run_got_later_are_no_change_but_rows_of_others_are_damage(tmp_path: Path) -> None:
    folder, other = store(tmp_path, make_night(0)), a_run(tmp_path, 1)
    write_tables(folder, rows_of(load_run(folder)))
    assert (look(folder).state, look(folder).why) == ("ok", "")
    shutil.copy(other / "tables" / "points.parquet", folder / "tables")
    assert look(folder).state == "damaged"
    assert "points.parquet: has rows of other runs than its own; delete " in look(folder).why
    (folder / "tables" / "points.parquet").write_bytes(b"PAR1")
    assert "points.parquet: cannot be read" in look(folder).why


@pytest.mark.parametrize("make", [a_run, a_comparison])
def test_a_later_harness_wrote_it(tmp_path: Path, make: object) -> None:
    assert callable(make)
    folder: Path = make(tmp_path)
    file = folder / ("run.json" if make is a_run else "comparison.json")
    file.write_text(json.dumps({**json.loads(file.read_text()), "schema_version": 99, "rows": "anew"}))
    assert look(folder).state == "future schema"
    assert look(folder).why == f"{file}: has schema 99, and this harness reads 1; upgrade it"


def test_a_folder_has_to_be_named_as_its_id_says(tmp_path: Path) -> None:
    folder = a_run(tmp_path)
    copy = folder.rename(tmp_path / "20300101-000000-mine")
    assert look(copy).state == "changed"
    assert look(copy).why == f"it is run {folder.name} under another name; rename it back"
    assert check_folder(copy, name="published/mine", named_by_id=False).state == "ok"


@pytest.mark.parametrize("content", ["", "[]", "null", "[" * 100_000, '{"schema_version": ' + "9" * 5000 + "}"])
def test_a_header_that_is_anything_is_damaged(tmp_path: Path, content: str) -> None:
    folder = a_run(tmp_path)
    (folder / "run.json").write_text(content)
    assert look(folder).state == "damaged"
    comparison = a_comparison(tmp_path)
    (comparison / "comparison.json").write_text(content)
    assert look(comparison).state == "damaged"


def test_names_that_the_harness_gives_and_others() -> None:
    assert is_id("20261121-035012-esrgan")
    assert is_id("20261121-035012-a.b_c+d-compare-2")
    for bad in ("..", "esrgan", "20261121-035012-", "20261121-035012-a/b", "20261121-035012-a\n", "20261121-035012-😀"):
        assert not is_id(bad)
    assert not is_id(f"20261121-035012-{'a' * 10_000}")
    assert is_name("my-run")
    assert not any(is_name(bad) for bad in ("", ".hidden", "..", "a b", "a/b", "history", "published", "-rf"))
    assert is_known("logs/net,stock@cpu.stderr.txt")
    assert not any(is_known(bad) for bad in ("logs/../run.json", "logs/a.sh", "../run.json", "/run.json", "logs/.txt"))


# --- What a finished folder says of its own files ---


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
    assert sorted(manifest) == ["comparison.json", "report.md", "rounds.jsonl", "tables/comparisons.parquet"]
    assert all(describe_file(folder / name) == record for name, record in manifest.items())


OF_NOBODY = json.dumps({"sha256": "0" * 64, "bytes": 1})


@pytest.mark.parametrize(
    "files",
    [
        *("[]", '{"run.json": 1}', '{"run.json": {"sha256": "x", "bytes": 1}}', '{"run.json": {"bytes": 1}}'),
        *(f"{{{json.dumps(name)}: {OF_NOBODY}}}" for name in ("../run.json", "/etc/passwd", "logs/../../x")),
        *(f"{{{json.dumps(name)}: {OF_NOBODY}}}" for name in (".hidden", "a/b", "", "run.json\n")),
    ],
)
def test_a_manifest_that_is_damaged_or_names_what_no_folder_has_is_named(tmp_path: Path, files: str) -> None:
    folder = a_run(tmp_path)
    (folder / "finished.json").write_text(f'{{"finished": "", "files": {files}}}')
    with pytest.raises(RunError) as caught:
        read_manifest(folder)
    assert str(caught.value) == f"{folder / 'finished.json'}: is damaged; take it from a backup"


def test_what_is_not_finished_or_old_has_none(tmp_path: Path) -> None:
    assert read_manifest(an_unfinished_run(tmp_path)) is None
    assert read_manifest(an_old_run(tmp_path)) is None


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
