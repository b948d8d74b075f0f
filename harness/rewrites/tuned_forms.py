"""Convolutions written as linalg.generic become the named operations that IREE's CPU backend knows how to vectorise.

The backend recognises a convolution by its named operation's operand order and layout. Any other form (the filter
first, say, or its input channels outermost) runs as scalar loops, thirty times as long.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from iree.compiler import ir
from iree.compiler.dialects import linalg, tensor

from harness.rewrites.tuned_loops import loops_of

# By the layouts of the image and of the result: the named operation, and the layout of its filter. A letter an axis:
# image n, row y, column x, output channel o, input channel i, kernel row v, kernel column u.
_NAMED = {
    ("nyxi", "nyxo"): ("conv_2d_nhwc_hwcf", "vuio"),
    ("niyx", "noyx"): ("conv_2d_nchw_fchw", "oivu"),
}


@dataclass(frozen=True, kw_only=True)
class _Window:
    """An axis that a kernel slides over: output loop * stride + kernel loop * dilation."""

    output: int
    stride: int
    kernel: int
    dilation: int


@dataclass(frozen=True, kw_only=True)
class _Convolution:
    """What a generic turned out to be."""

    named: str
    image: ir.Value
    filter: ir.Value
    permutation: list[int]
    strides: list[int]
    dilations: list[int]


def name_convolutions(module: ir.Module) -> int:
    """Turn generics that are 2-D convolutions into linalg.conv_2d_nhwc_hwcf or linalg.conv_2d_nchw_fchw.

    The image may be channels-last or channels-first, and the result must be like it. The filter's axes and the order of
    the operands are free: where the filter's axes stand otherwise, it is transposed first (for a constant, IREE does
    that at compile time). All operands must have the same float type. The sums are those of the generic, but their
    order is now the compiler's choice for the named operation, so the last bits may differ.

    Args:
        module: At phase `input`; its context is active.

    Returns:
        How many generics were renamed.
    """
    generics: list[ir.Operation] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op.name == "linalg.generic":
            generics.append(op.operation)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    found = [(op, convolution) for op in generics if (convolution := _recognise(op)) is not None]
    for op, convolution in found:
        _rename(op, convolution)
    return len(found)


def _rename(op: ir.Operation, convolution: _Convolution) -> None:
    with ir.InsertionPoint(op), op.location:
        filter_ = convolution.filter
        if convolution.permutation != sorted(convolution.permutation):
            type_ = filter_.type
            shape = [type_.get_dim_size(axis) for axis in convolution.permutation]
            empty = tensor.empty(shape, type_.element_type)
            filter_ = linalg.transpose(filter_, outs=[empty], permutation=convolution.permutation)
            filter_ = getattr(filter_, "result", filter_)
        named = getattr(linalg, convolution.named)(
            convolution.image,
            filter_,
            outs=[op.operands[2]],
            strides=convolution.strides,
            dilations=convolution.dilations,
        )
    op.result.replace_all_uses_with(getattr(named, "result", named))
    op.erase()


def _recognise(op: ir.Operation) -> _Convolution | None:
    """The convolution that a generic is; None where it is none, or none that has a name."""
    loops = loops_of(op)
    if loops is None or sorted(loops.kinds) != ["parallel"] * 4 + ["reduction"] * 3 or len(op.operands) != 3:
        return None
    if not _are_alike([operand.type for operand in op.operands]) or not _multiplies_and_adds(op):
        return None
    maps = [attribute.value for attribute in op.attributes["indexing_maps"]]
    slid = [any(not isinstance(axis, ir.AffineDimExpr) for axis in map_.results) for map_ in maps]
    if slid not in ([True, False, False], [False, True, False]):
        return None
    image, filter_ = (0, 1) if slid[0] else (1, 0)
    axes = [_axis(expression, loops.kinds) for expression in maps[image].results]
    out = [e.position for e in maps[2].results]
    letters = _letters(axes, out, loops.kinds)
    if letters is None:
        return None
    layouts = (
        "".join(letters[axis.output if isinstance(axis, _Window) else axis] for axis in axes if axis is not None),
        "".join(letters[loop] for loop in out),
    )
    named, wanted = _NAMED.get(layouts, ("", ""))
    layout = "".join(letters[e.position] for e in maps[filter_].results)
    if not named or sorted(layout) != sorted(wanted):
        return None
    windows = [axis for axis in axes if isinstance(axis, _Window)]
    return _Convolution(
        named=named,
        image=op.operands[image],
        filter=op.operands[filter_],
        permutation=[layout.index(letter) for letter in wanted],
        strides=[window.stride for window in windows],
        dilations=[window.dilation for window in windows],
    )


def _are_alike(types: Sequence[ir.Type]) -> bool:
    """Whether all are tensors of four known sizes, of one float type."""
    tensors = all(isinstance(t, ir.RankedTensorType) and t.rank == 4 and t.has_static_shape for t in types)
    return tensors and len({str(t.element_type) for t in types}) == 1


def _letters(axes: Sequence[int | _Window | None], out: Sequence[int], kinds: Sequence[str]) -> dict[int, str] | None:
    """What each loop is for, by loop; None where the image's axes do not say so."""
    windows = [axis for axis in axes if isinstance(axis, _Window)]
    plain = [axis for axis in axes if isinstance(axis, int)]
    if len(windows) != 2 or len(plain) != 2 or {kinds[loop] for loop in plain} != {"parallel", "reduction"}:
        return None
    if any(kinds[one.output] != "parallel" or kinds[one.kernel] != "reduction" for one in windows):
        return None
    letters = {loop: "n" if kinds[loop] == "parallel" else "i" for loop in plain}
    for window, (output, kernel) in zip(windows, (("y", "v"), ("x", "u")), strict=True):
        letters |= {window.output: output, window.kernel: kernel}
    left = [loop for loop in out if loop not in letters]
    if len(letters) != 6 or len(left) != 1:
        return None
    return letters | {left[0]: "o"}


def _axis(expression: ir.AffineExpr, kinds: Sequence[str]) -> int | _Window | None:
    """One axis of the image: a loop, a window over it, or something else."""
    if isinstance(expression, ir.AffineDimExpr):
        return int(expression.position)
    if not isinstance(expression, ir.AffineAddExpr):
        return None
    terms = [_term(expression.lhs), _term(expression.rhs)]
    if terms[0] is None or terms[1] is None:
        return None
    (output, stride), (kernel, dilation) = sorted((terms[0], terms[1]), key=lambda term: kinds[term[0]])
    return _Window(output=output, stride=stride, kernel=kernel, dilation=dilation)


def _term(expression: ir.AffineExpr) -> tuple[int, int] | None:
    """A loop and its positive factor."""
    if isinstance(expression, ir.AffineDimExpr):
        return int(expression.position), 1
    if isinstance(expression, ir.AffineMulExpr):
        loop, factor = expression.lhs, expression.rhs
        if isinstance(loop, ir.AffineDimExpr) and isinstance(factor, ir.AffineConstantExpr) and factor.value > 0:
            return int(loop.position), int(factor.value)
    return None


def _multiplies_and_adds(op: ir.Operation) -> bool:
    """Whether a generic's body is out + a * b, in whichever order."""
    body = op.regions[0].blocks[0]
    operations = list(body.operations)
    if [one.operation.name for one in operations] != ["arith.mulf", "arith.addf", "linalg.yield"]:
        return False
    product, total, given = (one.operation for one in operations)
    left, right, out = body.arguments
    return (
        set(product.operands) == {left, right}
        and set(total.operands) == {product.result, out}
        and list(given.operands) == [total.result]
    )
