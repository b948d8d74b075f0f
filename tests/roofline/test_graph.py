"""Programs of several operations: constants, calls, loops, branches, and what nobody uses."""

from __future__ import annotations

import pytest

from harness.roofline.sizes import Unknown
from tests.roofline.programs import elementwise, function, work

TENSOR = "tensor<10xf32>"
LOADS = f"%a: {TENSOR}", TENSOR


def test_what_depends_on_constants_only_is_the_compilers_work() -> None:
    found = work(
        function(
            *LOADS,
            f"%weights = arith.constant dense<[0., 1., 2., 3., 4., 5., 6., 7., 8., 9.]> : {TENSOR}",
            elementwise("b", "math.exp %x", "%weights", TENSOR),
            f"%c = arith.addf %a, %b : {TENSOR}",
            f"util.return %c : {TENSOR}",
        )
    )
    assert (found.operations, found.transcendental) == (10, 0)
    assert found.compulsory_bytes == 3 * 40  # the argument, the weights, the result
    assert found.moved_bytes == 3 * 40


def test_one_value_everywhere_takes_no_memory() -> None:
    lines = f"%b = arith.constant dense<2.0> : {TENSOR}", f"%c = arith.mulf %a, %b : {TENSOR}"
    found = work(function(*LOADS, *lines, f"util.return %c : {TENSOR}"))
    assert found.compulsory_bytes == found.moved_bytes == 2 * 40


def test_what_nobody_uses_is_not_done() -> None:
    lines = (elementwise("b", "math.exp %x", "%a", TENSOR), elementwise("c", "math.sin %x", "%b", TENSOR))
    assert work(function(*LOADS, *lines, f"util.return %a : {TENSOR}")).operations == 0


def test_a_loop_of_known_length_multiplies() -> None:
    found = work(_loop("%bound = arith.constant 7 : index"), [10], [3])
    assert (found.operations, found.unknown) == (70, {})


def test_the_length_of_a_loop_may_follow_from_a_shape() -> None:
    text = _loop("%zero = arith.constant 0 : index", "%bound = tensor.dim %free, %zero : tensor<?xf32>")
    assert work(text, [10], [3]).operations == 30


def test_a_loop_of_unknown_length_is_counted_once_and_named() -> None:
    found = work(
        _loop(
            "%at = arith.constant 0 : index",
            f"%value = tensor.extract %a[%at] : {TENSOR}",
            "%whole = arith.fptosi %value : f32 to i32",
            "%bound = arith.index_cast %whole : i32 to index",
        ),
        [10],
        [3],
    )
    assert (found.operations, found.unknown) == (10, {"scf.for of unknown length": 1})


def _loop(*bound: str) -> str:
    return function(
        f"%a: {TENSOR}, %free: tensor<?xf32>",
        TENSOR,
        *bound,
        "%from = arith.constant 0 : index",
        "%step = arith.constant 1 : index",
        f"%b = scf.for %i = %from to %bound step %step iter_args(%c = %a) -> ({TENSOR}) {{",
        f"%d = arith.addf %c, %a : {TENSOR}",
        f"scf.yield %d : {TENSOR}",
        "}",
        f"util.return %b : {TENSOR}",
    )


def test_of_a_branch_on_data_the_longer_side_counts_and_it_is_named() -> None:
    found = work(
        function(
            f"%a: {TENSOR}, %condition: i1",
            TENSOR,
            f"%b = scf.if %condition -> ({TENSOR}) {{",
            f"scf.yield %a : {TENSOR}",
            "} else {",
            f"%c = arith.addf %a, %a : {TENSOR}",
            f"scf.yield %c : {TENSOR}",
            "}",
            f"util.return %b : {TENSOR}",
        )
    )
    assert (found.operations, found.unknown) == (10, {"scf.if on data": 1})


def test_calls_are_followed_with_their_shapes() -> None:
    text = """
    util.func private @twice(%a: tensor<?xf32>) -> tensor<?xf32> {
      %b = arith.addf %a, %a : tensor<?xf32>
      util.return %b : tensor<?xf32>
    }
    util.func public @main(%a: tensor<?xf32>) -> tensor<?xf32> {
      %b = util.call @twice(%a) : (tensor<?xf32>) -> tensor<?xf32>
      %c = util.call @twice(%b) : (tensor<?xf32>) -> tensor<?xf32>
      util.return %c : tensor<?xf32>
    }
    """
    found = work(text, [6])
    assert (found.operations, found.compulsory_bytes) == (12, 48)


def test_a_size_that_nothing_gives_is_an_error_that_names_it() -> None:
    text = function(
        "%a: tensor<?xf32>", "tensor<?xf32>", "%b = arith.addf %a, %a : tensor<?xf32>", "util.return %b : tensor<?xf32>"
    )
    with pytest.raises(Unknown, match=r"the shape of an argument of type tensor<\?xf32> does not follow"):
        work(text)


def test_a_function_that_is_not_there_is_an_error() -> None:
    with pytest.raises(Unknown, match="no function 'other'"):
        work("module {}", entry="other")
