"""Explanation -> JSON and CSV; harness.store.kinds reads the JSON, in which it is kept."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from harness.records.explanation import Explanation
from harness.report.data import json_bytes, to_csv
from harness.report.explanation_words import TimeLine, time_lines
from harness.store.kinds import EXPLANATION


def explanation_document(explanation: Explanation) -> bytes:
    """Everything that an explanation says, as it is kept: JSON in the strict sense.

    Of half a surrogate pair, as an argument that is no UTF-8 has, a `?` is left.
    """
    content = json_bytes({"schema_version": EXPLANATION.version, **asdict(explanation)})
    if b"\\ud" not in content:
        return content
    whole = json.dumps(json.loads(content), ensure_ascii=False).encode(errors="replace")
    return json_bytes(json.loads(whole))


def explanation_csv(explanation: Explanation) -> str:
    """A line a part, then what is spent elsewhere and the whole call; see `time_lines`."""
    return to_csv([_record(explanation.case, line) for line in time_lines(explanation)])


def _record(case: str, line: TimeLine) -> dict[str, Any]:
    part = line.part
    return {
        "case": case,
        "kind": line.kind,
        "name": line.name,
        "operation": part.operation if part is not None else "",
        "base": " ".join(part.base) if part is not None else "",
        "head": " ".join(part.head) if part is not None else "",
        "matched_by": part.matched_by if part is not None else "",
        "base_ns": line.base_ns if line.is_timed else None,
        "head_ns": line.head_ns if line.is_timed else None,
        "change_ns": line.change_ns if line.is_timed else None,
        "ratio": line.ratio,
        "ci_low": line.ci_low,
        "ci_high": line.ci_high,
        "p": part.p if part is not None else None,
        "verdict": line.verdict,
        "generations": part.generations if part is not None else None,
        "differs_at": part.differs_at if part is not None else "",
        "what": "; ".join(part.what) if part is not None else "",
    }
