"""The code of a dispatch: the function in its executable, and the stores in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from iree.compiler import ir
from iree.compiler.dialects import linalg

_LOAD, _STORE = "iree_tensor_ext.dispatch.tensor.load", "iree_tensor_ext.dispatch.tensor.store"
_TENSOR = "!iree_tensor_ext.dispatch.tensor"
_PLACE = ("static_offsets", "static_sizes", "static_strides")
_INHERENT = frozenset({"indexing_maps", "iterator_types", "operandSegmentSizes"})


@dataclass(frozen=True, kw_only=True)
class Part:
    """A part of a larger tensor.

    Attributes:
        whole: The larger tensor's type.
        place: Attributes of loads and stores of the part: its offsets, sizes and strides.
    """

    whole: ir.Type
    place: dict[str, ir.Attribute]


@dataclass(frozen=True, kw_only=True)
class Code:
    """A function whose last argument is its one result: made by elementwise arithmetic, and stored as a whole.

    Attributes:
        function: func.func in the executable.
        store: The one store.
    """

    function: ir.Operation
    store: ir.Operation


def find_code(module: ir.Module, dispatch: ir.Operation) -> Code | None:
    """The code of a dispatch, if another store of its result can be added to it."""
    function = _find_function(module, dispatch)
    stores = [] if function is None else [op for op in _operations(function) if op.name == _STORE]
    if function is None or len(stores) != 1:
        return None
    value, target = stores[0].operands[0], stores[0].operands[1]
    written = f"{_TENSOR}<writeonly:{value.type}>"
    if target != _block(function).arguments[-1] or str(target.type) != written or not _covers(stores[0], value.type):
        return None
    if len(list(target.uses)) != 1 or not _can_be_repeated(value, function):
        return None
    return Code(function=function, store=stores[0])


def part_copied_by(module: ir.Module, dispatch: ir.Operation) -> Part | None:
    """Where a dispatch of two tensors puts the first into the second, if that is all it does."""
    function = _find_function(module, dispatch)
    if function is None or [op.name for op in _operations(function)] != [_LOAD, _STORE, "func.return"]:
        return None
    load, store, _ = _operations(function)
    source, target = _block(function).arguments
    whole = dispatch.operands[1].type
    if list(load.operands) != [source] or list(store.operands) != [load.result, target]:
        return None  # where to is known only when it runs
    if not _covers(load, load.result.type) or str(target.type) != f"{_TENSOR}<readwrite:{whole}>":
        return None
    return Part(whole=whole, place={name: store.attributes[name] for name in _PLACE})


def add_stores(code: Code, wholes: int, part: Part | None = None) -> None:
    """Let the function write its result to several tensors.

    In place of its last argument come: a tensor that is read and written, if there is a part; one for each whole.

    Args:
        code: Changed in place; only one dispatch may call it.
        wholes: How many tensors are just the result.
        part: Another tensor, of which the result is a part. IREE 3.13 has no code for two of these after a convolution.
    """
    block, store = _block(code.function), code.store
    value, written = store.operands[0], store.operands[1]
    generic = value.owner
    place = {name: store.attributes[name] for name in _PLACE}
    types = [written.type] * wholes
    places, inits = [place] * wholes, []
    if part is not None:
        types.insert(0, ir.Type.parse(f"{_TENSOR}<readwrite:{part.whole}>"))
        places.insert(0, part.place)
        inits.append(generic.operands[len(generic.operands) - 1])
    targets = [block.add_argument(one, store.location) for one in types]
    with ir.InsertionPoint(generic), store.location:
        read = targets[len(inits) :]
        inits += [_create(_LOAD, [target], place, [1, 0, 0, 0, 0], [value.type]).result for target in read]
    with ir.InsertionPoint(store), store.location:
        for one, target, where in zip(_repeat(generic, inits), targets, places, strict=True):
            _create(_STORE, [one, target], where, [1, 1, 0, 0, 0, 0], [])
    store.erase()
    generic.erase()
    block.erase_argument(len(block.arguments) - len(targets) - 1)
    arguments = [argument.type for argument in block.arguments]
    code.function.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(arguments, []))


def _find_function(module: ir.Module, dispatch: ir.Operation) -> ir.Operation | None:
    """The function that a dispatch calls, with one block; None where there are several to choose from."""
    entries = list(dispatch.attributes["entry_points"])
    if len(entries) != 1:
        return None
    executable, entry = entries[0].value
    found: list[ir.Operation] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op.name == "func.func" and ir.StringAttr(op.attributes["sym_name"]).value == exported:
            found.append(op)
        return ir.WalkResult.ADVANCE

    holder = ir.SymbolTable(module.operation)[executable].operation
    if holder.name != "flow.executable":
        return None
    exported = ir.FlatSymbolRefAttr(ir.SymbolTable(holder)[entry].operation.attributes["function_ref"]).value
    holder.walk(visit)
    is_plain = len(found) == 1 and len(list(found[0].regions[0])) == 1 and "arg_attrs" not in found[0].attributes
    return found[0] if is_plain else None


def _can_be_repeated(value: ir.Value, function: ir.Operation) -> bool:
    """Whether a linalg.generic computes the value alone, elementwise, without reading its init, for a store only.

    One that merely passes an input on would be folded into it, and equal results into one, for which there is no code.
    """
    generic = value.owner
    if isinstance(generic, ir.Block) or generic.name != "linalg.generic" or generic.operation.block != _block(function):
        return False
    body = generic.regions[0].blocks[0]
    yielded = list(body.operations)[-1].operands
    return (
        len(generic.results) == 1
        and len(list(value.uses)) == 1
        and all("parallel" in str(kind) for kind in generic.attributes["iterator_types"])
        and not list(body.arguments[-1].uses)
        and yielded[0].owner in [op.operation for op in body.operations]
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
    generic.regions[0].blocks[0].append_to(repeated.regions[0])
    body = repeated.regions[0].blocks[0]
    for init in inits[1:]:
        body.add_argument(init.type.element_type, generic.location)
    end = list(body.operations)[-1]
    with ir.InsertionPoint(end), end.location:
        ir.Operation.create("linalg.yield", operands=[end.operands[0]] * len(inits))
    end.erase()
    for name in generic.attributes:
        if name not in _INHERENT:
            repeated.attributes[name] = generic.attributes[name]
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


def _covers(op: ir.Operation, tensor: ir.RankedTensorType) -> bool:
    """Whether a load or store is of a whole tensor of a static shape."""
    offsets, sizes, strides = (list(op.attributes[name]) for name in _PLACE)
    return tensor.has_static_shape and not any(offsets) and sizes == tensor.shape and set(strides) <= {1}


def _operations(function: ir.Operation) -> list[ir.Operation]:
    return [op.operation for op in _block(function).operations]


def _block(function: ir.Operation) -> ir.Block:
    return function.regions[0].blocks[0]
