"""Report -> one JSON document, for other programs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from harness.report.data import SCHEMA_VERSION, json_bytes, plain_value
from harness.report.flat import flatten
from harness.report.values import Report, Row

__all__ = ["SCHEMA_VERSION", "json_bytes", "json_text", "plain_value", "render_json"]


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
