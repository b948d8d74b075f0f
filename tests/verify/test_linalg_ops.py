"""Tests of harness.verify.linalg_ops."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.verify.linalg_ops import Index, Products, Space, pieces, space_sizes, summed, view
from harness.verify.rounding import FACTOR, Shaker, UnsupportedError, spread, to_kind

EXACT = Shaker(samples=1, rng=np.random.default_rng(0))


def shaker() -> Shaker:
    return Shaker(samples=9, rng=np.random.default_rng(0))


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
    values = np.arange(2 * 20 * 20).reshape(2, 20, 20)
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


@given(st.integers(1, 3), st.integers(1, 5), st.integers(1, 5), st.integers(1, 6), st.sampled_from(["i32", "f32"]))
def test_products_are_what_a_loop_gives(b: int, m: int, n: int, k: int, kind: str) -> None:
    rng = np.random.default_rng(b * m + n * k)
    dtype = np.int32 if kind == "i32" else np.float64
    left, right, start = (
        rng.integers(-(2**20), 2**20, shape).astype(dtype) for shape in ((b, m, k), (k, b, n), (m, b, n))
    )
    space = Space(sizes=(m, b, n, k), parallel=(True, True, True, False))
    a, c = left.transpose(1, 0, 2)[None, :, :, None, :], right.transpose(1, 2, 0)[None, None]
    sums = Products(left=a, right=c, space=space, kind=kind).added_to(start[None, ..., None], EXACT)
    expected = start + (left[..., None] * right.transpose(1, 0, 2)[:, None]).sum(axis=2, dtype=dtype).transpose(1, 0, 2)
    assert (sums[0, ..., 0] == expected).all()


def product(left: np.ndarray, right: np.ndarray, start: float, kind: str = "f32") -> np.ndarray:
    space = Space(sizes=(1, 1, left.size), parallel=(True, True, False))
    parts = Products(left=left.reshape(1, 1, 1, -1), right=right.reshape(1, 1, 1, -1), space=space, kind=kind)
    return parts.added_to(np.full((1, 1, 1, 1), start), shaker())


def test_sums_of_small_whole_numbers_are_exact_unless_they_start_from_a_fraction() -> None:
    whole = np.arange(8.0)
    assert spread(product(whole, whole, 1.0)).max() == 0.0
    assert spread(product(whole, whole, 0.1)).max() > 0.0
    assert spread(product(whole * 2**12, whole, 0.0)).max() == 0.0
    assert spread(product(whole * 2**20 + 1, whole + 2**10, 0.0)).max() > 0.0
    sums = [summed(whole[None, None], np.full((1, 1, 1), start), (2,), "f32", shaker()) for start in (1.0, 0.1)]
    assert [spread(values).max() > 0 for values in sums] == [False, True]


@pytest.mark.parametrize("kind", ["f32", "bf16"])
def test_a_long_sum_of_one_sign_allows_what_adding_one_by_one_gives(kind: str) -> None:
    values = to_kind(np.random.default_rng(1).random(4000), kind)
    one_by_one = np.array(0.0)
    for value in values:
        one_by_one = to_kind(one_by_one + value, kind)
    samples = summed(values[None, None], np.zeros((1, 1, 1)), (2,), kind, shaker())
    allowed = max(FACTOR * spread(samples).max(), np.abs(samples - samples[0]).max())
    assert abs(one_by_one - samples[0].item()) <= allowed
    assert allowed < {"bf16": 2.0, "f32": 0.01}[kind] * values.sum()


def test_an_accumulator_that_stagnates_is_replayed() -> None:
    ones = np.ones(4000)
    samples = product(ones * 0.3, ones, 0.0, "f16")
    assert 0.05 < FACTOR * spread(samples).item() / samples[0].item() < 1.0
