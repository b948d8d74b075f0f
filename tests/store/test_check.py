"""Looking at one folder: what it is, whether it is whole, and whether it is as it was."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.errors import RunError
from harness.progress import Silent
from harness.report.rows import rows_of
from harness.store.check import Finding, check_folder
from harness.store.database import connect, parquet, write_tables
from harness.store.files import FileRecord, describe_file, mark_dropped, read_dropped, read_manifest
from harness.store.folders import is_id, is_known, is_name
from harness.store.merging import merge
from harness.store.parquet_files import too_many_rows
from harness.store.run_directory import RunDirectory, load_run
from harness.store.tables import open_tables
from tests.builders import make_header
from tests.history.made import make_night, store
from tests.store.made import a_comparison, a_run, an_old_run, an_unfinished_run, edit, without_turns


def look(folder: Path) -> Finding:
    """What a look at a folder under its own name finds, in one sentence."""
    finding = check_folder(folder, name=folder.name)
    assert "\n" not in finding.why
    return finding


def link(name: str, to: str) -> Callable[[Path], None]:
    """Put a link in a file's place."""

    def spoil(folder: Path) -> None:
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).unlink(missing_ok=True)
        (folder / name).symlink_to(to)

    return spoil


def cut(folder: Path, by: int = 9) -> None:
    os.truncate(folder / "rounds.jsonl", (folder / "rounds.jsonl").stat().st_size - by)


def write(name: str, content: str) -> Callable[[Path], object]:
    return lambda folder: (folder / name).write_text(content)


def figure(folder: Path) -> None:
    (folder / "rounds.jsonl").write_text((folder / "rounds.jsonl").read_text().replace('"round":1', '"round":7'))


def other_marker(folder: Path) -> None:
    turns = json.loads((without_turns(folder) / "turns-dropped.json").read_text())["files"]["rounds.jsonl"]
    edit(folder / "turns-dropped.json", files={"rounds.jsonl": {**turns, "bytes": turns["bytes"] + 1}})


def tables_of_another(folder: Path) -> None:
    """Rows of another run, of which the hash is right."""
    shutil.copy(a_run(folder.parent, 1) / "tables" / "points.parquet", folder / "tables")
    files = json.loads((folder / "finished.json").read_text())["files"]
    described = asdict(describe_file(folder / "tables" / "points.parquet"))
    edit(folder / "finished.json", files={**files, "tables/points.parquet": described})


def rows_without_end(folder: Path) -> None:
    """Its own row so often that reading them takes gigabytes, in a file that is small, of which the hash is right."""
    with_other_cases(folder, "SELECT row.* FROM {rows} AS row, range(400_000)")


def text_in_every_row(folder: Path) -> None:
    """One text of 20 kB that stands in 5,000 rows, and takes as much as one in the file."""
    with_other_cases(folder, "SELECT row.* REPLACE (repeat('x', 20_000) AS repro) FROM {rows} AS row, range(1_250)")


def long_texts(folder: Path) -> None:
    """Texts that differ, each so long that a file of some kilobytes has 80 MB of them."""
    longer = "repeat('x', 20_000_000) || row.\"case\" AS message"
    with_other_cases(folder, f"SELECT row.* REPLACE ({longer}) FROM {{rows}} AS row")  # noqa: S608 (our names)


def with_other_cases(folder: Path, statement: str) -> None:
    """Other rows in the table of its cases, of which the hash is right."""
    file = folder / "tables" / "cases.parquet"
    many = statement.format(rows=parquet([file]))
    with connect() as connection:
        connection.execute(f"COPY ({many}) TO '{file}.new' (FORMAT parquet, COMPRESSION zstd)")
    Path(f"{file}.new").replace(file)
    files = json.loads((folder / "finished.json").read_text())["files"]
    described = asdict(describe_file(folder / "tables" / "cases.parquet"))
    edit(folder / "finished.json", files={**files, "tables/cases.parquet": described})


