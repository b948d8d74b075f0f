"""Rows -> tables, CSV and JSON, from one declaration of each column."""

import csv
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, is_dataclass
from io import StringIO
from typing import Any, Generic, TypeAlias, TypeVar

from harness.records.comparison import VERDICTS, Comparison, Row
from harness.report.page import Cell, Column, Kind, Part, Sentence, Table, Tone
from harness.report.units import NOTHING, Unit, unit_of
from harness.store.folders import kind_of_value
from harness.text import one_line

# Raised when a name changes its meaning or goes away; new names may appear without.
SCHEMA_VERSION = 1

Scalar: TypeAlias = str | int | float | bool | None
T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Field(Generic[T]):
    """One column of a list of rows, wherever it is shown."""

    value: Callable[[T], Any]  # Of a row; None where it has none; of a number as text, where it is written otherwise
    name: str = ""  # In JSON and CSV; "": it is not there
    title: str = ""  # In tables; "": it is not there
    kind: Kind = "number"
    # What the figures of a number are: `ns`, `bytes`, `count`, ..., see harness.report.units.unit_of; or a unit itself
    unit: str | Unit = "count"
    rank: int = 0  # As that of a page's column


def tabulate(fields: Sequence[Field[T]], rows: Sequence[T]) -> list[Column]:
    """The columns of a table, without those in which no row has anything; each column has one unit."""
    columns = []
    for field in fields:
        values = [field.value(row) for row in rows]
        if not field.title or all(value is None or value == "" for value in values):
            continue
        if field.kind == "number":
            unit = unit_of(field.unit, values) if isinstance(field.unit, str) else field.unit
            cells: list[Cell] = [value if isinstance(value, str) else unit.text(value) for value in values]
            columns.append(Column(field.title, cells, kind="number", unit=unit.name, rank=field.rank))
        else:
            texts: list[Cell] = [NOTHING if value is None else value for value in values]
            columns.append(Column(field.title, texts, kind=field.kind, rank=field.rank))
    return columns


def table_of(
    fields: Sequence[Field[T]],
    rows: Sequence[T],
    title: str,
    *,
    tones: Sequence[Tone] = (),
    most: int | None = None,
    after: Sequence[Sentence] = (),
) -> list[Part]:
    """A table with a title; [] without rows."""
    table = Table(title=title, columns=tabulate(fields, rows), tones=tones, most=most, after=after)
    return [table] if rows else []


def records(fields: Sequence[Field[T]], rows: Sequence[T]) -> list[dict[str, Any]]:
    """The rows for other programs."""
    return [{field.name: field.value(row) for field in fields if field.name} for row in rows]


def to_csv(rows: Sequence[Mapping[str, Any]]) -> str:
    """Records of the same names as CSV with a line of heads; "" without records."""
    text = StringIO()
    if rows:
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow([one_line(column) for column in rows[0]])
        writer.writerows([_csv_cell(value) for value in row.values()] for row in rows)
    return text.getvalue()


def _csv_cell(value: Scalar) -> Scalar:
    if isinstance(value, bool):
        return "true" if value else "false"
    # One line a row: a text of several lines would break every tool that counts lines.
    return one_line(value) if isinstance(value, str) else value


def to_json(document: Mapping[str, Any]) -> str:
    """A document of this schema version as text; JSON in the strict sense, where what is no number is null."""
    return json_bytes({"schema_version": SCHEMA_VERSION, **document}).decode()


def json_bytes(document: Mapping[str, Any]) -> bytes:
    """A document as it stands, in UTF-8; of half a surrogate pair, as a file name may have, a `?` is left."""
    from pydantic_core import PydanticSerializationError
    from pydantic_core import to_json as dump

    try:  # several times faster than the other
        return dump(document, indent=2, inf_nan_mode="null", fallback=plain_value) + b"\n"
    except PydanticSerializationError:
        text = json.dumps(plain_value(document), indent=2, allow_nan=False, ensure_ascii=False)
        return text.encode(errors="replace") + b"\n"


def document_of(found: Any) -> bytes:
    """A result as its folder keeps it: its fields by their names, and the version of its kind."""
    document = {"schema_version": kind_of_value(found).version, **vars(found)}
    if isinstance(found, Comparison):  # what tools printed stands apart, so that rows stay records of one size
        said = [{"row": place, "stderr": row.stderr} for place, row in enumerate(found.rows) if row.stderr]
        counts = {verdict: found.summary.get(verdict, 0) for verdict in VERDICTS}
        document |= {"rows": list(map(row_record, found.rows)), "tool_output": said, "summary": counts}
    return json_bytes(document)


def row_record(row: Row) -> dict[str, Any]:
    """A row of a comparison as a record of stable names, without what a tool printed."""
    record = dict(vars(row))  # in the order of the fields, and faster than naming each
    del record["stderr"]
    return record


def plain_value(value: Any) -> Any:
    """What JSON can hold: an environment may have recorded a NaN, a path, or anything else."""
    if is_dataclass(value):
        value = vars(value)
    if isinstance(value, Mapping):
        return {str(key): plain_value(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain_value(inner) for inner in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, str | int | bool) else str(value)
