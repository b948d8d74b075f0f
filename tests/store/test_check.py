"""Looking at one folder: what it is, whether it is whole, and whether it is as it was; and reading within limits."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.errors import RunError
from harness.store.files import log_path, read_document, read_lines, read_manifest
from harness.store.merging import Finding, check_folder
from tests.store.made import a_comparison, a_run, finished_as_it_is, merged

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
        (
            write("logs/net.stderr.txt", ""),
            "changed",
            "logs/net.stderr.txt: is not as it was when the run was finished",
        ),
        (gone("report.md"), "damaged", "report.md: is gone; take it from a backup"),
        (gone("rounds.jsonl"), "damaged", "rounds.jsonl: is gone; take it from a backup"),
        (cut, "damaged", "rounds.jsonl: its last line is cut short; take it from a backup"),
        (link("report.md", "/etc/passwd"), "damaged", "report.md is a symbolic link, which no run has; take it away"),
        (link("deep/anything", "/etc/shadow"), "damaged", "deep/anything is a symbolic link"),
        (lambda folder: os.mkfifo(folder / "lost.jsonl"), "damaged", "lost.jsonl is a pipe, a socket or a device"),
        (write("comparison.json", "{}"), "damaged", "has both run.json and comparison.json, which no folder does"),
        (lambda folder: shutil.rmtree(folder / "tables"), "ok", ""),
        (write("tables/points.parquet", "made of the rest"), "ok", ""),
        (write("plot.svg", ""), "ok", ""),
    ],
)
def test_what_was_done_to_a_finished_run_is_found_and_never_merged(
    tmp_path: Path, spoil: Spoil, state: str, why: str
) -> None:
    folder = a_run(tmp_path / "from")
    (folder / "logs").mkdir()
    (folder / "logs" / "net.stderr.txt").write_text("a tool's words")
    spoil(finished_as_it_is(folder))
    finding = look(folder)
    assert finding.state == state
    assert why in finding.why
    (outcome,) = merged(folder, into=tmp_path / "into")
    assert outcome.fate == ("copied" if state == "ok" else "refused")
    assert state == "ok" or why in outcome.why
    assert not list((tmp_path / "into").glob(".copying-*"))
    assert not list((tmp_path / "into").glob("*/plot.svg"))


@pytest.mark.parametrize(("version", "state"), [("1", "damaged"), ("99", "future schema")])
def test_a_comparison_is_damaged_or_of_a_later_harness(tmp_path: Path, version: str, state: str) -> None:
    file = a_comparison(tmp_path) / "comparison.json"
    file.write_text(f'{{"schema_version": {version}, "rows": "anew"}}')
    assert look(file.parent).state == state


def test_a_folder_has_to_be_named_as_its_id_says(tmp_path: Path) -> None:
    folder = a_run(tmp_path)
    copy = folder.rename(tmp_path / "20300101-000000-mine")
    assert look(copy).state == "changed"
    assert look(copy).why == f"it is run {folder.name} under another name; rename it back"
    assert check_folder(copy, name="published/mine", named_by_id=False).state == "ok"


# --- What a finished folder says of its own files ---


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
