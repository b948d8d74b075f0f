"""Tables become small scripts and lose nothing that anybody can see."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.dashboard.encode import column, key_of, script
from tests.dashboard.made import HOSTILE
from tests.dashboard.reading import decode


@given(st.lists(st.floats() | st.integers(0, 2**52), max_size=40))
def test_figures_keep_six_digits_and_whole_numbers_all(values: list[float]) -> None:
    for value, read in zip(values, decode(column(values), len(values)), strict=True):
        if not math.isfinite(value):
            assert read is None
        elif value == int(value) and abs(value) < 2**53:
            assert read == value
        else:
            assert read == pytest.approx(value, rel=5.1e-7)


@given(st.lists(st.text() | st.none(), max_size=40))
def test_texts_come_back_as_they_were(values: list[str | None]) -> None:
    assert decode(column(values), len(values)) == values


@pytest.mark.parametrize(
    ("values", "form"),
    [
        ([math.nan, math.inf, None], None),
        (pd.Series([1.5, 2.0, math.nan]), [1.5, 2, None]),
        ([np.int64(3), np.bool_(True), False], [3, True, False]),
        (["a", "b", "a", "a"], {"texts": ["a", "b"], "at": [0, 1, 0, 0]}),
        (["a", "b"], ["a", "b"]),
    ],
    ids=["nothing", "pandas", "numpy", "few texts", "all different"],
)
def test_how_a_column_is_written(values: Any, form: Any) -> None:
    assert column(values) == form
    json.dumps(column(values), allow_nan=False)


@given(st.text() | st.sampled_from(HOSTILE))
def test_a_script_holds_nothing_that_could_end_it(text: str) -> None:
    written = script("run/0123456789abcdef", {"name": text})
    assert written.isascii()
    assert "<" not in written
    assert "\n" not in written[:-1]
    assert json.loads(written.partition(",")[2][: -len(");\n")]) == {"name": text}


@given(st.text() | st.sampled_from(["../../etc/passwd", "00ff00ff00ff00ff\n"]))
def test_names_of_files_are_hex_whatever_is_named(text: str) -> None:
    assert len(key_of(text)) == 16
    assert set(key_of(text)) <= set("0123456789abcdef")
    assert key_of(key_of(text)) == key_of(text)  # an id that is hex stays
