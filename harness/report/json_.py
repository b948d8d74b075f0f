"""Report -> one JSON document, for other programs."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from harness.report.flat import flatten
from harness.report.values import Report, Row

# Raised when a name changes its meaning or goes away; new names may appear without.
SCHEMA_VERSION = 1


def render_json(report: Report) -> str:
    """The run's facts, its rows and its counts; JSON in the strict sense, without NaN and infinities."""
    document = {
        "schema_version": SCHEMA_VERSION,
        "run": asdict(report.facts),
        "summary": asdict(report.summary),
        "notes": report.notes,
        "groups": [
            {
                "group": section.group,
                "model": section.model,
                "device": section.device,
                "call": section.call,
                "rounds_by_generation": section.rounds,
                "work": asdict(section.work) if section.work else None,
                "peak": asdict(section.peak) if section.peak else None,
            }
            for section in report.sections
        ],
        "rows": [_record(row) for row in report.rows()],
    }
    return json_text(document)


def _record(row: Row) -> dict[str, Any]:
    return {
        **flatten(row),
        "failure_stderr": row.failure.stderr if row.failure else None,
        "ir": row.ir,
        "encoded_tensors": [asdict(tensor) for tensor in row.storage.tensors] if row.storage else None,
        "memory_by_device": [asdict(one) for one in row.memory],
        "plugin_effects": [asdict(effect) for effect in row.effects],
        "remarks": row.remarks,
        "repro": row.repro,
        "compile_flags": row.compile_flags,
        "run_flags": row.run_flags,
    }


def json_text(document: Mapping[str, Any]) -> str:
    """A document as text, for other programs; what is no number is null."""
    return json_bytes(document).decode()


def json_bytes(document: Mapping[str, Any]) -> bytes:
    """The same in UTF-8."""
    from pydantic_core import PydanticSerializationError, to_json

    try:  # several times faster than the other
        return to_json(document, indent=2, inf_nan_mode="null", fallback=plain_value) + b"\n"
    except PydanticSerializationError:  # half a surrogate pair, as a file name may have
        return json.dumps(plain_value(document), indent=2, allow_nan=False).encode() + b"\n"


def plain_value(value: Any) -> Any:
    """What JSON can hold: an environment may have recorded a NaN, a path, or anything else."""
    if isinstance(value, Mapping):
        return {str(key): plain_value(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain_value(one) for one in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, str | int | bool) else str(value)
