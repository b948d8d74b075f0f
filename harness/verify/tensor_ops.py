"""The tensor dialect on ensembles."""

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from harness.verify.interpreter import (
    Evaluator,
    Results,
    Scope,
    in_each_sample,
    kind_of,
    known,
    with_equal_samples,
)
from harness.verify.rounding import UnsupportedError, merged
from harness.verify.scalar_ops import dtype_of


@known("tensor.empty")
def _empty(run: Evaluator, op: Any, scope: Scope) -> Results:
    tensor = op.results[0].type
    shape = run.numbers(tensor.shape, list(op.operands), scope)
    return [np.broadcast_to(np.zeros((), dtype=dtype_of(kind_of(tensor))), (1, *shape))]


@known("tensor.splat", "flow.tensor.splat")
def _splat(run: Evaluator, op: Any, scope: Scope) -> Results:
    value, *dynamic = op.operands
    shape = run.numbers(op.results[0].type.shape, dynamic, scope)
    values = scope.get(value)
    return [np.broadcast_to(values.reshape(-1, *(1,) * len(shape)), (values.shape[0], *shape))]


@known("tensor.dim")
def _dim(run: Evaluator, op: Any, scope: Scope) -> Results:
    at = run.number(scope.get(op.operands[1]))
    return [np.full((1,) * (1 + len(scope.bounds)), scope.get(op.operands[0]).shape[1 + at])]


@known("tensor.extract")
def _extract(run: Evaluator, op: Any, scope: Scope) -> Results:
    tensor, *places = (scope.get(value) for value in op.operands)
    if not places:
        return [tensor.reshape(tensor.shape[0], *(1,) * len(scope.bounds))]
    axes = [np.clip(place, 0, size - 1) for place, size in zip(places, tensor.shape[1:], strict=True)]
    samples = max(tensor.shape[0], *(place.shape[0] for place in axes))
    taken = [tensor[s % tensor.shape[0]][tuple(place[s % place.shape[0]] for place in axes)] for s in range(samples)]
    values = np.stack([np.asarray(values) for values in taken])
    outside = [place[:1] != axis[:1] for place, axis in zip(places, axes, strict=True)]
    # What lies outside of a tensor is anything; a program may read it as long as it does not use it.
    return [merged(run.shaker.anything(values, np.logical_or.reduce(np.broadcast_arrays(*outside))[0]))]


@known("tensor.insert")
def _insert(run: Evaluator, op: Any, scope: Scope) -> Results:
    value, tensor, *places = (scope.get(operand) for operand in op.operands)
    result = run.shaker.full(tensor) if value.shape[0] > tensor.shape[0] else tensor.copy()
    at = [run.number(place) for place in places]
    if not all(0 <= place < size for place, size in zip(at, tensor.shape[1:], strict=True)):
        raise UnsupportedError("an insertion outside of its tensor")
    result[in_each_sample(at)] = value
    return [result]


@known("tensor.from_elements")
def _from_elements(_: Evaluator, op: Any, scope: Scope) -> Results:
    rows = np.stack(with_equal_samples([scope.get(value) for value in op.operands]), axis=1)
    return [rows.reshape(len(rows), *op.results[0].type.shape)]


@known("tensor.expand_shape", "tensor.collapse_shape", "tensor.reshape")
def _reshape(run: Evaluator, op: Any, scope: Scope) -> Results:
    values = scope.get(op.operands[0])
    if op.name == "tensor.expand_shape":
        shape = run.numbers(op.attributes["static_output_shape"], list(op.operands)[1:], scope)
    elif op.name == "tensor.reshape":
        shape = [run.number(size[None]) for size in scope.get(op.operands[1])[0]]
    else:
        groups = [[int(d.value) for d in group] for group in op.attributes["reassociation"]]
        shape = [math.prod(values.shape[1 + d] for d in group) for group in groups]
    return [values.reshape(values.shape[0], *shape)]


def _slices(run: Evaluator, op: Any, scope: Scope) -> tuple[tuple[slice, ...], list[int]]:
    ends = [0, *itertools.accumulate(op.attributes["operandSegmentSizes"])]
    groups = [list(op.operands)[begin:end] for begin, end in itertools.pairwise(ends)]
    offsets, sizes, strides = (
        run.numbers(op.attributes[f"static_{name}"], group, scope)
        for group, name in zip(groups[-3:], ("offsets", "sizes", "strides"), strict=True)
    )
    spans = zip(offsets, sizes, strides, strict=True)
    return tuple(slice(low, low + (size - 1) * step + 1 if size else low, step) for low, size, step in spans), sizes


@known("tensor.extract_slice")
def _extract_slice(run: Evaluator, op: Any, scope: Scope) -> Results:
    values = scope.get(op.operands[0])
    slices, sizes = _slices(run, op, scope)
    taken = values[in_each_sample(slices)]
    if list(taken.shape[1:]) != sizes:
        raise UnsupportedError("a slice that leaves its tensor")
    tensor = op.results[0].type
    shape = sizes if len(tensor.shape) == len(sizes) else _dropped(sizes, list(tensor.shape))
    return [taken.reshape(taken.shape[0], *shape)]


def _dropped(sizes: Sequence[int], shape: Sequence[int]) -> list[int]:
    """Sizes without as many ones as the result's type has fewer dimensions; a size of the type may be unknown."""
    left: list[int] = []
    surplus = len(sizes) - len(shape)
    for size in sizes:
        expected = shape[len(left)] if len(left) < len(shape) else None
        if surplus and size == 1 and expected != 1:
            surplus -= 1
        else:
            left.append(size)
    if surplus:
        raise UnsupportedError("a slice whose dropped dimensions are not plain")
    return left


@known("tensor.insert_slice")
def _insert_slice(run: Evaluator, op: Any, scope: Scope) -> Results:
    source, target = scope.get(op.operands[0]), scope.get(op.operands[1])
    slices, sizes = _slices(run, op, scope)
    result = run.shaker.full(target) if source.shape[0] > target.shape[0] else target.copy()
    result[in_each_sample(slices)] = source.reshape(source.shape[0], *sizes)
    return [result]


@known("tensor.concat")
def _concat(_: Evaluator, op: Any, scope: Scope) -> Results:
    parts = with_equal_samples([scope.get(value) for value in op.operands])
    return [np.concatenate(parts, axis=1 + op.attributes["dim"].value)]


@known("tensor.pad")
def _pad(run: Evaluator, op: Any, scope: Scope) -> Results:
    segments = list(op.attributes["operandSegmentSizes"])
    operands = list(op.operands)
    low = run.numbers(op.attributes["static_low"], operands[1 : 1 + segments[1]], scope)
    high = run.numbers(op.attributes["static_high"], operands[1 + segments[1] :], scope)
    values = scope.get(operands[0])
    (fill,) = run.region(op.regions[0], [np.zeros(1, dtype=np.int64)] * len(low), scope)
    samples = max(values.shape[0], fill.shape[0])
    shape = [a + size + b for a, size, b in zip(low, values.shape[1:], high, strict=True)]
    result = np.empty((samples, *shape), dtype=values.dtype)
    result[...] = fill.reshape(-1, *(1,) * len(shape))
    places = [(slice(max(0, a), a + size + min(0, b)), slice(max(0, -a), size + min(0, b) if b < 0 else None))
              for a, size, b in zip(low, values.shape[1:], high, strict=True)]  # fmt: skip
    result[in_each_sample(into for into, _ in places)] = values[in_each_sample(taken for _, taken in places)]
    return [result]
