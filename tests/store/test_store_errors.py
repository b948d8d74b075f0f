"""Run directories and results folders that cannot be used: one sentence with what, where, and what to do."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path

import pytest

from harness.errors import RunError
from harness.records.run import SCHEMA_VERSION
from harness.store.comparison_directory import ComparisonDirectory
from harness.store.files import describe_file, mark_dropped
from harness.store.folders import is_id
from harness.store.run_directory import RunDirectory, load_run, new_run_id, require_writable
from tests.builders import make_header, make_round


def error_of(path: Path) -> str:
    """What reading says, after a look that resuming says the same."""
    sentences = set()
    for attempt in (load_run, RunDirectory.resume):
        with pytest.raises(RunError) as caught:
            attempt(path)
        sentences.add(str(caught.value))
    (sentence,) = sentences
    assert "\n" not in sentence
    return sentence


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run with three rounds."""
    with RunDirectory.create(tmp_path, make_header()) as directory:
        for number in range(3):
            directory.append(make_round(number))
    return directory.path


@pytest.mark.parametrize("name", ["missing", "empty", "file"])
def test_what_is_no_run_directory_is_named(tmp_path: Path, name: str) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").touch()
    assert error_of(tmp_path / name) == (
        f"{tmp_path / name}: is not a run directory (it has no run.json); give one from results/"
    )


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (b"", "Invalid JSON: EOF while parsing a value at column 0"),
        (b"{", "Invalid JSON: EOF while parsing an object at column 1"),
        (b"\xff", "Invalid JSON: expected value at column 1"),
        (b'{"group": "g"}', "generation: Field required"),
    ],
)
def test_a_damaged_line_is_named_by_file_and_number(run: Path, line: bytes, why: str) -> None:
    file = run / "rounds.jsonl"
    first, _, third = file.read_bytes().splitlines()
    file.write_bytes(b"\n".join([first, line, third, b""]))
    assert error_of(run) == f"{file}: line 2 is damaged ({why}); remove that line or take the run from a backup"


def test_removing_the_damaged_line_mends_the_run(run: Path) -> None:
    file = run / "rounds.jsonl"
    first, _, third = file.read_bytes().splitlines()
    file.write_bytes(first + b"\n" + third + b"\n")
    assert [one.round for one in load_run(run).rounds] == [0, 2]


def test_a_newer_schema_is_refused_before_anything_else_is_read(run: Path) -> None:
    (run / "run.json").write_text(json.dumps({"schema_version": SCHEMA_VERSION + 1, "something": "new"}))
    assert error_of(run) == (
        f"{run / 'run.json'}: has schema {SCHEMA_VERSION + 1}, and this harness reads {SCHEMA_VERSION}; upgrade it"
    )


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"null", b"{}", b"\xff\xfe", b"[" * 200_000])
def test_a_header_that_is_no_header_is_damaged(run: Path, content: bytes) -> None:
    (run / "run.json").write_bytes(content)
    assert error_of(run) == f"{run / 'run.json'}: is damaged; take the run from a backup"


def test_a_header_that_lacks_something_says_what(run: Path) -> None:
    header = json.loads((run / "run.json").read_text())
    del header["cases"][1]["uri"]
    (run / "run.json").write_text(json.dumps(header))
    assert error_of(run) == (
        f"{run / 'run.json'}: is damaged (cases.1.uri: Field required); take the run from a backup"
    )


def test_unknown_fields_of_a_record_are_passed_over(run: Path) -> None:
    """A later harness of the same schema may say more."""
    file = run / "rounds.jsonl"
    line = json.loads(file.read_text().splitlines()[0])
    file.write_text(json.dumps({**line, "temperature": 40}) + "\n")
    assert load_run(run).rounds == (make_round(0),)


def test_results_that_are_a_file_are_refused(tmp_path: Path) -> None:
    results = tmp_path / "results"
    results.touch()
    for attempt in (lambda: require_writable(results), lambda: RunDirectory.create(results, make_header())):
        with pytest.raises(RunError) as caught:
            attempt()
        assert str(caught.value) == f"{results}: cannot be written (File exists); choose another folder with --results"


