"""What one operation on tensors does: arithmetic, and the elements that it reads and writes.

Part of harness.roofline.counter, which runs under a toolchain's own Python.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from iree.compiler import ir
from iree.compiler._mlir_libs._mlirDialectsLinalg import get_indexing_maps  # the dialect's own module needs more

from harness.roofline.arithmetic import Cost, cost_of, cost_of_body, nested
from harness.roofline.footprint import bytes_of, loop_ranges, touched
from harness.roofline.sizes import Sizes, Unknown, inits, segments

# What only makes another view of its operand, or says something of it.
_VIEWS = frozenset(
    (
        *("tensor.empty", "tensor.splat", "tensor.cast", "tensor.bitcast", "tensor.dim", "tensor.rank"),
        *("tensor.expand_shape", "tensor.collapse_shape", "tensor.reshape", "tensor.extract_slice"),
        *("tensor.extract", "tensor.from_elements", "tensor.insert"),
        *("linalg.fill", "arith.constant", "linalg.yield"),
        *("hal.tensor.import", "hal.tensor.export", "hal.tensor.barrier", "hal.tensor.alias"),
    )
)
_VIEW_DIALECTS = ("util", "hal", "affine", "index", "cf", "ml_program")
# What moves data and computes nothing.
_MOVES = frozenset(
    (
        *("tensor.pad", "tensor.concat", "tensor.insert_slice", "linalg.pack", "linalg.unpack"),
        *("iree_linalg_ext.gather", "iree_linalg_ext.im2col", "iree_linalg_ext.pack", "iree_linalg_ext.unpack"),
    )
)
_EMPTY = ("tensor.empty", "linalg.fill", "tensor.splat")


def cost_of_tensors(op: Any, sizes: Sizes) -> Cost:
    """Of one operation outside of loops and branches, its own regions included.

    Raises:
        Unknown: A size that it depends on is not known.
    """
    name = op.name
    if name in _VIEWS or name.partition(".")[0] in _VIEW_DIALECTS:
        return Cost()
    if not _has_tensors(op):
        return Cost(unknown=Counter() if name.startswith(("arith.", "math.", "scf.")) else cost_of(op).unknown)
    if name == "iree_linalg_ext.attention":
        return _attention(op, sizes)
    if name.startswith("linalg.") and (maps := _maps(op)):
        return _structured(op, maps, sizes)
    cost = Cost()
    if name == "tensor.insert_slice":
        cost.moved_bytes = 2 * _bytes(op.operands[0], sizes)
    else:
        cost.moved_bytes = sum(_bytes(value, sizes) for value in (*_sources(op), *op.results))
    if name == "linalg.softmax":  # max, subtract, exp, sum, divide
        elements = sizes.elements(op.operands[0])
        cost.add(Cost(operations=5, transcendental=1), elements)
    elif name == "tensor.generate":
        cost.add(cost_of_body(op), sizes.elements(op.results[0]))
    elif name == "iree_linalg_ext.scatter":
        cost.add(cost_of_body(op), sizes.elements(op.operands[0]))
    elif name.startswith(("arith.", "math.")):
        cost.add(cost_of(op), sizes.elements(op.results[0]))
    elif name not in _MOVES:
        cost.unknown[name] += 1
    return cost


def gathered(value: Any, sizes: Sizes) -> int | None:
    """Elements of a tensor that is read in the bodies of other operations only, one by one; None: it is read whole."""
    total = 0
    for use in value.uses:
        reader = use.owner.operation
        holder = reader.parent.operation
        if reader.name != "tensor.extract" or not holder.name.startswith("linalg."):
            return None
        total += _iterations(holder, sizes)
    return min(total, sizes.elements(value))


def is_uniform(value: Any) -> bool:
    """Whether a tensor has no values yet, or one everywhere, so that nothing is read from memory."""
    if isinstance(value, ir.BlockArgument):
        return False
    op = value.owner.operation
    if op.name == "arith.constant":
        attribute = op.attributes["value"]
        return isinstance(attribute, ir.DenseElementsAttr) and bool(attribute.is_splat)
    return op.name in _EMPTY


def _structured(op: Any, maps: Sequence[Any], sizes: Sizes) -> Cost:
    """A linalg operation with a body: its iteration space times its body."""
    operands = list(op.operands)
    ranges = loop_ranges(maps, [sizes.shape(operand) for operand in operands])
    if len(ranges) < maps[0].n_dims:
        raise Unknown(f"the extent of a loop of {op.name} is not the size of any operand")
    cost = Cost()
    iterations = math.prod(ranges.values())
    cost.add(cost_of_body(op), iterations)
    arguments = list(op.regions[0].blocks[0].arguments)
    outputs = inits(op)
    for operand, affine_map, argument in zip(operands, maps, arguments, strict=True):
        if isinstance(operand.type, ir.ShapedType) and any(argument.uses) and not is_uniform(operand):
            cost.moved_bytes += bytes_of(touched(affine_map, ranges), operand.type)
    for output, affine_map in zip(outputs, maps[len(maps) - len(outputs) :], strict=True):
        cost.moved_bytes += bytes_of(touched(affine_map, ranges), output.type)
    for inner in nested(op):
        if inner.name == "tensor.extract":
            source = inner.operands[0]
            cost.moved_bytes += bytes_of(min(iterations, sizes.elements(source)), source.type)
    return cost


def _iterations(op: Any, sizes: Sizes) -> int:
    return math.prod(loop_ranges(_maps(op), [sizes.shape(operand) for operand in op.operands]).values())


def _maps(op: Any) -> list[Any]:
    """Its indexing maps; [] where it has none."""
    return [one.value for one in get_indexing_maps(op) or ()]


def _attention(op: Any, sizes: Sizes) -> Cost:
    """Two contractions, and between them the scale and a softmax over the keys (max, subtract, exp, sum, divide)."""
    maps = [one.value for one in op.attributes["indexing_maps"]]
    operands = list(op.operands)
    ranges = loop_ranges(maps, [sizes.shape(operand) for operand in operands])
    query, key, value = (_loops(affine_map) for affine_map in maps[:3])
    output = _loops(maps[-1])
    scores = math.prod(ranges[dim] for dim in (query | key) & (value | output))
    cost = Cost(
        operations=2 * math.prod(ranges[dim] for dim in query | key)
        + 2 * math.prod(ranges[dim] for dim in value | output)
        + 6 * scores,
        transcendental=scores,
    )
    cost.moved_bytes = sum(_bytes(one, sizes) for one in (*_sources(op), *op.results))
    return cost


def _loops(affine_map: Any) -> set[int]:
    return {expr.position for expr in affine_map.results if isinstance(expr, ir.AffineDimExpr)}


def _sources(op: Any) -> Iterator[Any]:
    """Tensors that an operation reads; of one in destination style, without what it writes to."""
    read = segments(op)[0] if op.name.startswith(("linalg.", "iree_linalg_ext.")) else list(op.operands)
    if op.name.startswith(("linalg.", "iree_linalg_ext.")) and len(read) == len(op.operands):
        read = read[: len(read) - len(op.results)]
    return (value for value in read if isinstance(value.type, ir.ShapedType) and not is_uniform(value))


def _bytes(value: Any, sizes: Sizes) -> int:
    return bytes_of(sizes.elements(value), value.type) if isinstance(value.type, ir.ShapedType) else 0


def _has_tensors(op: Any) -> bool:
    return any(isinstance(value.type, ir.ShapedType) for value in (*op.operands, *op.results))
