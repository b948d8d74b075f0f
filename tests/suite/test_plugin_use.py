"""How a plugin and its options are named in lists and reports."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.suite.load import PluginUse

_VALUES = st.recursive(
    st.one_of(st.integers(), st.booleans(), st.floats(), st.text()),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.parametrize(
    ("options", "label"),
    [
        ({}, "tile"),
        ({"width": 16}, "tile(width = 16)"),
        ({"width": 16, "deep": True, "name": "a"}, "tile(width = 16, deep = true, name = 'a')"),
        ({"sizes": [1, 2]}, "tile(sizes = [1, 2])"),
        ({"scale": math.nan}, "tile(scale = nan)"),
    ],
)
def test_a_label_is_name_and_options(options: dict[str, Any], label: str) -> None:
    assert PluginUse(name="tile", options=options).label == label


@given(value=_VALUES)
def test_a_label_is_one_line_whatever_the_options_hold(value: Any) -> None:
    label = PluginUse(name="tile", options={"value": value}).label
    assert label.isprintable()
    assert len(label.splitlines()) == 1
