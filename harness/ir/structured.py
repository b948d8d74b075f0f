"""The operations of dispatches that a compiler may tile: their loops, their types, and how a tuning spec says them.

It runs under a toolchain's own Python, for harness.ir.child.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from iree.compiler import ir

from harness.ir.operations import element_bits, is_inside, loop_ranges, maps_of, nested

_FUNCTION = "func.func"
_LOWERING, _PIPELINE = "lowering_config", "translation_info"
# What somebody before the compiler says of how an operation is lowered: it becomes the lowering configuration.
_ASKED = "compilation_info"
_HOLDER = "harness.holder"
_UNKNOWN = -1


def functions(modules: Iterable[Any], _: str) -> list[list[dict[str, Any]]]:
    """Of each module the functions: name, pipeline, and the operations on tensors with loops, as JSON.

    Of an operation, `computes` is its text without anything about lowering, and `matcher` has what a plugin asks for;
    both are "" where its body takes values from outside, which a matcher cannot say. Another operation that has a
    lowering configuration is there with its name and that alone.
    """
    return [[_function(op) for op in nested(module.operation) if op.name == _FUNCTION] for module in modules]


def _function(function: Any) -> dict[str, Any]:
    return {
        "name": ir.StringAttr(function.attributes["sym_name"]).value,
        "pipeline": _text(function, _PIPELINE),
        "operations": [found for op in nested(function) for found in _operation(op)],
    }


def _operation(op: Any) -> Iterator[dict[str, Any]]:
    configuration = _text(op, _LOWERING)
    known = {"op": op.name, "configuration": configuration}
    maps = maps_of(op) if op.name.startswith("linalg.") else []
    if not maps or not op.results or not all(isinstance(value.type, ir.ShapedType) for value in op.results):
        if configuration:
            yield known
        return
    shapes = [_shape(operand.type) for operand in op.operands]
    ranges = loop_ranges(maps, shapes)
    written = maps[len(op.operands) - 1]
    yield known | {
        "loops": [[ranges.get(loop, _UNKNOWN), kind] for loop, kind in enumerate(_kinds(op, written))],
        "operands": [str(operand.type) for operand in op.operands],
        "element_bits": element_bits(op.results[0].type.element_type),
        "innermost": _innermost(written),
        "matcher": _said(op, without=(_LOWERING,)),
        "computes": _said(op, without=(_LOWERING, _ASKED)),
    }


def _text(op: Any, attribute: str) -> str:
    return str(op.attributes[attribute]) if attribute in op.attributes else ""


def _shape(kind: Any) -> tuple[int, ...]:
    if not isinstance(kind, ir.ShapedType):
        return ()
    return tuple(_UNKNOWN if kind.is_dynamic_dim(i) else kind.get_dim_size(i) for i in range(kind.rank))


def _kinds(op: Any, written: Any) -> list[str]:
    """Of its loops. Of an operation with a name: what its output has none of is reduced."""
    if "iterator_types" in op.attributes:
        return ["parallel" if "parallel" in str(kind) else "reduction" for kind in op.attributes["iterator_types"]]
    parallel = {expr.position for expr in written.results if isinstance(expr, ir.AffineDimExpr)}
    return ["parallel" if loop in parallel else "reduction" for loop in range(written.n_dims)]


def _innermost(written: Any) -> int:
    """The loop of the output's last dimension; of an output of one element, the last loop."""
    results = list(written.results)
    if results and isinstance(results[-1], ir.AffineDimExpr):
        return int(results[-1].position)
    return int(written.n_dims) - 1


def _said(op: Any, *, without: tuple[str, ...]) -> str:
    """The text of an operation on %arg0, %arg1, ..., without attributes of these names."""
    if not all(is_inside(value, op) for inner in nested(op) for value in inner.operands):
        return ""
    holder = ir.Operation.create(_HOLDER, regions=1)
    block = holder.regions[0].blocks.append(*(operand.type for operand in op.operands))
    with ir.InsertionPoint(block):
        copy = op.clone()
    for position, argument in enumerate(block.arguments):
        copy.operands[position] = argument
    for name in without:
        if name in copy.attributes:
            del copy.attributes[name]
    return str(copy.get_asm(assume_verified=True, use_local_scope=True))
