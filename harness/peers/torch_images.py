"""Operations of ONNX on images in PyTorch, made as in torch_ops: convolutions, pooling, resizing."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from torch.nn import functional

from harness.peers.torch_ops import Node, Run

_LINEAR = {1: "linear", 2: "bilinear", 3: "trilinear"}


def _of_rank(node: Node, module: Any, prefix: str) -> Any:
    """PyTorch's function for so many dimensions of an image."""
    rank = node.operand(0).dim() - 2
    if not 1 <= rank <= 3:
        raise node.refuse(f"over {rank} dimensions")
    return getattr(module, f"{prefix}{rank}d")


def _windows(node: Node, kernel: Sequence[int]) -> tuple[list[int], list[int], list[int], list[int]]:
    """Strides, dilations, and how much is padded before and behind each dimension of the image."""
    rank = len(kernel)
    strides = list(node.attributes.get("strides", [1] * rank))
    dilations = list(node.attributes.get("dilations", [1] * rank))
    automatic = node.choice("auto_pad", "NOTSET", "NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER")
    if not automatic.startswith("SAME"):
        pads = list(node.attributes.get("pads", [0] * (2 * rank))) if automatic == "NOTSET" else [0] * (2 * rank)
        return strides, dilations, pads[:rank], pads[rank:]
    before, behind = [], []
    for size, width, stride, dilation in zip(node.operand(0).shape[2:], kernel, strides, dilations, strict=True):
        total = max((math.ceil(size / stride) - 1) * stride + dilation * (width - 1) + 1 - size, 0)
        less, more = total // 2, total - total // 2
        before.append(less if automatic == "SAME_UPPER" else more)
        behind.append(more if automatic == "SAME_UPPER" else less)
    return strides, dilations, before, behind


def _flat(before: Sequence[int], behind: Sequence[int]) -> list[int]:
    """As functional.pad takes it: from the last dimension on."""
    return [size for pair in zip(reversed(before), reversed(behind), strict=True) for size in pair]


def make_conv(node: Node) -> Run:
    """Padding that differs at the two ends is added before."""
    function = _of_rank(node, torch, "conv")
    strides, dilations, before, behind = _windows(node, node.operand(1).shape[2:])
    groups = node.attributes.get("group", 1)
    if before == behind:
        return lambda x, weight, bias=None: function(x, weight, bias, strides, before, dilations, groups)
    pads = _flat(before, behind)
    return lambda x, weight, bias=None: function(
        functional.pad(x, pads), weight, bias, strides, [0] * len(before), dilations, groups
    )


def make_conv_transpose(node: Node) -> Run:
    """What ONNX pads is cut off from the result; padding that differs at the two ends is cut off afterwards."""
    function = _of_rank(node, torch, "conv_transpose")
    node.choice("auto_pad", "NOTSET", "NOTSET")
    if "output_shape" in node.attributes:
        raise node.refuse("with output_shape")
    strides, dilations, before, behind = _windows(node, node.operand(1).shape[2:])
    extra = list(node.attributes.get("output_padding", [0] * len(before)))
    groups = node.attributes.get("group", 1)
    if before == behind:
        return lambda x, weight, bias=None: function(x, weight, bias, strides, before, extra, groups, dilations)
    cuts = [-size for size in _flat(before, behind)]
    return lambda x, weight, bias=None: functional.pad(
        function(x, weight, bias, strides, [0] * len(before), extra, groups, dilations), cuts
    )


def make_max_pool(node: Node) -> Run:
    """Its indices, which ONNX may ask for too, are not given."""
    if node.results > 1:
        raise node.refuse("of several results")
    function = _of_rank(node, functional, "max_pool")
    kernel = list(node.attributes["kernel_shape"])
    strides, dilations, before, behind = _windows(node, kernel)
    ceil = bool(node.attributes.get("ceil_mode", 0))
    if before == behind and all(2 * size <= width for size, width in zip(before, kernel, strict=True)):
        return lambda x: function(x, kernel, strides, before, dilations, ceil)
    pads = _flat(before, behind)
    return lambda x: function(functional.pad(x, pads, value=-math.inf), kernel, strides, 0, dilations, ceil)


