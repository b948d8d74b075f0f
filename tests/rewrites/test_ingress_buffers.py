"""What elementwise operations write into: a filled buffer (fill_init), or the result before them (outs_style)."""

from __future__ import annotations

import pytest

from tests.rewrites.ingress_programs import MAPS, assert_left_alone, assert_rewritten

ADD = """^bb0(%in: f32, %in_0: f32, %out: f32):
  %sum = arith.addf %in, %in_0 : f32
  linalg.yield %sum : f32
"""
RELU = """^bb0(%in: f32, %out: f32):
  %positive = arith.cmpf ugt, %in, %zero : f32
  %above = arith.select %positive, %in, %zero : f32
  linalg.yield %above : f32
"""

# A layer as PyTorch exports it, from the matmul on.
LAYER = f"""{MAPS}
func.func @main(%x: tensor<4x8xf32>, %w: tensor<8x16xf32>, %bias: tensor<16xf32>) -> tensor<4x16xf32> {{
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<4x16xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<4x16xf32>) -> tensor<4x16xf32>
  %product = linalg.matmul ins(%x, %w : tensor<4x8xf32>, tensor<8x16xf32>) outs(%zeros : tensor<4x16xf32>)
      -> tensor<4x16xf32>
  %sum = linalg.generic {{indexing_maps = [#row, #whole, #whole], iterator_types = ["parallel", "parallel"]}}
      ins(%bias, %product : tensor<16xf32>, tensor<4x16xf32>) outs(%empty : tensor<4x16xf32>) {{
  {ADD}}} -> tensor<4x16xf32>
  %relu = linalg.generic {{indexing_maps = [#whole, #whole], iterator_types = ["parallel", "parallel"]}}
      ins(%sum : tensor<4x16xf32>) outs(%empty : tensor<4x16xf32>) {{
  {RELU}}} -> tensor<4x16xf32>
  return %relu : tensor<4x16xf32>
}}
"""


def test_a_fill_of_the_same_buffer_becomes_the_init_of_bias_and_relu() -> None:
    after = LAYER.replace("tensor<4x16xf32>) outs(%empty", "tensor<4x16xf32>) outs(%zeros")
    assert_rewritten(LAYER, after, "fill_init", places=2)


def test_bias_and_relu_update_the_result_before_them() -> None:
    after = f"""{MAPS}
func.func @main(%x: tensor<4x8xf32>, %w: tensor<8x16xf32>, %bias: tensor<16xf32>) -> tensor<4x16xf32> {{
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<4x16xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<4x16xf32>) -> tensor<4x16xf32>
  %product = linalg.matmul ins(%x, %w : tensor<4x8xf32>, tensor<8x16xf32>) outs(%zeros : tensor<4x16xf32>)
      -> tensor<4x16xf32>
  %sum = linalg.generic {{indexing_maps = [#row, #whole], iterator_types = ["parallel", "parallel"]}}
      ins(%bias : tensor<16xf32>) outs(%product : tensor<4x16xf32>) {{
  ^bb0(%in: f32, %out: f32):
    %added = arith.addf %in, %out : f32
    linalg.yield %added : f32
  }} -> tensor<4x16xf32>
  %relu = linalg.generic {{indexing_maps = [#whole], iterator_types = ["parallel", "parallel"]}}
      outs(%sum : tensor<4x16xf32>) {{
  ^bb0(%out: f32):
    %positive = arith.cmpf ugt, %out, %zero : f32
    %above = arith.select %positive, %out, %zero : f32
    linalg.yield %above : f32
  }} -> tensor<4x16xf32>
  return %relu : tensor<4x16xf32>
}}
"""
    assert_rewritten(LAYER, after, "outs_style", places=2)
    assert_rewritten(LAYER, after, "fill_init", "outs_style", places=4)


def elementwise(init: str, element_type: str, body: str, *, before: str = "") -> str:
    """A function of two tensors of which an elementwise operation makes one."""
    tensor = f"tensor<?x16x{element_type}>"
    return f"""{MAPS}
func.func @main(%a: {tensor}, %b: {tensor}, %rows: index) -> {tensor} {{
  %empty = tensor.empty(%rows) : {tensor}
  {before}
  %result = linalg.generic {{indexing_maps = [#whole, #whole, #whole], iterator_types = ["parallel", "parallel"]}}
      ins(%a, %b : {tensor}, {tensor}) outs({init} : {tensor}) {{
  ^bb0(%in: {element_type}, %in_0: {element_type}, %out: {element_type}):
    {body}
  }} -> {tensor}
  return %result : {tensor}
}}
"""


