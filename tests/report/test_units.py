"""Figures as texts, and what sides and names are called."""

import unicodedata
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.records.comparison import SideFacts
from harness.report.units import (
    compared,
    middle_cut,
    p_text,
    percent,
    ratio_text,
    tidy,
    unit_of,
    unit_that_tells,
    with_unit,
)
from tests.report.builders import make_side


@pytest.mark.parametrize(
    ("unit", "kind", "values", "texts"),
    [
        (unit_of, "ns", [220e6, 132.5e6, None], ["ms", "220.0", "132.5", "-"]),
        (unit_of, "ns", [20_311.0, 3e6], ["ms", "0.020", "3.000"]),
        (unit_of, "ns", [0.0, None], ["ns", "0", "-"]),
        (unit_of, "bytes", [19_796_992, 10_235_904], ["MiB", "18.88", "9.76"]),
        (unit_of, "bytes", [0, 512], ["bytes", "0", "512"]),
        (unit_of, "instructions", [1_107_360_862.0, 1_107_471_598.0], ["G", "1.10736", "1.10747"]),
        # Values that differ look different, with six decimals at most.
        (unit_that_tells, "bytes", [10_205, 10_269], ["KiB", "9.97", "10.03"]),
        (unit_that_tells, "bytes", [2**34, 2**34 + 1], ["GiB", "16.000000", "16.000000"]),
    ],
)
def test_columns(unit: Callable[..., Any], kind: str, values: list[float | None], texts: list[str]) -> None:
    found = unit(kind, values)
    assert [found.name, *map(found.text, values)] == texts


@pytest.mark.parametrize(
    ("write", "texts"),
    [
        (ratio_text, {0.6021: "0.602", 1.0: "1.000", 12.34: "12.3", 0.0451: "0.045", 1e114: "1e+114", 1e-9: "1e-09"}),
        (p_text, {None: "-", 1.0: "1", 0.031: "0.031", 0.0097: "1e-2", 2.3e-4: "2e-4", 0.0: "0"}),
        (with_unit, {231e6: "231 ms", 4.7e6: "4.70 ms"}),
        (percent, {1.12: "+12.0 %", 0.5: "-50.0 %"}),
    ],
)
def test_single_figures(write: Callable[[Any], str], texts: dict[float | None, str]) -> None:
    assert {value: write(value) for value in texts} == texts


@given(st.text(), st.integers(0, 60))
def test_a_name_is_one_line_of_characters_that_are_seen_as_long_as_was_asked(text: str, keep: int) -> None:
    found = tidy(text)
    assert not {unicodedata.category(char) for char in found} & {"Cc", "Cf", "Cs", "Zl", "Zp", "Mn"}
    assert found == " ".join(found.split()) == tidy(found)
    assert len(middle_cut(text, keep)) <= keep + 1
    assert keep < len(text) or middle_cut(text, keep) == text


def given_as(label: str, version: str = "3.13.0", **facts: Any) -> SideFacts:
    return make_side(label, version, **facts)


COMMIT = {"commit": "9b05f1760b12" * 3}


@pytest.mark.parametrize(
    ("base", "head", "name"),
    [
        (given_as("results/old", "3.11.0"), given_as("results/new"), "IREE 3.13.0 against IREE 3.11.0"),
        (
            given_as("results/old", toolchains=("3.13.0 (aaaa)",)),
            given_as("results/new", toolchains=("3.13.0 (bbbb)",)),
            "IREE 3.13.0 (bbbb) against IREE 3.13.0 (aaaa)",
        ),
        (given_as("results/old"), given_as("/home/me/results/new/"), "new against old"),
        (given_as("", run="first"), given_as("", run="second"), "second against first"),
        (given_as("iree==3.13.0"), given_as("HEAD", **COMMIT), "commit 9b05f1760b against IREE 3.13.0"),
        (given_as("", variants=("stock",)), given_as("", variants=("fast", "lean")), "fast and lean against stock"),
        (given_as(""), given_as("", variants=tuple("abcd")), "4 variants against the baseline"),
    ],
)
def test_a_comparison_is_called_by_what_tells_its_sides_apart(base: SideFacts, head: SideFacts, name: str) -> None:
    assert compared(base, head) == name
