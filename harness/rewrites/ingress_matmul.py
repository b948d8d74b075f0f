"""Ingress: named matrix products as linalg.generic."""

from __future__ import annotations

from iree.compiler import ir
from iree.compiler.dialects import linalg

from harness.rewrites.ingress_ops import body_of, copy_annotations, find, replace


def generic_matmul(module: ir.Module) -> int:
    """Write linalg.matmul and linalg.batch_matmul, with whatever indexing maps, as linalg.generic.

    The body is the one that the named operation stands for: mulf and addf, muli and addi on integers, with conversions
    where the types differ.

    Returns:
        The number of products.
    """
    products = [op for op in find(module, "linalg.matmul", "linalg.batch_matmul") if len(op.results) == 1]
    for op in products:
        _generalize(op)
    return len(products)


def _generalize(op: ir.Operation) -> None:
    maps = linalg.get_indexing_maps(op)
    *inputs, init = op.operands
    with ir.InsertionPoint(op), op.location:
        generic = linalg.GenericOp([op.result.type], inputs, [init], maps, _iterators(maps)).operation
    body_of(op).append_to(generic.regions[0])
    copy_annotations(op, generic)
    replace(op, generic.result)


def _iterators(maps: ir.ArrayAttr) -> ir.Attribute:
    """Dimensions of the result are parallel, the others are summed over."""
    out = maps[len(maps) - 1].value
    parallel = {ir.AffineDimExpr(expression).position for expression in out.results}
    kinds = ["parallel" if dimension in parallel else "reduction" for dimension in range(out.n_dims)]
    return ir.ArrayAttr.get([ir.Attribute.parse(f"#linalg.iterator_type<{kind}>") for kind in kinds])
