"""Dispatches that write their result to several tensors, or into the tensor that it is padded to; at phase `flow`.

`replicate_stores`: a dispatch whose result goes into several tensors writes each of them itself. Proposed as a "shady
idea" in https://github.com/iree-org/iree/issues/11102.

    %v = flow.dispatch @conv(...)                      %v:2 = flow.dispatch @conv(...)
    %a1 = flow.tensor.update %v, %a[...]        ->     %a1 = flow.tensor.update %v#0, %a[...]
    %b1 = flow.tensor.update %v, %b[...]               %b1 = flow.tensor.update %v#1, %b[...]

A result that one update alone uses is placed into the update's target by IREE itself, and the update is gone. So there
are as many results as updates, and inside the dispatch as many stores. Each captures only the part of the target that
it writes, so that other dispatches may write other parts at the same time.

`fuse_padding`: a dispatch whose result is padded writes it into the padded tensor itself. Asked for in
https://github.com/iree-org/iree/pull/8662.

    %v = flow.dispatch @conv(...)
    %fill = flow.tensor.splat %zero                    %fill = flow.tensor.splat %zero
    %padded = flow.dispatch @copy(%v, %fill)    ->     %padded = flow.dispatch @conv(..., %fill) -> %fill

IREE does so by itself where nothing else uses the result. Where something does, it has a dispatch that only copies, as
rows of a padded tensor have gaps between them; that one goes. What becomes one contiguous span of a larger tensor is
flow.tensor.update and stays so: it needs no dispatch, and one that wrote it would hold on to the whole tensor.
"""

from collections.abc import Sequence
from itertools import count
from typing import NamedTuple

from iree.compiler import ir

from harness.rewrites.operations import (
    body_of,
    depends,
    find,
    generic_like,
    is_parallel,
    operations_of,
    produced_by,
    producer,
)


def replicate_stores(module: ir.Module) -> int:
    """Let dispatches write each tensor that their result is inserted into. All results stay the same to the bit.

    Only dispatches with one result, of a static shape, that end in elementwise arithmetic. A tensor that cannot exist
    before the dispatch, because it is made of the result, keeps its copy.
    """
    return sum(_replicate(module, dispatch) for dispatch in find(module, "flow.dispatch"))


def _replicate(module: ir.Module, dispatch: ir.Operation) -> bool:
    """Give each update by a dispatch's result a result of its own, if there is any to give."""
    uses = [use for value in dispatch.results for use in _find_uses(value)]
    updates = [use for use in uses if _is_update(use, dispatch)]
    # A result that is used once only is placed by IREE itself.
    if len(uses) < 2 or not updates or not has_own_result(dispatch) or find_code(module, dispatch) is None:
        return False
    values = write_again(module, dispatch, len(updates) + (len(updates) < len(uses)))
    for update, value in zip(updates, values, strict=False):
        user, operand = update.owner.operation, update.operand_number
        user.operands[operand] = _reshaped(value, user, user.operands[operand].type)
    dispatch.result.replace_all_uses_with(values[-1])  # of all else
    _erase_unused_reshapes(values[-1])
    dispatch.erase()
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
    if user.name != "flow.tensor.update" or user.block != dispatch.block:
        return False
    target_and_offsets = sum(list(user.attributes["operandSegmentSizes"])[:3])
    return use.operand_number == target_and_offsets and not depends(user.operands[0], [dispatch], dispatch)


def _reshaped(value: ir.Value, user: ir.Operation, wanted: ir.Type) -> ir.Value:
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


def fuse_padding(module: ir.Module) -> int:
    """Let dispatches write their result into the tensor it is padded to. All results stay the same to the bit.

    Only dispatches with one result, of a static shape, that end in elementwise arithmetic. Where a result is padded in
    several ways, one of them is fused.
    """
    fused = 0
    parts = {copy: _part_copied_by(module, copy) for copy in find(module, "flow.dispatch") if _pads(copy)}
    for copy, part in reversed(parts.items()):
        dispatch = producer(copy.operands[0])
        if part is None or dispatch is None or dispatch.name != "flow.dispatch":
            continue
        if has_own_result(dispatch) and find_code(module, dispatch) is not None:
            _write_into(module, dispatch, copy, part)
            fused += 1
    return fused


def _pads(user: ir.Operation) -> bool:
    """Whether a dispatch of a value and of a tensor filled with a constant gives the tensor back, changed."""
    if user.name != "flow.dispatch" or len(user.operands) != 2:
        return False
    fill = producer(user.operands[1])
    return (
        list(user.attributes["operandSegmentSizes"]) == [0, 2, 0, 0]
        and [operand.value for operand in user.attributes.get("tied_operands", ())] == [1]
        and fill is not None
        and fill.name == "flow.tensor.splat"
        and len(fill.operands) == 1
        and produced_by(fill.operands[0], "arith.constant")
    )


