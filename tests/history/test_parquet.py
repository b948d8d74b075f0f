"""Compacted runs: what is written is what is read, and a part is there whole or not at all."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

from harness.errors import RunError
from harness.history.frames import SORTED_BY
from harness.history.index import part_file
from harness.history.open import open_history
from harness.history.parquet import compacted_runs, merge_parts, write_parts
from harness.history.tables import tables_of
from tests.history.made import make_nights, night_id, store

EVERYTHING = ("runs", "points", "cases", "turns", "series")


def everything(results: Path) -> dict[str, pd.DataFrame]:
    with open_history(str(results)) as history:
        return {view: history.query(f"FROM {view} ORDER BY ALL") for view in EVERYTHING}


def assert_same(one: dict[str, pd.DataFrame], other: dict[str, pd.DataFrame]) -> None:
    for view in EVERYTHING:
        pd.testing.assert_frame_equal(one[view], other[view])


def test_a_history_is_the_same_from_folders_and_from_parquet_and_when_parts_are_merged(tmp_path: Path) -> None:
    runs = make_nights(5)
    for run in runs:
        store(tmp_path / "folders", run)
    write_parts(tmp_path / "parquet", [tables_of(run) for run in runs[:2]])
    write_parts(tmp_path / "parquet", [tables_of(run) for run in runs[2:]])
    from_folders = everything(tmp_path / "folders")

    assert_same(from_folders, everything(tmp_path / "parquet"))
    assert merge_parts(tmp_path / "parquet") is not None
    assert_same(from_folders, everything(tmp_path / "parquet"))
    assert len(list((tmp_path / "parquet" / "history" / "points").iterdir())) == 1


def test_the_index_says_what_is_where(tmp_path: Path) -> None:
    part = write_parts(tmp_path, [tables_of(run) for run in make_nights(3)])

    assert compacted_runs(tmp_path) == frozenset(night_id(night) for night in range(3))
    assert part.name.startswith(f"{night_id(0)}--{night_id(2)}-")
    assert json.loads((tmp_path / "history" / "index.json").read_text())["schema_version"] == 1
    assert {table: part_file(tmp_path, table, part).stat().st_size for table in part.bytes} == part.bytes


def test_points_lie_in_order_of_their_series_and_time(tmp_path: Path) -> None:
    import duckdb

    part = write_parts(tmp_path, [tables_of(run) for run in reversed(make_nights(4))])
    stored = duckdb.read_parquet(str(part_file(tmp_path, "points", part))).df()

    assert stored.equals(stored.sort_values(list(SORTED_BY["points"]), ignore_index=True))


def test_nothing_was_compacted_yet(tmp_path: Path) -> None:
    assert compacted_runs(tmp_path) == frozenset()
    assert merge_parts(tmp_path) is None


def test_a_run_is_not_compacted_twice(tmp_path: Path) -> None:
    tables = [tables_of(run) for run in make_nights(2)]
    write_parts(tmp_path, tables)

    with pytest.raises(RunError, match="20260102-020000-nightly is compacted already"):
        write_parts(tmp_path, tables[1:])


def test_turns_of_some_runs_can_be_dropped_and_their_figures_stay(tmp_path: Path) -> None:
    write_parts(tmp_path, [tables_of(run) for run in make_nights(3)])
    before = everything(tmp_path)

    merge_parts(tmp_path, leave_turns_of=[night_id(0), "o'clock"])

    after = everything(tmp_path)
    assert set(after["turns"]["run"]) == {night_id(1), night_id(2)}
    pd.testing.assert_frame_equal(before["points"], after["points"])


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("{", "is damaged"),
        ("[" * 100_000, "is damaged"),
        ('{"schema_version": 2, "parts": []}', "has schema 2, and this harness reads 1"),
        ('{"schema_version": 1, "parts": [{"name": 3}]}', "is damaged"),
        ('{"schema_version": 1, "parts": [{"name": "../../../etc/passwd"}]}', "which is no name of a file"),
        ('{"schema_version": 1, "parts": [{"name": "a", "bytes": {"../x": 1}}]}', "is damaged"),
    ],
)
def test_an_index_that_is_none_is_told_in_a_sentence(tmp_path: Path, content: str, said: str) -> None:
    (tmp_path / "history").mkdir()
    (tmp_path / "history" / "index.json").write_text(content)

    with pytest.raises(RunError, match=said):
        compacted_runs(tmp_path)


def test_a_folder_with_an_odd_name_holds_a_history_like_any_other(tmp_path: Path) -> None:
    results = tmp_path / 'we\'ird [b]*? ünd "so"'
    write_parts(results, [tables_of(run) for run in make_nights(2)])

    assert len(everything(results)["runs"]) == 2
    assert (merge_parts(results, leave_turns_of=["none"])) is not None
    assert len(everything(results)["runs"]) == 2
