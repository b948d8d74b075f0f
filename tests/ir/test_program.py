"""The work of programs: single operations, calls, loops and branches, and sizes that follow from the inputs."""

from __future__ import annotations

import pytest

from harness.ir.sizes import Unknown
from tests.ir.programs import elementwise, function, work, zeros

TENSOR = "tensor<10xf32>"
LOADS = f"%a: {TENSOR}", TENSOR


# ---------------------------------------------------------------------------------------------------- single operations


def contraction(operation: str, left: str, right: str, result: str, *, filled: bool = True) -> str:
    """An operation on two tensors of f32 that starts from zeros; an unfilled right one is a window of no values."""
    x, w, y = (f"tensor<{sizes}xf32>" for sizes in (left, right, result))
    return function(
        f"%a: {x}, %b: {w}" if filled else f"%a: {x}",
        y,
        *zeros("c", y),
        *(() if filled else (f"%b = tensor.empty() : {w}",)),
        f"%d = {operation} ins(%a, %b : {x}, {w}) outs(%c : {y}) -> {y}",
        f"util.return %d : {y}",
    )


STRIDES = "{strides = dense<2> : tensor<2xi64>}"
CONTRACTIONS = [
    # Zeros are written in place of the sums that a product begins with: they are not read.
    pytest.param(
        contraction("linalg.matmul", "8x16", "16x4", "8x4"),
        2 * 8 * 16 * 4,
        8 * 16 + 16 * 4 + 8 * 4,
        id="a matrix product is two operations for each of its products",
    ),
    pytest.param(
        contraction(f"linalg.conv_2d_nchw_fchw {STRIDES}", "1x3x9x9", "5x3x3x3", "1x5x4x4"),
        2 * 5 * 4 * 4 * 3 * 3 * 3,
        3 * 9 * 9 + 5 * 27 + 5 * 16,
        id="a convolution reads what its window reaches",
    ),
    pytest.param(
        contraction(f"linalg.pooling_nchw_max {STRIDES}", "1x2x8x8", "2x2", "1x2x4x4", filled=False),
        2 * 4 * 4 * 4,
        2 * 8 * 8 + 2 * 4 * 4,
        id="a pooling has a window of no values",
    ),
]


@pytest.mark.parametrize(("text", "operations", "elements"), CONTRACTIONS)
def test_contractions(text: str, operations: int, elements: int) -> None:
    found = work(text)
    assert (found.operations, found.integer, found.transcendental, found.unknown) == (operations, 0, 0, {})
    assert found.moved_bytes == found.compulsory_bytes == 4 * elements


@pytest.mark.parametrize(
    ("operation", "kind", "operations", "integer", "transcendental"),
    [
        ("arith.mulf %x, %x", "f32", 10, 0, 0),
        ("math.fma %x, %x, %x", "f32", 20, 0, 0),
        ("math.tanh %x", "f32", 10, 0, 10),
        ("arith.addi %x, %x", "i8", 10, 10, 0),
        ("arith.maximumf %x, %x", "f16", 10, 0, 0),
        ("arith.andi %x, %x", "i32", 0, 0, 0),
    ],
)
def test_the_arithmetic_of_a_body(
    operation: str, kind: str, operations: int, integer: int, transcendental: int
) -> None:
    tensor = f"tensor<10x{kind}>"
    text = function(f"%a: {tensor}", tensor, elementwise("b", operation, "%a", tensor), f"util.return %b : {tensor}")
    found = work(text)
    assert (found.operations, found.integer, found.transcendental) == (operations, integer, transcendental)
    assert found.unknown == {}


def test_an_operation_that_is_not_known_is_listed_and_not_taken_for_nothing() -> None:
    tensor = "tensor<10xf32>"
    found = work(
        function(
            f"%a: {tensor}",
            tensor,
            f'%b = "other.smooth"(%a) : ({tensor}) -> {tensor}',
            elementwise("c", "math.absf %x", "%b", tensor),
            f"util.return %c : {tensor}",
        )
    )
    assert found.unknown == {"other.smooth": 1}
    assert found.operations == 10
    assert found.moved_bytes == 4 * 4 * 10


