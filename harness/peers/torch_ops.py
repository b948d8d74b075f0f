"""Operations of ONNX in PyTorch: `make_KIND` reads one node's attributes and gives the function of its operands.

torch_images.py has those on images. pytorch.py lists all of them, since these modules import PyTorch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from typing import Any

import torch
from torch.nn import functional

# Takes a node's operands, those left out as None, and gives its result or results.
Run = Callable[..., Any]
# By the numbers of onnx.TensorProto.DataType.
DTYPES = {
    1: torch.float32,
    2: torch.uint8,
    3: torch.int8,
    5: torch.int16,
    6: torch.int32,
    7: torch.int64,
    9: torch.bool,
    10: torch.float16,
    11: torch.float64,
    16: torch.bfloat16,
}


@dataclass(frozen=True, kw_only=True)
class Node:
    """A node, and what its operands are when it is read."""

    kind: str
    attributes: Mapping[str, Any]  # By their names; tensors as PyTorch's, strings as str
    # Values of the example that the graph is read with, None where one is left out; only their shapes and types count,
    # but for the constant ones
    operands: Sequence[torch.Tensor | None]
    is_constant: Sequence[bool]  # Which operands are the same at every call
    results: int  # How many of its results have names
    opset: int  # Of the graph

    def has(self, position: int) -> bool:
        """Whether there is such an operand."""
        return position < len(self.operands) and self.operands[position] is not None

    def operand(self, position: int) -> torch.Tensor:
        """An operand of the example."""
        value = self.operands[position] if position < len(self.operands) else None
        if value is None:
            raise ValueError(f"{self.kind} lacks operand {position}")
        return value

    def constant(self, position: int) -> Any:
        """The value of an operand as Python's numbers: one, or a list; None where it is left out."""
        if not self.has(position):
            return None
        if not self.is_constant[position]:
            raise ValueError(f"operand {position} of {self.kind} is no constant")
        return self.operand(position).tolist()

    def setting(self, name: str, position: int, otherwise: Any = None) -> Any:
        """What older opsets have as an attribute and newer ones as an operand."""
        if name in self.attributes:
            return self.attributes[name]
        value = self.constant(position)
        return otherwise if value is None else value

    def refuse(self, form: str) -> ValueError:
        """The error that names a form of the operation that the reader does not know."""
        return ValueError(f"{self.kind} {form} is not known to the reader")

    def choice(self, name: str, otherwise: Any, *allowed: Any) -> Any:
        """An attribute of which the reader knows some values only."""
        value = self.attributes.get(name, otherwise)
        if value not in allowed:
            raise self.refuse(f"with {name} {value!r}")
        return value


def make_div(node: Node) -> Run:
    """Whole numbers are divided as in C: towards zero."""
    whole = not node.operand(0).is_floating_point()
    return lambda x, y: torch.div(x, y, rounding_mode="trunc" if whole else None)


def make_pow(node: Node) -> Run:
    """The result has the base's type."""
    dtype = node.operand(0).dtype
    if node.is_constant[1] and node.operand(1).numel() == 1 and node.operand(1).dim() <= node.operand(0).dim():
        exponent = node.operand(1).item()
        return lambda x, _: torch.pow(x, exponent).to(dtype)
    return lambda x, y: torch.pow(x, y).to(dtype)


def make_clip(node: Node) -> Run:
    """Between bounds that may be left out."""
    low, high = node.setting("min", 1), node.setting("max", 2)
    if low is None and high is None:
        return lambda x, *_: x
    return lambda x, *_: torch.clamp(x, low, high)


def _folded(function: Callable[..., Any]) -> Callable[[Node], Run]:
    """What makes an operation of any number of operands by a function of two."""
    return lambda _: lambda *several: reduce(function, several)


make_max = _folded(torch.maximum)
make_min = _folded(torch.minimum)


def make_elu(node: Node) -> Run:
    """The exponential linear unit."""
    return partial(functional.elu, alpha=node.attributes.get("alpha", 1.0))


def make_gelu(node: Node) -> Run:
    """Exact, or with tanh."""
    return partial(functional.gelu, approximate=node.choice("approximate", "none", "none", "tanh"))


def make_leaky_relu(node: Node) -> Run:
    """The slope is an attribute."""
    return partial(functional.leaky_relu, negative_slope=node.attributes.get("alpha", 0.01))


def make_p_relu(node: Node) -> Run:
    """ONNX's slopes broadcast to the operand from the last dimension on, PyTorch's lie along the second."""
    x, slope = node.operand(0), node.operand(1)
    if slope.numel() == 1 or (x.dim() > 1 and slope.numel() == x.shape[1] and slope.dim() == x.dim() - 1):
        return lambda x, slope: functional.prelu(x, slope.reshape(-1))
    return lambda x, slope: torch.where(x < 0, x * slope, x)


def make_hard_sigmoid(node: Node) -> Run:
    """The line alpha * x + beta, between 0 and 1."""
    alpha, beta = node.attributes.get("alpha", 0.2), node.attributes.get("beta", 0.5)
    return lambda x: torch.clamp(x * alpha + beta, 0.0, 1.0)


