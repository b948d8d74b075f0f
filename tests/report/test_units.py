"""Figures as texts, and what sides and names are called."""

import unicodedata
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.records.comparison import SideFacts
from harness.report.names import compared, middle_cut, tidy
from harness.report.units import (
    p_text,
    percent,
    ratio_text,
    unit_of,
    unit_that_tells,
    with_unit,
)
from tests.report.builders import make_side


@pytest.mark.parametrize(
    ("kind", "values", "name", "texts"),
    [
        ("ns", [220e6, 132.5e6, None], "ms", ["220.0", "132.5", "-"]),
        ("ns", [4.7123e6, 31e6], "ms", ["4.712", "31.000"]),
        ("ns", [20_311.0, 3e6], "ms", ["0.020", "3.000"]),
        ("ns", [1.5], "ns", ["1.500"]),
        ("ns", [108e9, 2.31e9], "s", ["108.000", "2.310"]),
        ("ns", [0.0, None], "ns", ["0", "-"]),
        ("bytes", [19_796_992, 10_235_904], "MiB", ["18.88", "9.76"]),
        ("bytes", [0, 512], "bytes", ["0", "512"]),
        ("bytes", [812_345, 1_203_000], "KiB", ["793", "1,175"]),
        ("instructions", [1_107_360_862.0, 1_107_471_598.0], "G", ["1.10736", "1.10747"]),
    ],
)
def test_columns(kind: str, values: list[float | None], name: str, texts: list[str]) -> None:
    unit = unit_of(kind, values)
    assert (unit.name, [unit.text(value) for value in values]) == (name, texts)


@pytest.mark.parametrize(
    ("write", "texts"),
    [
        (ratio_text, {0.6021: "0.602", 1.0: "1.000", 12.34: "12.3", 0.0451: "0.045", 1e114: "1e+114", 1e-9: "1e-09"}),
        (p_text, {None: "-", 1.0: "1", 0.8: "0.8", 0.031: "0.031", 0.01: "0.01", 0.0097: "1e-2", 2.3e-4: "2e-4"}),
        (p_text, {0.0: "0"}),
        (with_unit, {231e6: "231 ms", 4.7e6: "4.70 ms"}),
        (percent, {1.12: "+12 %", 0.5: "-50 %"}),
    ],
)
def test_single_figures(write: Callable[[Any], str], texts: dict[float | None, str]) -> None:
    assert {value: write(value) for value in texts} == texts


@pytest.mark.parametrize(
    ("kind", "values", "texts"),
    [
        ("bytes", [10_205, 10_269], ["9.97", "10.03"]),
        ("bytes", [812_345, 812_409], ["793.3", "793.4"]),
        ("bytes", [2**34, 2**34 + 1], ["16.000000", "16.000000"]),  # six decimals are enough for anybody
        ("ns", [2e6, 2e6], ["2.000", "2.000"]),
        ("count", [0, 3], ["0", "3"]),
    ],
)
def test_values_that_differ_look_different(kind: str, values: list[float], texts: list[str]) -> None:
    unit = unit_that_tells(kind, values)
    assert [unit.text(value) for value in values] == texts


@given(st.text())
def test_a_name_is_one_line_of_characters_that_are_seen(text: str) -> None:
    found = tidy(text)
    assert not {unicodedata.category(char) for char in found} & {"Cc", "Cf", "Cs", "Zl", "Zp", "Mn"}
    assert found == " ".join(found.split())
    assert tidy(found) == found


@given(st.text(max_size=50), st.integers(0, 60))
def test_what_is_left_of_a_name_is_as_long_as_was_asked(text: str, keep: int) -> None:
    assert len(middle_cut(text, keep)) <= max(keep, 0) + 1
    if keep >= len(text):
        assert middle_cut(text, keep) == text


OLD, NEW = "3.11.0", "3.13.0"


def of_commit(label: str, commit: str) -> SideFacts:
    return make_side(label, NEW, commit=commit, subject="Larger tiles")


@pytest.mark.parametrize(
    ("base", "head", "name"),
    [
        (make_side("results/old", OLD), make_side("results/new", NEW), "IREE 3.13.0 against IREE 3.11.0"),
        (
            make_side("results/old", NEW, toolchains=("3.13.0 (aaaa)",)),
            make_side("results/new", NEW, toolchains=("3.13.0 (bbbb)",)),
            "IREE 3.13.0 (bbbb) against IREE 3.13.0 (aaaa)",
        ),
        (make_side("results/old", NEW), make_side("/home/me/results/new/", NEW), "new against old"),
        (make_side("", NEW, run="first"), make_side("", NEW, run="second"), "second against first"),
        (
            of_commit("main", "9b05f1760b12" * 3),
            of_commit("HEAD", "0123456789ab" * 3),
            "commit 0123456789 against commit 9b05f1760b",
        ),
        (make_side("iree==3.13.0", NEW), of_commit("HEAD", "0123456789ab"), "commit 0123456789 against IREE 3.13.0"),
        (
            make_side("baseline", NEW, variants=("stock",)),
            make_side("variants", NEW, variants=("fast", "lean")),
            "fast and lean against stock",
        ),
        (
            make_side("baseline", NEW),
            make_side("variants", NEW, variants=tuple("abcd")),
            "4 variants against the baseline",
        ),
    ],
)
def test_a_comparison_is_called_by_what_tells_its_sides_apart(base: SideFacts, head: SideFacts, name: str) -> None:
    assert compared(base, head) == name
