"""To be removed: harness.report.data has it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness.report.data import SCHEMA_VERSION, json_bytes

__all__ = ["SCHEMA_VERSION", "json_bytes", "json_text"]


def json_text(document: Mapping[str, Any]) -> str:
    """A document as text."""
    return json_bytes(document).decode()
