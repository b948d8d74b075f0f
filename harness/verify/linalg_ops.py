"""linalg.generic on ensembles: views of operands by their indexing maps, products of tensors, reductions.

A sum of products is a matrix product. Where an operation that can be reordered reduces, its values are computed over
the whole space, in pieces that fit the memory. Whatever else a body reduces with is done step by step.
"""

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from harness.verify.rounding import LARGEST, UNIT, Array, Shaker, UnsupportedError, to_kind

# Elements of one piece of an iteration space, in all samples together.
_PIECE = 2**23
_BLOCKS = 16
# An accumulator stagnates where a summand is lost in it: replay it where its rounding is this part of a summand.
_STAGNATES = 0.05
_REPLAY = 2**28
_LONGEST_LOOP = 2**20


@dataclass(frozen=True, kw_only=True)
class Index:
    """One result of an affine map: a sum of dimensions times factors and a constant, or any function of dimensions."""

    factors: dict[int, int] = field(default_factory=dict)
    constant: int = 0
    function: Callable[[Sequence[Array]], Array] | None = None

    @property
    def dimension(self) -> int | None:
        """The dimension that it is; None where it is more than one."""
        is_one = self.function is None and self.constant == 0 and list(self.factors.values()) == [1]
        return next(iter(self.factors)) if is_one else None

    def at(self, dims: Sequence[Array]) -> Array:
        """What it is where the dimensions are these."""
        if self.function is not None:
            return self.function(dims)
        return np.asarray(self.constant + sum(factor * dims[d] for d, factor in self.factors.items()))


@dataclass(frozen=True, kw_only=True)
class Space:
    """An iteration space."""

    sizes: tuple[int, ...]  # Of its dimensions
    parallel: tuple[bool, ...]  # Whether each is parallel; the others are reduced

    @property
    def reduced(self) -> tuple[int, ...]:
        """The dimensions that are reduced, outermost first."""
        return tuple(d for d, parallel in enumerate(self.parallel) if not parallel)

    @property
    def points(self) -> int:
        """How often the body runs."""
        return math.prod(self.sizes)


Bounds = tuple[tuple[int, int], ...]


def space_sizes(maps: Sequence[Sequence[Index]], shapes: Sequence[Sequence[int]], dimensions: int) -> tuple[int, ...]:
    """The extent of each dimension, from an operand that it indexes alone."""
    sizes: dict[int, int] = {}
    for indices, shape in zip(maps, shapes, strict=True):
        for index, size in zip(indices, shape, strict=True):
            if index.dimension is not None:
                sizes[index.dimension] = int(size)
    if len(sizes) != dimensions:
        raise UnsupportedError("an iteration space whose sizes no operand gives alone")
    return tuple(sizes[d] for d in range(dimensions))


def view(values: Array, indices: Sequence[Index], bounds: Bounds, *, writeable: bool = False) -> Array:
    """An operand as the body meets it: one axis a dimension of the space, of size 1 where it does not depend on it."""
    if any(index.function is not None for index in indices):
        return _gathered(values, indices, bounds)
    used = sorted({d for index in indices for d in index.factors})
    if any(bounds[d][0] == bounds[d][1] for d in used) or values.size == 0:
        shape = [bounds[d][1] - bounds[d][0] if d in used else 1 for d in range(len(bounds))]
        return np.zeros((values.shape[0], *shape), dtype=values.dtype)
    start = []
    strides = [0] * len(bounds)
    for axis, (index, size) in enumerate(zip(indices, values.shape[1:], strict=True), start=1):
        ends = [(f * bounds[d][0], f * (bounds[d][1] - 1)) for d, f in index.factors.items()]
        if index.constant + sum(map(min, ends)) < 0 or index.constant + sum(map(max, ends)) >= size:
            raise UnsupportedError("an indexing map that leaves its operand")
        start.append(slice(index.constant + sum(first for first, _ in ends), None))
        for d, factor in index.factors.items():
            strides[d] += factor * values.strides[axis]
    corner: Any = (slice(None), *start)
    shape = [high - low if d in used else 1 for d, (low, high) in enumerate(bounds)]
    return np.lib.stride_tricks.as_strided(
        values[corner], (values.shape[0], *shape), (values.strides[0], *strides), writeable=writeable
    )


def _gathered(values: Array, indices: Sequence[Index], bounds: Bounds) -> Array:
    dims = np.ogrid[tuple(slice(*bound) for bound in bounds)]
    places = [index.at(dims) for index in indices]
    shape = np.broadcast_shapes(*(place.shape for place in places), (1,) * len(bounds))
    taken: Any = (slice(None), *(np.broadcast_to(place, shape) for place in places))
    return np.asarray(values[taken])


