"""Comparison -> text in each format, and back from JSON, which is also how a comparison is kept.

What a tool printed of a failed row stands apart from the rows, in `tool_output`, so that rows stay records of one
size; `row` in it counts the rows from 0.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from harness.errors import RunError
from harness.records.comparison import VERDICTS, Comparison, Row
from harness.report import Format
from harness.report.data import json_bytes, to_csv

# Raised when a name changes its meaning or goes away; new names may appear without.
SCHEMA_VERSION = 1

# Numbers that a value needs and JSON may have lost, since it has neither NaN nor infinities.
_NEEDED = {"rows": ("floor", "seconds"), "means": ("ratio",)}
_NEEDED_OF_SELFCHECK = ("upper_bound", "seconds")


def render_comparison(
    comparison: Comparison,
    format: Format,  # noqa: A002
    *,
    full: bool = False,
    width: int = 120,
    color: bool = False,
) -> str:
    """A comparison as text.

    Args:
        full: Whether Markdown has every row of every list.
        width: Columns of the terminal.
        color: Whether the terminal shows colours.
    """
    if format == "json":
        return json_document(comparison).decode()
    from harness.report.comparison_words import finite

    usable = finite(comparison)
    if format == "csv":
        # The commands that repeat a row are left to the other formats, since they take several lines.
        records = [row_record(row) for row in usable.rows]
        return to_csv([{name: value for name, value in record.items() if name != "repro"} for record in records])
    from harness.report.comparison_page import markdown_page, terminal_page

    if format == "terminal":
        from harness.report.terminal import to_terminal

        return to_terminal(terminal_page(usable), width=width, color=color)
    from harness.report.links import Surroundings
    from harness.report.markdown import COMMENT, to_markdown

    around = Surroundings(title=f"{'Full' if full else 'Abbreviated'} Benchmark Comparison")
    return to_markdown(markdown_page(usable, around, full=full), None if full else COMMENT)


def json_document(comparison: Comparison) -> bytes:
    """Everything a comparison says, as it is kept: JSON in the strict sense, without NaN and infinities.

    Of half a surrogate pair, as an argument that is no UTF-8 has, a `?` is left.
    """
    content = json_bytes(
        {
            "schema_version": SCHEMA_VERSION,
            "id": comparison.id,
            "created": comparison.created,
            "base": asdict(comparison.base),
            "head": asdict(comparison.head),
            "machine": asdict(comparison.machine),
            "within": comparison.within,
            "mode": comparison.mode,
            "rule": comparison.rule,
            "rows": [row_record(row) for row in comparison.rows],
            "tool_output": [
                {"row": index, "stderr": row.stderr} for index, row in enumerate(comparison.rows) if row.stderr
            ],
            "summary": {verdict: comparison.summary.get(verdict, 0) for verdict in VERDICTS},
            "means": [asdict(mean) for mean in comparison.means],
            "notes": comparison.notes,
            "settings": comparison.settings,
            "command": comparison.command,
        }
    )
    if b"\\ud" not in content:
        return content
    whole = json.dumps(json.loads(content), ensure_ascii=False).encode(errors="replace")
    return json_bytes(json.loads(whole))


def row_record(row: Row) -> dict[str, Any]:
    """A row as a flat record of stable names; its commands are the one list in it."""
    record = dict(vars(row))  # in the order of the fields, and faster than naming each
    del record["stderr"]
    if type(row.base_value) is int:  # as a byte count may be; it is written as it will be read
        record["base_value"] = float(row.base_value)
    if type(row.head_value) is int:
        record["head_value"] = float(row.head_value)
    return record


def comparison_from_json(text: str, source: str = "comparison.json") -> Comparison:
    """A comparison as it was kept.

    Args:
        source: Where the text is from, for messages.

    Raises:
        RunError: It is no comparison, or a later harness wrote it.
    """
    from pydantic import TypeAdapter, ValidationError

    try:
        document = json.loads(text)
    except RecursionError:
        raise RunError(f"{source}: is damaged (nested too deep); make the comparison again") from None
    except ValueError as error:
        raise RunError(f"{source}: is not JSON ({error}); make the comparison again") from None
    if _has_half_a_pair(text, document):
        raise RunError(f"{source}: is damaged (half a surrogate pair); make the comparison again")
    version = document.get("schema_version") if isinstance(document, dict) else None
    if version != SCHEMA_VERSION:
        raise RunError(
            f"{source}: is no comparison of schema version {SCHEMA_VERSION}, the one that this harness reads; read it "
            "with the harness that wrote it, or make the comparison again"
        )
    try:
        return TypeAdapter(Comparison).validate_python(_with_numbers(document))
    except (ValidationError, TypeError, AttributeError, LookupError) as error:
        where = ".".join(map(str, error.errors()[0]["loc"])) if isinstance(error, ValidationError) else "its rows"
        raise RunError(f"{source}: is damaged at {where}; make the comparison again") from None


def _has_half_a_pair(text: str, document: Any) -> bool:
    """Whether text of it cannot be encoded as UTF-8, and so fits no file and no table; JSON's escapes can say it."""
    try:
        text.encode()
        if "\\ud" in text or "\\uD" in text:  # in few documents
            json.dumps(document, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return True
    return False


def _with_numbers(document: Mapping[str, Any]) -> dict[str, Any]:
    """The document with NaN where a needed number was none, and each tool's output back in its row."""
    values = {key: value for key, value in document.items() if key not in ("schema_version", "tool_output")}
    for key, names in _NEEDED.items():
        values[key] = [_filled(record, names) for record in values[key]]
    for output in document.get("tool_output", ()):
        values["rows"][output["row"]]["stderr"] = output["stderr"]
    machine = dict(values["machine"])
    if machine.get("selfcheck"):
        machine["selfcheck"] = _filled(machine["selfcheck"], _NEEDED_OF_SELFCHECK)
    return {**values, "machine": machine}


def _filled(record: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    lost = {name: math.nan for name in names if name in record and record[name] is None}
    return {**record, **lost}
