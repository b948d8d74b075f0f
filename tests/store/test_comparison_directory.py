"""Comparisons on disk: one directory each, every turn at once, and nothing left of one that never began."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from pathlib import Path

import pytest

from harness.errors import RunError
from harness.store.kinds import COMPARISON
from harness.store.sides_directory import ComparisonDirectory
from tests.builders import make_round

NOW = datetime(2026, 11, 21, 3, 50, 12, tzinfo=timezone.utc)


def a_directory(results: Path) -> ComparisonDirectory:
    return ComparisonDirectory.create(results, "small", NOW)


def test_every_turn_and_every_compile_is_one_line_at_once_and_it_is_a_comparison_once_it_is_finished(
    tmp_path: Path,
) -> None:
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


def test_of_a_comparison_that_never_began_nothing_is_left_and_what_was_measured_stays(tmp_path: Path) -> None:
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