def make_softmax(node: Node) -> Run:
    """Before opset 13 all dimensions from the axis on are one."""
    axis = node.attributes.get("axis", -1 if node.opset >= 13 else 1)
    if node.opset >= 13 or axis % node.operand(0).dim() == node.operand(0).dim() - 1:
        return lambda x: torch.softmax(x, dim=axis)
    return lambda x: torch.softmax(x.flatten(axis), dim=-1).reshape(x.shape)


def make_layer_normalization(node: Node) -> Run:
    """Its statistics, which ONNX may ask for too, are not given."""
    if node.results > 1:
        raise node.refuse("of several results")
    shape = list(node.operand(0).shape)[node.attributes.get("axis", -1) :]
    epsilon = node.attributes.get("epsilon", 1e-5)
    return lambda x, scale, bias=None: functional.layer_norm(x, shape, scale, bias, epsilon)


def make_gemm(node: Node) -> Run:
    """A product and a sum: alpha * A' * B' + beta * C, where A' and B' may be transposed."""
    alpha, beta = node.attributes.get("alpha", 1.0), node.attributes.get("beta", 1.0)
    turn_a, turn_b = node.attributes.get("transA", 0), node.attributes.get("transB", 0)

    def run(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor | None = None) -> Any:
        a, b = a.t() if turn_a else a, b.t() if turn_b else b
        return alpha * torch.mm(a, b) if c is None else torch.addmm(c, a, b, alpha=alpha, beta=beta)

    return run


def _reduction(function: Callable[..., Any]) -> Callable[[Node], Run]:
    """What makes an operation that reduces the axes, or all dimensions, by a function of `dim` and `keepdim`."""

    def make(node: Node) -> Run:
        axes, keep = node.setting("axes", 1, []), bool(node.attributes.get("keepdims", 1))
        if not axes and node.attributes.get("noop_with_empty_axes", 0):
            return lambda x, *_: x
        axes = list(axes) or list(range(node.operand(0).dim()))
        return lambda x, *_: function(x, dim=axes, keepdim=keep)

    return make


def _sum(x: torch.Tensor, dim: list[int], keepdim: bool) -> torch.Tensor:
    """Whole numbers keep their type."""
    return torch.sum(x, dim=dim, keepdim=keepdim, dtype=x.dtype)


make_reduce_l2 = _reduction(torch.linalg.vector_norm)
make_reduce_max = _reduction(torch.amax)
make_reduce_mean = _reduction(torch.mean)
make_reduce_min = _reduction(torch.amin)
make_reduce_sum = _reduction(_sum)


def make_identity(node: Node) -> Run:
    """Dropout too, which drops nothing when a network is not being trained."""
    if node.results > 1:
        raise node.refuse("of several results")
    return lambda x, *_: x


make_dropout = make_identity


def make_cast(node: Node) -> Run:
    """To another element type; floats are cut to whole numbers."""
    number = node.attributes["to"]
    if number not in DTYPES:
        raise node.refuse(f"to element type {number}")
    dtype = DTYPES[number]
    return lambda x: x.to(dtype)


def make_constant(node: Node) -> Run:
    """A tensor, a number or a list of numbers."""
    dtypes = {"value_float": torch.float32, "value_floats": torch.float32, "value_int": torch.int64}
    for name, dtype in {**dtypes, "value_ints": torch.int64}.items():
        if name in node.attributes:
            return lambda: torch.tensor(node.attributes[name], dtype=dtype)
    if "value" not in node.attributes:
        raise node.refuse("of strings or of a sparse tensor")
    return lambda: node.attributes["value"]


def make_constant_of_shape(node: Node) -> Run:
    """Filled with one value, 0.0 unless it says otherwise."""
    shape = node.constant(0)
    value = node.attributes.get("value", torch.zeros(1))
    return lambda _: torch.full(shape, value.item(), dtype=value.dtype)


def make_range(_: Node) -> Run:
    """Range, of numbers that are known when the graph is read; the type is theirs."""
    return lambda start, limit, step: torch.arange(start.item(), limit.item(), step.item(), dtype=start.dtype)


def make_shape(node: Node) -> Run:
    """Static."""
    shape = list(node.operand(0).shape)[node.attributes.get("start", 0) : node.attributes.get("end")]
    return lambda _: torch.tensor(shape, dtype=torch.int64)


def make_reshape(node: Node) -> Run:
    """0 keeps a size, unless it is allowed as a size."""
    sizes = node.constant(1)
    if not node.attributes.get("allowzero", 0):
        sizes = [node.operand(0).shape[place] if size == 0 else size for place, size in enumerate(sizes)]
    return lambda x, _: torch.reshape(x, sizes)


def make_flatten(node: Node) -> Run:
    """To two dimensions."""
    axis = node.attributes.get("axis", 1)
    rows = int(torch.tensor(node.operand(0).shape[:axis]).prod().item())
    return lambda x: torch.reshape(x, (rows, -1))


def make_transpose(node: Node) -> Run:
    """Turned around, unless it says how."""
    permutation = node.attributes.get("perm") or list(range(node.operand(0).dim()))[::-1]
    return lambda x: torch.permute(x, permutation)


