"""A program -> its work: what its operations do, as often as calls and loops run them, and what it has to touch at all.

It runs under a toolchain's own Python, for harness.ir.child.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from iree.compiler import ir

from harness.ir.operations import Cost, bytes_of, cost_of_tensors, gathered, is_inside, is_uniform
from harness.ir.sizes import Sizes, Unknown, nested

_PURE = ("linalg.", "tensor.", "arith.", "math.", "affine.", "iree_linalg_ext.", "util.global.load")
_CONSTANTS = ("arith.constant", "tensor.empty", "flow.tensor.constant")
_CALLS = ("func.call", "util.call")
_RETURNS = ("func.return", "util.return", "scf.yield")
_WITH_BODIES = ("linalg.", "tensor.", "iree_linalg_ext.")


def work(modules: Iterable[Any], _: str, *, function: str, shapes: Sequence[Sequence[int]]) -> dict[str, Any]:
    """The work of one call of a function, as fields of the record; the module loses what nothing uses."""
    (module,) = modules
    for region in module.operation.regions:
        _remove_unused(region)
    return _Program(module).work(function, shapes)


def _remove_unused(region: Any) -> None:
    for block in region:
        for op in reversed(list(block.operations)):
            operation = op.operation
            if operation.name.startswith(_PURE) and not any(any(result.uses) for result in operation.results):
                if operation.results:
                    operation.erase()
                continue
            for inner in operation.regions:
                _remove_unused(inner)


class _Program:
    """A module on the way through its functions, from the entry on."""

    def __init__(self, module: Any) -> None:
        self._symbols = {
            str(op.attributes["sym_name"].value): op.operation
            for op in module.body.operations
            if "sym_name" in op.operation.attributes
        }
        self._sizes = Sizes()
        self._constant: dict[Any, bool] = {}
        self._touched: dict[Any, int] = {}

    def work(self, function: str, shapes: Sequence[Sequence[int]]) -> dict[str, Any]:
        if function not in self._symbols or not list(self._symbols[function].regions[0]):
            raise Unknown(f"there is no function {function!r} at this phase")
        block = self._symbols[function].regions[0].blocks[0]
        for argument, shape in zip(block.arguments, shapes, strict=False):
            self._sizes.give(argument, shape)
        for argument in block.arguments:
            if isinstance(argument.type, ir.ShapedType):
                self._touch(argument)
        cost = self._region(self._symbols[function].regions[0])
        results = [value for value in _returned(block) if isinstance(value.type, ir.ShapedType)]
        written = sum(bytes_of(self._sizes.elements(result), result.type) for result in results)
        return {**vars(cost), "compulsory_bytes": sum(self._touched.values()) + written}

    def _region(self, region: Any) -> Cost:
        cost = Cost()
        blocks = list(region)
        if len(blocks) > 1:
            cost.uncounted["branches between blocks"] += 1
        for block in blocks:
            for op in block.operations:
                cost.add(self._operation(op.operation))
        return cost

    def _operation(self, op: Any) -> Cost:
        for result in op.results:
            self._constant[result] = self._is_constant(op)
            if isinstance(result.type, ir.ShapedType) and op.name in ("arith.constant", "hal.tensor.import"):
                self._touch(result)
        if op.name == "util.global.load" and isinstance(op.results[0].type, ir.ShapedType):
            self._touch(op.results[0], key=str(op.attributes["global"]))
        if op.name == "hal.tensor.export":
            exported = op.operands[0]
            self._touched[op.results[0]] = bytes_of(self._sizes.elements(exported), exported.type)
        if op.name in _CALLS:
            return self._call(op)
        if op.name == "scf.for":
            return self._loop(op)
        if op.name in _RETURNS or (op.results and all(self._constant[result] for result in op.results)):
            return Cost()  # what depends on constants only, the compiler computes
        cost = cost_of_tensors(op, self._sizes)
        if not op.name.startswith(_WITH_BODIES):
            for region in op.regions:
                cost.uncounted[op.name] += 1
                cost.add(self._region(region))
        return cost

    def _call(self, op: Any) -> Cost:
        callee = self._symbols.get(str(op.attributes["callee"].value))
        if callee is None or not list(callee.regions[0]):
            return Cost(uncounted=Counter({op.name: 1}))
        block = callee.regions[0].blocks[0]
        for argument, operand in zip(block.arguments, op.operands, strict=True):
            self._sizes.bind(argument, operand)
        cost = self._region(callee.regions[0])
        for result, returned in zip(op.results, _returned(block), strict=True):
            self._sizes.bind(result, returned)
        return cost

    def _loop(self, op: Any) -> Cost:
        low, high, step, *carried = op.operands
        block = op.regions[0].blocks[0]
        for argument, operand in zip(list(block.arguments)[1:], carried, strict=True):
            self._sizes.bind(argument, operand)
        cost = Cost()
        try:
            times = max(0, -(-(self._sizes.number(high) - self._sizes.number(low)) // self._sizes.number(step)))
        except Unknown:
            times = 1
            cost.uncounted["scf.for of unknown length"] += 1
        cost.add(self._region(op.regions[0]), times)
        for result, operand in zip(op.results, carried, strict=True):
            self._sizes.bind(result, operand)
        return cost

    def _touch(self, value: Any, key: Any = None) -> None:
        """Note that a call reads a tensor from memory: all of it, or what it looks up in it."""
        if not is_uniform(value):
            elements = gathered(value, self._sizes)
            elements = self._sizes.elements(value) if elements is None else elements
            self._touched[value if key is None else key] = bytes_of(elements, value.type)

    def _is_constant(self, op: Any) -> bool:
        if op.name == "util.global.load":
            holder = self._symbols.get(str(op.attributes["global"].value))
            return holder is not None and "is_mutable" not in holder.attributes
        if op.name in _CONSTANTS:
            return True
        if not op.name.startswith(_PURE) or not op.operands:
            return False
        captured = [operand for inner in nested(op) for operand in inner.operands]
        return all(self._constant.get(value, False) for value in op.operands) and all(
            self._constant.get(value, is_inside(value, op)) for value in captured
        )


def _returned(block: Any) -> list[Any]:
    return list(list(block.operations)[-1].operands)