@pytest.mark.parametrize(
    ("spoil", "state", "why"),
    [
        (rows_without_end, "damaged", "00 rows in "),
        (text_in_every_row, "damaged", "MiB of text in "),
        (figure, "changed", "rounds.jsonl: is not as it was when the run was finished"),
        (write("lost.jsonl", ""), "changed", "lost.jsonl: was not there when the run was finished"),
        (other_marker, "changed", "turns-dropped.json: tells of other turns than it had"),
        (lambda folder: (folder / "report.md").unlink(), "damaged", "report.md: is gone; take it from a backup"),
        (
            lambda folder: (folder / "tables" / "cases.parquet").unlink(),
            "damaged",
            "cases.parquet: is gone; delete ",
        ),
        (lambda folder: (folder / "rounds.jsonl").unlink(), "damaged", "rounds.jsonl: is gone; take it from a backup"),
        (cut, "damaged", "rounds.jsonl: its last line is cut short; take it from a backup"),
        (link("report.md", "/etc/passwd"), "damaged", "report.md is a symbolic link, which no run has; take it away"),
        (link("logs", "/etc"), "damaged", "logs is a symbolic link"),
        (link("deep/anything", "/etc/shadow"), "damaged", "deep/anything is a symbolic link"),
        (lambda folder: os.mkfifo(folder / "lost.jsonl"), "damaged", "lost.jsonl is a pipe, a socket or a device"),
        (write("comparison.json", "{}"), "damaged", "has both run.json and comparison.json, which no folder does"),
        (tables_of_another, "damaged", "points.parquet: has rows of other runs than its own; delete "),
        (lambda folder: shutil.rmtree(folder / "tables"), "damaged", "tables/cases.parquet: is gone"),
        (write("plot.svg", ""), "ok", "holds plot.svg beside"),
        (without_turns, "ok", "its raw turns were dropped on "),
    ],
)
def test_what_was_done_to_a_finished_run_is_found(
    tmp_path: Path, spoil: Callable[[Path], object], state: str, why: str
) -> None:
    folder = a_run(tmp_path)
    spoil(folder)
    finding = look(folder)
    assert finding.state == state
    assert why in finding.why


def test_what_is_whole_is_ok_and_says_whether_hashes_were_compared(tmp_path: Path) -> None:
    for folder, kind, hashed in (
        (a_run(tmp_path), "run", True),
        (a_comparison(tmp_path), "comparison", True),
        (an_old_run(tmp_path, 1), "run", False),
    ):
        finding = look(folder)
        assert (finding.state, finding.kind, finding.hashed, finding.why) == ("ok", kind, hashed, "")


def test_what_is_not_finished_or_is_neither_says_so(tmp_path: Path) -> None:
    finding = look(an_unfinished_run(tmp_path))
    assert (finding.state, "harness run --resume" in finding.why) == ("unfinished", True)
    (tmp_path / "pictures").mkdir()
    (tmp_path / "stopped").mkdir()
    (tmp_path / "stopped" / "rounds.jsonl").touch()
    assert look(tmp_path / "pictures").state == "not a run"
    assert look(tmp_path / "stopped").state == "unfinished"


@given(cut=st.integers(min_value=1, max_value=4000))
@settings(max_examples=10)
def test_a_file_that_was_cut_is_found_wherever_it_was_cut(tmp_path_factory: pytest.TempPathFactory, cut: int) -> None:
    file = a_run(tmp_path_factory.mktemp("results")) / "builds.jsonl"
    os.truncate(file, max(file.stat().st_size - cut, 0))
    assert look(file.parent).state in ("damaged", "changed")


def test_without_hashes_a_last_line_that_was_cut_is_found_all_the_same(tmp_path: Path) -> None:
    folder = an_old_run(tmp_path)
    cut(folder)
    assert look(folder).why == f"{folder / 'rounds.jsonl'}: its last line is cut short; take it from a backup"


def test_tables_that_an_old_run_got_later_are_no_change_but_have_to_be_tables(tmp_path: Path) -> None:
    folder = store(tmp_path, make_night(0))
    write_tables(folder, rows_of(load_run(folder)))
    assert (look(folder).state, look(folder).why) == ("ok", "")
    (folder / "tables" / "points.parquet").write_bytes(b"PAR1")
    assert (look(folder).state, "points.parquet: cannot be read" in look(folder).why) == ("damaged", True)


