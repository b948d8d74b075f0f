"""Ingress canonicalisation: from the linalg that PyTorch gives to the linalg that hand-written generators give.

https://github.com/plaidml/tpp-mlir lists five differences between an MLP from PyTorch and the same MLP from its own
generator, and asks which effect each one has on its own. Each is an option here.
"""

from collections.abc import Sequence
from typing import NamedTuple

from iree.compiler import ir
from iree.compiler.dialects import arith, linalg

from harness.rewrites.operations import (
    body_of,
    constant_number,
    erase,
    find,
    generic_like,
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
) -> int:
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
        (relu_to_maximum, relus_to_maxima),
    ]
    return sum(step(module) for is_on, step in steps if is_on)


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


def update_in_place(module: ir.Module) -> int:
    """Let elementwise operations update the result before them, not read it beside an init that they do not read."""
    matched = 0
    for op in find(module, "linalg.generic"):
        if not is_elementwise(op) or not produced_by(op.operands[len(op.operands) - 1], "tensor.empty", "linalg.fill"):
            continue
        position = _previous_result(op)
        if position is not None:
            _update(op, position)
            matched += 1
    return matched


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


def _previous_result(op: ir.Operation) -> int | None:
    """Position of the first input that is a linalg operation's result, laid out like op's and read by op alone."""
    *inputs, out = op.attributes["indexing_maps"]
    for position, indexing in enumerate(inputs):
        value = op.operands[position]
        origin = producer(value)
        if (
            indexing == out
            and value.type == op.result.type
            and origin is not None
            and origin.name.startswith("linalg.")
            and len(list(value.uses)) == 1
        ):
            return position
    return None


def _update(op: ir.Operation, position: int) -> None:
    maps = list(op.attributes["indexing_maps"])
    inputs = [op.operands[number] for number in range(len(maps) - 1)]
    previous = inputs.pop(position)
    del maps[position]
    updating = generic_like(op, inputs, [previous], maps, op.attributes["iterator_types"])
    body = body_of(updating)
    body.arguments[position].replace_all_uses_with(body.arguments[len(body.arguments) - 1])
    body.erase_argument(position)
    replace(op, updating.result)


# --------------------------------------------------------------------------- transpositions in front of matrix products


_NAMED_PRODUCTS = ("linalg.matmul", "linalg.batch_matmul")


def fold_transposes(module: ir.Module) -> int:
    """Take away transpositions of what matrix products read, written as linalg.transpose or as linalg.generic."""
    matched = 0
    stored: dict[tuple[ir.Attribute, tuple[int, ...]], ir.Attribute | None] = {}
    # Last ones first, so that of two in a row both are seen in front of the product.
    for op in reversed(find(module, "linalg.transpose", "linalg.generic")):
        permutation = _permutation(op)
        if permutation is not None:
            matched += _store_transposed(op, permutation, stored) or _read_through(op, permutation)
    return matched


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
    rank = len(permutation)
    # The maps of named products take only the last two dimensions swapped.
    is_swap = list(permutation) == [*range(rank - 2), rank - 1, rank - 2]
    readers = ("linalg.generic", *(_NAMED_PRODUCTS if is_swap else ()))
    if not uses or not all(_reads(use) and use.owner.operation.name in readers for use in uses):
        return False
    for use in uses:
        product, position = use.owner.operation, use.operand_number
        maps = list(linalg.get_indexing_maps(product))
        read = maps[position].value
        results = [read.results[permutation.index(dimension)] for dimension in range(rank)]
        maps[position] = ir.AffineMapAttr.get(ir.AffineMap.get(read.n_dims, 0, results))
        product.attributes["indexing_maps"] = ir.ArrayAttr.get(maps)
        product.operands[position] = op.operands[0]
    erase(op)
    return True


def _reads(use: ir.OpOperand) -> bool:
    """Whether a matrix product multiplies by the value; not so if it adds to it."""
    op = use.owner.operation
    return op.name.startswith("linalg.") and bool(linalg.isa_contraction_op(op)) and use.operand_number < 2


# ------------------------------------------------------------------------------ named matrix products as linalg.generic


def generalize_products(module: ir.Module) -> int:
    """Write linalg.matmul and linalg.batch_matmul, with whatever indexing maps, as linalg.generic of the same body."""
    products = [op for op in find(module, *_NAMED_PRODUCTS) if len(op.results) == 1]
    for op in products:
        maps = list(linalg.get_indexing_maps(op))
        *inputs, init = op.operands
        out = maps[-1].value
        parallel = {ir.AffineDimExpr(expression).position for expression in out.results}  # the others are summed
        kinds = ["parallel" if loop in parallel else "reduction" for loop in range(out.n_dims)]
        iterators = ir.ArrayAttr.get([ir.Attribute.parse(f"#linalg.iterator_type<{kind}>") for kind in kinds])
        replace(op, generic_like(op, inputs, [init], maps, iterators).result)
    return len(products)


# -------------------------------------------------------------------- ReLU and leaky ReLU as arith.maximumf

