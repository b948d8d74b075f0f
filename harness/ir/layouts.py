"""Finds the encoded tensors of a program, in its IR at phase `encodings`, with MLIR's bindings.

It runs under a toolchain's own Python, for harness.ir.child.

A tensor is encoded in one of two ways. Its type may say so (#iree_encoding.layout): every such result on the host's
side is a buffer. Or it was packed early, so that its type is the padded one. Then dispatches tell what it was: a
pack or an unpack relates an outer dimension and a tile to a dimension of the plain tensor, and all that is computed
in between relates dimensions to each other, by the maps of linalg ops.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any

from iree.compiler import ir

from harness.ir.sizes import Sizes, Unknown, operations_in, segments

_LAYOUT = "#iree_encoding.layout<"
_RESOLVER = re.compile(r"#\w+\.\w*(?:resolver|identity)\w*")
_INFO = re.compile(r"innerDimsPos = \[([\d, ]*)\], innerTileSizes = \[([-\d, ]*)\]")
_MAPS = ("indexing_maps", "linalg.memoized_indexing_maps")
# What gives a resource that it gets, perhaps in another place.
_PASSES_ON = ("stream.async.cast", "stream.async.clone", "stream.async.transfer", "util.optimization_barrier")
_OPERANDS, _OPERAND_DIMS, _RESULT_DIMS = 1, 3, 5  # among the operands of a stream.tensor.dispatch


def encoded_tensors(modules: Iterable[Any], _: str, *, inputs: Sequence[Sequence[int]]) -> list[dict[str, Any]]:
    """All encoded tensors of a program, as JSON."""
    (module,) = modules
    return _Program(module, inputs).tensors()


class _Alike:
    """Dimensions that have to be of one size, put into classes."""

    def __init__(self) -> None:
        self._above: dict[Any, Any] = {}

    def of(self, dim: Any) -> Any:
        while dim in self._above:
            dim = self._above[dim]
        return dim

    def join(self, left: Any, right: Any) -> None:
        left, right = self.of(left), self.of(right)
        if left != right:
            self._above[right] = left


class _Program:
    """A module at phase `encodings`."""

    def __init__(self, module: Any, inputs: Sequence[Sequence[int]]) -> None:
        self.sizes, self.alike = Sizes(), _Alike()
        self.functions: dict[tuple[str, str], Any] = {}  # of executables
        self.host = list(_host(module.operation))
        for op in self.host:
            if op.name == "util.func" and list(op.regions[0]):
                for argument, shape in zip(op.regions[0].blocks[0].arguments, inputs, strict=False):
                    self.sizes.give(argument, shape)
            if op.name == "stream.executable":
                name = op.attributes["sym_name"].value
                inside = [function for inner in operations_in(op) for function in operations_in(inner)]
                named = [function for function in inside if "sym_name" in function.attributes]
                self.functions |= {(name, function.attributes["sym_name"].value): function for function in named}
        self.known: dict[Any, tuple[int, bool]] = {}  # sizes, by dimension
        self.packed: list[tuple[Any, Any, Any, int]] = []  # dimensions: outer, tile, plain; the tile's size
        self.multiplied: list[tuple[Any, Any]] = []  # dimensions: outer, tile

    def tensors(self) -> list[dict[str, Any]]:
        """All encoded tensors, each buffer once."""
        dispatches = [op for op in self.host if op.name == "stream.tensor.dispatch"]
        found = [tensor for op in self.host for tensor in self._typed(op)]
        bindings = [self._enter(number, op) for number, op in enumerate(dispatches)]
        return found + self._packed(zip(dispatches, bindings, strict=True))

    # ------------------------------------------------------------------------------------- types that say it

    def _typed(self, op: Any) -> Iterator[dict[str, Any]]:
        if op.name == "stream.tensor.dispatch":
            for position, (_, type_, dims) in enumerate(self._results(op)):
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
        return _tensor(name, type_, [self._size(type_, i, values) for i in range(rank)], layouts)

    def _size(self, type_: Any, i: int, dynamic: Iterator[Any]) -> tuple[int, bool]:
        """A size, the next of the dynamic ones if it is none of the type's own, and whether an input decides it."""
        if not type_.is_dynamic_dim(i):
            return type_.get_dim_size(i), False
        value = next(dynamic)
        return self.sizes.number(value), self.sizes.is_decided_by_inputs(value)

    # ------------------------------------------------------------------------------------- packed early

    def _enter(self, number: int, op: Any) -> list[tuple[Any, Any]]:
        """Relate the dimensions that a dispatch reads, computes and writes; its operands and results, with types."""
        function = self.functions.get(_called(op))
        if function is None:
            return []
        types = [attribute.value for attribute in op.attributes["operand_encodings"]]
        operands = zip(segments(op)[_OPERANDS], types, _dims_of(types, segments(op)[_OPERAND_DIMS]), strict=True)
        bound = [*operands, *self._results(op)]
        arguments = list(function.regions[0].blocks[0].arguments)
        bindings = [
            self._bind(number, value, type_, dims, argument)
            for (value, type_, dims), argument in zip(bound, arguments, strict=True)
            if isinstance(type_, ir.RankedTensorType)
        ]
        for inner in operations_in(function):
            self._relate(number, inner)
        return bindings

    def _results(self, op: Any) -> list[tuple[Any, Any, list[Any]]]:
        types = [attribute.value for attribute in op.attributes["result_encodings"]]
        results = zip(op.results, types, _dims_of(types, segments(op)[_RESULT_DIMS]), strict=True)
        return [result for position, result in enumerate(results) if _is_untied(op, position)]

    def _bind(self, number: int, value: Any, type_: Any, dims: Sequence[Any], argument: Any) -> tuple[Any, Any]:
        # A buffer may be read as tensors of several shapes, whose dimensions are others.
        root, values = (_root(value), str(type_)), iter(dims)
        for i in range(type_.rank):
            self.alike.join((root, i), (number, argument, i))
            with suppress(Unknown):  # it matters only if the tensor is packed, and nothing else tells
                self.known[root, i] = self._size(type_, i, values)
        return root, type_

    def _relate(self, number: int, op: Any) -> None:
        def same(value: Any, other: Any, sizes: Sequence[int] | None = None) -> None:
            shape, others = _shape(value), _shape(other)
            j = 0
            for i, size in enumerate(shape):
                # A slice may leave dimensions of 1 out; of two sizes that differ it is not a whole one.
                if sizes is not None and len(others) < len(shape) and sizes[i] == 1 and others[j : j + 1] != ["1"]:
                    continue
                if j < len(others) and others[j] == size:
                    self.alike.join((number, value, i), (number, other, j))
                j += 1

        name, operands, results = op.name, list(op.operands), list(op.results)
        for value in (*operands, *results):
            for i, size in enumerate(_shape(value) if isinstance(value.type, ir.RankedTensorType) else ()):
                if size != "?":
                    self.known[number, value, i] = (int(size), False)
        if name == "stream.binding.subspan":
            for i in range(len(_shape(results[0]))):
                self.alike.join((number, operands[0], i), (number, results[0], i))
        elif name.endswith("dispatch.tensor.load"):
            same(operands[0], results[0], list(op.attributes["static_sizes"]))
        elif name.endswith("dispatch.tensor.store"):
            same(operands[1], operands[0], list(op.attributes["static_sizes"]))
        elif name in ("linalg.pack", "linalg.unpack"):
            source, target = operands[0], operands[1]
            packed, plain = (target, source) if name == "linalg.pack" else (source, target)
            same(target, results[0])
            self._pack(number, op, packed, plain)
        elif name.startswith("linalg."):
            if name.endswith("mmt4d"):
                for value in operands:
                    first = len(_shape(value)) - 4  # a batch_mmt4d has one dimension more
                    for i in (first, first + 1):
                        self.multiplied.append(((number, value, i), (number, value, i + 2)))
            for result, init in zip(results, operands[len(operands) - len(results) :], strict=True):
                same(result, init)
            maps = next((op.attributes[key] for key in _MAPS if key in op.attributes), ())
            for operand, attribute in zip(operands, maps, strict=False):
                for i, expression in enumerate(attribute.value.results):
                    if isinstance(expression, ir.AffineDimExpr):
                        loop = ir.AffineDimExpr(expression).position
                        self.alike.join((number, op, loop), (number, operand, i))
        elif results and operands and name.startswith("tensor.cast"):
            same(operands[0], results[0])

    def _pack(self, number: int, op: Any, packed: Any, plain: Any) -> None:
        rank = len(_shape(plain))
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
        known = {of(dim): size for dim, size in sorted(self.known.items(), key=lambda item: not item[1][1])}
        outer = {of(dim): (known.get(of(plain)), tile) for dim, _, plain, tile in self.packed}
        tiles = {of(dim) for _, dim, _, _ in self.packed} | {of(dim) for _, dim in self.multiplied}
        for dim, tile in self.multiplied:
            if of(dim) not in outer and of(dim) in known:  # no op adds padding to it, or takes it away
                (count, is_dynamic), (size, _) = known[of(dim)], known.get(of(tile), (0, False))
                outer[of(dim)] = ((count * size, is_dynamic), size)
        found: dict[Any, dict[str, Any]] = {}
        for op, bindings in dispatches:
            for root, type_ in bindings:
                dims = [of((root, i)) for i in range(type_.rank)]
                buffer = root[0]
                if buffer in found or _LAYOUT in str(type_) or not any(dim in tiles for dim in dims):
                    continue
                if getattr(getattr(buffer, "owner", None), "name", "") == "stream.tensor.import":
                    continue  # an argument that lies as it should: a row in tiles of one row
                kept = [outer.get(dim, (known.get(dim), 1)) for dim in dims if dim not in tiles]
                if any(size is None for size, _ in kept):
                    raise Unknown(f"nothing tells how large a packed tensor of {_called(op)[1]} is unpacked")
                name = f"{_called(op)[1]} {type_}"
                found[buffer] = _tensor(name, type_, [size for size, _ in kept], [[tile for _, tile in kept]])
        return list(found.values())


