"""Convolutions in regions of their own: which, that a tuning spec reaches them there alone, and their sums."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from harness.plugins.builtin import TUNING_SPEC, TuningSpecOptions
from harness.plugins.plugin import TuningSpec
from harness.rewrites.isolated import isolate_convolutions
from harness.rewrites.regions import regions_in_place
from tests.programs import program
from tests.rewrites.tools import agree, assert_left_alone, left_alone, lowered, rewritten

ALL = partial(isolate_convolutions, depthwise=True)
CONVOLUTION = "y = conv x k named=conv_2d_nhwc_hwcf"
DEPTHWISE = "y = conv x k named=depthwise_conv_2d_nhwc_hwc"
POOLING = "y = conv x k named=pooling_nhwc_max strides=2,2"


DYNAMIC = """
func.func @main(%x: tensor<1x?x12x8xf32>, %k: tensor<3x3x8x32xf32>, %z: tensor<1x?x10x32xf32>)
    -> tensor<1x?x10x32xf32> {
  %y = linalg.conv_2d_nhwc_hwcf ins(%x, %k : tensor<1x?x12x8xf32>, tensor<3x3x8x32xf32>)
    outs(%z : tensor<1x?x10x32xf32>) -> tensor<1x?x10x32xf32>
  return %y : tensor<1x?x10x32xf32>
}
"""


def layer(line: str, image: str = "1x6x12x8", kernel: str = "3x3x8x32") -> str:
    """An operation with a bias and an activation after it."""
    return program(f"main x:{image} k:{kernel}\n{line}\nb = each addf y one\nr = each maximumf b zero\nreturn r")


@pytest.mark.parametrize(
    "text",
    [layer(CONVOLUTION), layer(DEPTHWISE, kernel="3x3x8"), layer(POOLING, kernel="2x2")],
    ids=["convolution", "depthwise", "pooling"],
)
def test_it_stands_alone_with_what_belongs_to_it_and_results_stay(text: str) -> None:
    after, matched = rewritten(text, ALL)
    assert matched == [1]
    region = after[after.index("flow.dispatch.region") : after.index("flow.return")]
    assert region.count("linalg.") - region.count("linalg.yield") == 4
    assert lowered(after, "flow").count("flow.dispatch @") == 1
    assert agree(text, ALL, regions_in_place)[0] == 1


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (layer(CONVOLUTION, "2x6x12x8"), "convolutions of several images, which IREE keeps as they are"),
        (layer(POOLING, "2x6x12x8", "2x2"), "poolings of several images, which IREE keeps as they are"),
        (layer(CONVOLUTION, kernel="1x1x8x32"), "convolutions of one point, which IREE makes matmuls of"),
        (layer("y = conv x k", "1x8x6x12", "32x8x3x3"), "convolutions with the channels first"),
        (DYNAMIC, "convolutions with dynamic sizes"),
    ],
)
def test_what_has_no_use_for_a_region(text: str, what: str) -> None:
    assert_left_alone(text, isolate_convolutions)
    assert left_alone(text, isolate_convolutions) == {what: 1}


def test_what_stands_in_a_region_keeps_it() -> None:
    assert_left_alone(rewritten(layer(CONVOLUTION), isolate_convolutions)[0], isolate_convolutions)


def test_depthwise_convolutions_and_poolings_where_they_are_wanted() -> None:
    assert_left_alone(layer(DEPTHWISE, kernel="3x3x8"), isolate_convolutions)
    assert_left_alone(layer(POOLING, kernel="2x2"), partial(isolate_convolutions, pooling=False))


SPEC = """
module attributes {transform.with_named_sequence, iree_codegen.tuning_spec_with_default_entrypoint} {
  transform.named_sequence @configure(
      %op: !transform.any_op {transform.readonly}, %config: !transform.any_param {transform.readonly}) {
    transform.annotate %op "compilation_info" = %config : !transform.any_op, !transform.any_param
    transform.yield
  }
  transform.named_sequence @match(%op: !transform.any_op {transform.readonly})
      -> (!transform.any_op, !transform.any_param) {
    transform.match.operation_name %op ["linalg.conv_2d_nhwc_hwcf"] : !transform.any_op
    %config = transform.param.constant #iree_codegen.compilation_info<
      lowering_config = #iree_cpu.lowering_config<LEVELS>,
      translation_info = #iree_codegen.translation_info<pipeline = #iree_cpu.pipeline<ConvTileAndDecomposeExpert>>>
      -> !transform.any_param
    transform.yield %op, %config : !transform.any_op, !transform.any_param
  }
  transform.named_sequence @__kernel_config(%variant: !transform.any_op {transform.consumed}) -> !transform.any_op
      attributes {iree_codegen.tuning_spec_entrypoint} {
    %result = transform.foreach_match in %variant @match -> @configure : (!transform.any_op) -> !transform.any_op
    transform.yield %result : !transform.any_op
  }
}
"""
LEVELS = (
    "distribution = [1, 2, 10, 32, 0, 0, 0], vector_common_parallel = [1, 1, 5, 16, 0, 0, 0], "
    "vector_reduction = [0, 0, 0, 0, 1, 1, 2]"
)


@pytest.mark.parametrize("isolated", [True, False])
def test_a_tuning_spec_reaches_it_there_alone(isolated: bool, tmp_path: Path) -> None:
    (step,) = TUNING_SPEC.steps(TuningSpecOptions(spec=SPEC.replace("LEVELS", LEVELS)))
    assert isinstance(step, TuningSpec)
    step.file.put_into(tmp_path)
    text = rewritten(layer(CONVOLUTION), *([isolate_convolutions] if isolated else []))[0]
    flag = f"--iree-codegen-tuning-spec-path={tmp_path / step.file.unique_name}"
    assert (f"lowering_config<{LEVELS}>" in lowered(text, "executable-configurations", flag)) == isolated