_SMALLEST_SLOPE = 2.0**-14

# Predicates of arith.cmpf by number.
_OGT, _OGE, _OLT, _OLE, _UGT, _UGE, _ULT, _ULE = 2, 3, 4, 5, 9, 10, 11, 12
_SWAPPED = {_OLT: _OGT, _OLE: _OGE, _OGT: _OLT, _OGE: _OLE, _ULT: _UGT, _ULE: _UGE, _UGT: _ULT, _UGE: _ULE}
_NEGATED = {_OLT: _UGE, _OLE: _UGT, _OGT: _ULE, _OGE: _ULT, _ULT: _OGE, _ULE: _OGT, _UGT: _OLE, _UGE: _OLT}
_POSITIVE = frozenset({_OGT, _OGE, _UGT, _UGE})


class _Choice(NamedTuple):
    """A value by the sign of x: `above` where the predicate holds between x and 0, else `below`."""

    x: ir.Value
    predicate: int
    above: ir.Value
    below: ir.Value


def relus_to_maxima(module: ir.Module) -> int:
    """Write each ReLU and leaky ReLU inside a linalg.generic as arith.maximumf.

    With P one of `x > 0`, `x >= 0`, in the ordered or the unordered sense:

        form                                                becomes                matched for
        select(P, x, 0)                                     maximumf(x, 0)         unordered > only
        select(P, x, slope * x)                             maximumf(x, slope*x)   any P, 2**-14 <= slope <= 1
        select(P, x, 0) + slope * select(P, 0, x)           maximumf(x, slope*x)   any P, 2**-14 <= slope <= 1

    The comparison may have its operands the other way round, and a selection its values. The ordered ReLU gives 0 for
    a NaN, where maximumf gives NaN, so it is left alone. The last form gives 0.0 for -0.0, where the maximum is -0.0;
    these compare equal. A slope of 0 would turn infinity into NaN; 2**-14 is the smallest normal f16.
    """
    matched = 0
    # A sum is looked at before its first half counts as a ReLU.
    for name, find_pair in (("arith.addf", _maximum_in_sum), ("arith.select", _maximum_in_selection)):
        for op in find(module, name):
            if op.parent.name == "linalg.generic":
                with ir.InsertionPoint(op), op.location:
                    pair = find_pair(op)
                    if pair is not None:
                        replace(op, arith.MaximumFOp(*pair).result)
                        matched += 1
    return matched


def _maximum_in_sum(op: ir.Operation) -> tuple[ir.Value, ir.Value] | None:
    """The two of which select(P, x, 0) + slope * select(P, 0, x) is the maximum; the product is made."""
    for positive, negative in _both_ways(op):
        above, product = _choice(producer(positive)), producer(negative)
        if above is None or above.above != above.x or not is_positive_zero(above.below):
            continue
        if product is None or product.name != "arith.mulf":
            continue
        for value, slope in _both_ways(product):
            below = _choice(producer(value))
            if (
                below is not None
                and (below.x, below.predicate, below.below) == (above.x, above.predicate, above.x)
                and is_positive_zero(below.above)
                and _is_slope(slope)
            ):
                return above.x, arith.MulFOp(above.x, slope).result
    return None


def _maximum_in_selection(op: ir.Operation) -> tuple[ir.Value, ir.Value] | None:
    """The two of which select(P, x, 0) or select(P, x, slope * x) is the maximum."""
    choice = _choice(op)
    if choice is None or choice.above != choice.x:
        return None
    product = producer(choice.below)
    pairs = _both_ways(product) if product is not None and product.name == "arith.mulf" else ()
    is_leaky = any(factor == choice.x and _is_slope(other) for factor, other in pairs)
    is_relu = choice.predicate == _UGT and is_positive_zero(choice.below)
    return (choice.x, choice.below) if is_relu or is_leaky else None


def _choice(op: ir.Operation | None) -> _Choice | None:
    """An arith.select by a comparison of a number with 0, so turned that it asks whether x is above (or at) 0."""
    if op is None or op.name != "arith.select":
        return None
    condition, above, below = op.operands
    comparison = producer(condition)
    if comparison is None or comparison.name != "arith.cmpf":
        return None
    x, zero = comparison.operands
    predicate = comparison.attributes["predicate"].value
    if is_positive_zero(x):
        x, zero, predicate = zero, x, _SWAPPED.get(predicate)
    if not is_positive_zero(zero):
        return None
    if predicate not in _POSITIVE:
        above, below, predicate = below, above, _NEGATED.get(predicate)
    return _Choice(x, predicate, above, below) if predicate in _POSITIVE else None


def _both_ways(op: ir.Operation) -> tuple[tuple[ir.Value, ir.Value], tuple[ir.Value, ir.Value]]:
    first, second = op.operands
    return (first, second), (second, first)


def _is_slope(value: ir.Value) -> bool:
    number = constant_number(value)
    return number is not None and _SMALLEST_SLOPE <= number <= 1
