"""The Python rewrites of this package.

They run under a toolchain's own Python, where the standard library, numpy and iree.compiler are, but not the harness.
"""

from iree.compiler import ir
from iree.compiler.dialects import arith, math


def one_exp(module: ir.Module, *, limit: int = 1000) -> int:
    """Turn exp(x) * exp(y) into exp(x + y).

    Args:
        module: Changed in place.
        limit: How many are turned at most.

    Returns:
        How many were turned.
    """
    products: list[ir.Operation] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op.name == "arith.mulf" and all(_is_exp(factor) for factor in op.operands):
            products.append(op)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    del products[limit:]
    for product in products:
        x, y = (factor.owner.operands[0] for factor in product.operands)
        with ir.InsertionPoint(product), product.location:
            product.results[0].replace_all_uses_with(math.exp(arith.addf(x, y)))
        product.erase()
    return len(products)


def _is_exp(value: ir.Value) -> bool:
    return not isinstance(value.owner, ir.Block) and value.owner.name == "math.exp"
