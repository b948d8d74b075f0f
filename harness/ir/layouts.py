"""Finds the encoded tensors of a program, in its IR at phase `encodings`, with MLIR's bindings.

It runs by path under a toolchain's own Python, where the harness may not be installed: stdlib and iree.compiler.ir
only. Its argument is {"file": path, "inputs": [shape, ...]} in JSON, and it prints
    {"tensors": [{"name": ..., "element_bits": n, "sizes": [[size, whether an input decides it], ...],
                  "layouts": [[tile, ...], ...]}, ...]}
with a tile for each of the sizes (1: not tiled; 0: known at run time only), or {"unknown": "a phrase"}.

A tensor is encoded in one of two ways. Its type may say so (#iree_encoding.layout): every such result on the host's
side is a buffer. Or it was packed early, so that its type is the padded one. Then dispatches tell what it was: a
pack or an unpack relates an outer dimension and a tile to a dimension of the plain tensor, and all that is computed
in between relates dimensions to each other, by the maps of linalg ops.
"""

from __future__ import annotations

import json
import operator
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

_LAYOUT = "#iree_encoding.layout<"
_RESOLVER = re.compile(r"#\w+\.\w*(?:resolver|identity)\w*")
_INFO = re.compile(r"innerDimsPos = \[([\d, ]*)\], innerTileSizes = \[([-\d, ]*)\]")
_MAPS = ("indexing_maps", "linalg.memoized_indexing_maps")
# What gives a resource that it gets, perhaps in another place.
_PASSES_ON = ("stream.async.cast", "stream.async.clone", "stream.async.transfer", "util.optimization_barrier")
_RESULTS_SEGMENT, _OPERANDS_SEGMENT, _OPERAND_DIMS, _RESULT_DIMS = 4, 1, 3, 5  # of a stream.tensor.dispatch


class Unknown(Exception):
    """What cannot be told of a program; a phrase."""


