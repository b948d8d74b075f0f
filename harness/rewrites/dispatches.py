"""Dispatches at phase `flow`: their results on the host's side, and the code in their executables with its stores."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from typing import NamedTuple

from iree.compiler import ir
from iree.compiler.dialects import linalg

from harness.rewrites.operations import body_of, copy_annotations, find, is_parallel, operations_of, producer


def has_own_result(dispatch: ir.Operation) -> bool:
    """Whether a dispatch has one result, in a tensor of its own, and no sizes that are known only when it runs."""
    _, _, sizes, result_sizes = dispatch.attributes["operandSegmentSizes"]
    tied = dispatch.attributes.get("tied_operands", ())
    return (
        len(dispatch.results) == 1 and not sizes and not result_sizes and all(operand.value == -1 for operand in tied)
    )


def write_again(
    module: ir.Module, dispatch: ir.Operation, wholes: int, part: Part | None = None, target: ir.Value | None = None
) -> list[ir.Value]:
    """A dispatch with other results, put before one that has one and code that can be repeated.

    The results are: the target with the part written, if there is one; then one for each whole.
    """
    _own_executable(module, dispatch)
    code = find_code(module, dispatch)
    if code is not None:  # always: its executable is at most a copy of what it was
        _add_stores(code, wholes, part)
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


def executable_of(dispatch: ir.Operation) -> str:
    """The name of the executable of a dispatch with one entry point."""
    return str(dispatch.attributes["entry_points"][0].value[0])


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
    entries = [entry for dispatch in find(module, "flow.dispatch") for entry in dispatch.attributes["entry_points"]]
    return sum(entry.value[0] == executable for entry in entries)


# ----------------------------------------------------------------------------------------------------------------- code


LOAD, STORE = "iree_tensor_ext.dispatch.tensor.load", "iree_tensor_ext.dispatch.tensor.store"
TENSOR = "!iree_tensor_ext.dispatch.tensor"
PLACE = ("static_offsets", "static_sizes", "static_strides")


class Part(NamedTuple):
    """A part of a larger tensor."""

    whole: ir.Type  # The larger tensor's type
    place: dict[str, ir.Attribute]  # Attributes of loads and stores of the part: its offsets, sizes and strides


class Code(NamedTuple):
    """A function whose last argument is its one result: made by elementwise arithmetic, and stored as a whole."""

    function: ir.Operation  # func.func in the executable
    store: ir.Operation  # The one store


def find_code(module: ir.Module, dispatch: ir.Operation) -> Code | None:
    """The code of a dispatch, if another store of its result can be added to it."""
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
    return Code(function, stores[0])


def _add_stores(code: Code, wholes: int, part: Part | None = None) -> None:
    """Let the function write its result to several tensors.

    In place of its last argument come: a tensor that is read and written, if there is a part; one for each whole.
    """
    block, store = body_of(code.function), code.store
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
    code.function.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(arguments, []))


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
    maps = ir.ArrayAttr.get([*maps, *maps[-1:] * (len(inits) - 1)])
    types = [init.type for init in inits]
    with ir.InsertionPoint(generic), generic.location:
        repeated = linalg.GenericOp(types, inputs, inits, maps, generic.attributes["iterator_types"]).operation
    body_of(generic).append_to(repeated.regions[0])
    body = body_of(repeated)
    for init in inits[1:]:
        body.add_argument(init.type.element_type, generic.location)
    end = list(body.operations)[-1]
    with ir.InsertionPoint(end), end.location:
        ir.Operation.create("linalg.yield", operands=[end.operands[0]] * len(inits))
    end.erase()
    copy_annotations(generic, repeated)
    return list(repeated.results)


def _create(
    name: str,
    operands: Sequence[ir.Value],
    place: dict[str, ir.Attribute],
    segments: Sequence[int],
    results: Sequence[ir.Type],
) -> ir.Operation:
    """A load or a store."""
    attributes = {**place, "operandSegmentSizes": ir.DenseI32ArrayAttr.get(segments)}
    return ir.Operation.create(name, results=results, operands=operands, attributes=attributes)


def covers(op: ir.Operation, tensor: ir.RankedTensorType) -> bool:
    """Whether a load or store is of a whole tensor of a static shape."""
    offsets, sizes, strides = (list(op.attributes[name]) for name in PLACE)
    return tensor.has_static_shape and not any(offsets) and sizes == tensor.shape and set(strides) <= {1}
