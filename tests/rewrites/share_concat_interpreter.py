"""A numpy interpreter of the few operations that the tests of shared concatenations make programs of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from iree.compiler import ir
from numpy.typing import NDArray

Array = NDArray[Any]


def interpret(text: str, arguments: Sequence[Array]) -> list[Array]:
    """The results of a module's only function; what was never written is NaN."""
    with ir.Context():
        module = ir.Module.parse(text)
        block = module.body.operations[0].regions[0].blocks[0]
        values: dict[ir.Value, Any] = dict(zip(block.arguments, arguments, strict=True))
        for view in block.operations:
            operation = view.operation
            operands = [values[operand] for operand in operation.operands]
            if operation.name == "func.return":
                return operands
            values[operation.result] = _MEANINGS[operation.name](operation, *operands)
    raise ValueError("the function does not return")


def _window(operation: ir.Operation) -> tuple[slice, ...]:
    offsets, sizes = operation.attributes["static_offsets"], operation.attributes["static_sizes"]
    return tuple(slice(offset, offset + size) for offset, size in zip(offsets, sizes, strict=True))


def _insert(operation: ir.Operation, part: Array, base: Array) -> Array:
    whole: Array = base.copy()
    whole[_window(operation)] = part
    return whole


def _pad(operation: ir.Operation, inner: Array) -> Array:
    low, high = operation.attributes["static_low"], operation.attributes["static_high"]
    value = operation.regions[0].blocks[0].operations[0].operands[0].owner.attributes["value"].value
    padded: Array = np.pad(inner, list(zip(low, high, strict=True)), constant_values=value)
    return padded


_MEANINGS: dict[str, Callable[..., Any]] = {
    "arith.constant": lambda operation: np.float32(operation.attributes["value"].value),
    "arith.addf": lambda _, left, right: left + right,
    "arith.mulf": lambda _, left, right: left * right,
    "linalg.fill": lambda _, value, base: np.full_like(base, value),
    "tensor.concat": lambda operation, *parts: np.concatenate(parts, operation.attributes["dim"].value),
    "tensor.empty": lambda operation: np.full(operation.result.type.shape, np.nan, np.float32),
    "tensor.extract_slice": lambda operation, whole: whole[_window(operation)],
    "tensor.insert_slice": _insert,
    "tensor.pad": _pad,
}