def make_squeeze(node: Node) -> Run:
    """Take away dimensions of size 1: these, or all."""
    axes = node.setting("axes", 1)
    if axes is None:
        return lambda x, *_: torch.squeeze(x)
    return lambda x, *_: torch.squeeze(x, dim=tuple(axes))


def make_unsqueeze(node: Node) -> Run:
    """Add dimensions of size 1, at places of the result."""
    axes = node.setting("axes", 1)
    rank = node.operand(0).dim() + len(axes)
    places = sorted(axis % rank for axis in axes)

    def run(x: torch.Tensor, *_: Any) -> Any:
        for place in places:
            x = torch.unsqueeze(x, place)
        return x

    return run


def make_expand(node: Node) -> Run:
    """Broadcast to a shape, and the shape to the operand."""
    shape = torch.broadcast_shapes(node.operand(0).shape, tuple(node.constant(1)))
    return lambda x, _: x.expand(shape)


def make_tile(node: Node) -> Run:
    """Repeated along each dimension."""
    times = node.constant(1)
    return lambda x, _: x.repeat(times)


def make_concat(node: Node) -> Run:
    """Along one axis."""
    axis = node.attributes["axis"]
    return lambda *parts: torch.cat(parts, dim=axis)


def make_split(node: Node) -> Run:
    """Into parts of given sizes, or as equal as they get."""
    axis = node.attributes.get("axis", 0)
    sizes = node.setting("split", 1)
    if sizes is None:
        size = node.operand(0).shape[axis]
        sizes = -(-size // node.results)
    return lambda x, *_: torch.split(x, sizes, dim=axis)


def make_gather(node: Node) -> Run:
    """Along one axis; an index may count from the end."""
    axis = node.attributes.get("axis", 0)
    size = node.operand(0).shape[axis]

    def run(x: torch.Tensor, index: torch.Tensor) -> Any:
        index = torch.where(index < 0, index + size, index).long()
        picked = torch.index_select(x, axis, index.reshape(-1))
        before = axis % x.dim()
        return picked.reshape(x.shape[:before] + index.shape + x.shape[before + 1 :])

    return run


def _cut(size: int, start: int, end: int, step: int) -> tuple[int, int, int]:
    """As Python's slice.indices, but that a start before the first element is the first, backwards too."""
    start, end = (place + size if place < 0 else place for place in (start, end))
    if step > 0:
        return min(max(start, 0), size), min(max(end, 0), size), step
    return min(max(start, 0), size - 1), min(max(end, -1), size - 1), step


def make_slice(node: Node) -> Run:
    """Starts and ends may lie outside or count from the end, steps may go backwards."""
    starts, ends = node.setting("starts", 1), node.setting("ends", 2)
    axes = node.setting("axes", 3, list(range(len(starts))))
    steps = node.constant(4) or [1] * len(starts)
    shape = node.operand(0).shape
    cuts = [(axis, *_cut(shape[axis], *cut)) for axis, *cut in zip(axes, starts, ends, steps, strict=True)]

    def run(x: torch.Tensor, *_: Any) -> Any:
        for axis, start, end, step in cuts:
            if step > 0:
                picked = (*[slice(None)] * (axis % x.dim()), slice(start, max(start, end), step))
                x = x[picked]
            else:
                x = torch.index_select(x, axis, torch.arange(start, min(start, end), step))
        return x

    return run


def make_depth_to_space(node: Node) -> Run:
    """DCR: a block's pixels lie outermost in the channels; CRD: innermost, as PyTorch's pixel_shuffle has them."""
    size = node.attributes["blocksize"]
    if node.choice("mode", "DCR", "DCR", "CRD") == "CRD":
        return lambda x: functional.pixel_shuffle(x, size)
    batch, channels, height, width = node.operand(0).shape
    inner = channels // size**2

    def run(x: torch.Tensor) -> Any:
        blocks = x.reshape(batch, size, size, inner, height, width).permute(0, 3, 4, 1, 5, 2)
        return blocks.reshape(batch, inner, height * size, width * size)

    return run


def make_pad(node: Node) -> Run:
    """ONNX says all begins, then all ends; PyTorch pairs of them, from the last dimension on."""
    mode = node.choice("mode", "constant", "constant", "reflect", "edge")
    rank = node.operand(0).dim()
    pads = node.setting("pads", 1)
    axes = node.constant(3) or list(range(rank))
    pairs = [(0, 0)] * rank
    for place, axis in enumerate(axes):
        pairs[axis] = (pads[place], pads[place + len(axes)])
    if mode != "constant":  # which PyTorch has for the last dimensions only
        while len(pairs) > max(1, rank - 2) and pairs[0] == (0, 0):
            pairs.pop(0)
    flat = [size for pair in reversed(pairs) for size in pair]
    if mode == "constant":
        value = node.setting("value", 2, 0.0)
        return lambda x, *_: functional.pad(x, flat, value=value)
    return lambda x, *_: functional.pad(x, flat, mode="replicate" if mode == "edge" else mode)
