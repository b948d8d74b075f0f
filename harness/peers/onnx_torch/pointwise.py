"""Operations of single elements, and those that reduce or normalise along dimensions."""

from __future__ import annotations

from functools import reduce
from typing import Any

import torch
from torch.nn import functional

from harness.peers.onnx_torch.node import Node, Run


def divide(node: Node) -> Run:
    """Whole numbers are divided as in C: towards zero."""
    whole = not node.operand(0).is_floating_point()
    return lambda x, y: torch.div(x, y, rounding_mode="trunc" if whole else None)


def power(node: Node) -> Run:
    """The result has the base's type."""
    dtype = node.operand(0).dtype
    if node.known[1] and node.operand(1).numel() == 1 and node.operand(1).dim() <= node.operand(0).dim():
        exponent = node.operand(1).item()
        return lambda x, _: torch.pow(x, exponent).to(dtype)
    return lambda x, y: torch.pow(x, y).to(dtype)


def clip(node: Node) -> Run:
    """Between bounds that may be left out."""
    low, high = node.setting("min", 1), node.setting("max", 2)
    if low is None and high is None:
        return lambda x, *_: x
    return lambda x, *_: torch.clamp(x, low, high)


def maximum(_: Node) -> Run:
    """Of any number of operands."""
    return lambda *several: reduce(torch.maximum, several)


def minimum(_: Node) -> Run:
    """Of any number of operands."""
    return lambda *several: reduce(torch.minimum, several)


def elu(node: Node) -> Run:
    """The exponential linear unit."""
    alpha = node.attributes.get("alpha", 1.0)
    return lambda x: functional.elu(x, alpha)


def gelu(node: Node) -> Run:
    """Exact, or with tanh."""
    approximate = node.choice("approximate", "none", "none", "tanh")
    return lambda x: functional.gelu(x, approximate=approximate)


def leaky_relu(node: Node) -> Run:
    """The slope is an attribute."""
    slope = node.attributes.get("alpha", 0.01)
    return lambda x: functional.leaky_relu(x, slope)


def prelu(node: Node) -> Run:
    """ONNX's slopes broadcast to the operand from the last dimension on, PyTorch's lie along the second."""
    x, slope = node.operand(0), node.operand(1)
    if slope.numel() == 1 or (x.dim() > 1 and slope.numel() == x.shape[1] and slope.dim() == x.dim() - 1):
        return lambda x, slope: functional.prelu(x, slope.reshape(-1))
    return lambda x, slope: torch.where(x < 0, x * slope, x)


def hard_sigmoid(node: Node) -> Run:
    """The line alpha * x + beta, between 0 and 1."""
    alpha, beta = node.attributes.get("alpha", 0.2), node.attributes.get("beta", 0.5)
    return lambda x: torch.clamp(x * alpha + beta, 0.0, 1.0)


def hard_swish(_: Node) -> Run:
    """PyTorch's is ONNX's."""
    return lambda x: functional.hardswish(x)


def softmax(node: Node) -> Run:
    """Before opset 13 all dimensions from the axis on are one."""
    axis = node.attributes.get("axis", -1 if node.opset >= 13 else 1)
    if node.opset >= 13 or axis % node.operand(0).dim() == node.operand(0).dim() - 1:
        return lambda x: torch.softmax(x, dim=axis)
    return lambda x: torch.softmax(x.flatten(axis), dim=-1).reshape(x.shape)


def layer_normalization(node: Node) -> Run:
    """Its statistics, which ONNX may ask for too, are not given."""
    if node.results > 1:
        raise ValueError("LayerNormalization of several results is not known to the reader")
    shape = list(node.operand(0).shape)[node.attributes.get("axis", -1) :]
    epsilon = node.attributes.get("epsilon", 1e-5)
    return lambda x, scale, bias=None: functional.layer_norm(x, shape, scale, bias, epsilon)


def gemm(node: Node) -> Run:
    """A product and a sum: alpha * A' * B' + beta * C, where A' and B' may be transposed."""
    alpha, beta = node.attributes.get("alpha", 1.0), node.attributes.get("beta", 1.0)
    turn_a, turn_b = node.attributes.get("transA", 0), node.attributes.get("transB", 0)

    def run(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor | None = None) -> Any:
        a, b = a.t() if turn_a else a, b.t() if turn_b else b
        return alpha * torch.mm(a, b) if c is None else torch.addmm(c, a, b, alpha=alpha, beta=beta)

    return run


def _axes(node: Node) -> list[int] | None:
    """The dimensions to reduce; None: leave all as they are."""
    axes = node.setting("axes", 1, [])
    if not axes and node.attributes.get("noop_with_empty_axes", 0):
        return None
    return list(axes) or list(range(node.operand(0).dim()))


def _reduction(node: Node, function: Any) -> Run:
    axes, keep = _axes(node), bool(node.attributes.get("keepdims", 1))
    if axes is None:
        return lambda x, *_: x
    return lambda x, *_: function(x, dim=axes, keepdim=keep)


def reduce_mean(node: Node) -> Run:
    """Over the axes, or over all."""
    return _reduction(node, torch.mean)


def reduce_max(node: Node) -> Run:
    """Over the axes, or over all."""
    return _reduction(node, torch.amax)


def reduce_min(node: Node) -> Run:
    """Over the axes, or over all."""
    return _reduction(node, torch.amin)


def reduce_sum(node: Node) -> Run:
    """Over the axes, or over all; whole numbers keep their type."""
    dtype = node.operand(0).dtype
    return _reduction(node, lambda x, dim, keepdim: torch.sum(x, dim=dim, keepdim=keepdim, dtype=dtype))
