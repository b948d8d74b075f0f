"""Convolutions, pooling and what goes with them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch.nn import functional

from harness.peers.onnx_torch.node import Node, Run

_CONVOLUTIONS = (torch.conv1d, torch.conv2d, torch.conv3d)
_TRANSPOSED = (torch.conv_transpose1d, torch.conv_transpose2d, torch.conv_transpose3d)
_MAX_POOLS = (functional.max_pool1d, functional.max_pool2d, functional.max_pool3d)
_AVERAGE_POOLS = (functional.avg_pool1d, functional.avg_pool2d, functional.avg_pool3d)


def _of_rank(functions: Sequence[Any], node: Node) -> tuple[Any, int]:
    """The function for so many dimensions of an image, and their number."""
    rank = node.operand(0).dim() - 2
    if not 1 <= rank <= len(functions):
        raise ValueError(f"{node.kind} over {rank} dimensions is not known to the reader")
    return functions[rank - 1], rank


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


def convolution(node: Node) -> Run:
    """Padding that differs at the two ends is added before."""
    function, _ = _of_rank(_CONVOLUTIONS, node)
    strides, dilations, before, behind = _windows(node, node.operand(1).shape[2:])
    groups = node.attributes.get("group", 1)
    if before == behind:
        return lambda x, weight, bias=None: function(x, weight, bias, strides, before, dilations, groups)
    pads = _flat(before, behind)
    return lambda x, weight, bias=None: function(
        functional.pad(x, pads), weight, bias, strides, [0] * len(before), dilations, groups
    )


def transposed_convolution(node: Node) -> Run:
    """What ONNX pads is cut off from the result; padding that differs at the two ends is cut off afterwards."""
    function, rank = _of_rank(_TRANSPOSED, node)
    node.choice("auto_pad", "NOTSET", "NOTSET")
    if "output_shape" in node.attributes:
        raise ValueError("ConvTranspose with output_shape is not known to the reader")
    strides, dilations, before, behind = _windows(node, node.operand(1).shape[2:])
    extra = list(node.attributes.get("output_padding", [0] * rank))
    groups = node.attributes.get("group", 1)
    if before == behind:
        return lambda x, weight, bias=None: function(x, weight, bias, strides, before, extra, groups, dilations)
    cuts = [-size for size in _flat(before, behind)]
    return lambda x, weight, bias=None: functional.pad(
        function(x, weight, bias, strides, [0] * rank, extra, groups, dilations), cuts
    )


def max_pool(node: Node) -> Run:
    """Its indices, which ONNX may ask for too, are not given."""
    if node.results > 1:
        raise ValueError("MaxPool of several results is not known to the reader")
    function, _ = _of_rank(_MAX_POOLS, node)
    kernel = list(node.attributes["kernel_shape"])
    strides, dilations, before, behind = _windows(node, kernel)
    ceil = bool(node.attributes.get("ceil_mode", 0))
    if before == behind and all(2 * size <= width for size, width in zip(before, kernel, strict=True)):
        return lambda x: function(x, kernel, strides, before, dilations, ceil)
    pads = _flat(before, behind)
    return lambda x: function(functional.pad(x, pads, value=-math.inf), kernel, strides, 0, dilations, ceil)


def average_pool(node: Node) -> Run:
    """Padding counts as zeros only where that is asked for."""
    function, _ = _of_rank(_AVERAGE_POOLS, node)
    kernel = list(node.attributes["kernel_shape"])
    strides, dilations, before, behind = _windows(node, kernel)
    ceil, counted = bool(node.attributes.get("ceil_mode", 0)), bool(node.attributes.get("count_include_pad", 0))
    if any(one != 1 for one in dilations):
        raise ValueError("AveragePool with dilations is not known to the reader")
    if before == behind and all(2 * size <= width for size, width in zip(before, kernel, strict=True)):
        return lambda x: function(x, kernel, strides, before, ceil, counted)
    if ceil:
        raise ValueError("AveragePool with ceil_mode and such pads is not known to the reader")
    pads = _flat(before, behind)
    if counted:
        return lambda x: function(functional.pad(x, pads), kernel, strides)
    ones = torch.ones_like(node.operand(0)[:1, :1])
    share = function(functional.pad(ones, pads), kernel, strides)
    return lambda x: function(functional.pad(x, pads), kernel, strides) / share


def _image_dimensions(node: Node) -> list[int]:
    return list(range(2, node.operand(0).dim()))


def global_average_pool(node: Node) -> Run:
    """Over the whole image."""
    dimensions = _image_dimensions(node)
    return lambda x: torch.mean(x, dim=dimensions, keepdim=True)


def global_max_pool(node: Node) -> Run:
    """Over the whole image."""
    dimensions = _image_dimensions(node)
    return lambda x: torch.amax(x, dim=dimensions, keepdim=True)


def batch_normalization(node: Node) -> Run:
    """With the statistics that it is given."""
    if node.attributes.get("training_mode", 0) or node.results > 1:
        raise ValueError("BatchNormalization in training is not known to the reader")
    epsilon = node.attributes.get("epsilon", 1e-5)
    return lambda x, scale, bias, mean, variance: functional.batch_norm(x, mean, variance, scale, bias, eps=epsilon)
