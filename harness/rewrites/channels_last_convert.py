"""How each known operation is written with the channels last."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from iree.compiler import ir

from harness.rewrites.channels_last_reach import CONVOLUTIONS, POOLINGS
from harness.rewrites.channels_last_twins import FROM_LAST, TO_LAST, Twins, permuted_type, to_last

# The name with channels last, and which dimension of the filter each dimension of the new filter is.
_TURNED = {
    "linalg.conv_2d_nchw_fchw": ("linalg.conv_2d_nhwc_hwcf", (2, 3, 1, 0)),
    "linalg.depthwise_conv_2d_nchw_chw": ("linalg.depthwise_conv_2d_nhwc_hwc", (1, 2, 0)),
}
# They speak of loops, and the loops have another order now.
_LOOPS = frozenset({"compilation_info", "linalg.memoized_indexing_maps", "lowering_config"})


def convert(op: ir.Operation, twins: Twins) -> ir.Value:
    """Write a known operation once more, at the insertion point and with the channels last.

    The old operation loses its body to the new one, and is only fit to be erased.
    """
    match op.name:
        case name if name in CONVOLUTIONS:
            image, weights, init = op.operands
            new_name, permutation = _TURNED[name]
            operands = [twins.of(image), twins.filter_of(weights, permutation), twins.of(init)]
            return _rewrite(op, operands, name=new_name)
        case name if name in POOLINGS:
            image, window, init = op.operands
            return _rewrite(op, [twins.of(image), window, twins.of(init)], name=name.replace("nchw", "nhwc"))
        case "tensor.pad":
            attributes = _permuted(op, ("static_low", "static_high"))
            return _rewrite(op, [twins.of(op.operands[0])], attributes=attributes)
        case "tensor.extract_slice" | "tensor.insert_slice":
            names = ("static_offsets", "static_sizes", "static_strides")
            return _rewrite(op, [twins.of(operand) for operand in op.operands], attributes=_permuted(op, names))
        case "tensor.concat":
            old = op.attributes["dim"]
            dimension = ir.IntegerAttr.get(old.type, FROM_LAST[old.value])
            return _rewrite(op, [twins.of(operand) for operand in op.operands], attributes={"dim": dimension})
        case "linalg.broadcast":
            added = sorted(FROM_LAST[dimension] for dimension in op.attributes["dimensions"])
            operands = [op.operands[0], twins.of(op.operands[1])]
            return _rewrite(op, operands, attributes={"dimensions": ir.DenseI64ArrayAttr.get(added)})
        case _:
            return _generic(op, twins)


def _generic(op: ir.Operation, twins: Twins) -> ir.Value:
    """Elementwise arithmetic: the loops are renamed, and operands with a twin are read through it.

    An operand of fewer dimensions, such as a bias, stays as it is and is read by the renamed loops.
    """
    identity = ir.AffineMap.get_identity(len(TO_LAST))
    renaming = ir.AffineMap.get_permutation(FROM_LAST)
    operands, maps = [], []
    for operand, attribute in zip(op.operands, op.attributes["indexing_maps"], strict=True):
        results = [result.compose(renaming) for result in attribute.value.results]
        twin = twins.of(operand) if attribute.value == identity else twins.known(operand)
        operands.append(operand if twin is None else twin)
        maps.append(ir.AffineMap.get(len(TO_LAST), 0, results if twin is None else to_last(results)))
    attributes = {"indexing_maps": ir.ArrayAttr.get([ir.AffineMapAttr.get(one) for one in maps])}
    return _rewrite(op, operands, attributes=attributes)


def _permuted(op: ir.Operation, names: Sequence[str]) -> dict[str, ir.Attribute]:
    """Attributes with one number a dimension."""
    return {name: ir.DenseI64ArrayAttr.get(to_last(list(op.attributes[name]))) for name in names}


def _rewrite(
    op: ir.Operation,
    operands: Sequence[ir.Value],
    *,
    name: str | None = None,
    attributes: Mapping[str, ir.Attribute] | None = None,
) -> ir.Value:
    """The operation with its body, but on other operands and under another name, and with the channels last."""
    kept = {key: op.attributes[key] for key in op.attributes if key not in _LOOPS}
    new = ir.Operation.create(
        name or op.name,
        results=[permuted_type(op.result.type, TO_LAST)],
        operands=operands,
        attributes={**kept, **(attributes or {})},
        regions=len(op.regions),
    )
    for old_region, new_region in zip(op.regions, new.regions, strict=True):
        old_region.blocks[0].append_to(new_region)
    return new.result