@pytest.mark.parametrize("spoil", [rows_without_end, text_in_every_row, long_texts])
def test_more_than_fits_a_file_is_neither_merged_nor_read(tmp_path: Path, spoil: Callable[[Path], None]) -> None:
    """A run of a stranger: its tables are made again of its records, where these are read."""
    folder = a_run(tmp_path / "theirs")
    spoil(folder)
    (outcome,) = merge([str(tmp_path / "theirs")], str(tmp_path / "ours"), rows_of, str, Silent())
    assert outcome.fate == "refused"
    assert "which no harness writes" in outcome.why
    with open_tables(str(tmp_path / "theirs"), rows_of, Silent()) as tables:
        assert tables.query("SELECT count(*) AS n FROM cases WHERE length(repro || message) < 10_000")["n"][0] < 100
        assert "are not its own or cannot be read" in tables.notes[0]


@pytest.mark.parametrize(
    ("rows", "bytes_", "fits"), [(100_000, 10, True), (100_001, 10, False), (300_000, 300_000, True)]
)
def test_how_many_rows_fit_a_file(tmp_path: Path, rows: int, bytes_: int, *, fits: bool) -> None:
    (tmp_path / "x.parquet").write_bytes(b"x" * bytes_)
    assert (too_many_rows(tmp_path / "x.parquet", rows) == "") is fits


@pytest.mark.parametrize("make", [a_run, a_comparison])
def test_a_header_is_damaged_or_of_a_later_harness(tmp_path: Path, make: Callable[[Path], Path]) -> None:
    file = make(tmp_path) / ("run.json" if make is a_run else "comparison.json")
    for content in ("", "[" * 100_000, '{"schema_version": ' + "9" * 5000 + "}"):
        file.write_text(content)
        assert look(file.parent).state == "damaged"
    file.write_text('{"schema_version": 99, "rows": "anew"}')
    assert look(file.parent).state == "future schema"
    assert look(file.parent).why == f"{file}: has schema 99, and this harness reads 1; upgrade it"


def test_a_folder_has_to_be_named_as_its_id_says(tmp_path: Path) -> None:
    folder = a_run(tmp_path)
    copy = folder.rename(tmp_path / "20300101-000000-mine")
    assert look(copy).state == "changed"
    assert look(copy).why == f"it is run {folder.name} under another name; rename it back"
    assert check_folder(copy, name="published/mine", named_by_id=False).state == "ok"


def test_a_bisect_is_known_for_what_it_is(tmp_path: Path) -> None:
    folder = tmp_path / "20261122-035012-small-bisect"
    folder.mkdir()
    (folder / "begun.json").write_text("{}")
    assert (look(folder).state, look(folder).why) == ("not a run", "a bisect, which stays where it was made")


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


def test_a_finished_folder_has_hash_and_size_of_every_file_of_it(tmp_path: Path) -> None:
    with RunDirectory.create(tmp_path, make_header()) as directory:
        directory.log("net/stock@cpu", "a tool's words")
        directory.finish(lambda _: "# Report\n")
    manifest = read_manifest(directory.path)
    assert manifest is not None
    assert sorted(manifest) == ["logs/net,stock@cpu.stderr.txt", "report.md", "run.json"]
    assert manifest["report.md"] == FileRecord(sha256=hashlib.sha256(b"# Report\n").hexdigest(), bytes=9)
    compared = a_comparison(tmp_path)
    manifest = read_manifest(compared)
    assert manifest is not None
    assert sorted(manifest) == ["comparison.json", "report.md", "rounds.jsonl", "tables/comparisons.parquet"]
    assert all(describe_file(compared / name) == record for name, record in manifest.items())
    assert read_manifest(an_unfinished_run(tmp_path)) is None
    assert read_manifest(an_old_run(tmp_path)) is None


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
    file = tmp_path / "finished.json"
    file.write_text(f'{{"finished": "", "files": {files}}}')
    with pytest.raises(RunError) as caught:
        read_manifest(tmp_path)
    assert str(caught.value) == f"{file}: is damaged; take it from a backup"


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


@pytest.mark.parametrize(
    "text",
    [
        *("", "[]", "{}", '{"dropped": "2026-01-01", "files": {}}'),
        f'{{"dropped": "yesterday", "files": {{"rounds.jsonl": {OF_NOBODY}}}}}',
    ],
)
def test_a_damaged_marker_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "turns-dropped.json").write_text(text)
    with pytest.raises(RunError, match=r"turns-dropped.json: is damaged"):
        read_dropped(tmp_path)
