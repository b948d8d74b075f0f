"""Ingress canonicalisation: from the linalg that PyTorch gives to the linalg that hand-written generators give.

https://github.com/plaidml/tpp-mlir lists five differences between an MLP from PyTorch and the same MLP from its own
generator, and asks which effect each one has on its own. Each is an option here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import chain

from iree.compiler import ir
from iree.compiler.dialects import arith, linalg

from harness.rewrites import ingress_relu
from harness.rewrites.operations import (
    Matched,
    body_of,
    copy_annotations,
    erase,
    find,
    is_elementwise,
    is_number,
    is_parallel,
    is_positive_zero,
    only_yields,
    produced_by,
    producer,
    replace,
    transposed,
)


def ingress_canonicalize(
    module: ir.Module,
    *,
    fill_init: bool = True,
    outs_style: bool = True,
    fold_transpose: bool = True,
    generic_matmul: bool = True,
    relu_to_maximum: bool = True,
) -> Matched:
    """Rewrite linalg on tensors in place.

    The options are independent of each other; those that are on are applied in this order. None changes which numbers
    are multiplied and added, nor in which order, so the results are the same to the bit where a compiler keeps to
    that. With fold_transpose they lie elsewhere in memory; a compiler that then vectorises otherwise may round
    otherwise.
    """
    steps = [
        (fill_init, fill_inits),
        (outs_style, update_in_place),
        (fold_transpose, fold_transposes),
        (generic_matmul, generalize_products),
        (relu_to_maximum, ingress_relu.relu_to_maximum),
    ]
    matched = [step(module) for is_on, step in steps if is_on]
    left_alone = (Counter(places.left_alone).elements() for places in matched if isinstance(places, Matched))
    return Matched(sum(matched), chain.from_iterable(left_alone))


# -------------------------------------------------------------------- which buffer an elementwise operation writes into


def fill_inits(module: ir.Module) -> int:
    """Let elementwise operations write into a filled buffer instead of a tensor.empty."""
    matched = 0
    for op in find(module, "linalg.generic"):
        position = len(op.operands) - 1
        init = op.operands[position]
        if is_elementwise(op) and produced_by(init, "tensor.empty") and is_number(init.type.element_type):
            op.operands[position] = _filled(init, op)
            matched += 1
    return matched


def update_in_place(module: ir.Module) -> Matched:
    """Let elementwise operations update the result before them instead of reading it beside an init they do not read.

    Only a result that nothing else reads, as otherwise updating it in place would need a copy first.
    """
    matched, left_alone = 0, []
    for op in find(module, "linalg.generic"):
        if not is_elementwise(op) or not produced_by(op.operands[len(op.operands) - 1], "tensor.empty", "linalg.fill"):
            continue
        position = _previous_result(op)
        if position is not None:
            _update(op, position)
            matched += 1
        elif _previous_result(op, alone=False) is not None:
            left_alone.append("operations on results that others read too")
    return Matched(matched, left_alone)


def _filled(empty: ir.Value, reader: ir.Operation) -> ir.Value:
    """The buffer filled with zeros: as it is already before the reader, or else filled where it is made."""
    for use in empty.uses:
        fill = use.owner.operation
        if (
            fill.name == "linalg.fill"
            and is_positive_zero(fill.operands[0])
            and fill.block == reader.block
            and fill.is_before_in_block(reader)
        ):
            return fill.result
    origin = empty.owner
    with ir.InsertionPoint.after(origin), origin.location:
        element_type = empty.type.element_type
        zero = arith.ConstantOp(element_type, 0.0 if isinstance(element_type, ir.FloatType) else 0)
        return linalg.fill(zero.result, outs=[empty])


def _previous_result(op: ir.Operation, *, alone: bool = True) -> int | None:
    """Position of the first input that is another linalg operation's result, laid out like op's."""
    *inputs, out = op.attributes["indexing_maps"]
    for position, indexing in enumerate(inputs):
        value = op.operands[position]
        origin = producer(value)
        if (
            indexing == out
            and value.type == op.result.type
            and origin is not None
            and origin.name.startswith("linalg.")
            and (not alone or len(list(value.uses)) == 1)
        ):
            return position
    return None


def _update(op: ir.Operation, position: int) -> None:
    """Make the input at `position` the init."""
    maps = list(op.attributes["indexing_maps"])
    inputs = [op.operands[number] for number in range(len(maps) - 1)]
    previous = inputs.pop(position)
    del maps[position]
    with ir.InsertionPoint(op), op.location:
        updating = linalg.GenericOp(
            [op.result.type], inputs, [previous], ir.ArrayAttr.get(maps), op.attributes["iterator_types"]
        ).operation
    body = body_of(op)
    body.append_to(updating.regions[0])
    body.arguments[position].replace_all_uses_with(body.arguments[len(body.arguments) - 1])
    body.erase_argument(position)
    copy_annotations(op, updating)
    replace(op, updating.result)


# --------------------------------------------------------------------------- transpositions in front of matrix products


_NAMED_PRODUCTS = frozenset({"linalg.matmul", "linalg.batch_matmul"})


def fold_transposes(module: ir.Module) -> Matched:
    """Take away transpositions of what matrix products read, written as linalg.transpose or as linalg.generic.

    A constant is stored transposed, once for all its like. Otherwise, where matrix products are all that reads the
    transposed tensor, they read the one before it, through other indexing maps.
    """
    matched, left_alone = 0, []
    stored: dict[tuple[ir.Attribute, tuple[int, ...]], ir.Attribute | None] = {}
    # Last ones first, so that of two in a row both are seen in front of the product.
    for op in reversed(find(module, "linalg.transpose", "linalg.generic")):
        permutation = _permutation(op)
        if permutation is None:
            continue
        is_read = any(map(_reads, op.result.uses))
        if _store_transposed(op, permutation, stored) or _read_through(op, permutation):
            matched += 1
        else:
            alone = (
                "that matrix products cannot read through, or not alone" if is_read else "that no matrix product reads"
            )
            left_alone.append(f"transpositions {alone}")
    return Matched(matched, left_alone)


def _permutation(op: ir.Operation) -> tuple[int, ...] | None:
    """Which dimension of the operand each dimension of the result is; None if the operation does not transpose."""
    if len(op.results) != 1:
        return None
    if op.name == "linalg.transpose":
        return tuple(op.attributes["permutation"])
    maps = [attribute.value for attribute in op.attributes["indexing_maps"]]
    is_moved = len(maps) == 2 and is_parallel(op) and only_yields(op)
    if not is_moved or not all(indexing.is_permutation for indexing in maps):
        return None
    read, written = ([ir.AffineDimExpr(result).position for result in indexing.results] for indexing in maps)
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


# ------------------------------------------------------------------------------ named matrix products as linalg.generic


def generalize_products(module: ir.Module) -> int:
    """Write linalg.matmul and linalg.batch_matmul, with whatever indexing maps, as linalg.generic.

    The body is the one that the named operation stands for: mulf and addf, muli and addi on integers, with conversions
    where the types differ.
    """
    products = [op for op in find(module, "linalg.matmul", "linalg.batch_matmul") if len(op.results) == 1]
    for op in products:
        maps = linalg.get_indexing_maps(op)
        *inputs, init = op.operands
        with ir.InsertionPoint(op), op.location:
            generic = linalg.GenericOp([op.result.type], inputs, [init], maps, _iterators(maps)).operation
        body_of(op).append_to(generic.regions[0])
        copy_annotations(op, generic)
        replace(op, generic.result)
    return len(products)


def _iterators(maps: ir.ArrayAttr) -> ir.Attribute:
    """Dimensions of the result are parallel, the others are summed over."""
    out = maps[len(maps) - 1].value
    parallel = {ir.AffineDimExpr(expression).position for expression in out.results}
    kinds = ["parallel" if dimension in parallel else "reduction" for dimension in range(out.n_dims)]
    return ir.ArrayAttr.get([ir.Attribute.parse(f"#linalg.iterator_type<{kind}>") for kind in kinds])