def test_a_softmax_and_an_attention_are_spelt_out() -> None:
    softmax = function(
        "%a: tensor<4x8xf32>",
        "tensor<4x8xf32>",
        "%e = tensor.empty() : tensor<4x8xf32>",
        "%b = linalg.softmax dimension(1) ins(%a : tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) -> tensor<4x8xf32>",
        "util.return %b : tensor<4x8xf32>",
    )
    assert (work(softmax).operations, work(softmax).transcendental) == (5 * 32, 32)
    heads, queries, keys, depth, width = 2, 4, 8, 16, 3
    attention = function(
        "%q: tensor<2x4x16xf32>, %k: tensor<2x8x16xf32>, %v: tensor<2x8x3xf32>",
        "tensor<2x4x3xf32>",
        "%scale = arith.constant 0.25 : f32",
        "%e = tensor.empty() : tensor<2x4x3xf32>",
        '%b = "iree_linalg_ext.attention"(%q, %k, %v, %scale, %e) <{indexing_maps = ['
        "affine_map<(b, m, n, d, k) -> (b, m, d)>, affine_map<(b, m, n, d, k) -> (b, k, d)>, "
        "affine_map<(b, m, n, d, k) -> (b, k, n)>, affine_map<(b, m, n, d, k) -> ()>, "
        "affine_map<(b, m, n, d, k) -> (b, m, n)>], operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 1>}> ({",
        "^bb0(%score: f32):",
        "iree_linalg_ext.yield %score : f32",
        "}) : (tensor<2x4x16xf32>, tensor<2x8x16xf32>, tensor<2x8x3xf32>, f32, tensor<2x4x3xf32>) -> tensor<2x4x3xf32>",
        "util.return %b : tensor<2x4x3xf32>",
    )
    found = work(attention)
    scores = heads * queries * keys
    assert found.operations == 2 * scores * depth + 2 * scores * width + 6 * scores
    assert found.transcendental == scores


def test_moves_cost_bytes_and_no_arithmetic() -> None:
    found = work(
        function(
            "%a: tensor<4x4xf32>",
            "tensor<6x12xf32>",
            "%zero = arith.constant 0.0 : f32",
            "%p = tensor.pad %a low[1, 1] high[1, 1] { ^bb0(%i: index, %j: index): tensor.yield %zero : f32 } "
            ": tensor<4x4xf32> to tensor<6x6xf32>",
            "%c = tensor.concat dim(1) %p, %p : (tensor<6x6xf32>, tensor<6x6xf32>) -> tensor<6x12xf32>",
            "util.return %c : tensor<6x12xf32>",
        )
    )
    assert (found.operations, found.unknown) == (0, {})
    assert found.moved_bytes == 4 * (16 + 36 + 2 * 36 + 72)


def test_a_table_is_read_where_it_is_looked_up() -> None:
    found = work(
        function(
            "%table: tensor<1000x8xf32>, %rows: tensor<5xi32>",
            "tensor<5x8xf32>",
            "%e = tensor.empty() : tensor<5x8xf32>",
            "%b = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i, j)>], "
            'iterator_types = ["parallel", "parallel"]} ins(%rows : tensor<5xi32>) outs(%e : tensor<5x8xf32>) {',
            "^bb0(%row: i32, %out: f32):",
            "%at = arith.index_cast %row : i32 to index",
            "%column = linalg.index 1 : index",
            "%value = tensor.extract %table[%at, %column] : tensor<1000x8xf32>",
            "linalg.yield %value : f32",
            "} -> tensor<5x8xf32>",
            "util.return %b : tensor<5x8xf32>",
        )
    )
    assert found.compulsory_bytes == found.moved_bytes == 4 * (5 * 8 + 5 + 5 * 8)


# ------------------------------------------------------------------------------------------------------------- programs


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


@pytest.mark.parametrize(
    ("bound", "operations", "unknown"),
    [
        pytest.param(["%bound = arith.constant 7 : index"], 70, {}, id="known"),
        pytest.param(
            ["%zero = arith.constant 0 : index", "%bound = tensor.dim %free, %zero : tensor<?xf32>"],
            *(30, {}),
            id="follows from a shape",
        ),
        pytest.param(
            [
                "%at = arith.constant 0 : index",
                f"%value = tensor.extract %a[%at] : {TENSOR}",
                "%whole = arith.fptosi %value : f32 to i32",
                "%bound = arith.index_cast %whole : i32 to index",
            ],
            *(10, {"scf.for of unknown length": 1}),
            id="unknown: counted once and named",
        ),
    ],
)
def test_the_length_of_a_loop_multiplies(bound: list[str], operations: int, unknown: dict[str, int]) -> None:
    found = work(_loop(*bound), [10], [3])
    assert (found.operations, found.unknown) == (operations, unknown)


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


