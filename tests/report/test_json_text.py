"""Documents for other programs: JSON in the strict sense, whatever is in them."""

from __future__ import annotations

import json
import math
from pathlib import Path
from types import MappingProxyType

from hypothesis import given
from hypothesis import strategies as st

from harness.report.json_ import json_text

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(st.dictionaries(st.text(), VALUES))
def test_what_is_written_is_read_again(document: dict[str, object]) -> None:
    assert json.loads(json_text(document)) == document


def test_what_json_cannot_hold_becomes_something_it_can() -> None:
    document = {"nan": math.nan, "inf": [-math.inf], "path": Path("a/b"), "view": MappingProxyType({"x": (1, 2)})}
    assert json.loads(json_text(document)) == {"nan": None, "inf": [None], "path": "a/b", "view": {"x": [1, 2]}}


def test_half_a_character_is_written_all_the_same() -> None:
    """A file's name may hold one, as Python reads names that are no UTF-8."""
    assert json.loads(json_text({"name": "a\udc80b"})) == {"name": "a\udc80b"}
