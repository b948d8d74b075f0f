"""What single operations do: known answers."""

from __future__ import annotations

import pytest

from tests.roofline.programs import elementwise, function, work, zeros


def test_a_matrix_product_is_two_operations_for_each_of_its_products() -> None:
    found = work(
        function(
            "%a: tensor<8x16xf32>, %b: tensor<16x4xf32>",
            "tensor<8x4xf32>",
            *zeros("c", "tensor<8x4xf32>"),
            "%d = linalg.matmul ins(%a, %b : tensor<8x16xf32>, tensor<16x4xf32>) "
            "outs(%c : tensor<8x4xf32>) -> tensor<8x4xf32>",
            "util.return %d : tensor<8x4xf32>",
        )
    )
    assert found.operations == 2 * 8 * 16 * 4
    assert (found.integer, found.transcendental, found.unknown) == (0, 0, {})
    # Zeros are written in place of the sums that a product begins with: they are not read.
    assert found.compulsory_bytes == found.moved_bytes == 4 * (8 * 16 + 16 * 4 + 8 * 4)


def test_a_convolution_reads_what_its_window_reaches() -> None:
    found = work(
        function(
            "%a: tensor<1x3x9x9xf32>, %w: tensor<5x3x3x3xf32>",
            "tensor<1x5x4x4xf32>",
            *zeros("c", "tensor<1x5x4x4xf32>"),
            "%d = linalg.conv_2d_nchw_fchw {strides = dense<2> : tensor<2xi64>} "
            "ins(%a, %w : tensor<1x3x9x9xf32>, tensor<5x3x3x3xf32>) outs(%c : tensor<1x5x4x4xf32>) "
            "-> tensor<1x5x4x4xf32>",
            "util.return %d : tensor<1x5x4x4xf32>",
        )
    )
    assert found.operations == 2 * 5 * 4 * 4 * 3 * 3 * 3
    assert found.moved_bytes == 4 * (3 * 9 * 9 + 5 * 27 + 5 * 16)


def test_a_pooling_has_a_window_of_no_values() -> None:
    found = work(
        function(
            "%a: tensor<1x2x8x8xf32>",
            "tensor<1x2x4x4xf32>",
            *zeros("c", "tensor<1x2x4x4xf32>"),
            "%k = tensor.empty() : tensor<2x2xf32>",
            "%d = linalg.pooling_nchw_max {strides = dense<2> : tensor<2xi64>} "
            "ins(%a, %k : tensor<1x2x8x8xf32>, tensor<2x2xf32>) outs(%c : tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32>",
            "util.return %d : tensor<1x2x4x4xf32>",
        )
    )
    assert found.operations == 2 * 4 * 4 * 4
    assert found.moved_bytes == 4 * (2 * 8 * 8 + 2 * 4 * 4)


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