# ---------------------------------------------------------------------------------------------------------------- sizes


@pytest.mark.parametrize(
    ("lines", "elements"),
    [
        (("%b = tensor.cast %a : tensor<?x?xf32> to tensor<?x?xf32>",), 4 * 6),
        (("%s = arith.addi %d0, %d1 : index", "%b = tensor.empty(%s, %d1) : tensor<?x?xf32>"), 10 * 6),
        (("%s = arith.ceildivsi %d1, %d0 : index", "%b = tensor.empty(%s, %d0) : tensor<?x?xf32>"), 2 * 4),
        (
            (
                "%s = affine.apply affine_map<(d0)[s0] -> (d0 * 2 + s0 floordiv 4)>(%d0)[%d1]",
                "%b = tensor.empty(%s, %d0) : tensor<?x?xf32>",
            ),
            9 * 4,
        ),
        (
            (
                "%less = arith.cmpi slt, %d0, %d1 : index",
                "%s = arith.select %less, %d0, %d1 : index",
                "%b = tensor.empty(%s, %s) : tensor<?x?xf32>",
            ),
            4 * 4,
        ),
        (
            ("%b = tensor.extract_slice %a[0, 1] [%d0, 2] [1, 1] : tensor<?x?xf32> to tensor<?x2xf32>",),
            4 * 2,
        ),
        (
            (
                "%p = arith.constant 0.5 : f32",
                "%b = tensor.pad %a low[1, 0] high[%d0, 0] { ^bb0(%i: index, %j: index): tensor.yield %p : f32 } "
                ": tensor<?x?xf32> to tensor<?x?xf32>",
            ),
            9 * 6,
        ),
        (
            ("%b = tensor.concat dim(0) %a, %a : (tensor<?x?xf32>, tensor<?x?xf32>) -> tensor<?x?xf32>",),
            8 * 6,
        ),
        (
            (
                "%f = tensor.collapse_shape %a [[0, 1]] : tensor<?x?xf32> into tensor<?xf32>",
                "%two = arith.constant 2 : index",
                "%all = arith.muli %d0, %d1 : index",
                "%s = arith.divui %all, %two : index",
                "%b = tensor.expand_shape %f [[0, 1]] output_shape [%s, 2] : tensor<?xf32> into tensor<?x2xf32>",
            ),
            4 * 6,
        ),
    ],
)
def test_shapes_follow_from_the_arguments(lines: tuple[str, ...], elements: int) -> None:
    kind = "tensor<?x2xf32>" if lines[-1].endswith("tensor<?x2xf32>") else "tensor<?x?xf32>"
    text = function(
        "%a: tensor<?x?xf32>",
        kind,
        "%c0 = arith.constant 0 : index",
        "%c1 = arith.constant 1 : index",
        "%d0 = tensor.dim %a, %c0 : tensor<?x?xf32>",
        "%d1 = tensor.dim %a, %c1 : tensor<?x?xf32>",
        *lines,
        f"%c = util.optimization_barrier %b : {kind}",
        f"%d = arith.addf %c, %c : {kind}",
        f"util.return %d : {kind}",
    )
    assert work(text, [4, 6]).operations == elements


def test_buffer_views_have_the_shapes_of_the_arguments() -> None:
    text = """
    util.func public @main(%view: !hal.buffer_view) -> !hal.buffer_view {
      %d = hal.buffer_view.dim<%view : !hal.buffer_view>[0] : index
      %a = hal.tensor.import %view "input" : !hal.buffer_view -> tensor<?x3xf32>{%d}
      %b = arith.addf %a, %a : tensor<?x3xf32>
      %result = hal.tensor.export %b "output" : tensor<?x3xf32>{%d} -> !hal.buffer_view
      util.return %result : !hal.buffer_view
    }
    """
    found = work(text, [5, 3])
    assert (found.operations, found.compulsory_bytes) == (15, 2 * 60)
