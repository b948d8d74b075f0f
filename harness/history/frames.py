"""Rows -> pandas frames, whose columns have the same types however many rows there are."""

from __future__ import annotations

import types
from collections.abc import Iterable, Mapping
from dataclasses import fields
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, Union, cast, get_args, get_origin, get_type_hints

from harness.history.values import CaseRow, ComparisonRow, Point, RunRow, TurnRow

if TYPE_CHECKING:
    import pandas as pd

    from harness.records.run import Run

Table = Literal["runs", "points", "cases", "turns", "comparisons"]
Kind = Literal["text", "integer", "integer or none", "number", "truth"]

TABLES: Mapping[Table, type[Any]] = {
    "runs": RunRow,
    "points": Point,
    "cases": CaseRow,
    "turns": TurnRow,
    "comparisons": ComparisonRow,
}
# What rows of a table are sorted by on disk, so that what is asked for together lies together.
SORTED_BY: Mapping[Table, tuple[str, ...]] = {
    "runs": ("started", "run"),
    "points": ("series", "started", "run"),
    "cases": ("started", "run"),
    "turns": ("run", "group", "generation", "round", "place"),
    "comparisons": ("created", "comparison"),
}


def kinds_of(row: type[Any]) -> Mapping[str, Kind]:
    """What each column holds, in the order of the row's fields."""
    if row not in _KINDS:
        hints = get_type_hints(row)
        _KINDS[row] = {field.name: _kind(hints[field.name]) for field in fields(row)}
    return _KINDS[row]


_KINDS: dict[type[Any], Mapping[str, Kind]] = {}  # looking hints up takes a millisecond


def _kind(hint: Any) -> Kind:
    optional = get_origin(hint) in (Union, types.UnionType)
    plain = next(one for one in get_args(hint) if one is not type(None)) if optional else hint
    if plain is bool:
        return "truth"
    if plain is float:
        return "number"
    if plain is int:
        return "integer or none" if optional else "integer"
    return "text"  # str, and Literal of words


def frame_of(row: type[Any], rows: Iterable[Any]) -> pd.DataFrame:
    """Rows of one kind as a frame.

    Raises:
        OverflowError: A number is too large for 64 bits.
    """
    listed = list(rows)
    return shape(row, {name: [getattr(one, name) for one in listed] for name in kinds_of(row)})


def turns_frame(run: Run) -> pd.DataFrame:
    """A run's turns, without making a row of each."""
    columns: dict[str, list[Any]] = {name: [] for name in kinds_of(TurnRow)}
    for one in run.rounds:
        count = len(one.turns)
        columns["group"] += [one.group] * count
        columns["generation"] += [one.generation] * count
        columns["round"] += [one.round] * count
        columns["place"] += range(count)
        columns["started_unix_ns"] += [one.started_unix_ns] * count
        for name in ("case", "calls", "wall_ns", "cpu_ns"):
            columns[name] += [getattr(turn, name) for turn in one.turns]
    columns["run"] = [run.header.id] * len(columns["case"])
    return shape(TurnRow, columns)


def shape(row: type[Any], columns: Any) -> pd.DataFrame:
    """A frame or a mapping of columns, with the columns and types of a table.

    Args:
        columns: What can be asked for a column by its name.
    """
    import pandas as pd

    typed: dict[str, Any] = {name: pd.Series(columns[name], dtype=_dtype(kind)) for name, kind in kinds_of(row).items()}
    return cast("pd.DataFrame", pd.DataFrame(typed))  # the stubs call it Any


@cache
def _dtype(kind: Kind) -> Any:
    import pandas as pd

    if kind == "text":  # pandas 3 has a type for text, and before it str would make "None" of None
        return "str" if int(pd.__version__.split(".")[0]) >= 3 else object
    return {"integer": "int64", "integer or none": "Int64", "number": "float64", "truth": "bool"}[kind]