def _part_copied_by(module: ir.Module, dispatch: ir.Operation) -> "Part | None":
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


def _write_into(module: ir.Module, dispatch: ir.Operation, copy: ir.Operation, part: "Part") -> None:
    """Put a dispatch that writes a part of the copy's target in the place of both."""
    uses = len(list(dispatch.result.uses))
    wholes = int(uses > 1)  # something else needs the result as it is
    fill = copy.operands[1].owner.operation
    here = ir.InsertionPoint(dispatch)
    own_fill = fill.clone(ip=here)
    own_fill.operands[0] = fill.operands[0].owner.operation.clone(ip=ir.InsertionPoint(own_fill)).result
    results = write_again(module, dispatch, wholes, part, own_fill.result)
    copy.result.replace_all_uses_with(results[0])
    executable = str(copy.attributes["entry_points"][0].value[0])
    copy.erase()
    if not _count_dispatches(module, executable):
        symbols = ir.SymbolTable(module.operation)
        symbols.erase(symbols[executable])
    if not list(fill.result.uses):
        fill.erase()
    if wholes:
        dispatch.result.replace_all_uses_with(results[1])
    dispatch.erase()


def has_own_result(dispatch: ir.Operation) -> bool:
    """Whether a dispatch has one result, in a tensor of its own, and no sizes that are known only when it runs."""
    _, _, sizes, result_sizes = dispatch.attributes["operandSegmentSizes"]
    tied = dispatch.attributes.get("tied_operands", ())
    return (
        len(dispatch.results) == 1 and not sizes and not result_sizes and all(operand.value == -1 for operand in tied)
    )


def write_again(
    module: ir.Module, dispatch: ir.Operation, wholes: int, part: "Part | None" = None, target: ir.Value | None = None
) -> list[ir.Value]:
    """A dispatch with other results, put before one that has one and code that can be repeated."""
    _own_executable(module, dispatch)
    code = find_code(module, dispatch)
    if code is not None:  # always: its executable is at most a copy of what it was
        _add_stores(*code, wholes, part)
    workload, operands, *_ = dispatch.attributes["operandSegmentSizes"]
    targets = [] if target is None else [target]
    tied = [*range(operands, operands + len(targets)), *[-1] * wholes]
    attributes = {name: dispatch.attributes[name] for name in dispatch.attributes}
    attributes["operandSegmentSizes"] = ir.DenseI32ArrayAttr.get([workload, operands + len(targets), 0, 0])
    with ir.InsertionPoint(dispatch), dispatch.location:
        attributes["tied_operands"] = ir.ArrayAttr.get(
            [ir.IntegerAttr.get(ir.IndexType.get(), operand) for operand in tied]
        )
        new = ir.Operation.create(
            dispatch.name,
            results=[*(value.type for value in targets), *[dispatch.result.type] * wholes],
            operands=[*dispatch.operands, *targets],
            attributes=attributes,
        )
    return list(new.results)


def _own_executable(module: ir.Module, dispatch: ir.Operation) -> None:
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
    if op.name in {"flow.executable", "flow.executable.export", "func.func"}:
        op.attributes["sym_name"] = ir.StringAttr.get(op.attributes["sym_name"].value + suffix)
    if op.name == "flow.executable.export":
        op.attributes["function_ref"] = ir.FlatSymbolRefAttr.get(op.attributes["function_ref"].value + suffix)
    return ir.WalkResult.ADVANCE


def _count_dispatches(module: ir.Module, executable: str) -> int:
    entries = [entry for dispatch in find(module, "flow.dispatch") for entry in dispatch.attributes["entry_points"]]
    return sum(entry.value[0] == executable for entry in entries)


LOAD, STORE = "iree_tensor_ext.dispatch.tensor.load", "iree_tensor_ext.dispatch.tensor.store"
TENSOR = "!iree_tensor_ext.dispatch.tensor"
PLACE = ("static_offsets", "static_sizes", "static_strides")


class Part(NamedTuple):
    """A part of a larger tensor."""

    whole: ir.Type  # The larger tensor's type
    place: dict[str, ir.Attribute]  # Attributes of loads and stores of the part: its offsets, sizes and strides


def find_code(module: ir.Module, dispatch: ir.Operation) -> tuple[ir.Operation, ir.Operation] | None:
    """The function of a dispatch and the one store of its result, as a whole, if another store can be added to it."""
    function = find_function(module, dispatch)
    stores = [] if function is None else [op for op in operations_of(function) if op.name == STORE]
    if function is None or len(stores) != 1:
        return None
    value, target = stores[0].operands[0], stores[0].operands[1]
    written = f"{TENSOR}<writeonly:{value.type}>"
    if target != body_of(function).arguments[-1] or str(target.type) != written or not covers(stores[0], value.type):
        return None
    if len(list(target.uses)) != 1 or not _can_be_repeated(value, function):
        return None
    return function, stores[0]