@pytest.mark.parametrize("below", ["results", "deep/er"])
def test_results_below_a_file_are_refused(tmp_path: Path, below: str) -> None:
    (tmp_path / "file").touch()
    results = tmp_path / "file" / below
    with pytest.raises(RunError) as caught:
        require_writable(results)
    assert str(caught.value) == f"{results}: cannot be written (Not a directory); choose another folder with --results"


def test_a_folder_that_can_be_written_is_left_as_it_was(tmp_path: Path) -> None:
    require_writable(tmp_path / "deep" / "results")
    assert list((tmp_path / "deep" / "results").iterdir()) == []


@pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo, lambda file: file.symlink_to("/dev/null")])
def test_a_run_whose_file_is_no_plain_file_is_not_read_as_one_without_it(
    run: Path, make: Callable[[Path], None]
) -> None:
    (run / "rounds.jsonl").unlink()
    make(run / "rounds.jsonl")
    told = f"{run / 'rounds.jsonl'}: is no plain file; take it away, or take the file from a backup"
    assert error_of(run) == told


def test_a_link_to_nothing_is_no_missing_file(run: Path) -> None:
    (run / "rounds.jsonl").unlink()
    (run / "rounds.jsonl").symlink_to(run / "elsewhere")
    assert error_of(run).startswith(f"{run / 'rounds.jsonl'}: cannot be read (No such file or directory)")


def test_a_file_that_became_a_folder_meanwhile_cannot_be_written(run: Path) -> None:
    directory, _ = RunDirectory.resume(run)
    (run / "rounds.jsonl").unlink()
    (run / "rounds.jsonl").mkdir()
    with directory, pytest.raises(RunError) as caught:
        directory.append(make_round(3))
    assert str(caught.value).startswith(f"{run}: cannot be written (Is a directory); make room or mend")


# --- What a finished run was finished with ---


def finish(run: Path) -> Path:
    with RunDirectory.resume(run)[0] as directory:
        directory.finish(lambda _: "# Report\n")
    return run


def test_a_finished_run_that_lost_its_turns_is_not_one_that_measured_nothing(run: Path) -> None:
    (finish(run) / "rounds.jsonl").unlink()
    with pytest.raises(RunError) as caught:
        load_run(run)
    assert str(caught.value) == f"{run / 'rounds.jsonl'}: is gone; take it from a backup"


def test_one_whose_turns_were_dropped_is_read(run: Path) -> None:
    mark_dropped(finish(run), describe_file(run / "rounds.jsonl"))
    (run / "rounds.jsonl").unlink()
    assert load_run(run).rounds == ()


def test_one_that_never_had_any_is_read(run: Path) -> None:
    (run / "rounds.jsonl").unlink()
    assert load_run(finish(run)).rounds == ()


# --- Names of runs ---


@pytest.mark.parametrize(
    ("suite", "name"),
    [
        ("nightly_2.x+gpu", "nightly_2.x+gpu"),
        ("a/b", "a-b"),
        ("../../etc", "etc"),
        ("nul\0", "nul-"),
        ("\ud800", "suite"),
        ("", "suite"),
        ("--help", "help"),
        ("L" * 10_000, "L" * 150),
    ],
)
def test_a_suite_of_any_name_gives_a_run_a_name_that_can_be_merged(tmp_path: Path, suite: str, name: str) -> None:
    now = datetime(2026, 11, 21, 3, 50, 12, tzinfo=timezone.utc)
    run_id = new_run_id(suite, now)
    assert run_id == f"20261121-035012-{name}"
    assert is_id(run_id)
    assert RunDirectory.create(tmp_path, make_header(run_id)).path.is_dir()
    with ComparisonDirectory(tmp_path, suite, now) as directory:
        assert directory.path.name == f"{run_id}-compare"
