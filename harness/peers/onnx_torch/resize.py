"""Resize, in the modes in which PyTorch's interpolation does the same."""

from __future__ import annotations

import math
from collections.abc import Sequence

from torch.nn import functional

from harness.peers.onnx_torch.node import Node, Run

_LINEAR = {1: "linear", 2: "bilinear", 3: "trilinear"}


def _sizes(node: Node) -> tuple[list[int], list[float]]:
    """Sizes of the image's dimensions in the result, and by what they are scaled.

    Raises:
        ValueError: The batch or the channels are scaled, or they are not known when the graph is read.
    """
    shape = list(node.operand(0).shape)
    given, scales = node.constant(3), node.constant(2)
    axes = [axis % len(shape) for axis in node.attributes.get("axes", range(len(shape)))]
    if given:
        node.choice("keep_aspect_ratio_policy", "stretch", "stretch")
        sizes = dict(zip(axes, given, strict=True))
        factors = {axis: size / shape[axis] for axis, size in sizes.items()}
    elif scales:
        factors = {axis: float(scale) for axis, scale in zip(axes, scales, strict=True)}
        sizes = {axis: math.floor(shape[axis] * scale) for axis, scale in factors.items()}
    else:
        raise ValueError("Resize has neither sizes nor scales")
    every = range(len(shape))
    wanted = [sizes.get(axis, shape[axis]) for axis in every]
    if wanted[:2] != shape[:2] or len(shape) < 3:
        raise ValueError("Resize of other dimensions than an image's is not known to the reader")
    return wanted[2:], [factors.get(axis, 1.0) for axis in every][2:]


def _whole(factors: Sequence[float]) -> bool:
    return all(factor >= 1 and factor == int(factor) for factor in factors)


def resize(node: Node) -> Run:
    """Nearest where PyTorch rounds as ONNX is told to; linear with half pixels or with corners aligned."""
    sizes, factors = _sizes(node)
    if node.attributes.get("antialias", 0):
        raise ValueError("Resize with antialias is not known to the reader")
    mode = node.choice("mode", "nearest", "nearest", "linear")
    place = node.attributes.get("coordinate_transformation_mode", "half_pixel")
    rounding = node.attributes.get("nearest_mode", "round_prefer_floor")
    if mode == "linear":
        if place not in ("half_pixel", "pytorch_half_pixel", "align_corners"):
            raise ValueError(f"linear Resize with {place} is not known to the reader")
        if place == "pytorch_half_pixel" and 1 in sizes:
            raise ValueError("linear Resize with pytorch_half_pixel to one pixel is not known to the reader")
        kind, corners = _LINEAR[len(sizes)], place == "align_corners"
        return lambda x, *_: functional.interpolate(x, size=sizes, mode=kind, align_corners=corners)
    # Rounding down from the corner is PyTorch's way; for whole factors the pixel's middle is nearest to the same one.
    same = (place, rounding) == ("asymmetric", "floor")
    halves = place in ("half_pixel", "pytorch_half_pixel") and rounding.startswith("round_prefer") and _whole(factors)
    if not same and not halves:
        raise ValueError(f"nearest Resize with {place} and {rounding} is not known to the reader")
    return lambda x, *_: functional.interpolate(x, size=sizes, mode="nearest")
