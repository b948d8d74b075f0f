"""How far outputs are from right ones: tolerances of suites, and what the evaluator allows each element."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from harness.models.model import Tolerance
from harness.verify.difference import COARSE, Difference, Right, below_tolerance, compare_outputs
from harness.verify.rounding import FACTOR
from harness.verify.sampled import places


@pytest.mark.parametrize(
    ("right", "tolerance", "found"),
    [
        (np.zeros(2, np.float32), Tolerance(), ()),  # which is what they are
        (np.full(2, 1e-9, np.float32), Tolerance(), ()),  # the absolute tolerance goes by them
        (np.full(2, 3.0, np.float32), Tolerance(absolute=3.0), (0,)),
        (np.full(2, 3.0, np.float32), Tolerance(relative=1.0), (0,)),
        (np.full(2, 3, np.int8), Tolerance(relative=1.0), ()),
        (np.full(2, 3, np.int8), Tolerance(absolute=3.0), (0,)),
        (np.zeros(0, np.float32), Tolerance(), ()),
        (np.array([np.nan, 0.0], np.float32), Tolerance(), ()),
    ],
)
def test_outputs_for_which_zeros_would_pass(right: Any, tolerance: Tolerance, found: tuple[int, ...]) -> None:
    assert below_tolerance(Right(source="", outputs=[right]), tolerance) == found


EXACT = Tolerance(relative=0.0, absolute=0.0)
HUGE = Tolerance(relative=1e30, absolute=1e30)
SHAPES = hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4)
VALUES = st.sampled_from([0.0, 1.0, 1.25, -1.0, 100.0, 101.0, np.nan, np.inf, -np.inf]) | st.floats(width=32)
TOLERANCES = st.builds(Tolerance, relative=st.floats(0, 10), absolute=st.floats(0, 1e6))
PAIRS = SHAPES.flatmap(lambda shape: st.tuples(*[hnp.arrays(np.float32, shape, elements=VALUES)] * 2))


def compared(
    ours: Sequence[Any], right: Sequence[Any], tolerance: Tolerance | None = EXACT, **fields: Any
) -> Difference:
    """How outputs differ from those of a reference that says nothing of rounding."""
    return compare_outputs(ours, Right(source="", outputs=right), tolerance, **fields)


def problem(ours: Any, right: Any, tolerance: Tolerance = EXACT) -> str | None:
    """What is wrong with one output."""
    return compared([np.asarray(ours)], [np.asarray(right)], tolerance).problem


@given(pair=PAIRS, tolerance=TOLERANCES)
def test_agreement_is_numpys_allclose(pair: tuple[NDArray[Any], NDArray[Any]], tolerance: Tolerance) -> None:
    ours, right = (array.astype(np.float64) for array in pair)
    assert tolerance.absolute is not None
    expected = np.allclose(ours, right, rtol=tolerance.relative, atol=tolerance.absolute, equal_nan=True)
    assert (problem(*pair, tolerance) is None) == expected


@given(st.integers(-(2**63), 2**63 - 2))
def test_neighbours_among_large_integers_differ(number: int) -> None:
    """float64 holds no whole numbers beyond 2**53 one by one."""
    assert problem(np.array([number + 1], np.int64), np.array([number], np.int64)) is not None


def test_a_source_that_computes_no_closer_is_given_room() -> None:
    ours, zeros = np.full(3, 8.6e-8, np.float32), np.zeros(3, np.float32)
    allowed = [np.full(3, 1e-15)]
    strict, coarse = (Right(source="", outputs=[zeros], allowed=allowed, coarse=room) for room in (0.0, COARSE))
    assert compare_outputs([ours], strict).problem is not None
    assert compare_outputs([ours], coarse).problem is None
    assert compare_outputs([np.ones(3, np.int8)], replace(coarse, outputs=[np.zeros(3, np.int8)])).problem is not None


TEN_PERCENT = Tolerance(relative=0.1, absolute=0.0)
BOTH = Tolerance(relative=0.1, absolute=1.0)
NON_FINITE = [np.nan, np.inf, -np.inf, 1.0]
BYTES = np.array([0, 127, 128, 255], np.uint8)


KINDS = ("i1", "u1", "i4", "i8", "?")


def test_without_an_absolute_tolerance_the_root_mean_square_of_the_values_is_the_scale() -> None:
    small = np.array([3e-6, -4e-6, 0.0], np.float32)  # of 2.9e-6
    default = Tolerance(relative=1e-3)
    assert problem(np.zeros_like(small), small, default) is not None
    assert problem(small + np.float32(2.5e-9), small, default) is None
    assert problem(small + np.float32(8e-9), small, default) is not None


def test_cases_of_one_program_give_elements_of_one_type() -> None:
    ours, base = np.array([1, 2], np.float16), np.array([1, 2], np.float32)
    found = compared([ours], [base], EXACT, whose="base's", same_elements=True)
    assert found.problem == "output 0 has elements of float16 where float32 is base's"
    signs = compared([np.array([True])], [np.array([1], np.int8)], EXACT, same_elements=True)
    assert signs.problem is None


@pytest.mark.parametrize(
    ("ours", "right", "tolerance", "agree"),
    [
        (9.0, 10.0, TEN_PERCENT, True),
        (10.0, 9.0, TEN_PERCENT, False),  # of the right value
        (12.0, 10.0, BOTH, True),
        (12.1, 10.0, BOTH, False),
        (1.0, 0.0, BOTH, True),
        (NON_FINITE, NON_FINITE, EXACT, True),
        ([np.nan, 1.0], [1.0, 1.0], HUGE, False),
        ([1.0, 1.0], [np.nan, 1.0], HUGE, False),
        ([np.nan, np.nan], [np.nan, 1.0], HUGE, False),
        ([np.inf], [-np.inf], HUGE, False),
        ([np.inf], [3e38], HUGE, False),
        *((np.array([0, 1], kind), np.array([0, 1], kind), EXACT, True) for kind in KINDS),
        *((np.array([1, 1], kind), np.array([0, 1], kind), EXACT, False) for kind in KINDS),
        # IREE demotes f64 and i64 where it is told to; ONNX Runtime does not.
        (np.array([1, 2], np.int32), np.array([1, 2], np.int64), EXACT, True),
        (np.array([0.5], np.float32), np.array([0.5], np.float64), EXACT, True),
        (np.array([1 + 2j]), np.array([1 + 2j]), EXACT, True),
        (np.array([1 + 2j]), np.array([1 + 3j]), EXACT, False),
        (np.array([1 + 0j]), np.array([1.0]), EXACT, True),
        (10_001, 10_000, Tolerance(absolute=1), True),
        (10_001, 10_000, TEN_PERCENT, False),  # integers have no relative tolerance
        # IREE's i8 has no sign, and its tools write it as one with a sign: the bits are what counts.
        (BYTES.view(np.int8), BYTES, EXACT, True),
        (np.array([0, 127, 128, 254], np.uint8).view(np.int8), BYTES, EXACT, False),
        (BYTES, BYTES.view(np.int8), EXACT, True),
        (np.array([-1], np.int16), np.array([255], np.uint8), EXACT, False),
    ],
)
def test_outputs_agree_or_differ(ours: Any, right: Any, tolerance: Tolerance, agree: bool) -> None:
    assert (problem(ours, right, tolerance) is None) == agree


DIFFERS = "output 0 differs in"


@pytest.mark.parametrize(
    ("ours", "right", "tolerance", "sentence"),
    [
        ([[1, 2], [3, 9]], [[1, 2.5], [3, 4]], EXACT, f"{DIFFERS} 2 of 4 values, worst at [1, 1]: 9 where 4 is right"),
        (2.0, 1.0, EXACT, f"{DIFFERS} 1 of 1 values, worst at []: 2 where 1 is right"),
        # An error of 5 in 1000 is within 1 %, so that the one of 1 in 10 is named.
        (
            [1005.0, 11.0],
            [1000.0, 10.0],
            Tolerance(relative=0.01, absolute=0.0),
            f"{DIFFERS} 1 of 2 values, worst at [1]: 11 where 10 is right",
        ),
        (
            [np.nan, np.inf, 1.0],
            [1.0, 1.0, 1.0],
            EXACT,
            "output 0 has 2 NaN or infinite values of 3 where finite ones are right, the first at [0]: nan where 1 is "
            "right",
        ),
        ([1.0, 1.0], [np.nan, 1.0], EXACT, f"{DIFFERS} 1 of 2 values, worst at [0]: 1 where nan is right"),
        (2**62 + 1, 2**62, EXACT, f"{DIFFERS} 1 of 1 values, worst at []: {2**62 + 1} where {2**62} is right"),
        (np.zeros(3), np.zeros((3, 1)), EXACT, "output 0 has shape (3,) where (3, 1) is right"),
    ],
)
def test_words_for_what_differs(ours: Any, right: Any, tolerance: Tolerance, sentence: str) -> None:
    assert problem(ours, right, tolerance) == sentence


def test_differences_are_measured_even_where_they_are_allowed_and_never_overflow_or_wrap_around() -> None:
    ours, right = [np.array([1.0, 8.0]), np.array([0.5])], [np.array([2.0, 10.0]), np.array([0.0])]
    difference = compared(ours, right, Tolerance(absolute=3.0))
    assert (difference.problem, difference.max_absolute) == (None, 2.0)
    assert difference.max_relative == 0.5, "where all is zero, the absolute difference stands for it"
    far = compared([np.array([1.7e308])], [np.array([-1.7e308])], Tolerance(relative=0.5))
    assert (far.max_absolute, far.problem is None) == (np.inf, False)
    assert compared([np.array([0], np.uint8)], [np.array([255], np.uint8)], EXACT).max_absolute == 255


def test_every_output_is_compared_and_their_number_has_to_be_right() -> None:
    difference = compared([np.zeros(2), np.ones(2)], [np.zeros(2), np.array([1.0, 2.0])], EXACT)
    assert difference.problem == "output 1 differs in 1 of 2 values, worst at [1]: 1 where 2 is right"
    assert compared([np.zeros(2)], [np.zeros(2)] * 2, EXACT).problem == "outputs are 1 where 2 are right"
    assert compared([], [], EXACT).problem is None


def by_reference(right: Any, allowed: Any, **fields: Any) -> Right:
    """What the evaluator says of one output."""
    return Right(source="", outputs=[np.asarray(right)], allowed=[np.asarray(allowed, np.float64)], **fields)


def test_each_element_may_be_off_by_what_the_evaluator_allows_it() -> None:
    right = by_reference([1.0, 100.0, 5.0], [1e-6, 1.0, np.inf])
    ours = np.array([1.0 + 5e-7, 99.5, np.nan])
    agreeing = compare_outputs([ours], right)
    assert agreeing.problem is None
    assert agreeing.spreads == pytest.approx(FACTOR / 2)
    wrong = compare_outputs([np.array([1.00001, 100.0, 5.0])], right)
    assert wrong.problem == (
        "output 0 differs in 1 of 3 values, worst at [0]: 1.00001 where 1 is right (60 spreads of its rounding; 6 are "
        "allowed)"
    )
    assert compare_outputs([np.array([1.00001, 100.0, 5.0])], right, Tolerance(relative=1e-4)).problem is None


def test_complex_values_that_a_file_expects_of_a_program_of_real_ones_differ() -> None:
    assert compare_outputs([np.array([1.0, 2.0])], by_reference([1 + 1j, 2 + 0j], [0.0, 0.0])).problem is not None


def test_what_is_exact_has_to_be_equal() -> None:
    right = by_reference(np.array([2**60, 3]), [0.0, 0.0])
    assert compare_outputs([np.array([2**60, 3])], right).problem is None
    found = compare_outputs([np.array([2**60 + 1, 3])], right).problem
    assert found is not None
    assert found.endswith("(and no rounding changes that value)")


def test_a_sample_of_the_outputs_is_held_against_the_same_places() -> None:
    ours = np.arange(100.0)
    picked = places(100)
    right = by_reference(ours[picked], np.zeros(picked.size), axes=(0,))
    assert compare_outputs([ours], right).problem is None
    ours[picked[3]] += 1
    assert compare_outputs([ours], right).problem is not None


def test_the_evaluator_knows_the_element_types() -> None:
    half = compare_outputs([np.ones(1, np.float16)], by_reference([1.0], [0.0], kinds=("f32",)), same_elements=True)
    assert half.problem == "output 0 has elements of float16 where f32 is right"
    wide = compare_outputs([np.ones(1, np.float32)], by_reference([1.0], [0.0], kinds=("bf16",)), same_elements=True)
    assert wide.problem is None