def pieces(space: Space, samples: int, also_reduced: bool) -> Iterator[Bounds]:
    """Parts of a space whose values fit the memory, cut along its parallel dimensions, outermost first."""
    counted = [also_reduced or parallel for parallel in space.parallel]
    points = math.prod(size for size, count in zip(space.sizes, counted, strict=True) if count) * samples
    cuts = [1] * len(space.sizes)
    for d, size in enumerate(space.sizes):
        if points > _PIECE and space.parallel[d] and size > 1:
            cuts[d] = min(size, -(-points // _PIECE))
            points = -(-points // cuts[d])
    edges = [[size * part // cut for part in range(cut + 1)] for size, cut in zip(space.sizes, cuts, strict=True)]
    return itertools.product(*([(a, b) for a, b in itertools.pairwise(ends)] for ends in edges))


@dataclass(frozen=True, kw_only=True)
class Products:
    """A sum of products of two operands, each a view over the whole space."""

    left: Array
    right: Array
    space: Space
    kind: str

    def fits(self) -> bool:
        """Whether a matrix product does it: each reduced dimension that has a size is in both operands."""
        return all(
            self.space.sizes[d] == 1 or (self.left.shape[1 + d] > 1 and self.right.shape[1 + d] > 1)
            for d in self.space.reduced
        )

    def added_to(self, start: Array, shaker: Shaker) -> Array:
        """The sums, added to what is there."""
        if self.kind == "i1":
            wide = replace(self, left=self.left.astype(np.int64), right=self.right.astype(np.int64), kind="i64")
            return np.asarray(wide.added_to(start.astype(np.int64), shaker) & 1).astype(bool)
        sizes, inner = self.space.sizes, self.space.reduced
        outer = [d for d, is_parallel in enumerate(self.space.parallel) if is_parallel]
        of_left, of_right = ({d for d in outer if part.shape[1 + d] > 1} for part in (self.left, self.right))
        both = [d for d in outer if d in of_left & of_right]
        rows = [d for d in outer if d in of_left - of_right]
        columns = [d for d in outer if d not in of_left]
        order = [*both, *rows, *columns]
        batch, m, n, k = (math.prod(sizes[d] for d in dims) for dims in (both, rows, columns, inner))
        lefts = self.left.transpose(0, *(1 + d for d in (*both, *rows, *inner, *columns)))
        rights = self.right.transpose(0, *(1 + d for d in (*both, *inner, *columns, *rows))).reshape(-1, batch, k, n)
        inits = start.transpose(0, *(1 + d for d in (*order, *inner))).reshape(-1, batch, m, n)
        result = np.empty((max(len(lefts), len(rights), len(inits)), batch, m, n), dtype=start.dtype)
        squares = np.zeros((batch, m, n)) if shaker.samples > 1 and self._is_rounded(start[0]) else None
        # As many of the first rows at once as fit the memory.
        head = sizes[rows[0]] if rows else 1
        cut = max(1, max(1, _PIECE // max(1, batch * k)) * head // m) if rows else 1
        for low in range(0, head, cut):
            high = min(low + cut, head)
            part = lefts[(slice(None),) * (1 + len(both)) + (slice(low, high),)] if rows else lefts
            at = slice(low * m // head, high * m // head)
            for sample in range(len(result)):
                a, b = part[sample % len(part)].reshape(batch, -1, k), rights[sample % len(rights)]
                if sample == 0 and squares is not None:
                    result[0][:, at], squares[:, at] = _with_partial_sums(inits[0][:, at], a, b)
                else:
                    result[sample][:, at] = inits[sample % len(inits)][:, at] + a @ b
        if squares is not None:
            result = self._shaken(result, squares, inits[0], lefts[0].reshape(batch, m, k), rights[0], shaker)
        final = result.reshape(-1, *(sizes[d] for d in order), *(1 for _ in inner))
        return np.asarray(final.transpose(0, *(1 + d for d in np.argsort([*order, *inner]))))

    def _is_rounded(self, start: Array) -> bool:
        """Whether some partial sum may be none of its type: whole numbers that stay small are exact in any order."""
        if self.kind not in UNIT:
            return False
        inner = math.prod(self.space.sizes[d] for d in self.space.reduced)
        parts = (self.left[0], self.right[0], start)
        left, right, first = (float(np.abs(part).max(initial=0.0)) for part in parts)
        if not left * right * inner + first < 1.0 / UNIT[self.kind]:
            return True
        return not all((np.rint(part) == part).all() for part in parts)

    def _shaken(self, result: Array, squares: Array, init: Array, a: Array, b: Array, shaker: Shaker) -> Array:
        """The sums of the factors a and b, with what their partial sums, whose squares these are, may be off by."""
        exact, k = result[0], a.shape[-1]
        shaken = shaker.summed(result, self.kind, squares)
        largest = [float(np.abs(part).max(initial=0.0)) for part in (a, b, init)]
        if largest[0] * largest[1] * k + largest[2] > LARGEST.get(self.kind, np.inf):
            shaken = shaker.maybe_beyond(shaken, self.kind, np.abs(init) + np.abs(a) @ np.abs(b))
        if self.kind in ("f16", "bf16") and result[0].size * k <= _REPLAY:
            summand = np.sqrt(np.mean(a * a) * np.mean(b * b))
            if np.abs(exact).max(initial=0.0) * UNIT[self.kind] > _STAGNATES * summand:
                total = init
                for at in range(k):
                    total = to_kind(total + to_kind(a[:, :, at, None] * b[:, at, None, :], self.kind), self.kind)
                return shaker.toward(shaken, total)
        return shaken


def _with_partial_sums(start: Array, a: Array, b: Array) -> tuple[Array, Array]:
    """Start + a @ b, and the sum of the squares of the partial sums along the inner dimension, in its order.

    Between the ends of blocks they are a straight line plus a random bridge; and no less is assumed than for summands
    that come in a random order.
    """
    inner = a.shape[-1]
    edges = np.unique(np.linspace(0, inner, _BLOCKS + 1).astype(int))
    total, squares, products = start.copy(), np.zeros(start.shape), np.zeros(start.shape)
    for low, high in itertools.pairwise(edges):
        before = total
        left, right = a[..., low:high], b[..., low:high, :]
        total = before + left @ right
        own = (left * left) @ (right * right)
        products += own
        squares += (high - low) * ((before * before + before * total + total * total) / 3.0 + own / 6.0)
    return total, np.maximum(squares, inner / 2.0 * products) + products


def summed(values: Array, start: Array, axes: tuple[int, ...], kind: str, shaker: Shaker) -> Array:
    """Sums over axes, added to what is there, shaken by the rounding of their partial sums in the order of the axes."""
    if kind == "i1":
        return np.asarray(start ^ np.bitwise_xor.reduce(values, axis=axes, keepdims=True))
    if kind not in UNIT:
        return np.asarray(start + values.sum(axis=axes, keepdims=True, dtype=start.dtype))
    result = start + values.sum(axis=axes, keepdims=True)
    exact = values[0]
    own = tuple(axis - 1 for axis in axes)
    whole = all((np.rint(part) == part).all() for part in (exact, start[0]))
    if whole and (np.abs(exact).sum(axis=own).max(initial=0.0) + np.abs(start[0]).max(initial=0.0)) < 1.0 / UNIT[kind]:
        return shaker.rounded(result, kind)
    last = np.moveaxis(exact, own, range(-len(own), 0))
    flat = last.reshape(*last.shape[: last.ndim - len(own)], -1)
    first = start[0].reshape(*flat.shape[:-1], 1)
    partial = first + np.cumsum(flat, axis=-1)
    count = flat.shape[-1]
    squares = np.maximum((partial * partial).sum(axis=-1), count / 2.0 * (flat * flat).sum(axis=-1))
    most = (np.abs(first[..., 0]) + np.abs(flat).sum(axis=-1)).reshape(result.shape[1:])
    shaken = shaker.maybe_beyond(shaker.summed(result, kind, squares.reshape(result.shape[1:])), kind, most)
    if kind in ("f16", "bf16") and shaker.samples > 1 and flat.size <= _REPLAY:
        total = first[..., 0]
        for at in range(count):
            total = to_kind(total + flat[..., at], kind)
        return shaker.toward(shaken, total.reshape(result.shape[1:]))
    return shaken


# Operations that reduce in any order.
REDUCERS: dict[str, np.ufunc] = {
    "arith.maximumf": np.maximum,
    "arith.minimumf": np.minimum,
    "arith.maxnumf": np.fmax,
    "arith.minnumf": np.fmin,
    "arith.maxsi": np.maximum,
    "arith.minsi": np.minimum,
    "arith.andi": np.bitwise_and,
    "arith.ori": np.bitwise_or,
    "arith.xori": np.bitwise_xor,
}


def steps(space: Space) -> Iterator[tuple[int, ...]]:
    """The reduced dimensions' places, in the order of a loop."""
    sizes = [space.sizes[d] for d in space.reduced]
    if math.prod(sizes) > _LONGEST_LOOP:
        raise UnsupportedError(f"a loop of {math.prod(sizes)} steps")
    return itertools.product(*(range(size) for size in sizes))
