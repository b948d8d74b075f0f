"""A seeded sample of a program's outputs, where all of it would take too long: places along one axis of its outputs.

From the outputs backwards, each operation says along which axis of its operands the same places are enough. What needs
more of an operand, such as a convolution along that axis, asks for all of it.
"""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from harness.verify.rounding import Array, UnsupportedError

PLACES = 16
ALL = -1


def places(size: int) -> Array:
    """The places of the sample along an axis of this size."""
    return np.sort(np.random.default_rng(size).choice(size, min(PLACES, size), replace=False))


class Plan(NamedTuple):
    """Which values are evaluated at some places only."""

    axes: dict[Any, int]  # By value, the axis along which it is cut
    results: tuple[int, ...]  # The axes of the function's results
    points: tuple[float, float]  # How many points of iteration spaces that leaves, and how many there are without it


WHOLE = Plan(axes={}, results=(), points=(0.0, 0.0))


def plan_sample(ir: Any, function: Any) -> Plan:
    """The cheapest way to evaluate a part of all outputs of a function."""
    if len(function.regions[0].blocks) != 1:
        raise UnsupportedError("a sample of a program with branches")
    block = function.regions[0].blocks[0]
    operations = [operation.operation for operation in block.operations]
    outputs = list(operations[-1].operands)
    ranks = [len(getattr(_exported(value).type, "shape", ())) for value in outputs]
    plans = [_plan(ir, operations, outputs, axis) for axis in range(max(ranks, default=0))]
    best = min(plans, key=lambda plan: plan.points[0], default=None)
    if best is None or best.points[0] > best.points[1] / 2:
        raise UnsupportedError("no part of its outputs that is much cheaper than the whole")
    return best


def _exported(value: Any) -> Any:
    """The tensor behind an output, which the ABI may wrap."""
    owner = getattr(value.owner, "operation", None)
    while owner is not None and owner.name in ("hal.tensor.export", "hal.tensor.barrier"):
        value = owner.operands[list(owner.results).index(value)]
        owner = getattr(value.owner, "operation", None)
    return value


def _plan(ir: Any, operations: Sequence[Any], outputs: Sequence[Any], axis: int) -> Plan:
    wanted: dict[Any, int] = {}

    def want(value: Any, along: int) -> None:
        wanted[value] = along if wanted.get(value, along) == along else ALL

    axes = []
    for output in outputs:
        tensor = _exported(output)
        shape = getattr(tensor.type, "shape", ())
        axes.append(axis if axis < len(shape) and int(shape[axis]) > PLACES else ALL)
        want(tensor, axes[-1])
    part = whole = 0.0
    for operation in reversed(operations[:-1]):
        asked = [wanted[result] for result in operation.results if result in wanted]
        if not asked and len(operation.results):
            continue
        along = asked[0] if len(asked) == 1 and len(operation.results) == 1 else ALL
        operands = operand_axes(ir, operation, along) if along != ALL else None
        if operands is None:
            for result in operation.results:
                wanted[result] = ALL
            operands = [ALL] * len(operation.operands)
        for value, needed in zip(operation.operands, operands, strict=True):
            want(value, needed)
        points = _points(operation)
        whole += points
        size = int(operation.results[0].type.shape[along]) if points and along != ALL else 1
        cut = wanted[operation.results[0]] != ALL if points else False
        part += points * (PLACES / size if cut else 1.0)
    made = {result for operation in operations for result in operation.results}
    cuts = {value: along for value, along in wanted.items() if along != ALL and value in made}
    return Plan(axes=cuts, results=tuple(axes), points=(part, whole))


def _points(operation: Any) -> float:
    """The points of an iteration space, as far as types tell."""
    from harness.ir.operations import loop_ranges

    if operation.name != "linalg.generic":
        return 0.0
    maps = [attribute.value for attribute in operation.attributes["indexing_maps"]]
    ranges = loop_ranges(maps, [getattr(value.type, "shape", ()) for value in operation.operands])
    return float(math.prod(max(1, size) for size in ranges.values()))


def operand_axes(ir: Any, operation: Any, along: int) -> list[int] | None:
    """The axis along which each operand is needed at the same places only; None: the operation needs all of them."""
    from harness.ir.operations import dims_of

    if operation.name == "tensor.empty" and not len(operation.operands):
        return []
    if operation.name != "linalg.generic":
        return None
    maps = [attribute.value for attribute in operation.attributes["indexing_maps"]]
    dimension = maps[-1].results[along]
    if not isinstance(dimension, ir.AffineDimExpr):
        return None
    position = int(dimension.position)
    for inner in operation.regions[0].blocks[0].operations:
        if inner.operation.name in ("linalg.index", "tensor.extract"):
            return None
    axes = []
    for map_ in maps:
        own = [at for at, result in enumerate(map_.results) if position in dims_of(result)]
        if len(own) > 1 or (own and not isinstance(map_.results[own[0]], ir.AffineDimExpr)):
            return None
        axes.append(own[0] if own else ALL)
    return axes