@pytest.mark.parametrize(
    ("element_type", "zero", "operation"),
    [("bf16", "0.0", "arith.mulf"), ("i8", "0", "arith.addi"), ("i1", "false", "arith.xori")],
)
def test_where_there_is_no_fill_one_is_made(element_type: str, zero: str, operation: str) -> None:
    body = f"%new = {operation} %in, %in_0 : {element_type}\nlinalg.yield %new : {element_type}"
    tensor = f"tensor<?x16x{element_type}>"
    constant = "arith.constant false" if zero == "false" else f"arith.constant {zero} : {element_type}"
    fill = f"%zero = {constant}\n%zeros = linalg.fill ins(%zero : {element_type}) outs(%empty : {tensor}) -> {tensor}"
    before = elementwise("%empty", element_type, body)
    assert_rewritten(before, elementwise("%zeros", element_type, body, before=fill), "fill_init", places=1)


def test_a_fill_with_something_else_is_not_used() -> None:
    tensor = "tensor<?x16xf32>"
    ones = f"%one = arith.constant 1.0 : f32\n%ones = linalg.fill ins(%one : f32) outs(%empty : {tensor}) -> {tensor}"
    zeros = (
        f"%zero = arith.constant 0.0 : f32\n%zeros = linalg.fill ins(%zero : f32) outs(%empty : {tensor}) -> {tensor}"
    )
    body = "%new = arith.mulf %in, %in_0 : f32\nlinalg.yield %new : f32"
    before, after = (
        elementwise(init, "f32", body, before=fills)
        for init, fills in [("%empty", ones), ("%zeros", zeros + "\n" + ones)]
    )
    assert_rewritten(before, after, "fill_init", places=1)


@pytest.mark.parametrize(
    "body",
    [
        "linalg.yield %in : f32",  # a copy
        "%new = arith.addf %in, %out : f32\nlinalg.yield %new : f32",  # reads its init
    ],
)
def test_other_operations_keep_their_init(body: str) -> None:
    assert_left_alone(elementwise("%empty", "f32", body), "fill_init", "outs_style")


def test_arguments_are_not_updated() -> None:
    body = "%new = arith.addf %in, %in_0 : f32\nlinalg.yield %new : f32"
    assert_left_alone(elementwise("%empty", "f32", body), "outs_style")


def test_an_operation_that_broadcasts_has_nothing_to_update() -> None:
    text = f"""{MAPS}
func.func @main(%bias: tensor<16xf32>) -> tensor<4x16xf32> {{
  %empty = tensor.empty() : tensor<4x16xf32>
  %result = linalg.generic {{indexing_maps = [#row, #whole], iterator_types = ["parallel", "parallel"]}}
      ins(%bias : tensor<16xf32>) outs(%empty : tensor<4x16xf32>) {{
  ^bb0(%in: f32, %out: f32):
    %new = arith.negf %in : f32
    linalg.yield %new : f32
  }} -> tensor<4x16xf32>
  return %result : tensor<4x16xf32>
}}
"""
    assert_left_alone(text, "fill_init", "outs_style")


MATRIX = "tensor<4x4xf32>"
PRODUCTS = f"""{MAPS}
func.func @main(%a: {MATRIX}, %b: {MATRIX}) -> ({MATRIX}, {MATRIX}) {{
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : {MATRIX}
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : {MATRIX}) -> {MATRIX}
  %ab = linalg.matmul ins(%a, %b : {MATRIX}, {MATRIX}) outs(%zeros : {MATRIX}) -> {MATRIX}
  %ba = linalg.matmul ins(%b, %a : {MATRIX}, {MATRIX}) outs(%zeros : {MATRIX}) -> {MATRIX}
"""


def sum_of_products(first: str, second: str, also_returned: str) -> str:
    return f"""{PRODUCTS}
  %result = linalg.generic {{indexing_maps = [#whole, #whole, #whole], iterator_types = ["parallel", "parallel"]}}
      ins({first}, {second} : {MATRIX}, {MATRIX}) outs(%empty : {MATRIX}) {{
  {ADD}}} -> {MATRIX}
  return %result, {also_returned} : {MATRIX}, {MATRIX}
}}
"""


def updated_by(other: str, updated: str, summands: str, also_returned: str) -> str:
    return f"""{PRODUCTS}
  %result = linalg.generic {{indexing_maps = [#whole, #whole], iterator_types = ["parallel", "parallel"]}}
      ins({other} : {MATRIX}) outs({updated} : {MATRIX}) {{
  ^bb0(%in: f32, %out: f32):
    %sum = arith.addf {summands} : f32
    linalg.yield %sum : f32
  }} -> {MATRIX}
  return %result, {also_returned} : {MATRIX}, {MATRIX}
}}
"""


def test_of_two_results_the_first_is_updated() -> None:
    after = updated_by("%ba", "%ab", "%out, %in", also_returned="%a")
    assert_rewritten(sum_of_products("%ab", "%ba", also_returned="%a"), after, "outs_style", places=1)


def test_of_two_results_the_one_that_nothing_else_reads_is_updated() -> None:
    after = updated_by("%ab", "%ba", "%in, %out", also_returned="%ab")
    assert_rewritten(sum_of_products("%ab", "%ba", also_returned="%ab"), after, "outs_style", places=1)


def test_a_result_that_is_read_twice_is_not_updated() -> None:
    assert_left_alone(sum_of_products("%ab", "%ab", also_returned="%ba"), "outs_style")