def _add_stores(function: ir.Operation, store: ir.Operation, wholes: int, part: Part | None) -> None:
    """Let a function write its result to several tensors."""
    block = body_of(function)
    value, written = store.operands[0], store.operands[1]
    generic = value.owner
    place = {name: store.attributes[name] for name in PLACE}
    types = [written.type] * wholes
    places, inits = [place] * wholes, []
    if part is not None:
        types.insert(0, ir.Type.parse(f"{TENSOR}<readwrite:{part.whole}>"))
        places.insert(0, part.place)
        inits.append(generic.operands[len(generic.operands) - 1])
    targets = [block.add_argument(type_, store.location) for type_ in types]
    with ir.InsertionPoint(generic), store.location:
        read = targets[len(inits) :]
        inits += [_create(LOAD, [target], place, [1, 0, 0, 0, 0], [value.type]).result for target in read]
    with ir.InsertionPoint(store), store.location:
        for result, target, where in zip(_repeat(generic, inits), targets, places, strict=True):
            _create(STORE, [result, target], where, [1, 1, 0, 0, 0, 0], [])
    store.erase()
    generic.erase()
    block.erase_argument(len(block.arguments) - len(targets) - 1)
    arguments = [argument.type for argument in block.arguments]
    function.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(arguments, []))


def find_function(module: ir.Module, dispatch: ir.Operation) -> ir.Operation | None:
    """The function that a dispatch calls, with one block; None where there are several to choose from."""
    entries = list(dispatch.attributes["entry_points"])
    if len(entries) != 1:
        return None
    executable, entry = entries[0].value
    holder = ir.SymbolTable(module.operation)[executable].operation
    if holder.name != "flow.executable":
        return None
    exported = ir.FlatSymbolRefAttr(ir.SymbolTable(holder)[entry].operation.attributes["function_ref"]).value
    functions = find(holder, "func.func")
    found = [op for op in functions if ir.StringAttr(op.attributes["sym_name"]).value == exported]
    is_plain = len(found) == 1 and len(list(found[0].regions[0])) == 1 and "arg_attrs" not in found[0].attributes
    return found[0] if is_plain else None


def _can_be_repeated(value: ir.Value, function: ir.Operation) -> bool:
    """Whether a linalg.generic computes the value alone, elementwise, without reading its init, for a store only.

    One that merely passes an input on would be folded into it, and equal results into one, for which there is no code.
    """
    generic = producer(value)
    if generic is None or generic.name != "linalg.generic" or generic.block != body_of(function):
        return False
    body = body_of(generic)
    *_, end = operations_of(generic)
    return (
        len(generic.results) == 1
        and len(list(value.uses)) == 1
        and is_parallel(generic)
        and not list(body.arguments[-1].uses)
        and end.operands[0].owner in operations_of(generic)
    )


def _repeat(generic: ir.Operation, inits: Sequence[ir.Value]) -> list[ir.Value]:
    """Compute a one-result operation's value once for each init.

    As results are equal, distinct inits are what keeps the compiler from making one of them again.
    """
    inputs = list(generic.operands)[:-1]
    maps = list(generic.attributes["indexing_maps"])
    maps += maps[-1:] * (len(inits) - 1)
    repeated = generic_like(generic, inputs, inits, maps, generic.attributes["iterator_types"])
    body = body_of(repeated)
    for init in inits[1:]:
        body.add_argument(init.type.element_type, generic.location)
    end = list(body.operations)[-1]
    with ir.InsertionPoint(end), end.location:
        ir.Operation.create("linalg.yield", operands=[end.operands[0]] * len(inits))
    end.erase()
    return list(repeated.results)


def _create(
    name: str,
    operands: Sequence[ir.Value],
    place: dict[str, ir.Attribute],
    segments: Sequence[int],
    results: Sequence[ir.Type],
) -> ir.Operation:
    attributes = {**place, "operandSegmentSizes": ir.DenseI32ArrayAttr.get(segments)}
    return ir.Operation.create(name, results=results, operands=operands, attributes=attributes)


def covers(op: ir.Operation, tensor: ir.RankedTensorType) -> bool:
    """Whether a load or store is of a whole tensor of a static shape."""
    offsets, sizes, strides = (list(op.attributes[name]) for name in PLACE)
    return tensor.has_static_shape and not any(offsets) and sizes == tensor.shape and set(strides) <= {1}