def make_average_pool(node: Node) -> Run:
    """Padding counts as zeros only where that is asked for."""
    function = _of_rank(node, functional, "avg_pool")
    kernel = list(node.attributes["kernel_shape"])
    strides, dilations, before, behind = _windows(node, kernel)
    ceil, counted = bool(node.attributes.get("ceil_mode", 0)), bool(node.attributes.get("count_include_pad", 0))
    if any(size != 1 for size in dilations):
        raise node.refuse("with dilations")
    if before == behind and all(2 * size <= width for size, width in zip(before, kernel, strict=True)):
        return lambda x: function(x, kernel, strides, before, ceil, counted)
    if ceil:
        raise node.refuse("with ceil_mode and such pads")
    pads = _flat(before, behind)
    if counted:
        return lambda x: function(functional.pad(x, pads), kernel, strides)
    ones = torch.ones_like(node.operand(0)[:1, :1])
    share = function(functional.pad(ones, pads), kernel, strides)
    return lambda x: function(functional.pad(x, pads), kernel, strides) / share


def _over_the_image(function: Callable[..., Any]) -> Callable[[Node], Run]:
    """What makes an operation that reduces all dimensions of an image by a function of `dim` and `keepdim`."""
    return lambda node: partial(function, dim=list(range(2, node.operand(0).dim())), keepdim=True)


make_global_average_pool = _over_the_image(torch.mean)
make_global_max_pool = _over_the_image(torch.amax)


def make_batch_normalization(node: Node) -> Run:
    """With the statistics that it is given."""
    if node.attributes.get("training_mode", 0) or node.results > 1:
        raise node.refuse("in training")
    epsilon = node.attributes.get("epsilon", 1e-5)
    return lambda x, scale, bias, mean, variance: functional.batch_norm(x, mean, variance, scale, bias, eps=epsilon)


def _sizes(node: Node) -> tuple[list[int], list[float]]:
    """Sizes of the image's dimensions in the result, and by what they are scaled."""
    shape = list(node.operand(0).shape)
    target, scales = node.constant(3), node.constant(2)
    axes = [axis % len(shape) for axis in node.attributes.get("axes", range(len(shape)))]
    if target:
        node.choice("keep_aspect_ratio_policy", "stretch", "stretch")
        sizes = dict(zip(axes, target, strict=True))
        factors = {axis: size / shape[axis] for axis, size in sizes.items()}
    elif scales:
        factors = {axis: float(scale) for axis, scale in zip(axes, scales, strict=True)}
        sizes = {axis: math.floor(shape[axis] * scale) for axis, scale in factors.items()}
    else:
        raise ValueError("Resize has neither sizes nor scales")
    every = range(len(shape))
    wanted = [sizes.get(axis, shape[axis]) for axis in every]
    if wanted[:2] != shape[:2] or len(shape) < 3:
        raise node.refuse("of other dimensions than an image's")
    return wanted[2:], [factors.get(axis, 1.0) for axis in every][2:]


def make_resize(node: Node) -> Run:
    """Nearest where PyTorch rounds as ONNX is told to; linear with half pixels or with corners aligned."""
    sizes, factors = _sizes(node)
    if node.attributes.get("antialias", 0):
        raise node.refuse("with antialias")
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
    is_whole = all(factor >= 1 and factor == int(factor) for factor in factors)
    halves = place in ("half_pixel", "pytorch_half_pixel") and rounding.startswith("round_prefer") and is_whole
    if not same and not halves:
        raise ValueError(f"nearest Resize with {place} and {rounding} is not known to the reader")
    return lambda x, *_: functional.interpolate(x, size=sizes, mode="nearest")
