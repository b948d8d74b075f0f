"""When outputs agree: numpy.allclose's rule, NaN and infinities in the same places, and words for what differs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from harness.models.model import Tolerance
from harness.verify.outputs import compare_outputs, load_array

EXACT = Tolerance(relative=0.0, absolute=0.0)

_shapes = hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4)
_dtypes = st.sampled_from(
    [np.float16, np.float32, np.float64, np.int8, np.int32, np.int64, np.uint8, np.bool_, np.complex64]
)
_arrays = _dtypes.flatmap(lambda dtype: hnp.arrays(dtype, _shapes))
_values = st.sampled_from([0.0, 1.0, 1.25, -1.0, 100.0, 101.0, np.nan, np.inf, -np.inf]) | st.floats(width=32)
_tolerances = st.builds(Tolerance, relative=st.floats(0, 10), absolute=st.floats(0, 1e6))


def problem(ours: Any, right: Any, tolerance: Tolerance = EXACT) -> str | None:
    """What is wrong with one output."""
    return compare_outputs([np.asarray(ours)], [np.asarray(right)], tolerance).problem


@given(_arrays)
def test_an_array_agrees_with_itself_exactly(array: NDArray[Any]) -> None:
    difference = compare_outputs([array], [array.copy()], EXACT)
    assert difference.problem is None
    assert (difference.max_absolute, difference.max_relative) == (0.0, 0.0)


@given(data=st.data(), shape=_shapes, tolerance=_tolerances)
def test_agreement_is_numpys_allclose(data: st.DataObject, shape: tuple[int, ...], tolerance: Tolerance) -> None:
    ours, right = (data.draw(hnp.arrays(np.float32, shape, elements=_values)) for _ in range(2))
    expected = np.allclose(
        ours.astype(np.float64),
        right.astype(np.float64),
        rtol=tolerance.relative,
        atol=tolerance.absolute,
        equal_nan=True,
    )
    assert (problem(ours, right, tolerance) is None) == expected


@given(data=st.data(), shape=_shapes, tolerance=_tolerances, more=st.floats(1, 10))
def test_what_agrees_still_agrees_with_more_tolerance(
    data: st.DataObject, shape: tuple[int, ...], tolerance: Tolerance, more: float
) -> None:
    ours, right = (data.draw(hnp.arrays(np.float32, shape, elements=_values)) for _ in range(2))
    assume(problem(ours, right, tolerance) is None)
    wider = Tolerance(relative=tolerance.relative * more, absolute=tolerance.absolute * more)
    assert problem(ours, right, wider) is None


@given(data=st.data(), shape=hnp.array_shapes(min_dims=0, max_dims=3, max_side=4))
def test_a_single_wrong_value_is_found_and_its_place_named(data: st.DataObject, shape: tuple[int, ...]) -> None:
    right = data.draw(hnp.arrays(np.float32, shape, elements=st.floats(-1e3, 1e3, width=32)))
    place = tuple(data.draw(st.integers(0, size - 1)) for size in shape)
    ours = right.copy()
    ours[place] += 1.0
    found = problem(ours, right)
    assert found is not None
    assert f"output 0 differs in 1 of {right.size} values, worst at [{', '.join(map(str, place))}]: " in found


def test_the_sentence_says_how_many_and_which_is_worst() -> None:
    ours, right = np.array([[1.0, 2.0], [3.0, 9.0]]), np.array([[1.0, 2.5], [3.0, 4.0]])
    assert problem(ours, right) == "output 0 differs in 2 of 4 values, worst at [1, 1]: 9 where 4 is right"
    assert problem(2.0, 1.0) == "output 0 differs in 1 of 1 values, worst at []: 2 where 1 is right"


def test_the_worst_value_is_the_one_farthest_beyond_what_is_allowed() -> None:
    """An error of 5 in 1000 is within 1 %, so that the one of 1 in 10 is named."""
    ours, right = [1005.0, 11.0], [1000.0, 10.0]
    assert problem(ours, right, Tolerance(relative=0.01, absolute=0.0)) == (
        "output 0 differs in 1 of 2 values, worst at [1]: 11 where 10 is right"
    )


def test_the_relative_tolerance_is_of_the_right_value() -> None:
    ten_percent = Tolerance(relative=0.1, absolute=0.0)
    assert problem(9.0, 10.0, ten_percent) is None
    assert problem(10.0, 9.0, ten_percent) is not None


def test_the_two_tolerances_add_up() -> None:
    both = Tolerance(relative=0.1, absolute=1.0)
    assert problem(12.0, 10.0, both) is None
    assert problem(12.1, 10.0, both) is not None
    assert problem(1.0, 0.0, both) is None, "near zero only the absolute one helps"


def test_differences_are_told_even_where_they_are_allowed() -> None:
    difference = compare_outputs(
        [np.array([1.0, 8.0]), np.array([0.5])], [np.array([2.0, 10.0]), np.array([0.0])], Tolerance(absolute=3.0)
    )
    assert difference.problem is None
    assert difference.max_absolute == 2.0
    assert difference.max_relative == 0.5, "where all is zero, the absolute difference stands for it"


@pytest.mark.parametrize(
    ("ours", "right"),
    [
        ([np.nan, 1.0], [1.0, 1.0]),
        ([1.0, 1.0], [np.nan, 1.0]),
        ([np.nan, np.nan], [np.nan, 1.0]),
        ([np.inf], [-np.inf]),
        ([np.inf], [np.nan]),
        ([np.inf], [3e38]),
        ([1.0, np.nan], [np.nan, 1.0]),
    ],
)
def test_nan_and_infinity_agree_with_nothing_else_whatever_the_tolerance(ours: list[float], right: list[float]) -> None:
    assert problem(ours, right, Tolerance(relative=1e30, absolute=1e30)) is not None


def test_nan_and_infinity_agree_with_themselves() -> None:
    values = [np.nan, np.inf, -np.inf, 1.0]
    assert problem(values, values) is None


def test_new_nans_are_counted() -> None:
    assert problem([np.nan, np.inf, 1.0], [1.0, 1.0, 1.0]) == "output 0 has 2 NaN or infinite values of 3"
    assert problem([1.0, np.nan], [np.nan, 1.0]) == "output 0 has NaN or infinity in other places than the reference"


def test_values_so_far_apart_that_their_difference_overflows_differ() -> None:
    difference = compare_outputs([np.array([1.7e308])], [np.array([-1.7e308])], Tolerance(relative=0.5))
    assert difference.max_absolute == np.inf
    assert difference.problem is not None


@pytest.mark.parametrize(
    ("ours", "right", "said"),
    [
        (np.zeros(3), np.zeros((3, 1)), "output 0 has shape (3,) where (3, 1) is right"),
        (np.zeros(()), np.zeros(1), "output 0 has shape () where (1,) is right"),
        (np.zeros((2, 3)), np.zeros((3, 2)), "output 0 has shape (2, 3) where (3, 2) is right"),
    ],
)
def test_shapes_are_never_stretched_to_fit(ours: NDArray[Any], right: NDArray[Any], said: str) -> None:
    assert problem(ours, right) == said


@pytest.mark.parametrize(("ours", "right"), [(0, 1), (1, 0), (3, 2)])
def test_the_number_of_outputs_has_to_be_right(ours: int, right: int) -> None:
    difference = compare_outputs([np.zeros(2)] * ours, [np.zeros(2)] * right, EXACT)
    assert difference.problem == f"outputs are {ours} where {right} are right"


def test_no_outputs_at_all_agree() -> None:
    assert compare_outputs([], [], EXACT).problem is None


def test_a_later_output_is_compared_too() -> None:
    difference = compare_outputs([np.zeros(2), np.ones(2)], [np.zeros(2), np.array([1.0, 2.0])], EXACT)
    assert difference.problem == "output 1 differs in 1 of 2 values, worst at [1]: 1 where 2 is right"


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.int64, np.bool_])
def test_whole_numbers_and_truths_are_compared_as_numbers(dtype: type[np.generic]) -> None:
    assert problem(np.array([0, 1], dtype), np.array([0, 1], dtype)) is None
    assert problem(np.array([1, 1], dtype), np.array([0, 1], dtype)) is not None


def test_the_extremes_of_unsigned_bytes_do_not_wrap_around() -> None:
    difference = compare_outputs([np.array([0], np.uint8)], [np.array([255], np.uint8)], EXACT)
    assert difference.max_absolute == 255


@given(st.integers(-(2**63), 2**63 - 2))
def test_neighbours_among_large_integers_differ(number: int) -> None:
    """float64 holds no whole numbers beyond 2**53 one by one."""
    assert problem(np.array([number + 1], np.int64), np.array([number], np.int64)) is not None


def test_element_types_may_differ_where_values_agree() -> None:
    """IREE demotes f64 and i64 where it is told to; ONNX Runtime does not."""
    assert problem(np.array([1, 2], np.int32), np.array([1, 2], np.int64)) is None
    assert problem(np.array([0.5], np.float32), np.array([0.5], np.float64)) is None


def test_both_parts_of_complex_numbers_count() -> None:
    assert problem(np.array([1 + 2j]), np.array([1 + 2j])) is None
    assert problem(np.array([1 + 2j]), np.array([1 + 3j])) is not None
    assert problem(np.array([1 + 0j]), np.array([1.0])) is None


def test_bf16_files_are_read_as_the_values_they_stand_for(tmp_path: Path) -> None:
    """Other libraries' bf16 arrays are saved by numpy as two bytes without a meaning."""
    bits = np.array([0x3F80, 0xC000, 0x7F80, 0x0000], np.uint16)
    np.save(tmp_path / "x.npy", bits.view("V2").reshape(2, 2))
    values = load_array(tmp_path / "x.npy")
    assert values.dtype == np.float32
    assert values.tolist() == [[1.0, -2.0], [np.inf, 0.0]]


def test_the_relative_tolerance_is_not_for_integers() -> None:
    right = [np.array([10_000])]
    assert compare_outputs([np.array([10_001])], right, Tolerance(relative=0.1)).problem
    assert compare_outputs([np.array([10_001])], right, Tolerance(absolute=1)).problem is None


def test_integers_without_a_sign_are_read_as_the_reference_has_them() -> None:
    """IREE's i8 has no sign, and its tools write it as one with a sign: the bits are what counts."""
    right = np.array([0, 127, 128, 255], np.uint8)
    exact = Tolerance(relative=0.0, absolute=0.0)
    assert compare_outputs([right.view(np.int8)], [right], exact).problem is None
    wrong = right.copy()
    wrong[3] = 254
    assert compare_outputs([wrong.view(np.int8)], [right], exact).problem is not None
    assert compare_outputs([np.array([-1], np.int16)], [np.array([255], np.uint8)], exact).problem is not None
