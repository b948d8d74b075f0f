"""How far outputs are from right ones: tolerances of suites, and what the evaluator allows each element."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from harness.models.model import Tolerance
from harness.verify.difference import COARSE, Right, below_tolerance, compare_outputs
from harness.verify.rounding import FACTOR
from harness.verify.sampled import places

EXACT = Tolerance(relative=0.0, absolute=0.0)
HUGE = Tolerance(relative=1e30, absolute=1e30)
TEN_PERCENT = Tolerance(relative=0.1, absolute=0.0)
BOTH = Tolerance(relative=0.1, absolute=1.0)


def right_of(right: Any, allowed: Any = None, **fields: Any) -> Right:
    """One right output, with what the evaluator allows where it says it."""
    bounds = None if allowed is None else [np.asarray(allowed, np.float64)]
    return Right(source="", outputs=[np.asarray(right)], allowed=bounds, **fields)


def problem(ours: Any, right: Any, tolerance: Tolerance | None = EXACT, **fields: Any) -> str | None:
    """What is wrong with one output."""
    right = right if isinstance(right, Right) else right_of(right)
    return compare_outputs([np.asarray(ours)], right, tolerance, **fields).problem


# --- What a suite's tolerance allows ---

SHAPES = hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4)
VALUES = st.sampled_from([0.0, 1.0, 1.25, -1.0, 100.0, 101.0, np.nan, np.inf, -np.inf]) | st.floats(width=32)
TOLERANCES = st.builds(Tolerance, relative=st.floats(0, 10), absolute=st.floats(0, 1e6))
PAIRS = SHAPES.flatmap(lambda shape: st.tuples(*[hnp.arrays(np.float32, shape, elements=VALUES)] * 2))


@given(pair=PAIRS, tolerance=TOLERANCES)
def test_agreement_is_numpys_allclose(pair: tuple[NDArray[Any], NDArray[Any]], tolerance: Tolerance) -> None:
    ours, right = (array.astype(np.float64) for array in pair)
    assert tolerance.absolute is not None
    expected = np.allclose(ours, right, rtol=tolerance.relative, atol=tolerance.absolute, equal_nan=True)
    assert (problem(*pair, tolerance) is None) == expected


BYTES = np.array([0, 127, 128, 255], np.uint8)
KINDS = ("i1", "u1", "i4", "i8", "?")


@pytest.mark.parametrize(
    ("ours", "right", "tolerance", "agree"),
    [
        (9.0, 10.0, TEN_PERCENT, True),
        (10.0, 9.0, TEN_PERCENT, False),  # of the right value
        (12.0, 10.0, BOTH, True),
        (12.1, 10.0, BOTH, False),
        ([np.nan, 1.0], [1.0, 1.0], HUGE, False),
        ([1.0, 1.0], [np.nan, 1.0], HUGE, False),
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
        (np.array([1.0, 2.0]), right_of([1 + 1j, 2 + 0j], [0.0, 0.0]), EXACT, False),
        (10_001, 10_000, Tolerance(absolute=1), True),
        (10_001, 10_000, TEN_PERCENT, False),  # integers have no relative tolerance
        # IREE's i8 has no sign, and its tools write it as one with a sign: the bits are what counts.
        (BYTES.view(np.int8), BYTES, EXACT, True),
        (BYTES, BYTES.view(np.int8), EXACT, True),
        (np.array([-1], np.int16), np.array([255], np.uint8), EXACT, False),
        # Without an absolute tolerance the root mean square of the values is the scale, here 2.9e-6.
        ([0.0, 0.0, 0.0], [3e-6, -4e-6, 0.0], Tolerance(relative=1e-3), False),
        ([3e-6, -4e-6, 2.5e-9], [3e-6, -4e-6, 0.0], Tolerance(relative=1e-3), True),
        ([3e-6, -4e-6, 8e-9], [3e-6, -4e-6, 0.0], Tolerance(relative=1e-3), False),
    ],
)
def test_outputs_agree_or_differ(ours: Any, right: Any, tolerance: Tolerance, agree: bool) -> None:
    assert (problem(ours, right, tolerance) is None) == agree


@pytest.mark.parametrize(
    ("right", "tolerance", "found"),
    [
        (np.zeros(2, np.float32), Tolerance(), ()),  # which is what they are
        (np.full(2, 1e-9, np.float32), Tolerance(), ()),  # the absolute tolerance goes by them
        (np.full(2, 3.0, np.float32), Tolerance(absolute=3.0), (0,)),
        (np.full(2, 3.0, np.float32), Tolerance(relative=1.0), (0,)),
        (np.full(2, 3, np.int8), Tolerance(relative=1.0), ()),
        (np.zeros(0, np.float32), Tolerance(), ()),
    ],
)
def test_outputs_for_which_zeros_would_pass(right: Any, tolerance: Tolerance, found: tuple[int, ...]) -> None:
    assert below_tolerance(right_of(right), tolerance) == found


DIFFERS = "output 0 differs in"
ODD = "output 0 has 2 NaN or infinite values of 3 where finite ones are right, the first at [0]: nan where 1 is right"


@pytest.mark.parametrize(
    ("ours", "right", "tolerance", "sentence"),
    [
        ([[1, 2], [3, 9]], [[1, 2.5], [3, 4]], EXACT, f"{DIFFERS} 2 of 4 values, worst at [1, 1]: 9 where 4 is right"),
        ([np.nan, np.inf, 1.0], [1.0, 1.0, 1.0], EXACT, ODD),
        ([1.0, 1.0], [np.nan, 1.0], EXACT, f"{DIFFERS} 1 of 2 values, worst at [0]: 1 where nan is right"),
        # Beyond 2**53 float64 does not hold all whole numbers.
        (2**62 + 1, 2**62, EXACT, f"{DIFFERS} 1 of 1 values, worst at []: {2**62 + 1} where {2**62} is right"),
        (np.zeros(3), np.zeros((3, 1)), EXACT, "output 0 has shape (3,) where (3, 1) is right"),
    ],
)
def test_words_for_what_differs(ours: Any, right: Any, tolerance: Tolerance, sentence: str) -> None:
    assert problem(ours, right, tolerance) == sentence


def test_every_output_is_compared_and_their_number_has_to_be_right() -> None:
    two = Right(source="", outputs=[np.zeros(2), np.array([1.0, 2.0])])
    difference = compare_outputs([np.zeros(2), np.ones(2)], two, EXACT)
    assert difference.problem == "output 1 differs in 1 of 2 values, worst at [1]: 1 where 2 is right"
    assert compare_outputs([np.zeros(2)], two, EXACT).problem == "outputs are 1 where 2 are right"


# --- What the evaluator allows ---


def test_each_element_may_be_off_by_what_the_evaluator_allows_it() -> None:
    right = right_of([1.0, 100.0, 5.0], [1e-6, 1.0, np.inf])
    agreeing = compare_outputs([np.array([1.0 + 5e-7, 99.5, np.nan])], right)
    assert agreeing.problem is None
    assert agreeing.spreads == pytest.approx(FACTOR / 2)
    wrong = [1.00001, 100.0, 5.0]
    assert problem(wrong, right, None) == (
        "output 0 differs in 1 of 3 values, worst at [0]: 1.00001 where 1 is right (60 spreads of its rounding; 6 are "
        "allowed)"
    )
    assert problem(wrong, right, Tolerance(relative=1e-4)) is None
    found = problem([2**60 + 1, 3], right_of([2**60, 3], [0.0, 0.0]), None)
    assert found is not None and found.endswith("(and no rounding changes that value)")


def test_a_source_that_computes_no_closer_is_given_room() -> None:
    ours, strict = np.full(3, 8.6e-8, np.float32), right_of(np.zeros(3, np.float32), np.full(3, 1e-15))
    coarse = replace(strict, coarse=COARSE)
    assert problem(ours, strict, None) is not None
    assert problem(ours, coarse, None) is None
    assert problem(np.ones(3, np.int8), replace(coarse, outputs=[np.zeros(3, np.int8)]), None) is not None


def test_a_sample_of_the_outputs_is_held_against_the_same_places() -> None:
    ours = np.arange(100.0)
    picked = places(100)
    right = right_of(ours[picked], np.zeros(picked.size), axes=(0,))
    assert problem(ours, right, None) is None
    ours[picked[3]] += 1
    assert problem(ours, right, None) is not None


def test_cases_of_one_program_give_elements_of_one_type() -> None:
    half, base = np.array([1, 2], np.float16), np.array([1, 2], np.float32)
    message = "output 0 has elements of float16 where {} is {}"
    assert problem(half, base, whose="base's", same_elements=True) == message.format("float32", "base's")
    assert problem([True], np.array([1], np.int8), same_elements=True) is None
    assert problem(half, right_of(base, kinds=("f32",)), same_elements=True) == message.format("f32", "right")
    assert problem(base, right_of(base, kinds=("bf16",)), same_elements=True) is None
