"""Values as ensembles: how they are shaken, what operations of arith and math give, and products, views and sums."""

import itertools
import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.verify.linalg_ops import Index, Products, Space, pieces, space_sizes, summed, view
from harness.verify.rounding import FACTOR, Shaker, UnsupportedError, spread, to_kind
from harness.verify.scalar_ops import extended_op, scalar_op

EXACT = Shaker(samples=1, rng=np.random.default_rng(0))


def nine() -> Shaker:
    return Shaker(samples=9, rng=np.random.default_rng(0))


@pytest.fixture
def shaker() -> Shaker:
    return nine()


# --- Shaking ---


def test_a_step_gives_both_results_where_its_edge_is_near_and_one_elsewhere(shaker: Shaker) -> None:
    near = 2.0 + np.linspace(-1e-7, 1e-7, 9)[:, None] * [1.0, 1.0] + [0.0, 0.5]
    assert set(shaker.stepped(np.floor, near)[:, 0]) == {1.0, 2.0}
    assert set(shaker.stepped(np.floor, near)[:, 1]) == {2.0}
    answers = shaker.compared(np.less, near, np.array([[2.0, 2.0]]))
    assert answers[:, 0].any()
    assert not answers[1:, 0].all()
    assert not answers[:, 1].any()


def test_the_larger_of_two_that_are_close_has_the_larger_spread(shaker: Shaker) -> None:
    rough = 1.0 + np.linspace(-1e-3, 1e-3, 9)[:, None]
    rough[0] = 1.0
    most = shaker.extreme(np.maximum, rough, np.array([[1.0001]]))
    assert FACTOR * spread(most)[0] > 1e-3


def test_beyond_a_narrow_type_an_infinity_and_the_number_are_both_right(shaker: Shaker) -> None:
    for kind, infinite in (("f16", {False, True}), ("f32", {False})):
        assert set(np.isinf(shaker.rounded(np.array([70000.0]), kind)).flat) == infinite


# --- arith and math ---


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
        assert whole(name, f"i{bits}", a, b) == wrapped(function(a, b), bits), name
    for name, function in UNSIGNED.items():
        assert whole(name, f"i{bits}", a, b) == wrapped(function(a % 2**bits, b % 2**bits), bits), name
    assert whole("arith.shrui", f"i{bits}", a, bits - 3) == (a % 2**bits) >> (bits - 3)
    assert whole("arith.shli", f"i{bits}", a, 3) == wrapped(a << 3, bits)
    assert whole("math.ctpop", f"i{bits}", a) == (a % 2**bits).bit_count()
    assert whole("math.ctlz", f"i{bits}", a) == bits - (a % 2**bits).bit_length()
    assert whole("math.cttz", f"i{bits}", a) == (bits if a == 0 else (a & -a).bit_length() - 1)
    for name, exact in (
        ("mulsi", a * b),
        ("mului", (a % 2**bits) * (b % 2**bits)),
        ("addui", a % 2**bits + b % 2**bits),
    ):
        low, high = extended_op(f"arith.{name}_extended", *(np.array([x], f"i{bits // 8}") for x in (a, b)))
        assert (int(low[0]), int(high[0])) == (wrapped(exact, bits), wrapped(exact >> bits, bits)), name
    assert whole("arith.cmpi", f"i{bits}", a, b, predicate=2) == (a < b)
    assert whole("arith.cmpi", f"i{bits}", a, b, predicate=6) == (a % 2**bits < b % 2**bits)


def test_whole_powers_and_rests_of_large_quotients() -> None:
    for base, exponent, power in ((3, 4, 81), (2, -1, 0), (-1, -3, -1), (1, -2, 1), (2, 31, -(2**31))):
        assert whole("math.ipowi", "i32", base, exponent) == power
    a, b = np.array([[3e38, 1e20, -7.5, 5.0]]), np.array([[10.0, 2 * math.pi, 2.0, math.inf]])
    assert (scalar_op("arith.remf", [a, b], "f64", "f64", 0, EXACT) == np.fmod(a, b)).all()


