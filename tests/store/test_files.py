"""Files of runs are read line by line, and never more than a limit at once."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import RunError
from harness.store.files import ends_in_newline, log_path, read_document, read_lines


@given(content=st.binary(max_size=60), limit=st.integers(min_value=60, max_value=80))
def test_lines_are_what_ends_in_a_newline(tmp_path_factory: pytest.TempPathFactory, content: bytes, limit: int) -> None:
    file = tmp_path_factory.getbasetemp() / "lines"
    file.write_bytes(content)
    assert list(read_lines(file, limit)) == content.split(b"\n")[:-1]
    assert ends_in_newline(file) == (content.split(b"\n")[-1] == b"")


def test_a_line_up_to_the_limit_is_read_and_a_longer_one_is_named(tmp_path: Path) -> None:
    file = tmp_path / "rounds.jsonl"
    file.write_bytes(b"short\n" + b"x" * 100 + b"\n")
    assert [len(line) for line in read_lines(file, 100)] == [5, 100]
    lines = read_lines(file, 99)
    assert next(lines) == b"short"
    with pytest.raises(RunError, match=r"rounds.jsonl: line 2 is longer than .* MiB, which no record is"):
        next(lines)


def test_a_document_that_is_too_large_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "run.json"
    file.write_bytes(b"12345")
    assert read_document(file, 5) == b"12345"
    with pytest.raises(RunError, match=r"run.json: is larger than"):
        read_document(file, 4)


def test_what_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"gone: cannot be read \(No such file or directory\)"):
        read_document(tmp_path / "gone")
    with pytest.raises(RunError, match="is no plain file"):
        read_document(tmp_path)


def test_a_log_has_a_name_that_file_systems_take_and_no_other_case_has() -> None:
    long, other = (f"{'m' * 100}/{'v' * 100}@{'d' * 100}:{release}" for release in ("3.12.0", "3.13.0"))
    names = {Path(log_path(case)).name for case in (long, other)}
    assert len(names) == 2
    assert all(len(name) < 255 for name in names)
    assert Path(log_path("net/stock@cpu:3.13.0")).name == "net,stock@cpu,3.13.0.stderr.txt"
