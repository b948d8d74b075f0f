"""What the tuning rewrites read from a structured operation: its loops, their ranges and kinds."""

from __future__ import annotations

from dataclasses import dataclass

from iree.compiler import ir
from iree.compiler.dialects import linalg


@dataclass(frozen=True, kw_only=True)
class Loops:
    """The implicit loops of a linalg operation, outermost first.

    Attributes:
        ranges: -1 where a range is not known at compile time.
        kinds: parallel or reduction.
    """

    ranges: tuple[int, ...]
    kinds: tuple[str, ...]


def loops_of(op: ir.Operation) -> Loops | None:
    """The loops of an operation; None where it is no structured linalg operation on ranked tensors."""
    if not op.name.startswith("linalg.") or not op.results:
        return None
    try:
        maps = [attribute.value for attribute in linalg.get_indexing_maps(op)]
    except TypeError:  # linalg.index, linalg.yield, linalg.pack, ...
        return None
    if len(maps) != len(op.operands) or not all(isinstance(x.type, ir.RankedTensorType) for x in op.results):
        return None
    count = maps[-1].n_dims
    ranges = [-1] * count
    for operand, map_ in zip(op.operands, maps, strict=True):
        if not isinstance(operand.type, ir.RankedTensorType):
            continue
        for axis, expression in enumerate(map_.results):
            if isinstance(expression, ir.AffineDimExpr) and not operand.type.is_dynamic_dim(axis):
                ranges[expression.position] = operand.type.get_dim_size(axis)
    results = {e.position for e in maps[-1].results if isinstance(e, ir.AffineDimExpr)}
    kinds = tuple("parallel" if loop in results else "reduction" for loop in range(count))
    return Loops(ranges=tuple(ranges), kinds=kinds)


def structured_ops(module: ir.Module) -> list[tuple[ir.Operation, Loops]]:
    """All structured linalg operations outside other regions' bodies, in the order of the text."""
    found: list[tuple[ir.Operation, Loops]] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        op = op.operation
        loops = loops_of(op)
        if loops is None:
            return ir.WalkResult.ADVANCE
        found.append((op, loops))
        return ir.WalkResult.SKIP

    # Inside out would show an op's body first.
    module.operation.walk(visit, ir.WalkOrder.PRE_ORDER)
    return found
