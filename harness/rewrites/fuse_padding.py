"""A dispatch whose result is padded writes it into the padded tensor itself.

    %v = flow.dispatch @conv(...)
    %fill = flow.tensor.splat %zero                    %fill = flow.tensor.splat %zero
    %padded = flow.dispatch @copy(%v, %fill)    ->     %padded = flow.dispatch @conv(..., %fill) -> %fill

IREE does so by itself where nothing else uses the result. Where something does, it has a dispatch that only copies, as
rows of a padded tensor have gaps between them; that one goes. The fill stays by itself. What becomes one contiguous
span of a larger tensor is flow.tensor.update and stays so: it needs no dispatch, and one that wrote it would hold on to
the whole tensor, and make whoever writes the rest wait.

Asked for in https://github.com/iree-org/iree/pull/8662.
"""

from __future__ import annotations

from iree.compiler import ir

from harness.rewrites.dispatches import (
    LOAD,
    PLACE,
    STORE,
    TENSOR,
    Part,
    covers,
    erase_if_unused,
    executable_of,
    find_code,
    find_function,
    has_own_result,
    write_again,
)
from harness.rewrites.operations import Matched, body_of, find, operations_of, producer


def fuse_padding(module: ir.Module) -> Matched:
    """Let dispatches write their result into the tensor it is padded to. All results stay the same to the bit.

    Only dispatches with one result, of a static shape, that end in elementwise arithmetic. Where a result is padded in
    several ways, one of them is fused.
    """
    # A copy comes after what it copies, so it is not looked at again once it is erased.
    fused = sum(_fuse(module, dispatch) for dispatch in reversed(find(module, "flow.dispatch")))
    left = (_obstacle(module, copy) for copy in find(module, "flow.dispatch"))
    return Matched(fused, [f"paddings {obstacle}" for obstacle in left if obstacle])


def _obstacle(module: ir.Module, copy: ir.Operation) -> str:
    """Why a dispatch that pads was not fused, as what follows `paddings`; "" where it does not pad."""
    if not _pads(copy) or _part_copied_by(module, copy) is None:
        return ""
    dispatch = producer(copy.operands[0])
    if dispatch is None or dispatch.name != "flow.dispatch":
        return "of what is no dispatch's result"
    if not has_own_result(dispatch):
        return "of dispatches with several results or dynamic sizes"
    return "of dispatches that do not end in elementwise arithmetic"


def _fuse(module: ir.Module, dispatch: ir.Operation) -> bool:
    """Fuse one padding of a dispatch's result; whether there was any."""
    if not has_own_result(dispatch) or find_code(module, dispatch) is None:
        return False
    uses = [use for use in dispatch.result.uses if use.operand_number == 0]
    copies = [use.owner.operation for use in uses if _pads(use.owner.operation)]
    for copy in copies:
        part = _part_copied_by(module, copy)
        if part is not None:
            _replace(module, dispatch, copy, part)
            return True
    return False


def _pads(user: ir.Operation) -> bool:
    """Whether a dispatch of a value and of a tensor filled with a constant gives the tensor back, changed."""
    if user.name != "flow.dispatch" or len(user.operands) != 2:
        return False
    fill = user.operands[1].owner
    return (
        list(user.attributes["operandSegmentSizes"]) == [0, 2, 0, 0]
        and [operand.value for operand in user.attributes.get("tied_operands", ())] == [1]
        and not isinstance(fill, ir.Block)
        and fill.name == "flow.tensor.splat"
        and len(fill.operands) == 1
        and not isinstance(fill.operands[0].owner, ir.Block)
        and fill.operands[0].owner.name == "arith.constant"
    )


def _part_copied_by(module: ir.Module, dispatch: ir.Operation) -> Part | None:
    """Where a dispatch of two tensors puts the first into the second, if that is all it does."""
    function = find_function(module, dispatch)
    if function is None or [op.name for op in operations_of(function)] != [LOAD, STORE, "func.return"]:
        return None
    load, store, _ = operations_of(function)
    source, target = body_of(function).arguments
    whole = dispatch.operands[1].type
    if list(load.operands) != [source] or list(store.operands) != [load.result, target]:
        return None  # where to is known only when it runs
    if not covers(load, load.result.type) or str(target.type) != f"{TENSOR}<readwrite:{whole}>":
        return None
    return Part(whole, {name: store.attributes[name] for name in PLACE})


def _replace(module: ir.Module, dispatch: ir.Operation, copy: ir.Operation, part: Part) -> None:
    """Put a dispatch that writes a part of the copy's target in the place of both."""
    uses = len(list(dispatch.result.uses))
    wholes = int(uses > 1)  # something else needs the result as it is
    fill = copy.operands[1].owner.operation
    here = ir.InsertionPoint(dispatch)
    own_fill = fill.clone(ip=here)
    own_fill.operands[0] = fill.operands[0].owner.operation.clone(ip=ir.InsertionPoint(own_fill)).result
    results = write_again(module, dispatch, wholes, part, own_fill.result)
    copy.result.replace_all_uses_with(results[0])
    executable = executable_of(copy)
    copy.erase()
    erase_if_unused(module, executable)
    if not list(fill.result.uses):
        fill.erase()
    if wholes:
        dispatch.result.replace_all_uses_with(results[1])
    dispatch.erase()
