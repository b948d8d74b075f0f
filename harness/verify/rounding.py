"""Values as ensembles: the exact value in float64 and, beside it, values shaken by the rounding of their types.

This is Monte Carlo arithmetic (Parker 1997). The first axis of each array counts samples, of which 0 is exact; where it
is 1, all agree. A result is shaken where its exact value is not one of its type. Near an edge (floor, a comparison)
both results are right: samples take them by turns where the edge lies within FACTOR spreads.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from harness.models.inputs import bf16_bits, from_bf16_bits

Array = NDArray[Any]
Kind = Literal["f16", "bf16", "f32", "f64"]

# What a result may be off by, in spreads: twice the 3.1 that half of the right programs in benchmarks/outputs reach.
FACTOR = 6.0
# Half a unit in the last place of 1, the smallest difference of two numbers, and the largest number.
UNIT = {"f16": 2.0**-11, "bf16": 2.0**-8, "f32": 2.0**-24, "f64": 2.0**-53}
TINY = {"f16": 2.0**-24, "bf16": 2.0**-126, "f32": 2.0**-126, "f64": 2.0**-1022}
LARGEST = {"f16": 65504.0, "bf16": 3.3895313892515355e38, "f32": float(np.finfo(np.float32).max)}
# Rounding to nearest is off by at most one UNIT; twice that leaves room for what is rounded in two steps.
_WIDTH = 2.0


class UnsupportedError(Exception):
    """The program has something that the evaluator does not know; its text is a phrase that names it."""


def to_kind(values: Array, kind: str) -> Array:
    """Values rounded to nearest as the type has them, still in float64; infinite beyond its range."""
    if kind not in UNIT:
        raise UnsupportedError(f"elements of {kind}")
    with np.errstate(over="ignore", invalid="ignore"):
        if kind == "f64":
            return values
        if kind == "bf16":
            return from_bf16_bits(bf16_bits(values.astype(np.float32))).astype(np.float64)
        return values.astype(np.float16 if kind == "f16" else np.float32).astype(np.float64)


def is_exact(values: Array, kind: str) -> Array:
    """Where a type has exactly these values; of f64, in which values are held, whole numbers are known to be exact."""
    if kind == "f64":
        return np.asarray((np.rint(values) == values) & (np.abs(values) < 2.0**53))
    return np.asarray((to_kind(values, kind) == values) | np.isnan(values))


def spread(values: Array) -> Array:
    """How far the samples lie from the exact value, as a root mean square; without the first axis."""
    if values.shape[0] == 1:
        return np.zeros(values.shape[1:])
    with np.errstate(invalid="ignore", over="ignore"):
        off = values[1:] - values[:1]
        root = np.sqrt(np.mean(off * off, axis=0))
        if not np.isfinite(root).all():  # of equal infinities the difference is none, and not NaN
            same = (values == values[:1]) | (np.isnan(values) & np.isnan(values[:1]))
            root = np.where(same.all(axis=0), 0.0, root)
        return np.asarray(np.nan_to_num(root, nan=np.inf, posinf=np.inf))


def merged(values: Array) -> Array:
    """The same ensemble, with one sample where all agree."""
    if values.shape[0] > 1 and (values[1:] == values[:1]).all():
        return values[:1]
    return values


@dataclass(frozen=True)
class Shaker:
    """Shakes results."""

    samples: int  # Of an ensemble, the exact one included; 1: nothing is shaken
    rng: np.random.Generator = field(default_factory=lambda: np.random.default_rng(0))

    def reduced(self, values: Array, kind: str, least: float) -> Array:
        """Arguments that a function rounds before anything else, at least as a number of the size `least` is."""
        if self.samples == 1:
            return values
        with np.errstate(invalid="ignore", over="ignore"):
            width = np.maximum(np.abs(values[:1]), least) * (UNIT[kind] * ((values[:1] != 0) & np.isfinite(values[:1])))
        return self._shaken(values, np.nan_to_num(width), uniform=True)

    def rounded(self, values: Array, kind: str, ulps: float | Array = 0.0) -> Array:
        """Results of one operation, shaken by the rounding of their type."""
        exact = values[:1]
        inexact = ~is_exact(exact, kind)
        if np.any(ulps):
            inexact = np.isfinite(exact) & (exact != 0)
        if self.samples > 1 and inexact.any():
            with np.errstate(invalid="ignore", over="ignore"):
                width = np.maximum(np.abs(exact) * UNIT[kind], TINY[kind]) * ((_WIDTH + ulps) * inexact)
                width[~np.isfinite(width)] = 0.0
            values = self._shaken(values, width, uniform=True)
        return self._in_range(self.flushed(values, kind), kind)

    def flushed(self, values: Array, kind: str) -> Array:
        """Values; those below the smallest normal number, which processors may flush, are 0 in every second sample."""
        if kind not in ("f32", "bf16"):
            return values
        return self._by_turns(values, (np.abs(values[0]) < TINY[kind]) & (values[0] != 0), 0.0)

    def summed(self, values: Array, kind: str, squares: Array) -> Array:
        """Sums, shaken by the roundings of their partial sums."""
        if self.samples > 1 and squares.any():
            width = _WIDTH / np.sqrt(3.0) * UNIT[kind] * np.sqrt(squares)
            width[~np.isfinite(width)] = 0.0
            values = self._shaken(values, width[None], uniform=False)
        return self.rounded(values, kind)

    def maybe_beyond(self, sums: Array, kind: str, most: Array) -> Array:
        """Sums, infinite in every second sample where a partial sum in some order may be beyond the type."""
        return self._by_turns(sums, (most > LARGEST.get(kind, np.inf)) & np.isfinite(sums[0]), np.inf)

    def _by_turns(self, values: Array, where: Array, other: float) -> Array:
        if self.samples == 1 or not where.any():
            return values
        values = self.full(values)
        values[1::2] = np.where(where, other, values[1::2])
        return values

    def toward(self, samples: Array, other: Array) -> Array:
        """Samples that lie, FACTOR spreads wide, as far as another value that is right too, and a little farther."""
        signs = self.rng.integers(0, 2, size=(self.samples - 1, *other.shape)) * 2.0 - 1.0
        samples[1:] += signs * (1.25 / FACTOR * np.nan_to_num(np.abs(other - samples[0]), posinf=0.0))
        return samples

    def _shaken(self, values: Array, width: Array, *, uniform: bool) -> Array:
        shape = (self.samples - 1, *values.shape[1:])
        if uniform:
            noise = self.rng.random(shape, dtype=np.float32) * np.float32(2) - np.float32(1)
        else:
            noise = self.rng.standard_normal(shape, dtype=np.float32)
        shaken = np.empty((self.samples, *values.shape[1:]))
        shaken[0] = values[0]
        np.multiply(noise, width, out=shaken[1:])
        shaken[1:] += values if values.shape[0] == 1 else values[1:]
        return shaken

    def _in_range(self, values: Array, kind: str) -> Array:
        """Infinite where the type has no such number; of f16 and bf16 in every second sample, as f32 may hold it."""
        largest = LARGEST.get(kind)
        if largest is None:
            return values
        with np.errstate(invalid="ignore"):
            beyond = (np.abs(values) > largest * (1 + UNIT[kind])) & np.isfinite(values)
        if not beyond.any():
            return values
        if kind != "f32" and self.samples > 1:
            values, beyond = self.full(values), self.full(beyond)
            beyond[2::2] = False
        return np.where(beyond, np.copysign(np.inf, values), values)

    def full(self, values: Array) -> Array:
        """A copy with all samples."""
        return np.array(np.broadcast_to(values, (self.samples, *values.shape[1:])))

    def anything(self, values: Array, where: Array) -> Array:
        """Results of which some are any of their type: NaN, or its ends by turns."""
        if self.samples == 1 or not where.any():
            return values
        values = self.full(values)
        if values.dtype.kind == "b":
            ends: tuple[Any, Any] = (False, True)
        elif values.dtype.kind == "i":
            ends = (np.iinfo(values.dtype).min, np.iinfo(values.dtype).max)
        else:
            ends = (np.nan, np.nan)
        for first, end in zip((2, 1), ends, strict=True):
            values[first::2] = np.where(where, values.dtype.type(end), values[first::2])
        return values

    def near(self, distance: Array) -> Array | None:
        """Where an edge lies within FACTOR spreads, by the signed distance to it; None: nowhere."""
        if distance.shape[0] == 1:
            return None
        reach = FACTOR * spread(distance)
        with np.errstate(invalid="ignore"):
            near = (np.abs(distance[0]) <= reach) & (reach > 0)
        return near if near.any() else None

    def either(self, values: Array, where: Array, one: Array, other: Array) -> Array:
        """Results that are one or the other, by turns, where an edge is near; the exact sample keeps its own."""
        values = self.full(values)
        start = self.rng.integers(0, 2, size=where.shape)
        for sample in range(1, self.samples):
            first = (start + sample) % 2 == 0
            values[sample] = np.where(where, np.where(first, one, other), values[sample])
        return values

    def compared(self, predicate: Callable[[Array, Array], Array], a: Array, b: Array) -> Array:
        """A comparison of floats; both answers where a and b are too close to tell."""
        with np.errstate(invalid="ignore"):
            answer = predicate(a, b)
            if (near := self.near(a - b)) is not None:
                answer = self.either(answer[:1], near, np.array(True), np.array(False))
        return merged(answer)

    def stepped(self, function: Callable[[Array], Array], values: Array) -> Array:
        """A function with steps, such as floor: both steps where the edge is near."""
        exact = function(values[:1])
        if values.shape[0] == 1:
            return exact
        reach = FACTOR * spread(values)
        with np.errstate(invalid="ignore"):
            below, above = function(values[0] - reach), function(values[0] + reach)
            near = (below != above) & np.isfinite(reach)
        return self.either(exact, near, below, above) if near.any() else exact

    def extreme(self, function: Callable[[Array, Array], Array], a: Array, b: Array) -> Array:
        """The larger or smaller of two; where they are close, with the larger of both spreads."""
        result = function(a, b)
        if result.shape[0] == 1:
            return result
        with np.errstate(invalid="ignore"):
            near = self.near(a - b)
            if near is None:
                return result
            off = np.fmax(np.abs(a - a[:1]), np.abs(b - b[:1]))
            away = result[:1] + (off if function in (np.maximum, np.fmax) else -off)
        return np.where(near[None], away, result)
