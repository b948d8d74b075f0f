"""Tests of harness.verify.scalar_ops."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.verify.rounding import Shaker, UnsupportedError
from harness.verify.scalar_ops import scalar_op

EXACT = Shaker(samples=1, rng=np.random.default_rng(0))
SHAKEN = Shaker(samples=9, rng=np.random.default_rng(0))


def whole(name: str, kind: str, *numbers: int, predicate: int = 0) -> int:
    operands = [np.array([number], dtype=kind.replace("i", "int")) for number in numbers]
    result = "i1" if name == "arith.cmpi" else kind
    return int(scalar_op(name, operands, result, kind, predicate, EXACT)[0])


def wrapped(number: int, bits: int) -> int:
    half: int = 2 ** (bits - 1)
    return (number + half) % (2 * half) - half


def toward_zero(a: int, b: int) -> int:
    size = abs(a) // abs(b)
    return size if (a < 0) == (b < 0) else -size


SIGNED: dict[str, Callable[[int, int], int]] = {
    "arith.addi": lambda a, b: a + b,
    "arith.subi": lambda a, b: a - b,
    "arith.muli": lambda a, b: a * b,
    "arith.divsi": toward_zero,
    "arith.remsi": lambda a, b: a - toward_zero(a, b) * b,
    "arith.floordivsi": lambda a, b: a // b,
    "arith.ceildivsi": lambda a, b: -(-a // b),
    "arith.maxsi": max,
    "arith.xori": lambda a, b: a ^ b,
}
UNSIGNED: dict[str, Callable[[int, int], int]] = {
    "arith.divui": lambda a, b: a // b,
    "arith.remui": lambda a, b: a % b,
    "arith.ceildivui": lambda a, b: -(-a // b),
    "arith.minui": min,
}


@given(st.data(), st.sampled_from([8, 16, 32, 64]))
def test_whole_numbers_wrap_as_their_width_says(data: st.DataObject, bits: int) -> None:
    numbers = st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    a, b = data.draw(numbers), data.draw(numbers.filter(bool))
    if a == -(2 ** (bits - 1)):  # divided by -1 it leaves the type, which the dialect leaves open
        b = abs(b + 1) + 1
        b = min(b, 2 ** (bits - 1) - 1)
    for name, function in SIGNED.items():
        if name != "arith.ceildivsi" or a != -(2 ** (bits - 1)):
            assert whole(name, f"i{bits}", a, b) == wrapped(function(a, b), bits), name
    for name, function in UNSIGNED.items():
        assert whole(name, f"i{bits}", a, b) == wrapped(function(a % 2**bits, b % 2**bits), bits), name
    assert whole("arith.shrui", f"i{bits}", a, bits - 3) == (a % 2**bits) >> (bits - 3)
    assert whole("arith.shli", f"i{bits}", a, 3) == wrapped(a << 3, bits)
    assert whole("math.ctpop", f"i{bits}", a) == (a % 2**bits).bit_count()
    assert whole("arith.cmpi", f"i{bits}", a, b, predicate=2) == (a < b)
    assert whole("arith.cmpi", f"i{bits}", a, b, predicate=6) == (a % 2**bits < b % 2**bits)


@pytest.mark.parametrize(
    ("base", "exponent", "power"), [(3, 4, 81), (2, -1, 0), (-1, -3, -1), (1, -2, 1), (2, 31, -(2**31))]
)
def test_whole_powers(base: int, exponent: int, power: int) -> None:
    assert whole("math.ipowi", "i32", base, exponent) == power


@pytest.mark.parametrize(
    ("value", "kind", "name", "number"),
    [
        (-1.9, "i32", "arith.fptosi", -1),
        (2.0**63, "i64", "arith.fptosi", 2**63 - 1),
        (2.0**63, "i64", "arith.fptoui", -(2**63)),
        (200.0, "i8", "arith.fptoui", -56),
        (1e10, "i32", "arith.fptosi", 2**31 - 1),
    ],
)
def test_floats_to_whole_numbers(value: float, kind: str, name: str, number: int) -> None:
    assert int(scalar_op(name, [np.array([value])], kind, "f32", 0, EXACT)[0]) == number


@pytest.mark.parametrize(
    ("predicate", "answers"),  # of 1 and 2, 2 and 2, NaN and 2
    [(1, (0, 1, 0)), (4, (1, 0, 0)), (7, (1, 1, 0)), (9, (0, 0, 1)), (12, (1, 1, 1)), (13, (1, 0, 1)), (14, (0, 0, 1))],
)
def test_comparisons_of_floats(predicate: int, answers: tuple[int, ...]) -> None:
    a, b = np.array([[1.0, 2.0, math.nan]]), np.array([[2.0, 2.0, 2.0]])
    assert scalar_op("arith.cmpf", [a, b], "i1", "f32", predicate, EXACT)[0].astype(int).tolist() == list(answers)


def off(name: str, values: list[float], kind: str = "f32") -> np.ndarray:
    """How far shaking moves a function's results, in units of their magnitude."""
    samples = scalar_op(name, [np.array([values])], kind, kind, 0, SHAKEN)
    units: np.ndarray = np.abs(samples[1:] - samples[0]).max(axis=0) / np.abs(samples[0]) * 2.0**24
    return units


def test_a_function_may_be_off_by_its_allowance_and_not_by_digits() -> None:
    assert 1 < off("math.exp", [0.3])[0] < 20
    assert off("math.sinh", [1e-6])[0] < 40  # IREE is off by 300,000
    assert off("math.sin", [1e-6])[0] > 1e5  # which a reduction to one period in f32 is off by
    assert off("math.sqrt", [2.0])[0] <= 2


def test_a_power_is_off_by_what_its_own_exponent_says() -> None:
    base, exponent = np.array([[1.5, 1.5]]), np.array([[1.0, 200.0]])
    samples = scalar_op("math.powf", [base, exponent], "f32", "f32", 0, SHAKEN)
    units = np.abs(samples[1:] / samples[0] - 1).max(axis=0) * 2.0**24
    assert units[0] < 30 < units[1]


def test_what_is_not_known_is_named() -> None:
    with pytest.raises(UnsupportedError, match=r"math\.sincos of f32"):
        scalar_op("math.sincos", [np.zeros(1)], "f32", "f32", 0, EXACT)
