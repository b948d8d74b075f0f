"""Convolutions with the channels last: all channels of a pixel lie next to each other, as CPUs read them best.

    conv(image: 1x64x92x64, filter: 32x64x3x3)  ->  conv(image: 1x92x64x64, filter: 3x3x64x32)

IREE's own pass does so to each convolution alone. Here whole graphs change their layout: padding, concatenation, slices
and elementwise arithmetic around the convolutions go along, and a tensor is transposed only where it comes from or goes
to something else, such as the function's caller. Constant filters are stored in their new order.
"""

from __future__ import annotations

from collections.abc import Sequence

from iree.compiler import ir
from iree.compiler.dialects import linalg

from harness.rewrites.channels_last_convert import convert
from harness.rewrites.channels_last_reach import CONVOLUTIONS, DEPTHWISE, find_reach, is_known
from harness.rewrites.channels_last_twins import FROM_LAST, TO_LAST, Twins, empty, fence
from harness.rewrites.ingress_ops import erase, find, producer
from harness.rewrites.tuned_regions import in_region

_FUNCTIONS = ("util.func", "func.func")


def channels_last(module: ir.Module, *, depthwise: bool = True) -> int:
    """Turn NCHW convolutions into NHWC ones.

    Every product stays the same; a compiler may add them up in another order. Convolutions of other layouts, with
    groups, without a static shape or in a dispatch region are left alone; and so is a function with loops or branches,
    since IREE 3.13 overwrites what stands before a loop if a convolution in the loop starts from it.

    Args:
        module: Changed in place; linalg on tensors, as at IREE's phase `input`.
        depthwise: Depthwise convolutions are turned too.

    Returns:
        How many convolutions were turned.
    """
    names = CONVOLUTIONS if depthwise else CONVOLUTIONS - DEPTHWISE
    convolutions = [op for op in find(module, *names) if is_known(op) and not in_region(op) and _is_straight(op)]
    for group in _by_block(convolutions):
        _turn(find_reach(group))
    return len(convolutions)


def _is_straight(op: ir.Operation) -> bool:
    """Whether an operation stands in a function without loops and branches."""
    function = op.parent
    return (
        function.name in _FUNCTIONS
        and len(function.regions[0].blocks) == 1
        and not any(one.operation.name.startswith("scf.") for one in function.regions[0].blocks[0].operations)
    )


def _by_block(ops: Sequence[ir.Operation]) -> list[list[ir.Operation]]:
    groups: list[list[ir.Operation]] = []
    for op in ops:
        group = next((one for one in groups if one[0].block == op.block), None)
        if group is None:
            groups.append([op])
        else:
            group.append(op)
    return groups


def _turn(reach: list[ir.Operation]) -> None:
    """Change the layout of operations of one block; they are in the program's order."""
    twins = Twins()
    for op in reach:
        with ir.InsertionPoint(op), op.location:
            twins.remember(op.result, convert(op, twins))
    before = [producer(operand) for op in reach for operand in op.operands]
    skipped = dict.fromkeys(op for op in before if op is not None and op.name == "linalg.transpose")
    # Last ones first, so that what still reads a result has not been turned.
    for op in reversed(reach):
        _restore(op, twins, skipped)
        erase(op)
    for op in skipped:
        if not list(op.result.uses):
            erase(op)


def _restore(op: ir.Operation, twins: Twins, skipped: dict[ir.Operation, None]) -> None:
    """Give what still reads an old result that layout again, unless it is about to transpose it to the new one.

    Args:
        skipped: Transposes that may have become needless; those that are erased here are taken out.
    """
    twin = twins.known(op.result)
    for use in list(op.result.uses):
        user = use.owner.operation
        if (
            user.name == "linalg.transpose"
            and use.operand_number == 0
            and tuple(user.attributes["permutation"]) == TO_LAST
        ):
            user.result.replace_all_uses_with(twin)
            skipped.pop(user, None)
            erase(user)
    if list(op.result.uses):
        with ir.InsertionPoint(op), op.location:
            back = linalg.transpose(fence(twin), outs=[empty(op.result.type)], permutation=FROM_LAST)
        op.result.replace_all_uses_with(back.results[0])
