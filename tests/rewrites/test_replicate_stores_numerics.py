"""What comes of replicated stores: the same bits, with fewer copies."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.models.residual_dense_block import Parameters, build
from harness.rewrites.replicate_stores import replicate_stores
from tests.rewrites.flow_programs import at_flow, compiled, random_arrays, rewrite

SMALL = {"height": 6, "width": 10, "channels": 8, "growth": 4}


def dense_block(blocks: int) -> str:
    text = build(Parameters(**SMALL, blocks=blocks)).text
    assert isinstance(text, str)
    return text


def concatenations(orders: list[list[str]]) -> str:
    """A program of concatenations of its arguments x and y and of values u and v computed from them."""
    parts = "tensor<2x5x7xf32>"
    text = [
        "#same = affine_map<(i, j, k) -> (i, j, k)>",
        f"func.func @main(%x: {parts}, %y: {parts}) -> (RESULTS) {{",
        f"  %e = tensor.empty() : {parts}",
    ]
    for name, arithmetic, other in (("u", "mulf", "y"), ("v", "subf", "u")):
        text.append(f"""
  %{name} = linalg.generic {{indexing_maps = [#same, #same, #same],
      iterator_types = ["parallel", "parallel", "parallel"]}}
      ins(%x, %{other} : {parts}, {parts}) outs(%e : {parts}) {{
  ^bb0(%a: f32, %b: f32, %o: f32):
    %r = arith.{arithmetic} %a, %b : f32
    linalg.yield %r : f32
  }} -> {parts}""")
    types = [f"tensor<{2 * len(order)}x5x7xf32>" for order in orders]
    for number, (order, type_) in enumerate(zip(orders, types, strict=True)):
        operands = ", ".join(f"%{name}" for name in order)
        text.append(f"  %c{number} = tensor.concat dim(0) {operands} : ({', '.join([parts] * len(order))}) -> {type_}")
    results = ", ".join(f"%c{number}" for number in range(len(orders)))
    text.append(f"  return {results} : {', '.join(types)}\n}}")
    return "\n".join(text).replace("RESULTS", ", ".join(types))


@pytest.mark.parametrize("blocks", [1, 2])
def test_only_what_comes_from_outside_a_dense_block_is_copied(blocks: int, tmp_path: Path) -> None:
    """13 copies in a block: its input goes to four concatenations, x1 to four, x2 to three, x3 to two; x4 to one."""
    flow = at_flow(dense_block(blocks))
    matched, text = rewrite(flow, replicate_stores)
    stock, replicated = compiled(flow, tmp_path / "stock"), compiled(text, tmp_path / "replicated")
    assert stock.counts == {"dispatch": 10 * blocks, "copy": 13 * blocks, "fill": 5 * blocks}
    assert replicated.counts == {"dispatch": 10 * blocks, "copy": 4, "fill": 5 * blocks}
    assert matched == [4 * blocks - 1]  # x1, x2, x3, and the block's result where another block follows
    image = random_arrays((1, 8, 6, 10))
    assert replicated(*image) == stock(*image)


@pytest.mark.vulkan
def test_a_dense_block_on_vulkan(tmp_path: Path) -> None:
    flow = at_flow(dense_block(1), "vulkan")
    matched, text = rewrite(flow, replicate_stores)
    stock = compiled(flow, tmp_path / "stock", "vulkan")
    replicated = compiled(text, tmp_path / "replicated", "vulkan")
    assert (matched, replicated.counts["copy"]) == ([3], 4)
    image = random_arrays((1, 8, 6, 10))
    assert replicated(*image) == stock(*image)


@settings(max_examples=6, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(orders=st.lists(st.lists(st.sampled_from("xyuv"), min_size=2, max_size=4), min_size=1, max_size=3))
def test_concatenations_in_any_order(orders: list[list[str]], tmp_path_factory: pytest.TempPathFactory) -> None:
    """Also of one value twice, and of a value in front of one that it is made of."""
    folder = tmp_path_factory.mktemp("concatenations")
    flow = at_flow(concatenations(orders))
    _, text = rewrite(flow, replicate_stores)
    stock, replicated = compiled(flow, folder / "stock"), compiled(text, folder / "replicated")
    assert replicated.counts["copy"] <= stock.counts["copy"]
    arguments = random_arrays((2, 5, 7), (2, 5, 7))
    assert replicated(*arguments) == stock(*arguments)
