"""Operations that make, move or pick elements, and compute nothing."""

from __future__ import annotations

from typing import Any

import torch
from torch.nn import functional

from harness.peers.onnx_torch.node import Node, Run

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


def identity(node: Node) -> Run:
    """Dropout too, which drops nothing when a network is not being trained."""
    if node.results > 1:
        raise ValueError(f"{node.kind} of several results is not known to the reader")
    return lambda x, *_: x


def cast(node: Node) -> Run:
    """To another element type; floats are cut to whole numbers."""
    number = node.attributes["to"]
    if number not in DTYPES:
        raise ValueError(f"Cast to element type {number} is not known to the reader")
    dtype = DTYPES[number]
    return lambda x: x.to(dtype)


def constant(node: Node) -> Run:
    """A tensor, a number or a list of numbers."""
    for name, dtype in (("value_float", torch.float32), ("value_floats", torch.float32)):
        if name in node.attributes:
            return lambda: torch.tensor(node.attributes[name], dtype=dtype)
    for name in ("value_int", "value_ints"):
        if name in node.attributes:
            return lambda: torch.tensor(node.attributes[name], dtype=torch.int64)
    if "value" not in node.attributes:
        raise ValueError("Constant of strings or of a sparse tensor is not known to the reader")
    return lambda: node.attributes["value"]


def constant_of_shape(node: Node) -> Run:
    """Filled with one value, 0.0 unless it says otherwise."""
    shape = node.constant(0)
    value = node.attributes.get("value", torch.zeros(1))
    return lambda _: torch.full(shape, value.item(), dtype=value.dtype)


def count_up(_: Node) -> Run:
    """Range, of numbers that are known when the graph is read; the type is theirs."""
    return lambda start, limit, step: torch.arange(start.item(), limit.item(), step.item(), dtype=start.dtype)


def shape_of(node: Node) -> Run:
    """Static."""
    shape = list(node.operand(0).shape)[node.attributes.get("start", 0) : node.attributes.get("end")]
    return lambda _: torch.tensor(shape, dtype=torch.int64)


def reshape(node: Node) -> Run:
    """0 keeps a size, unless it is allowed as a size."""
    sizes = node.constant(1)
    if not node.attributes.get("allowzero", 0):
        sizes = [node.operand(0).shape[place] if size == 0 else size for place, size in enumerate(sizes)]
    return lambda x, _: torch.reshape(x, sizes)


def flatten(node: Node) -> Run:
    """To two dimensions."""
    axis = node.attributes.get("axis", 1)
    rows = int(torch.tensor(node.operand(0).shape[:axis]).prod().item())
    return lambda x: torch.reshape(x, (rows, -1))


def transpose(node: Node) -> Run:
    """Turned around, unless it says how."""
    permutation = node.attributes.get("perm") or list(range(node.operand(0).dim()))[::-1]
    return lambda x: torch.permute(x, permutation)


def squeeze(node: Node) -> Run:
    """Take away dimensions of size 1: these, or all."""
    axes = node.setting("axes", 1)
    if axes is None:
        return lambda x, *_: torch.squeeze(x)
    return lambda x, *_: torch.squeeze(x, dim=tuple(axes))


def unsqueeze(node: Node) -> Run:
    """Add dimensions of size 1, at places of the result."""
    axes = node.setting("axes", 1)
    rank = node.operand(0).dim() + len(axes)
    places = sorted(axis % rank for axis in axes)

    def run(x: torch.Tensor, *_: Any) -> Any:
        for place in places:
            x = torch.unsqueeze(x, place)
        return x

    return run


def expand(node: Node) -> Run:
    """Broadcast to a shape, and the shape to the operand."""
    shape = torch.broadcast_shapes(node.operand(0).shape, tuple(node.constant(1)))
    return lambda x, _: x.expand(shape)


def tile(node: Node) -> Run:
    """Repeated along each dimension."""
    times = node.constant(1)
    return lambda x, _: x.repeat(times)


def concatenate(node: Node) -> Run:
    """Along one axis."""
    axis = node.attributes["axis"]
    return lambda *parts: torch.cat(parts, dim=axis)


def split(node: Node) -> Run:
    """Into parts of given sizes, or as equal as they get."""
    axis = node.attributes.get("axis", 0)
    sizes = node.setting("split", 1)
    if sizes is None:
        size = node.operand(0).shape[axis]
        sizes = -(-size // node.results)
    return lambda x, *_: torch.split(x, sizes, dim=axis)


def gather(node: Node) -> Run:
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


def take_slice(node: Node) -> Run:
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


def depth_to_space(node: Node) -> Run:
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


def pad(node: Node) -> Run:
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
