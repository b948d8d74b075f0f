"""Looking at one folder: what it is, whether it is whole, and whether it is as it was; and reading within limits."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import RunError
from harness.progress import Silent
from harness.report.rows import rows_of
from harness.store.check import Finding, check_folder
from harness.store.files import describe_file, ends_in_newline, log_path, read_document, read_lines, read_manifest
from harness.store.folders import is_id, is_known, is_name
from harness.store.merging import merge
from harness.store.run_directory import RunDirectory
from tests.builders import make_header
from tests.store.made import a_comparison, a_run, an_unfinished_run, finished_as_it_is

Spoil = Callable[[Path], object]


def look(folder: Path) -> Finding:
    """What a look at a folder under its own name finds, in one sentence."""
    finding = check_folder(folder, name=folder.name)
    assert "\n" not in finding.why
    return finding


def link(name: str, to: str) -> Spoil:
    """Put a link in a file's place."""

    def spoil(folder: Path) -> None:
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).unlink(missing_ok=True)
        (folder / name).symlink_to(to)

    return spoil


def cut(folder: Path) -> None:
    """Cut a last line short, and have the hashes of that."""
    os.truncate(folder / "rounds.jsonl", (folder / "rounds.jsonl").stat().st_size - 9)
    finished_as_it_is(folder)


def write(name: str, content: str) -> Spoil:
    return lambda folder: (folder / name).write_text(content)


def gone(name: str) -> Spoil:
    return lambda folder: (folder / name).unlink()


def figure(folder: Path) -> None:
    (folder / "rounds.jsonl").write_text((folder / "rounds.jsonl").read_text().replace('"round":1', '"round":7'))


@pytest.mark.parametrize(
    ("spoil", "state", "why"),
    [
        (figure, "changed", "rounds.jsonl: is not as it was when the run was finished"),
        (write("lost.jsonl", ""), "changed", "lost.jsonl: was not there when the run was finished"),
        (write("logs/net.stderr.txt", ""), "changed", "logs/net.stderr.txt: was not there when the run was finished"),
        (gone("report.md"), "damaged", "report.md: is gone; take it from a backup"),
        (gone("rounds.jsonl"), "damaged", "rounds.jsonl: is gone; take it from a backup"),
        (cut, "damaged", "rounds.jsonl: its last line is cut short; take it from a backup"),
        (link("report.md", "/etc/passwd"), "damaged", "report.md is a symbolic link, which no run has; take it away"),
        (link("deep/anything", "/etc/shadow"), "damaged", "deep/anything is a symbolic link"),
        (lambda folder: os.mkfifo(folder / "lost.jsonl"), "damaged", "lost.jsonl is a pipe, a socket or a device"),
        (write("comparison.json", "{}"), "damaged", "has both run.json and comparison.json, which no folder does"),
        (lambda folder: shutil.rmtree(folder / "tables"), "ok", ""),
        (write("tables/points.parquet", "made of the rest"), "ok", ""),
        (write("plot.svg", ""), "ok", "holds plot.svg beside"),
    ],
)
def test_what_was_done_to_a_finished_run_is_found_and_never_merged(
    tmp_path: Path, spoil: Spoil, state: str, why: str
) -> None:
    folder = a_run(tmp_path / "from")
    (folder / "logs").mkdir()
    spoil(folder)
    finding = look(folder)
    assert finding.state == state
    assert why in finding.why
    (outcome,) = merge([str(folder)], str(tmp_path / "into"), rows_of, str, Silent())
    assert outcome.fate == ("copied" if state == "ok" else "refused")
    assert state == "ok" or why in outcome.why
    assert not list((tmp_path / "into").glob(".copying-*"))


def test_what_is_not_finished_or_is_neither_says_so(tmp_path: Path) -> None:
    finding = look(an_unfinished_run(tmp_path))
    assert (finding.state, "harness run --resume" in finding.why) == ("unfinished", True)
    for name, file, state in (
        ("pictures", "a.svg", "not a run"),
        ("stopped", "rounds.jsonl", "unfinished"),
        ("some-bisect", "begun.json", "not a run"),
    ):
        (tmp_path / name).mkdir()
        (tmp_path / name / file).touch()
        assert look(tmp_path / name).state == state
    assert look(tmp_path / "some-bisect").why == "a bisect, which stays where it was made"


@pytest.mark.parametrize("make", [a_run, a_comparison])
def test_a_document_is_damaged_or_of_a_later_harness(tmp_path: Path, make: Callable[[Path], Path]) -> None:
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


