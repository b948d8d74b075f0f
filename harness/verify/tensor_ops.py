"""The tensor dialect on ensembles."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from harness.ir.sizes import segments
from harness.verify.generic_ops import indices_of, softmax_of
from harness.verify.interpreter import (
    ELEMENT_S,
    PRODUCT_S,
    STEP_S,
    Evaluator,
    Results,
    Scope,
    in_each_sample,
    kind_of,
    known,
    with_equal_samples,
)
from harness.verify.linalg_ops import Products, Space, view
from harness.verify.rounding import Array, UnsupportedError, merged
from harness.verify.scalar_ops import dtype_of, scalar_op


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
    offsets, sizes, strides = (
        run.numbers(op.attributes[f"static_{name}"], values, scope)
        for values, name in zip(segments(op)[-3:], ("offsets", "sizes", "strides"), strict=True)
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


@known("linalg.pack", "tensor.pack")
def _pack(run: Evaluator, op: Any, scope: Scope) -> Results:
    (source,), _, fills, _ = segments(op)
    values, tiled = scope.get(source), _tiled(run, op, scope)
    rank = values.ndim - 1
    over = [(0, -size % tiled.get(d, 1)) for d, size in enumerate(values.shape[1:])]
    if any(high for _, high in over):
        if not fills:
            raise UnsupportedError("a pack of no whole tiles that names no value to fill them")
        values = _padded(values, scope.get(fills[0]), over)
    split = [part for d, size in enumerate(values.shape[1:]) for part in (size // tiled.get(d, 1), tiled.get(d, 1))]
    axes = [*(2 * d for d in _outer_order(op, rank)), *(2 * d + 1 for d in tiled)]
    axes += [at for at in range(2 * rank) if at not in axes]  # of size 1
    tiles = values.reshape(-1, *split).transpose(0, *(1 + at for at in axes))
    return [tiles.reshape(tiles.shape[: 1 + rank + len(tiled)])]


@known("linalg.unpack", "tensor.unpack")
def _unpack(run: Evaluator, op: Any, scope: Scope) -> Results:
    values, target = (scope.get(value) for value in list(op.operands)[:2])
    tiled = _tiled(run, op, scope)
    rank = target.ndim - 1
    order, inner = _outer_order(op, rank), list(tiled)
    axes = [at for d in range(rank) for at in ([order.index(d)] + ([rank + inner.index(d)] if d in tiled else []))]
    whole = values.transpose(0, *(1 + at for at in axes))
    whole = whole.reshape(-1, *(values.shape[1 + order.index(d)] * tiled.get(d, 1) for d in range(rank)))
    return [whole[in_each_sample(slice(size) for size in target.shape[1:])]]


def _tiled(run: Evaluator, op: Any, scope: Scope) -> dict[int, int]:
    """The sizes of the tiles, by dimension."""
    given = list(op.attributes.get("operandSegmentSizes", (1, 1, 0)))
    dynamic = list(op.operands)[sum(given[:-1]) :]
    sizes = run.numbers(op.attributes["static_inner_tiles"], dynamic, scope)
    return dict(zip(op.attributes["inner_dims_pos"], sizes, strict=True))


def _outer_order(op: Any, rank: int) -> list[int]:
    order = list(op.attributes["outer_dims_perm"]) if "outer_dims_perm" in op.attributes else []
    return order or list(range(rank))


@known("tensor.pad")
def _pad(run: Evaluator, op: Any, scope: Scope) -> Results:
    (source,), before, after = segments(op)
    low = run.numbers(op.attributes["static_low"], before, scope)
    high = run.numbers(op.attributes["static_high"], after, scope)
    values = scope.get(source)
    (fill,) = run.region(op.regions[0], [np.zeros(1, dtype=np.int64)] * len(low), scope)
    return [_padded(values, fill, list(zip(low, high, strict=True)))]


def _padded(values: Array, fill: Array, by: Sequence[tuple[int, int]]) -> Array:
    """Values with so many others before and after them along each axis; with as many less where it is below 0."""
    samples = max(values.shape[0], fill.shape[0])
    shape = [low + size + high for (low, high), size in zip(by, values.shape[1:], strict=True)]
    result = np.empty((samples, *shape), dtype=values.dtype)
    result[...] = fill.reshape(-1, *(1,) * len(shape))
    spans = [(low, size + min(0, high)) for (low, high), size in zip(by, values.shape[1:], strict=True)]
    into = in_each_sample(slice(max(0, low), low + end) for low, end in spans)
    result[into] = values[in_each_sample(slice(max(0, -low), end) for low, end in spans)]
    return result


@known("iree_linalg_ext.attention")
def _attention(run: Evaluator, op: Any, scope: Scope) -> Results:
    query, key, value, scale, *masks, _ = (scope.get(operand) for operand in op.operands)
    maps = indices_of(op)
    query_dims, key_dims, value_dims, _, *mask_dims, out_dims = (
        [next(iter(index.factors)) for index in indices] for indices in maps
    )
    batch = [d for d in sorted(query_dims) if d in key_dims and d in value_dims]
    keys = [d for d in key_dims if d in value_dims and d not in batch]
    inner = [d for d in query_dims if d in key_dims and d not in batch]
    rows = [d for d in query_dims if d not in batch and d not in inner]
    columns = [d for d in value_dims if d not in batch and d not in keys]
    if len(op.regions[0].blocks[0].operations) != 1 or any(d not in [*batch, *rows, *columns] for d in out_dims):
        raise UnsupportedError("an attention that changes its scores")
    sizes = {d: n for dims, values in ((query_dims, query), (key_dims, key), (value_dims, value))
             for d, n in zip(dims, values.shape[1:], strict=True)}  # fmt: skip
    scored = math.prod(sizes[d] for d in [*batch, *rows, *keys])
    width = math.prod(sizes[d] for d in inner) + math.prod(sizes[d] for d in columns)
    run.may_take(scored * (2.5 * width * PRODUCT_S + 5 * ELEMENT_S) * run.shaker.samples)

    def full(values: Any, dims: Sequence[int], order: Sequence[int]) -> Any:
        places = [dims.index(d) for d in order if d in dims]
        shape = [sizes[d] if d in dims else 1 for d in order]
        return values.transpose(0, *(1 + p for p in places)).reshape(values.shape[0], *shape)

    def product(a: Array, b: Array, order: Sequence[int], reduced: Sequence[int]) -> Array:
        space = Space(sizes=tuple(sizes[d] for d in order), parallel=tuple(d not in reduced for d in order))
        start = np.zeros((1, *(1 if d in reduced else sizes[d] for d in order)))
        sums = Products(left=a, right=b, space=space, kind="f32").added_to(start, run.shaker)
        return sums.reshape(sums.shape[0], *(sizes[d] for d in order if d not in reduced))

    query = run.shaker.rounded(query * scale.reshape(-1, *(1,) * (query.ndim - 1)), kind_of(op.operands[0].type))
    order = [*batch, *rows, *keys, *inner]
    scores = product(full(query, query_dims, order), full(key, key_dims, order), order, inner)
    order = [*batch, *rows, *keys]
    if masks:
        mask = full(masks[0], mask_dims[0], order)
        scores = scores + (np.where(mask, 0.0, -np.inf) if mask.dtype == bool else mask)
    flat = scores.reshape(*scores.shape[: 1 + len(batch) + len(rows)], -1)
    weights = run.shaker.rounded(softmax_of(run, flat, flat.ndim - 1, "f32"), kind_of(op.operands[2].type))
    order = [*batch, *rows, *columns, *keys]
    weights = full(weights.reshape(weights.shape[0], *scores.shape[1:]), [*batch, *rows, *keys], order)
    sums = product(weights, full(value, value_dims, order), order, keys)
    result = run.shaker.rounded(sums, kind_of(op.results[0].type))
    at = [[*batch, *rows, *columns].index(d) for d in out_dims]
    return [result.transpose(0, *(1 + a for a in at))]


@known("iree_linalg_ext.scatter")
def _scatter(run: Evaluator, op: Any, scope: Scope) -> Results:
    updates, places, target = (scope.get(value) for value in list(op.operands)[:3])
    dims = list(op.attributes["dimension_map"])
    places = places if places.ndim > 1 + 1 or len(dims) > 1 else places.reshape(*places.shape[:2], 1)
    batch = places.shape[1:-1]
    run.may_take(math.prod(batch) * STEP_S)
    result = run.shaker.full(target) if updates.shape[0] > target.shape[0] else target.copy()
    for at in np.ndindex(*batch):
        place = [run.number(places[in_each_sample((*at, column))]) for column in range(len(dims))]
        if not all(0 <= index < target.shape[1 + d] for d, index in zip(dims, place, strict=True)):
            raise UnsupportedError("a scatter outside of its tensor")
        where: list[Any] = [slice(None)] * (target.ndim - 1)
        for d, index in zip(dims, place, strict=True):
            where[d] = index
        window = updates[in_each_sample(at)]
        old = result[in_each_sample(where)]
        shape = old.shape[1:]
        new = run.over(op, [window.reshape(-1, *shape), old], shape, scope)
        if new.shape[0] > result.shape[0]:
            result = run.shaker.full(result)
        result[in_each_sample(where)] = new
    return [result]


@known("iree_linalg_ext.arg_compare")
def _arg_compare(run: Evaluator, op: Any, scope: Scope) -> Results:
    sizes = list(op.attributes["operandSegmentSizes"]) if "operandSegmentSizes" in op.attributes else [1, 2, 0]
    values = scope.get(op.operands[0])
    if sizes[0] != 1:
        raise UnsupportedError("iree_linalg_ext.arg_compare of given indices")
    axis = 1 + op.attributes["dimension"].value
    base = run.number(scope.get(list(op.operands)[-1])) if len(sizes) > 2 and sizes[2] else 0
    best = np.take(values, 0, axis=axis)
    shape = best.shape[1:]
    found = np.zeros((1, *shape), dtype=np.int64) + base
    run.may_take(values.shape[axis] * STEP_S + values.size * 4 * ELEMENT_S)
    for at in range(1, values.shape[axis]):
        here = np.take(values, at, axis=axis)
        better = run.over(op, [here, best], shape, scope)
        best = merged(np.where(better, here, best))
        found = merged(np.where(better, at + base, found))
    return [best, found.astype(dtype_of(kind_of(op.results[1].type)))][: len(op.results)]


@known("iree_linalg_ext.sort")
def _sort(run: Evaluator, op: Any, scope: Scope) -> Results:
    axis = 1 + op.attributes["dimension"].value
    samples = max(scope.get(value).shape[0] for value in op.operands)
    columns = [np.moveaxis(scope.get(value), axis, -1) for value in op.operands]
    shape = columns[0].shape[1:]
    size = shape[-1]
    run.may_take(math.prod(shape) * size * samples * 8 * ELEMENT_S)
    pairs = [side for column in columns for side in (column[..., :, None], column[..., None, :])]
    first = run.over(op, pairs, (*shape, size), scope)
    # Each goes behind those that come before it; what is equal stays in its order.
    other = first.swapaxes(-1, -2)
    ties = first == other
    place = (ties & np.tri(size, k=-1, dtype=bool)).sum(axis=-1)
    if not run.program.orders_ties and run.shaker.samples > 1:
        place = _in_any_order(run.shaker.full(place), ties.sum(axis=-1))
    order = np.argsort((other & ~ties).sum(axis=-1) + place, axis=-1, kind="stable")
    order, *columns = with_equal_samples([order, *columns])
    return [merged(np.moveaxis(np.take_along_axis(column, order, axis=-1), -1, axis)) for column in columns]


def _in_any_order(place: Array, members: Array) -> Array:
    """Places within a group of equals: every second sample turns the group round, the others rotate it."""
    members = np.broadcast_to(members, place.shape)
    for sample in range(1, len(place)):
        if sample % 2:
            place[sample] = members[sample] - 1 - place[sample]
        else:
            step = np.maximum(1, members[sample] // 5)
            place[sample] = (place[sample] + sample // 2 * step) % members[sample]
    return place


@known("iree_linalg_ext.scan")
def _scan(run: Evaluator, op: Any, scope: Scope) -> Results:
    given, _, start = (scope.get(value) for value in op.operands)
    axis, inclusive = 1 + op.attributes["dimension"].value, op.attributes["inclusive"].value
    values = np.moveaxis(given, axis, 0)
    run.may_take(len(values) * STEP_S + values.size * 4 * ELEMENT_S)
    last = values[0] if inclusive else start
    found = [last]
    for at in range(1, len(values)):
        last = run.over(op, [last, values[at if inclusive else at - 1]], last.shape[1:], scope)
        found.append(last)
    return [np.moveaxis(np.stack(with_equal_samples(found)), 0, axis), last]


def _as_float(run: Evaluator, op: Any, integers: Array, kind: str, unsigned: str) -> Array:
    name = "arith.uitofp" if unsigned in op.attributes else "arith.sitofp"
    return scalar_op(name, [integers], kind, "", 0, run.shaker)


@known("iree_linalg_ext.quantize_affine", "iree_linalg_ext.dequantize_affine")
def _affine(run: Evaluator, op: Any, scope: Scope) -> Results:
    values, *others = (scope.get(value) for value in list(op.operands)[:-1])
    # Scale and zero point, with one axis a dimension of the values.
    bounds = tuple((0, size) for size in values.shape[1:])
    maps = indices_of(op)
    scale, *zero = (view(other, map_, bounds) for other, map_ in zip(others, maps[1:], strict=False))
    is_quantizing = op.name == "iree_linalg_ext.quantize_affine"
    kind, into = kind_of((op.operands[0] if is_quantizing else op.results[0]).type), kind_of(op.results[0].type)
    points = [_as_float(run, op, point, kind, "zp_unsigned") for point in zero]

    def do(name: str, *operands: Array) -> Array:
        return scalar_op(name, list(operands), kind, kind, 0, run.shaker)

    if not is_quantizing:
        steps = _as_float(run, op, values, kind, "input_unsigned")
        return [do("arith.mulf", do("arith.subf", steps, *points) if points else steps, scale)]
    steps = do("math.roundeven", do("arith.divf", values, scale))
    steps = do("arith.addf", steps, *points) if points else steps
    least, most = (
        np.full((1,) * steps.ndim, op.attributes[name].value, dtype=float) for name in ("quant_min", "quant_max")
    )
    steps = do("arith.minnumf", do("arith.maxnumf", steps, least), most)
    as_integer = "arith.fptoui" if "storage_unsigned" in op.attributes else "arith.fptosi"
    return [scalar_op(as_integer, [steps], into, kind, 0, run.shaker)]
