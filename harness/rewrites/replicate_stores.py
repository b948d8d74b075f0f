"""A dispatch whose result goes into several tensors writes each of them itself, instead of being copied there.

    %v = flow.dispatch @conv(...)                      %v:2 = flow.dispatch @conv(...)
    %a1 = flow.tensor.update %v, %a[...]        ->     %a1 = flow.tensor.update %v#0, %a[...]
    %b1 = flow.tensor.update %v, %b[...]               %b1 = flow.tensor.update %v#1, %b[...]

A result that one update alone uses is placed into the update's target by IREE itself, and the update is gone. So there
are as many results as updates, and inside the dispatch as many stores. Each captures only the part of the target that
it writes, so that other dispatches may write other parts at the same time.

Proposed as a "shady idea" in https://github.com/iree-org/iree/issues/11102.
"""

from __future__ import annotations

from collections.abc import Sequence

from iree.compiler import ir

from harness.rewrites.dispatches import find_code, has_own_result, write_again
from harness.rewrites.operations import Matched, depends, find


def replicate_stores(module: ir.Module) -> Matched:
    """Let dispatches write each tensor that their result is inserted into. All results stay the same to the bit.

    Only dispatches with one result, of a static shape, that end in elementwise arithmetic. A tensor that cannot exist
    before the dispatch, because it is made of the result, keeps its copy.
    """
    dispatches = find(module, "flow.dispatch")
    left = [obstacle for dispatch in dispatches if (obstacle := _obstacle(module, dispatch))]
    replicated = sum(_replicate(module, dispatch) for dispatch in dispatches)
    return Matched(replicated, [f"results of dispatches {obstacle}" for obstacle in left])


def _obstacle(module: ir.Module, dispatch: ir.Operation) -> str:
    """Why a dispatch keeps a copy of its result, as what follows `results of dispatches`; "" where it does not."""
    uses = [use for value in dispatch.results for use in _find_uses(value)]
    if len(uses) <= len(dispatch.results) or not any(map(_is_inserted, uses)):
        return ""  # a result that is used once only is placed by IREE itself
    if not has_own_result(dispatch):
        return "with several results or dynamic sizes"
    if find_code(module, dispatch) is None:
        return "that do not end in elementwise arithmetic"
    return "" if any(_is_update(use, dispatch) for use in uses) else "whose targets are made of them"


def _replicate(module: ir.Module, dispatch: ir.Operation) -> bool:
    """Give each update by a dispatch's result a result of its own; whether there was any to give."""
    if not has_own_result(dispatch) or find_code(module, dispatch) is None:
        return False
    uses = _find_uses(dispatch.result)
    updates = [use for use in uses if _is_update(use, dispatch)]
    is_needed_otherwise = len(updates) < len(uses)
    results = len(updates) + is_needed_otherwise
    if not updates or results == 1:
        return False
    _replace_uses(dispatch, updates, write_again(module, dispatch, results))
    return True


def _find_uses(value: ir.Value) -> list[ir.OpOperand]:
    """All uses of a value of a static shape, whatever shape flow.tensor.reshape has given it."""
    found: list[ir.OpOperand] = []
    for use in value.uses:
        user = use.owner.operation
        if user.name == "flow.tensor.reshape" and len(user.operands) == 1:
            found += _find_uses(user.result)
        else:
            found.append(use)
    return found


def _is_update(use: ir.OpOperand, dispatch: ir.Operation) -> bool:
    """Whether flow.tensor.update inserts a dispatch's result into a tensor that does not depend on the dispatch."""
    user = use.owner.operation
    return _is_inserted(use) and user.block == dispatch.block and not depends(user.operands[0], [dispatch], dispatch)


def _is_inserted(use: ir.OpOperand) -> bool:
    """Whether flow.tensor.update inserts a value into a tensor."""
    user = use.owner.operation
    if user.name != "flow.tensor.update":
        return False
    target_and_offsets = sum(list(user.attributes["operandSegmentSizes"])[:3])
    return bool(use.operand_number == target_and_offsets)


def _replace_uses(dispatch: ir.Operation, updates: Sequence[ir.OpOperand], values: Sequence[ir.Value]) -> None:
    """Let updates insert one value each, and everything else use the last value; erase the dispatch they came from."""
    for update, value in zip(updates, values, strict=False):
        user, operand = update.owner.operation, update.operand_number
        user.operands[operand] = _reshaped(value, user, user.operands[operand].type)
    dispatch.result.replace_all_uses_with(values[-1])
    _erase_unused_reshapes(values[-1])
    dispatch.erase()


def _reshaped(value: ir.Value, user: ir.Operation, wanted: ir.Type) -> ir.Value:
    """The value in another shape, for a user."""
    if value.type == wanted:
        return value
    sizes = {"operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, 0, 0])}
    with ir.InsertionPoint(user), user.location:
        return ir.Operation.create("flow.tensor.reshape", results=[wanted], operands=[value], attributes=sizes).result


def _erase_unused_reshapes(value: ir.Value) -> None:
    for user in [use.owner.operation for use in value.uses]:
        if user.name == "flow.tensor.reshape":
            _erase_unused_reshapes(user.result)
            if not list(user.result.uses):
                user.erase()