def test_names_that_the_harness_gives_and_others() -> None:
    assert is_id("20261121-035012-esrgan") and is_id("20261121-035012-a.b_c+d-compare-2")
    for bad in ("..", "esrgan", "20261121-035012-", "20261121-035012-a/b", "20261121-035012-a\n", "20261121-035012-😀"):
        assert not is_id(bad)
    assert not is_id(f"20261121-035012-{'a' * 10_000}")
    assert is_name("my-run")
    bad_names = ("", ".hidden", "..", "a b", "a/b", "a\nb", "|x|`y`<script>", "a" * 250, "marks", "published", "-rf")
    assert not any(map(is_name, bad_names))
    assert is_known("logs/net,stock@cpu.stderr.txt")
    assert not any(map(is_known, ("logs/../run.json", "logs/a.sh", "../run.json", "/run.json", "logs/.txt")))


# --- What a finished folder says of its own files ---


def test_a_finished_folder_has_hash_and_size_of_every_file_of_it(tmp_path: Path) -> None:
    with RunDirectory.create(tmp_path, make_header()) as directory:
        directory.log("net/stock@cpu", "a tool's words")
        directory.finish(lambda _: "# Report\n")
    assert read_manifest(an_unfinished_run(tmp_path)) is None
    for folder, kind, files in (
        (directory.path, "run", ["logs/net,stock@cpu.stderr.txt", "report.md", "run.json"]),
        (a_comparison(tmp_path), "comparison", ["comparison.json", "report.md", "rounds.jsonl"]),
    ):
        manifest = read_manifest(folder)
        assert manifest is not None and sorted(manifest) == files
        assert all(describe_file(folder / name) == record for name, record in manifest.items())
        assert manifest["report.md"].bytes == (folder / "report.md").stat().st_size
        assert look(folder) == Finding(name=folder.name, kind=kind, state="ok")


OF_NOBODY = json.dumps({"sha256": "0" * 64, "bytes": 1})


@pytest.mark.parametrize(
    "files",
    [
        *("[]", '{"run.json": 1}', '{"run.json": {"sha256": "x", "bytes": 1}}', '{"run.json": {"bytes": 1}}'),
        *(
            f"{{{json.dumps(name)}: {OF_NOBODY}}}"
            for name in ("../run.json", "/etc/passwd", "logs/../../x", ".hidden", "a/b", "", "run.json\n")
        ),
    ],
)
def test_a_manifest_that_is_damaged_or_names_what_no_folder_has_is_named(tmp_path: Path, files: str) -> None:
    file = tmp_path / "finished.json"
    file.write_text(f'{{"finished": "", "files": {files}}}')
    with pytest.raises(RunError, match=r"finished\.json: is damaged \(.*\); take it from a backup"):
        read_manifest(tmp_path)


# --- Files are read line by line, and never more than a limit at once ---


@given(content=st.binary(max_size=60), limit=st.integers(min_value=60, max_value=80))
def test_lines_are_what_ends_in_a_newline(tmp_path_factory: pytest.TempPathFactory, content: bytes, limit: int) -> None:
    file = tmp_path_factory.getbasetemp() / "lines"
    file.write_bytes(content)
    assert list(read_lines(file, limit)) == content.split(b"\n")[:-1]
    assert ends_in_newline(file) == (content.split(b"\n")[-1] == b"")


def test_what_is_too_large_or_cannot_be_read_is_named(tmp_path: Path) -> None:
    file = tmp_path / "rounds.jsonl"
    file.write_bytes(b"short\n" + b"x" * 100 + b"\n")
    assert [len(line) for line in read_lines(file, 100)] == [5, 100]
    lines = read_lines(file, 99)
    assert next(lines) == b"short"
    with pytest.raises(RunError, match=r"rounds.jsonl: line 2 is longer than .* MiB, which no record is"):
        next(lines)
    assert len(read_document(file, 107)) == 107
    for path, limit, why in (
        (file, 106, "rounds.jsonl: is larger than"),
        (tmp_path / "gone", 1, r"gone: cannot be read \(No such file or directory\)"),
        (tmp_path, 1, "is no plain file"),
    ):
        with pytest.raises(RunError, match=why):
            read_document(path, limit)


def test_a_log_has_a_name_that_file_systems_take_and_no_other_case_has() -> None:
    long, other = (f"{'m' * 100}/{'v' * 100}@{'d' * 100}:{release}" for release in ("3.12.0", "3.13.0"))
    names = {Path(log_path(case)).name for case in (long, other)}
    assert len(names) == 2
    assert all(len(name) < 255 for name in names)
    assert Path(log_path("net/stock@cpu:3.13.0")).name == "net,stock@cpu,3.13.0.stderr.txt"
