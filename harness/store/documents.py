"""A document that was kept, as far as it can be checked without knowing its fields."""

from __future__ import annotations

import json
from typing import Any

from harness.errors import RunError
from harness.store.files import require_schema

# A suite's names have at most 100 characters each, of which a case's has three, and its release.
_NAMES = frozenset(
    (
        "case",
        "model",
        "variant",
        "device",
        "metric",
        "unit",
        "verdict",
        "gate",
        "name",
        "suite",
        "variants",
        "commit",
        "subject",
        "operation",
        "explanation",
    )
)
_LONGEST_NAME = 4_000
# A flag may be a pass pipeline, and a tool's output is cut at 4,000 characters.
_LONGEST_TEXT = 100_000


def parse_kept(
    content: str | bytes, source: str, *, what: str, version: int, longest_text: int = _LONGEST_TEXT
) -> dict[str, Any]:
    """The fields of a document, `schema_version` among them."""
    again = f"make the {what} again"
    try:
        text = content if isinstance(content, str) else content.decode()
        document = json.loads(text)
        longest = _too_long(document, longest_text)
    except RecursionError:
        raise RunError(f"{source}: is damaged (nested too deep); {again}") from None
    except ValueError as error:
        raise RunError(f"{source}: is not JSON ({error}); {again}") from None
    if longest:
        raise RunError(f"{source}: is damaged ({longest}); {again}")
    if _has_half_a_pair(text, document):
        raise RunError(f"{source}: is damaged (half a surrogate pair); {again}")
    found = document.get("schema_version") if isinstance(document, dict) else None
    require_schema(found, source, version)
    if found != version or not isinstance(document, dict):
        raise RunError(
            f"{source}: is no {what} of schema version {version}, the one that this harness reads; read it with the "
            f"harness that wrote it, or {again}"
        )
    return document


def _too_long(value: Any, longest_text: int, key: str = "") -> str:
    """A text of it that is longer than any that a harness writes; "" where there is none.

    A name is written many times into each report, and looked through for what has to be escaped there.
    """
    if isinstance(value, str):
        longest = _LONGEST_NAME if key in _NAMES else longest_text
        return f"{key or 'a text'} of {len(value):,} characters" if len(value) > longest else ""
    if isinstance(value, dict):
        names = next((f"a key of {len(name):,} characters" for name in value if len(name) > _LONGEST_NAME), "")
        return names or next(
            (found for name, item in value.items() if (found := _too_long(item, longest_text, name))), ""
        )
    if isinstance(value, list):
        return next((found for item in value if (found := _too_long(item, longest_text, key))), "")
    return ""


def _has_half_a_pair(text: str, document: Any) -> bool:
    """Whether text of it cannot be encoded as UTF-8, and so fits no file and no table; JSON's escapes can say it."""
    try:
        text.encode()
        if "\\ud" in text or "\\uD" in text:  # in few documents
            json.dumps(document, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return True
    return False
