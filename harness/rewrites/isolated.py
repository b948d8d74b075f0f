"""Channels-last convolutions in dispatch regions of their own, so that the compiler keeps them as what they are.

IREE drops the unit dimension of a convolution of one image while it forms dispatches, and what is left is a generic of
six loops: its convolution pipeline refuses that, and no tuning spec can bring it back. In a region of its own the
convolution keeps its name and its seven loops, gets the compiler's configuration for convolutions, and a tuning spec
can match it. No configuration is given here.
"""

from __future__ import annotations

from iree.compiler import ir

from harness.rewrites.operations import Loops, Matched, structured_ops
from harness.rewrites.regions import in_region, isolate

CONVOLUTION = "linalg.conv_2d_nhwc_hwcf"
DEPTHWISE = "linalg.depthwise_conv_2d_nhwc_hwc"
POOLINGS = ("linalg.pooling_nhwc_max", "linalg.pooling_nhwc_sum")
# IREE 3.13 does not compile isolated depthwise ones with the channels first, and other such convolutions get slower.
_CHANNELS_FIRST = (
    "linalg.conv_2d_nchw_fchw",
    "linalg.depthwise_conv_2d_nchw_chw",
    "linalg.pooling_nchw_max",
    "linalg.pooling_nchw_sum",
)


def isolate_convolutions(module: ir.Module, *, depthwise: bool = False, pooling: bool = True) -> Matched:
    """Put channels-last convolutions of one image into dispatch regions, with inits and what follows pointwise."""
    names = {CONVOLUTION, *([DEPTHWISE] if depthwise else []), *(POOLINGS if pooling else []), *_CHANNELS_FIRST}
    matched, left_alone = 0, []
    for op, loops in structured_ops(module):
        if op.name not in names or in_region(op):
            continue
        obstacle = _obstacle(op, loops)
        if obstacle:
            left_alone.append(obstacle)
        else:
            isolate(op)
            matched += 1
    return Matched(matched, left_alone)


def _obstacle(op: ir.Operation, loops: Loops) -> str:
    """Why an operation has no use for a region; "" where it has."""
    noun = "poolings" if "pooling" in op.name else "convolutions"
    if op.name in _CHANNELS_FIRST:
        return f"{noun} with the channels first"
    if min(loops.ranges) < 1:
        return f"{noun} with dynamic sizes"
    if loops.ranges[0] > 1:
        return f"{noun} of several images, which IREE keeps as they are"
    if op.name == CONVOLUTION and loops.ranges[4:6] == (1, 1):
        return "convolutions of one point, which IREE makes matmuls of"
    return ""
