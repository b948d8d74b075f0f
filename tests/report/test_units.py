"""One unit and one number of decimals for a whole column."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.report.units import Unit, byte_unit, count_unit, p_text, percent, ratio_text, time_unit, with_unit


def texts(unit: Unit, values: list[float | None]) -> tuple[str, list[str]]:
    return unit.name, [unit.text(value) for value in values]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([220e6, 132.5e6, None], ("ms", ["220.0", "132.5", "-"])),
        ([4.7123e6, 31e6], ("ms", ["4.712", "31.000"])),
        ([20_311.0, 3e6], ("ms", ["0.020", "3.000"])),
        ([812.0], ("ns", ["812"])),
        ([1.5], ("ns", ["1.500"])),
        ([108e9, 2.31e9], ("s", ["108.000", "2.310"])),
        ([3.4e15, 3.4e15], ("s", ["3,400,000", "3,400,000"])),
        ([0.0, None], ("ns", ["0", "-"])),
        ([], ("ns", [])),
    ],
)
def test_times(values: list[float | None], expected: tuple[str, list[str]]) -> None:
    assert texts(time_unit(values), values) == expected


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([19_796_992, 10_235_904], ("MiB", ["18.88", "9.76"])),
        ([50_430_464, 16_742_912], ("MiB", ["48.1", "16.0"])),
        ([0, 512], ("bytes", ["0", "512"])),
        ([0, 3_145_728], ("MiB", ["0.00", "3.00"])),
        ([812_345, 1_203_000], ("KiB", ["793", "1,175"])),
    ],
)
def test_sizes(values: list[float | None], expected: tuple[str, list[str]]) -> None:
    assert texts(byte_unit(values), values) == expected


def test_counts_show_small_differences() -> None:
    counts: list[float | None] = [1_107_360_862.0, 1_107_471_598.0]
    assert texts(count_unit(counts), counts) == ("G", ["1.10736", "1.10747"])


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.6021, "0.602"), (1.0, "1.000"), (12.34, "12.3"), (0.0451, "0.045"), (1e114, "1e+114"), (1e-9, "1e-09")],
)
def test_ratios(value: float, text: str) -> None:
    assert ratio_text(value) == text


def test_single_figures() -> None:
    assert with_unit(231e6) == "231 ms"
    assert with_unit(4.7e6) == "4.70 ms"
    assert percent(1.12) == "+12 %"
    assert percent(0.5) == "-50 %"


@given(st.lists(st.none() | st.floats(min_value=0, max_value=1e300), max_size=6))
def test_any_column_can_be_written(values: list[float | None]) -> None:
    unit = time_unit(values)
    assert 0 <= unit.decimals <= 3
    for value in values:
        assert value is None or float(unit.text(value).replace(",", "")) == pytest.approx(
            value / unit.size, rel=1e-6, abs=10**-unit.decimals
        )


@pytest.mark.parametrize(
    ("p", "text"),
    [
        (None, "-"),
        (1.0, "1"),
        (0.8, "0.8"),
        (0.031, "0.031"),
        (0.01, "0.01"),
        (0.0097, "1e-2"),
        (2.3e-4, "2e-4"),
        (0.0, "0"),
    ],
)
def test_p_values(p: float | None, text: str) -> None:
    assert p_text(p) == text