def _host(op: Any) -> Iterator[Any]:
    """The operations outside executables, which are opened by nobody."""
    for inner in operations_in(op):
        yield inner
        if inner.name != "stream.executable":
            yield from _host(inner)


def _tensor(name: str, type_: Any, sizes: Any, layouts: Any) -> dict[str, Any]:
    element = str(type_.element_type)
    bits = re.search(r"\d+", element)
    if bits is None:
        raise Unknown(f"elements of type {element} have no size")
    return {"name": name, "element_bits": int(bits[0]), "sizes": sizes, "layouts": layouts}


def _numbers(text: str) -> list[int]:
    return [int(number) for number in text.split(",") if number.strip()]


def _dynamic(type_: Any) -> int:
    return sum(type_.is_dynamic_dim(i) for i in range(type_.rank)) if hasattr(type_, "rank") else 0


def _dims_of(types: Sequence[Any], values: Sequence[Any]) -> list[list[Any]]:
    """Of each type, the values that are its dynamic sizes."""
    waiting = iter(values)
    return [[next(waiting) for _ in range(_dynamic(type_))] for type_ in types]


def _shape(value: Any) -> list[str]:
    """Of a tensor, or of the tensor that a dispatch reads or writes."""
    text = str(value.type)
    sizes = re.match(r"tensor<((?:[?\d]+x)*)", text[text.rfind("tensor<") :] if "dispatch.tensor" in text else text)
    return sizes[1].split("x")[:-1] if sizes else []


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