def _ceildiv(a: int, b: int) -> int:
    return -(-a // b)


def _truncdiv(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


_ARITHMETIC: dict[str, Callable[..., int]] = {
    "arith.addi": operator.add,
    "arith.subi": operator.sub,
    "arith.muli": operator.mul,
    "arith.divsi": _truncdiv,
    "arith.divui": operator.floordiv,
    "arith.floordivsi": operator.floordiv,
    "arith.ceildivsi": _ceildiv,
    "arith.ceildivui": _ceildiv,
    "arith.remsi": lambda a, b: a - b * _truncdiv(a, b),
    "arith.remui": operator.mod,
    "arith.maxsi": max,
    "arith.maxui": max,
    "arith.minsi": min,
    "arith.minui": min,
    "arith.index_cast": operator.index,
    "arith.index_castui": operator.index,
    "arith.extsi": operator.index,
    "arith.extui": operator.index,
    "arith.trunci": operator.index,
    "arith.select": lambda condition, a, b: a if condition else b,
}
# By the number of arith's predicates; sizes are never negative, so signed and unsigned ones agree.
_COMPARISONS = (
    operator.eq,
    operator.ne,
    *(operator.lt, operator.le, operator.gt, operator.ge) * 2,
)


class Sizes:
    """What values of type index on the host's side are, for the case's inputs."""

    def __init__(self, ir: Any, inputs: Sequence[Sequence[int]]) -> None:
        self.ir, self.inputs = ir, inputs
        self.known: dict[Any, tuple[int, bool]] = {}

    def of(self, value: Any) -> tuple[int, bool]:
        """The value, and whether an input decides it.

        Raises:
            Unknown: It depends on what is computed.
        """
        if value not in self.known:
            self.known[value] = self._evaluate(value)
        return self.known[value]

    def _evaluate(self, value: Any) -> tuple[int, bool]:
        op = value.owner
        if isinstance(op, self.ir.Block):
            raise Unknown("the size of an encoded tensor is an argument of a block")
        if op.name == "arith.constant":
            return int(op.attributes["value"].value), False
        if op.name == "hal.buffer_view.dim":
            view = op.operands[0]
            if isinstance(view.owner, self.ir.Block) and view.arg_number < len(self.inputs):
                return self.inputs[view.arg_number][int(op.attributes["index"].value)], True
        if op.name == "arith.cmpi":
            (a, one), (b, other) = (self.of(operand) for operand in op.operands)
            return int(_COMPARISONS[int(op.attributes["predicate"].value)](a, b)), one or other
        if op.name not in _ARITHMETIC:
            raise Unknown(f"the size of an encoded tensor comes from {op.name}")
        operands = [self.of(operand) for operand in op.operands]
        return _ARITHMETIC[op.name](*(number for number, _ in operands)), any(given for _, given in operands)


class Alike:
    """Dimensions that have to be of one size, put into classes."""

    def __init__(self) -> None:
        self.above: dict[Any, Any] = {}

    def of(self, dim: Any) -> Any:
        """The one that stands for a dimension's class."""
        while dim in self.above:
            dim = self.above[dim]
        return dim

    def join(self, one: Any, other: Any) -> None:
        """Two dimensions are of one size."""
        one, other = self.of(one), self.of(other)
        if one != other:
            self.above[other] = one


class Program:
    """A module at phase `encodings`."""

    def __init__(self, ir: Any, module: Any, inputs: Sequence[Sequence[int]]) -> None:
        self.ir, self.sizes, self.alike = ir, Sizes(ir, inputs), Alike()
        self.functions: dict[tuple[str, str], Any] = {}
        self.host: list[Any] = []
        self._collect(module.operation)
        self.known: dict[Any, tuple[int, bool]] = {}  # sizes, by dimension
        self.packed: list[tuple[Any, Any, Any, int]] = []  # dimensions: outer, tile, plain; the tile's size

    def _collect(self, module: Any) -> None:
        def visit(op: Any) -> Any:
            if op.name != "stream.executable":
                self.host.append(op)
                return self.ir.WalkResult.ADVANCE
            name = op.attributes["sym_name"].value
            for inner in _operations(op):
                if inner.name == "builtin.module":
                    for function in _operations(inner):
                        if "sym_name" in function.attributes:
                            self.functions[name, function.attributes["sym_name"].value] = function
            return self.ir.WalkResult.SKIP

        module.walk(visit, self.ir.WalkOrder.PRE_ORDER)

    def tensors(self) -> list[dict[str, Any]]:
        """All encoded tensors, each buffer once.

        Raises:
            Unknown: The layout or the size of one of them cannot be told.
        """
        dispatches = [op for op in self.host if op.name == "stream.tensor.dispatch"]
        found = [tensor for op in self.host for tensor in self._typed(op)]
        bindings = [self._enter(number, op) for number, op in enumerate(dispatches)]
        return found + self._packed(zip(dispatches, bindings, strict=True))

    # ------------------------------------------------------------------------------------- types that say it

    def _typed(self, op: Any) -> Iterator[dict[str, Any]]:
        if op.name == "stream.tensor.dispatch":
            for position, (type_, dims) in enumerate(self._results(op)):
                if _LAYOUT in str(type_):
                    yield self._encoded(f"{_called(op)[1]} result {position}", type_, dims)
        elif "result_encoding" in op.attributes and _LAYOUT in str(op.attributes["result_encoding"].value):
            type_ = op.attributes["result_encoding"].value
            dynamic = _dynamic(type_)
            yield self._encoded(op.name, type_, list(op.operands)[-1 - dynamic : -1])  # its size in bytes is the last

    def _encoded(self, name: str, type_: Any, dims: Sequence[Any]) -> dict[str, Any]:
        text = str(type_)
        rank, layouts = type_.rank, []
        resolvers = [match.start() for match in _RESOLVER.finditer(text, text.index(_LAYOUT) + len(_LAYOUT))]
        for start, end in zip(resolvers, [*resolvers[1:], len(text)], strict=True):
            info = _INFO.search(text, start, end)
            if info is None and "identity" not in text[start:end]:
                raise Unknown(f"nothing is known of the layout {text[start:end].rstrip('>]')[:100]}")
            if "scalable" in text[start:end]:
                raise Unknown("tiles are multiples of a vector length that only the machine knows")
            tiles = [1] * rank
            if info is not None:
                for position, tile in zip(_numbers(info[1]), _numbers(info[2]), strict=True):
                    tiles[position] = max(tile, 0)  # a negative number stands for one that is known at run time
            layouts.append(tiles)
        values = iter(dims)
        sizes = [
            self.sizes.of(next(values)) if type_.is_dynamic_dim(i) else (type_.get_dim_size(i), False)
            for i in range(rank)
        ]
        return _tensor(name, type_, sizes, layouts)

    # ------------------------------------------------------------------------------------- packed early

    def _enter(self, number: int, op: Any) -> list[tuple[Any, Any]]:
        """Relate the dimensions that a dispatch reads, computes and writes; its operands and results, with types."""
        function = self.functions.get(_called(op))
        if function is None:
            return []
        bindings: list[tuple[Any, Any]] = []
        arguments = list(function.regions[0].blocks[0].arguments)
        operands = _segment(op, _OPERANDS_SEGMENT)
        types = [one.value for one in op.attributes["operand_encodings"]]
        values = iter(_segment(op, _OPERAND_DIMS))
        for operand, type_, argument in zip(operands, types, arguments, strict=False):  # results' arguments follow
            if isinstance(type_, self.ir.RankedTensorType):
                dims = [next(values) for _ in range(_dynamic(type_))]
                bindings.append(self._bind(number, operand, type_, dims, argument))
        untied = [one for position, one in enumerate(op.results) if _is_untied(op, position)]
        for result, (type_, dims), argument in zip(untied, self._results(op), arguments[len(operands) :], strict=True):
            bindings.append(self._bind(number, result, type_, dims, argument))
        for inner in _operations(function):
            self._relate(number, inner)
        return bindings

    def _results(self, op: Any) -> list[tuple[Any, list[Any]]]:
        """Types and dynamic sizes of the results that are buffers of their own."""
        values = iter(_segment(op, _RESULT_DIMS))
        types = [one.value for one in op.attributes["result_encodings"]]
        sized = [(type_, [next(values) for _ in range(_dynamic(type_))]) for type_ in types]
        return [one for position, one in enumerate(sized) if _is_untied(op, position)]

    def _bind(self, number: int, value: Any, type_: Any, dims: Sequence[Any], argument: Any) -> tuple[Any, Any]:
        root, values = _root(value), iter(dims)
        for i in range(type_.rank):
            self.alike.join((root, i), (number, argument, i))
            self._know((root, i), type_, i, values)
        return root, type_

    def _know(self, dim: Any, type_: Any, i: int, values: Iterator[Any]) -> None:
        if not type_.is_dynamic_dim(i):
            self.known[dim] = (type_.get_dim_size(i), False)
        else:
            try:
                self.known[dim] = self.sizes.of(next(values))
            except Unknown:  # it matters only if the tensor is packed, and nothing else tells
                return

    def _relate(self, number: int, op: Any) -> None:
        """Relate the dimensions of an op's operands and results to each other."""

        def same(one: Any, other: Any) -> None:
            for i in range(max(_rank(one), _rank(other))):  # a binding has no type that tells
                self.alike.join((number, one, i), (number, other, i))

        name, operands, results = op.name, list(op.operands), list(op.results)
        for value in (*operands, *results):
            if isinstance(value.type, self.ir.RankedTensorType):
                type_ = self.ir.RankedTensorType(value.type)
                for i in range(type_.rank):
                    if not type_.is_dynamic_dim(i):
                        self.known[number, value, i] = (type_.get_dim_size(i), False)
        if name == "stream.binding.subspan" or name.endswith("dispatch.tensor.load"):
            same(operands[0], results[0])
        elif name.endswith("dispatch.tensor.store"):
            same(operands[0], operands[1])
        elif name in ("linalg.pack", "linalg.unpack"):
            source, target = operands[0], operands[1]
            packed, plain = (target, source) if name == "linalg.pack" else (source, target)
            same(target, results[0])
            self._pack(number, op, packed, plain)
        elif name.startswith("linalg."):
            for result, init in zip(results, operands[len(operands) - len(results) :], strict=True):
                same(result, init)
            maps = next((op.attributes[key] for key in _MAPS if key in op.attributes), ())
            for operand, one in zip(operands, maps, strict=False):
                for i, expression in enumerate(one.value.results):
                    if isinstance(expression, self.ir.AffineDimExpr):
                        loop = self.ir.AffineDimExpr(expression).position
                        self.alike.join((number, op, loop), (number, operand, i))
        elif results and operands and name.startswith("tensor.cast"):
            same(operands[0], results[0])

    def _pack(self, number: int, op: Any, packed: Any, plain: Any) -> None:
        rank = _rank(plain)
        order = list(op.attributes["outer_dims_perm"]) if "outer_dims_perm" in op.attributes else []
        order = order or list(range(rank))
        for i, outer in enumerate(order):
            if outer not in list(op.attributes["inner_dims_pos"]):
                self.alike.join((number, packed, i), (number, plain, outer))
        tiles = list(op.attributes["static_inner_tiles"])
        for i, (position, tile) in enumerate(zip(op.attributes["inner_dims_pos"], tiles, strict=True)):
            dims = ((number, packed, order.index(position)), (number, packed, rank + i), (number, plain, position))
            self.packed.append((*dims, max(tile, 0)))

    def _packed(self, dispatches: Any) -> list[dict[str, Any]]:
        of = self.alike.of
        # Where a dimension is of a known size in one place, inputs do not decide it in another.
        known = {of(dim): size for dim, size in sorted(self.known.items(), key=lambda one: not one[1][1])}
        outer = {of(dim): (of(plain), tile) for dim, _, plain, tile in self.packed}
        tiles = {of(dim) for _, dim, _, _ in self.packed}
        found: dict[Any, dict[str, Any]] = {}
        for op, bindings in dispatches:
            for root, type_ in bindings:
                dims = [of((root, i)) for i in range(type_.rank)]
                if root in found or _LAYOUT in str(type_) or not any(dim in tiles for dim in dims):
                    continue
                kept = [outer.get(dim, (dim, 1)) for dim in dims if dim not in tiles]
                if missing := [dim for dim, _ in kept if dim not in known]:
                    raise Unknown(
                        f"nothing tells the plain size of a packed tensor of {_called(op)[1]} ({len(missing)})"
                    )
                name = f"{_called(op)[1]} {type_}"
                found[root] = _tensor(name, type_, [known[dim] for dim, _ in kept], [[tile for _, tile in kept]])
        return list(found.values())


def _tensor(name: str, type_: Any, sizes: Any, layouts: Any) -> dict[str, Any]:
    element = str(type_.element_type)
    bits = re.search(r"\d+", element)
    if bits is None:
        raise Unknown(f"elements of type {element} have no size")
    return {"name": name, "element_bits": int(bits[0]), "sizes": sizes, "layouts": layouts}


def _numbers(text: str) -> list[int]:
    return [int(number) for number in text.split(",") if number.strip()]


def _operations(op: Any) -> list[Any]:
    return [inner.operation for region in op.regions for block in region.blocks for inner in block.operations]


def _dynamic(type_: Any) -> int:
    return sum(type_.is_dynamic_dim(i) for i in range(type_.rank)) if hasattr(type_, "rank") else 0


def _rank(value: Any) -> int:
    """Of a tensor, or of the tensor that a dispatch reads or writes."""
    text = str(value.type)
    found = re.search(r"tensor<((?:[?\d]+x)*)\w", text[text.rindex("tensor<") :] if "dispatch.tensor" in text else text)
    return found[1].count("x") if found else 0


def _segment(op: Any, number: int) -> list[Any]:
    lengths = list(op.attributes["operandSegmentSizes"])
    start = sum(lengths[:number])
    return list(op.operands)[start : start + lengths[number]]


def _called(op: Any) -> tuple[str, str]:
    executable, function = op.attributes["entry_points"][0].value
    return executable, function


def _is_untied(op: Any, position: int) -> bool:
    return "tied_operands" not in op.attributes or int(op.attributes["tied_operands"][position].value) < 0


def _root(value: Any) -> Any:
    """The value that was there first, or the name of the global that it comes from."""
    while hasattr(value.owner, "name"):
        op = value.owner
        if op.name == "util.global.load":
            return str(op.attributes["global"])
        if op.name not in _PASSES_ON:
            break
        value = op.operands[0]
    return value


def main() -> None:
    """Find, and print."""
    from iree.compiler import ir

    request = json.loads(sys.argv[1])
    with ir.Context() as context:
        context.allow_unregistered_dialects = True  # as iree-compile does
        try:
            module = ir.Module.parse(Path(request["file"]).read_bytes())
            answer: dict[str, Any] = {"tensors": Program(ir, module, request["inputs"]).tensors()}
        except ir.MLIRError as error:
            answer = {"unknown": f"it cannot be read back ({str(error).splitlines()[0]})"}
        except Unknown as unknown:
            answer = {"unknown": str(unknown)}
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