@pytest.mark.parametrize(
    ("value", "kind", "name", "number"),
    [
        (-1.9, "i32", "arith.fptosi", -1),
        (2.0**63, "i64", "arith.fptosi", 2**63 - 1),
        (2.0**63, "i64", "arith.fptoui", -(2**63)),
        (200.0, "i8", "arith.fptoui", -56),
        (255.0, "i8", "arith.fptosi", -1),
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


def units(name: str, *operands: list[float]) -> list[float]:
    """How far shaking moves a function's results, in halves of a unit in the last place of their magnitude."""
    samples = scalar_op(name, [np.array([values]) for values in operands], "f32", "f32", 0, nine())
    found: list[float] = (np.abs(samples[1:] / samples[0] - 1).max(axis=0) * 2.0**24).tolist()
    return found


def test_a_function_may_be_off_by_its_allowance_and_not_by_digits() -> None:
    assert 1 < units("math.exp", [0.3])[0] < 20
    assert units("math.sinh", [1e-6])[0] < 40  # IREE is off by 300,000
    assert units("math.sin", [1e-6])[0] > 1e5  # which a reduction to one period in f32 is off by
    assert units("math.sqrt", [2.0])[0] <= 2
    small, large = units("math.powf", [1.5, 1.5], [1.0, 200.0])
    assert small < 30 < large, "what its own exponent says"


# --- Views, products and sums ---


def place_of(index: Index, dims: Sequence[np.ndarray]) -> np.ndarray:
    return sum((factor * dims[d] for d, factor in index.factors.items()), np.array(index.constant))


@given(st.lists(st.integers(1, 4), min_size=2, max_size=3), st.data())
def test_a_view_is_what_its_index_formula_says(sizes: list[int], data: st.DataObject) -> None:
    dims = range(len(sizes))
    indices = [
        Index(factors=dict.fromkeys(data.draw(st.sets(st.sampled_from(dims))), data.draw(st.integers(1, 2))),
              constant=data.draw(st.integers(0, 2)))
        for _ in range(2)
    ]  # fmt: skip
    bounds = tuple((data.draw(st.integers(0, size - 1)), size) for size in sizes)
    values = np.arange(2 * 21 * 21).reshape(2, 21, 21)
    as_function = [Index(function=partial(place_of, index)) for index in indices]
    seen, gathered = view(values, indices, bounds), view(values, as_function, bounds)
    for place in itertools.product(*(range(*bound) for bound in bounds)):
        element = [int(place_of(index, [np.array(d) for d in place])) for index in indices]
        for result in (seen, gathered):
            at = [p - low if size > 1 else 0 for p, (low, _), size in zip(place, bounds, result.shape[1:], strict=True)]
            assert all((one[tuple(at)] == other[tuple(element)]) for one, other in zip(result, values, strict=True))


def test_what_has_no_plain_view_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="leaves its operand"):
        view(np.zeros((1, 4)), [Index(factors={0: 1}, constant=2)], ((0, 3),))
    with pytest.raises(UnsupportedError, match="whose sizes no operand gives"):
        space_sizes([[Index(factors={0: 1, 1: 1})]], [(4,)], 2)


def test_pieces_cover_a_space_once() -> None:
    space = Space(sizes=(3000, 7, 5000), parallel=(True, False, True))
    parts = list(pieces(space, 9, also_reduced=True))
    assert len(parts) > 1
    assert sum(np.prod([high - low for low, high in part]) for part in parts) == space.points


@given(
    st.integers(1, 3), st.integers(1, 5), st.integers(1, 5), st.integers(1, 6), st.sampled_from(["i1", "i32", "f32"])
)
def test_products_are_what_a_loop_gives(b: int, m: int, n: int, k: int, kind: str) -> None:
    rng = np.random.default_rng(b * m + n * k)
    dtype: Any = {"i1": np.bool_, "i32": np.int32, "f32": np.float64}[kind]
    least, most = (0, 2) if kind == "i1" else (-(2**20), 2**20)
    left, right, start = (
        np.asarray(rng.integers(least, most, shape).astype(dtype)) for shape in ((b, m, k), (k, b, n), (m, b, n))
    )
    space = Space(sizes=(m, b, n, k), parallel=(True, True, True, False))
    a, c = left.transpose(1, 0, 2)[None, :, :, None, :], right.transpose(1, 2, 0)[None, None]
    sums = Products(left=a, right=c, space=space, kind=kind).added_to(start[None, ..., None], EXACT)
    if kind == "i1":  # whose sums count modulo 2
        left, right, start, dtype = left.astype(int), right.astype(int), start.astype(int), np.int64
    expected = start + (left[..., None] * right.transpose(1, 0, 2)[:, None]).sum(axis=2, dtype=dtype).transpose(1, 0, 2)
    assert (sums[0, ..., 0] == (expected % 2 if kind == "i1" else expected)).all()


def product(left: np.ndarray, right: np.ndarray, start: float, kind: str = "f32") -> np.ndarray:
    space = Space(sizes=(1, 1, left.size), parallel=(True, True, False))
    parts = Products(left=left.reshape(1, 1, 1, -1), right=right.reshape(1, 1, 1, -1), space=space, kind=kind)
    return parts.added_to(np.full((1, 1, 1, 1), start), nine())


def test_sums_of_small_whole_numbers_are_exact_unless_they_start_from_a_fraction() -> None:
    whole = np.arange(8.0)
    assert spread(product(whole, whole, 1.0)).max() == 0.0
    assert spread(product(whole, whole, 0.1)).max() > 0.0
    assert spread(product(whole * 2**12, whole, 0.0)).max() == 0.0
    assert spread(product(whole * 2**20 + 1, whole + 2**10, 0.0)).max() > 0.0
    sums = [summed(whole[None, None], np.full((1, 1, 1), start), (2,), "f32", nine()) for start in (1.0, 0.1)]
    assert [spread(values).max() > 0 for values in sums] == [False, True]


@pytest.mark.parametrize("kind", ["f32", "bf16"])
def test_a_long_sum_of_one_sign_allows_what_adding_one_by_one_gives(kind: str) -> None:
    values = to_kind(np.random.default_rng(1).random(4000), kind)
    one_by_one = np.array(0.0)
    for value in values:
        one_by_one = to_kind(one_by_one + value, kind)
    samples = summed(values[None, None], np.zeros((1, 1, 1)), (2,), kind, nine())
    allowed = max(FACTOR * spread(samples).max(), np.abs(samples - samples[0]).max())
    assert abs(one_by_one - samples[0].item()) <= allowed
    assert allowed < {"bf16": 2.0, "f32": 0.01}[kind] * values.sum()


def test_an_accumulator_that_stagnates_is_replayed() -> None:
    ones = np.ones(4000)
    samples = product(ones * 0.3, ones, 0.0, "f16")
    assert 0.05 < FACTOR * spread(samples).item() / samples[0].item() < 1.0
