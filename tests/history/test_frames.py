"""Frames have the same columns and types whether they have rows or not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from harness.history.frames import TABLES, Table, frame_of, kinds_of, turns_frame
from harness.history.tables import tables_of
from harness.history.tables_page import VIEWS, column_records, columns_page, meanings
from harness.report.markdown import to_markdown
from tests.history.made import make_night

ROWS: dict[Table, list[Any]] = {
    "runs": tables_of(make_night()).runs,
    "points": tables_of(make_night()).points,
    "cases": tables_of(make_night()).cases,
    "turns": tables_of(make_night()).turns,
}


@pytest.mark.parametrize("table", ["runs", "points", "cases", "turns"])
def test_an_empty_table_has_the_types_of_a_full_one(table: Table) -> None:
    full, empty = frame_of(TABLES[table], ROWS[table]), frame_of(TABLES[table], [])

    assert len(full) == len(ROWS[table])
    assert len(empty) == 0
    assert list(full.columns) == list(kinds_of(TABLES[table])) == list(empty.columns)
    assert full.dtypes.equals(empty.dtypes)


def test_turns_are_the_same_with_and_without_a_row_each() -> None:
    run = make_night(generations=2)

    assert turns_frame(run).equals(frame_of(TABLES["turns"], tables_of(run).turns))


def test_a_number_that_fits_nowhere_is_an_error_and_not_another_number() -> None:
    run = make_night()
    turns = tables_of(run).turns
    huge = [type(turns[0])(**{**vars(turns[0]), "wall_ns": 2**70})]

    with pytest.raises(OverflowError):
        frame_of(TABLES["turns"], huge)


@pytest.mark.parametrize("view", list(VIEWS))
def test_every_column_is_documented(view: str) -> None:
    listed = {one["column"]: one["meaning"] for one in column_records() if one["table"] == view}

    assert list(listed) == list(kinds_of(VIEWS[view]))
    assert all(listed.values())
    assert set(meanings(VIEWS[view])) <= set(listed)  # nothing is explained that is not there


def test_the_list_in_the_documentation_is_this_one() -> None:
    documentation = Path(__file__).parents[2] / "docs" / "history.md"

    assert to_markdown(columns_page()).strip() in documentation.read_text()
