"""Ingress: transpositions in front of matrix products."""

from __future__ import annotations

from collections.abc import Sequence

from iree.compiler import ir
from iree.compiler.dialects import arith, linalg

from harness.rewrites.ingress_constants import transposed
from harness.rewrites.ingress_ops import body_of, erase, find, is_number, is_parallel, producer, replace

_NAMED_PRODUCTS = frozenset({"linalg.matmul", "linalg.batch_matmul"})


def fold_transpose(module: ir.Module) -> int:
    """Take away transpositions of what matrix products read, written as linalg.transpose or as linalg.generic.

    A constant is stored transposed, once for all its like. Otherwise, where matrix products are all that reads the
    transposed tensor, they read the one before it, through other indexing maps.

    Returns:
        The number of transpositions.
    """
    matched = 0
    stored: dict[tuple[ir.Attribute, tuple[int, ...]], ir.Attribute | None] = {}
    # Last ones first, so that of two in a row both are seen in front of the product.
    for op in reversed(find(module, "linalg.transpose", "linalg.generic")):
        permutation = _permutation(op)
        if permutation is not None and (_store_transposed(op, permutation, stored) or _read_through(op, permutation)):
            matched += 1
    return matched


def _permutation(op: ir.Operation) -> tuple[int, ...] | None:
    """Which dimension of the operand each dimension of the result is; None if the operation does not transpose."""
    if len(op.results) != 1:
        return None
    if op.name == "linalg.transpose":
        return tuple(op.attributes["permutation"])
    maps = [attribute.value for attribute in op.attributes["indexing_maps"]]
    body = body_of(op)
    if not (
        len(maps) == 2
        and is_parallel(op)
        and all(one.is_permutation for one in maps)
        and len(body.operations) == 1
        and body.operations[0].operands[0] == body.arguments[0]
    ):
        return None
    read, written = ([ir.AffineDimExpr(one).position for one in indexing.results] for indexing in maps)
    permutation = tuple(read.index(loop) for loop in written)
    return permutation if permutation != tuple(range(len(permutation))) else None


def _store_transposed(
    op: ir.Operation,
    permutation: tuple[int, ...],
    stored: dict[tuple[ir.Attribute, tuple[int, ...]], ir.Attribute | None],
) -> bool:
    """Put a transposed constant in the place of a constant's transposition that a product reads."""
    constant = producer(op.operands[0])
    if constant is None or constant.name != "arith.constant" or not is_number(op.result.type.element_type):
        return False
    if not any(_reads(use) for use in op.result.uses):
        return False
    key = (constant.attributes["value"], permutation)
    if key not in stored:
        stored[key] = transposed(*key, op.result.type)
    if stored[key] is None:
        return False
    with ir.InsertionPoint(constant), constant.location:
        new = arith.ConstantOp(op.result.type, stored[key])
    replace(op, new.result)
    return True


def _read_through(op: ir.Operation, permutation: Sequence[int]) -> bool:
    """Let the products that read the transposed tensor read the operand itself."""
    uses = list(op.result.uses)
    if not uses or not all(_reads(use) and _can_permute(use.owner.operation, permutation) for use in uses):
        return False
    for use in uses:
        product, position = use.owner.operation, use.operand_number
        maps = list(linalg.get_indexing_maps(product))
        maps[position] = _permuted(maps[position].value, permutation)
        product.attributes["indexing_maps"] = ir.ArrayAttr.get(maps)
        product.operands[position] = op.operands[0]
    erase(op)
    return True


def _reads(use: ir.OpOperand) -> bool:
    """Whether a matrix product multiplies by the value; not so if it adds to it."""
    op = use.owner.operation
    return op.name.startswith("linalg.") and bool(linalg.isa_contraction_op(op)) and use.operand_number < 2


def _can_permute(op: ir.Operation, permutation: Sequence[int]) -> bool:
    """Whether indexing maps can say so: those of the named products take only the last two dimensions swapped."""
    rank = len(permutation)
    swapped = [*range(rank - 2), rank - 1, rank - 2]
    return op.name == "linalg.generic" or (op.name in _NAMED_PRODUCTS and list(permutation) == swapped)


def _permuted(indexing: ir.AffineMap, permutation: Sequence[int]) -> ir.AffineMapAttr:
    """The map of the operand before its transposition, from the map of the operand after."""
    results = [indexing.results[permutation.index(dimension)] for dimension in range(len(permutation))]
    return ir.AffineMapAttr.get(ir.AffineMap.get(indexing.n_dims, 0, results))
