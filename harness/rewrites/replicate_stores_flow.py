"""The host's side of a dispatch: its results, and who uses them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count

from iree.compiler import ir


def dispatches_in(module: ir.Module) -> list[ir.Operation]:
    """All flow.dispatch, in the order of the text."""
    found: list[ir.Operation] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op.name == "flow.dispatch":
            found.append(op)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    return found


def has_own_result(dispatch: ir.Operation) -> bool:
    """Whether a dispatch has one result, in a tensor of its own, and no sizes that are known only when it runs."""
    _, _, sizes, result_sizes = dispatch.attributes["operandSegmentSizes"]
    tied = dispatch.attributes.get("tied_operands", ())
    return len(dispatch.results) == 1 and not sizes and not result_sizes and all(one.value == -1 for one in tied)


def find_uses(value: ir.Value) -> list[ir.OpOperand]:
    """All uses of a value of a static shape, whatever shape flow.tensor.reshape has given it."""
    found: list[ir.OpOperand] = []
    for use in value.uses:
        user = use.owner.operation
        if user.name == "flow.tensor.reshape" and len(user.operands) == 1:
            found += find_uses(user.result)
        else:
            found.append(use)
    return found


def is_update(use: ir.OpOperand, dispatch: ir.Operation) -> bool:
    """Whether flow.tensor.update inserts a dispatch's result into a tensor that does not depend on the dispatch."""
    user = use.owner.operation
    if user.name != "flow.tensor.update" or user.block != dispatch.block:
        return False
    target_and_offsets = sum(list(user.attributes["operandSegmentSizes"])[:3])
    return use.operand_number == target_and_offsets and not _depends_on(user.operands[0], dispatch)


def with_results(dispatch: ir.Operation, wholes: int, target: ir.Value | None = None) -> list[ir.Value]:
    """A dispatch with other results, put before one that has one.

    Args:
        dispatch: Stays.
        wholes: How many results of the old type.
        target: Another operand, of which the first result is a changed form.
    """
    workload, operands, *_ = dispatch.attributes["operandSegmentSizes"]
    targets = [] if target is None else [target]
    tied = [*range(operands, operands + len(targets)), *[-1] * wholes]
    attributes = {name: dispatch.attributes[name] for name in dispatch.attributes}
    attributes["operandSegmentSizes"] = ir.DenseI32ArrayAttr.get([workload, operands + len(targets), 0, 0])
    with ir.InsertionPoint(dispatch), dispatch.location:
        attributes["tied_operands"] = ir.ArrayAttr.get([ir.IntegerAttr.get(ir.IndexType.get(), one) for one in tied])
        new = ir.Operation.create(
            dispatch.name,
            results=[*(one.type for one in targets), *[dispatch.result.type] * wholes],
            operands=[*dispatch.operands, *targets],
            attributes=attributes,
        )
    return list(new.results)


def replace_uses(dispatch: ir.Operation, updates: Sequence[ir.OpOperand], values: Sequence[ir.Value]) -> None:
    """Let updates insert one value each, and everything else use the last value; erase the dispatch they came from."""
    for update, value in zip(updates, values, strict=False):
        user, operand = update.owner.operation, update.operand_number
        user.operands[operand] = _reshaped(value, user, user.operands[operand].type)
    dispatch.result.replace_all_uses_with(values[-1])
    _erase_unused_reshapes(values[-1])
    dispatch.erase()


def executable_of(dispatch: ir.Operation) -> str:
    """The name of the executable of a dispatch with one entry point."""
    return str(dispatch.attributes["entry_points"][0].value[0])


def own_executable(module: ir.Module, dispatch: ir.Operation) -> None:
    """Give a dispatch with one entry point an executable of its own: a copy, if others dispatch it too."""
    executable, entry = dispatch.attributes["entry_points"][0].value
    if _count_dispatches(module, executable) == 1:
        return
    symbols = ir.SymbolTable(module.operation)
    original = symbols[executable].operation
    suffixes = (f"_stores_{number}" for number in count())
    suffix = next(suffix for suffix in suffixes if executable + suffix not in symbols)
    copy = original.clone(ip=ir.InsertionPoint.after(original))
    copy.walk(lambda op: _rename(op, suffix))  # functions too, as all end up in one library
    names = [executable + suffix, entry + suffix]
    dispatch.attributes["entry_points"] = ir.ArrayAttr.get([ir.SymbolRefAttr.get(names)])


def _rename(op: ir.Operation, suffix: str) -> ir.WalkResult:
    """Rename an executable, an export with its reference, or a function."""
    if op.name in {"flow.executable", "flow.executable.export", "func.func"}:
        op.attributes["sym_name"] = ir.StringAttr.get(op.attributes["sym_name"].value + suffix)
    if op.name == "flow.executable.export":
        op.attributes["function_ref"] = ir.FlatSymbolRefAttr.get(op.attributes["function_ref"].value + suffix)
    return ir.WalkResult.ADVANCE


def erase_if_unused(module: ir.Module, executable: str) -> None:
    """Erase an executable that nothing dispatches."""
    symbols = ir.SymbolTable(module.operation)
    if not _count_dispatches(module, executable):
        symbols.erase(symbols[executable])


def _count_dispatches(module: ir.Module, executable: str) -> int:
    entries = [entry for dispatch in dispatches_in(module) for entry in dispatch.attributes["entry_points"]]
    return sum(entry.value[0] == executable for entry in entries)


def _depends_on(value: ir.Value, dispatch: ir.Operation) -> bool:
    """Whether a value is made of a dispatch's result, as far as that shows in the block."""
    seen: set[ir.Operation] = set()
    waiting = [value]
    while waiting:
        owner = waiting.pop().owner
        if isinstance(owner, ir.Block) or owner.operation in seen or owner.operation.block != dispatch.block:
            continue
        op = owner.operation
        if op == dispatch:
            return True
        if not op.is_before_in_block(dispatch):
            seen.add(op)
            waiting += list(op.operands)
    return False


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
