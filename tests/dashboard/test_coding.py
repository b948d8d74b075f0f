"""Tables become small scripts and lose nothing that anybody can see."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.dashboard.coding import key_of, numbers, script, texts, whole
from tests.dashboard.made import HOSTILE
from tests.dashboard.reading import decode

_FIGURES = st.lists(st.floats(min_value=1e-12, max_value=1e15) | st.just(math.nan), min_size=1, max_size=40)


@given(_FIGURES)
def test_figures_keep_six_digits(values: list[float]) -> None:
    for value, read in zip(values, decode(numbers(np.array(values)), len(values)), strict=True):
        if math.isnan(value):
            assert read is None
        else:
            assert read == pytest.approx(value, rel=5.1e-6)


@given(st.lists(st.integers(0, 2**52), min_size=1, max_size=40))
def test_counts_are_kept_whole(values: list[int]) -> None:
    assert decode(numbers(np.array(values, dtype=np.float64), exact=True), len(values)) == values


@given(st.lists(st.text() | st.none(), max_size=40))
def test_texts_come_back_as_they_were(values: list[str | None]) -> None:
    assert decode(texts(values), len(values)) == values


@pytest.mark.parametrize(
    ("column", "form"),
    [
        (numbers(np.array([math.nan, math.inf])), {"c": None}),
        (whole(np.array([7.0, 7.0, 7.0])), {"c": 7}),
        (numbers(np.array([1_000_000.0, 1_000_012.0, 1_000_031.0])), {"d": [100000, 1, 2], "k": -1}),
        (texts(["a", "a"]), {"c": "a"}),
        (texts(["a", "b", "a", "a"]), {"t": ["a", "b"], "i": [0, 1, 0, 0]}),
        (texts(["a", "b"]), {"v": ["a", "b"]}),
    ],
    ids=["nothing", "constant", "rising", "one text", "few texts", "all different"],
)
def test_the_shortest_form_is_taken(column: dict[str, Any], form: dict[str, Any]) -> None:
    assert column == form


@given(st.text() | st.sampled_from(HOSTILE))
def test_a_script_holds_nothing_that_could_end_it(text: str) -> None:
    written = script("run/0123456789abcdef", {"name": text})
    assert written.isascii()
    assert "<" not in written
    assert "\n" not in written[:-1]
    assert json.loads(written.partition(",")[2][: -len(");\n")]) == {"name": text}


@given(st.text())
def test_names_of_files_are_hex_whatever_is_named(text: str) -> None:
    key = key_of(text)
    assert len(key) == 16
    assert set(key) <= set("0123456789abcdef")


def test_an_id_that_is_hex_stays_and_a_path_does_not() -> None:
    assert key_of("00ff00ff00ff00ff") == "00ff00ff00ff00ff"
    assert key_of("../../etc/passwd") != "../../etc/passwd"
    assert key_of("00ff00ff00ff00ff\n") != "00ff00ff00ff00ff\n"
