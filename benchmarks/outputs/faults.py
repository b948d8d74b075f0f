"""Planted faults: programs with a right form and a wrong one, which a compiler at fault could have made of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from benchmarks.outputs import parts
from benchmarks.outputs.building import Function, Value

Make = Callable[[Function, bool], Value]
KEEP_F64 = ("--iree-input-demote-f64-to-f32=false",)


@dataclass(frozen=True, kw_only=True)
class Fault:
    """A program twice: as it is evaluated, and as it is compiled.

    Attributes:
        flags: That both need.
    """

    name: str
    flags: tuple[str, ...]
    right: Function
    wrong: Function


_FAULTS: dict[str, tuple[Make, tuple[str, ...]]] = {}


def all_faults() -> list[Fault]:
    """Every planted fault; the arguments of both forms have the same values."""
    found = []
    for at, (name, (make, flags)) in enumerate(_FAULTS.items()):
        both = []
        for is_wrong in (False, True):
            f = Function(f"fault_{at}_{'wrong' if is_wrong else 'right'}", seed=1000 + at)
            both.append(f.returned(make(f, is_wrong)))
        found.append(Fault(name=name, flags=flags, right=both[0], wrong=both[1]))
    return found


def _fault(name: str, make: Make, *flags: str) -> None:
    _FAULTS[name] = (make, flags)


def _scaled_at(f: Function, x: Value, places: str, factor: float) -> Value:
    """A matrix with some elements times a factor; `places` makes %b of %i and %j."""
    k = f.scalar(factor, x.kind)
    body = f"""%i = linalg.index 0 : index
               %j = linalg.index 1 : index
               {places}
               %w = arith.mulf %a0, {k} : {x.kind}
               %r = arith.select %b, %w, %a0 : {x.kind}"""
    return f.each(body, x)


def _one(f: Function, i: int, j: int) -> str:
    p, q = f.scalar(i, "index"), f.scalar(j, "index")
    return f"""%p = arith.cmpi eq, %i, {p} : index
               %q = arith.cmpi eq, %j, {q} : index
               %b = arith.andi %p, %q : i1"""


# --- matrix products --------------------------------------------------------------------------------------------------


def _product(change: Callable[[Function, Value, Value], Value], m: int = 40, k: int = 256, n: int = 40, kind: str = "f32",
             scale: float = 1.0) -> Make:  # fmt: skip
    def make(f: Function, is_wrong: bool) -> Value:
        a, b = f.argument((m, k), kind, scale), f.argument((k, n), kind, scale)
        return change(f, a, b) if is_wrong else parts.matmul(f, a, b)

    return make


def _part_of_k(f: Function, a: Value, b: Value, low: int, high: int) -> Value:
    m, n = a.shape[0], b.shape[1]
    return parts.matmul(f, f.sliced(a, (0, low), (m, high - low)), f.sliced(b, (low, 0), (high - low, n)))


def _twice(f: Function, a: Value, b: Value) -> Value:
    return parts.binary(f, "arith.addf", parts.matmul(f, a, b), _part_of_k(f, a, b, 0, 8))


def _stale_border(f: Function, a: Value, b: Value) -> Value:
    p = parts.matmul(f, a, b)
    return f.inserted(f.sliced(p, (24, 0), (8, 40)), p, (32, 0))


def _through(kind: str) -> Callable[[Function, Value, Value], Value]:
    def change(f: Function, a: Value, b: Value) -> Value:
        a, b = (parts.converted(f, parts.converted(f, x, kind), x.kind) for x in (a, b))
        return parts.matmul(f, a, b)

    return change


def _accumulated_in(kind: str) -> Callable[[Function, Value, Value], Value]:
    def change(f: Function, a: Value, b: Value) -> Value:
        (m, _), n = a.shape, b.shape[1]
        body = f"""%p = arith.mulf %a0, %a1 : f32
                   %q = arith.truncf %p : f32 to {kind}
                   %r = arith.addf %o0, %q : {kind}
                   linalg.yield %r : {kind}"""
        out = [(f.filled((m, n), kind), "d0, d1")]
        (sums,) = f.generic([(a, "d0, d2"), (b, "d2, d1")], out, "d0, d1, d2", body, "d2")
        return parts.converted(f, sums, "f32")

    return change


def _wrong_elements(factor: float) -> Callable[[Function, Value, Value], Value]:
    return lambda f, a, b: _scaled_at(f, parts.matmul(f, a, b), _one(f, 17, 23), factor)


_fault("matmul: the last tile of K is dropped", _product(lambda f, a, b: _part_of_k(f, a, b, 0, 240)))
_fault("matmul: the last element of K is dropped", _product(lambda f, a, b: _part_of_k(f, a, b, 0, 255)))
_fault(
    "matmul: the last element of 4096 of K is dropped", _product(lambda f, a, b: _part_of_k(f, a, b, 0, 4095), k=4096)
)
_fault("matmul: a tile of K is counted twice", _product(_twice))
_fault(
    "matmul: the accumulator starts at 0.001",
    _product(lambda f, a, b: f.contracted(a, b, "mk,kn->mn", (40, 40), start=1e-3)),
)
_fault("matmul: a stale border tile", _product(_stale_border))
_fault("matmul: operands are swapped", _product(lambda f, a, b: parts.matmul(f, b, a), 48, 48, 48))
_fault("matmul: B is read transposed", _product(lambda f, a, b: f.contracted(a, b, "mk,nk->mn", (48, 48)), 48, 48, 48))
_fault("matmul: the result is transposed", _product(lambda f, a, b: f.contracted(a, b, "mk,kn->nm", (40, 40))))
_fault("matmul: f16 operands", _product(_through("f16")))
_fault("matmul: bf16 operands", _product(_through("bf16")))
_fault("matmul: an f16 accumulator", _product(_accumulated_in("f16")))
_fault("matmul: a bf16 accumulator", _product(_accumulated_in("bf16")))
_fault("matmul: one element is 0", _product(_wrong_elements(0.0)))
_fault("matmul: one element is off by 0.1 %", _product(_wrong_elements(1.001)))
_fault("matmul: one element has the wrong sign", _product(_wrong_elements(-1.0)))
_fault("matmul of f64 computed in f32", _product(_through("f32"), kind="f64"), *KEEP_F64)
_fault("matmul of f64: one element is off by 1e-9", _product(_wrong_elements(1 + 1e-9), kind="f64"), *KEEP_F64)
_fault(
    "matmul of f16: the last tile of K is dropped", _product(lambda f, a, b: _part_of_k(f, a, b, 0, 240), kind="f16")
)
_fault(
    "matmul of bf16: the last tile of K is dropped", _product(lambda f, a, b: _part_of_k(f, a, b, 0, 240), kind="bf16")
)
_fault("matmul of f16: one element is 0", _product(_wrong_elements(0.0), kind="f16"))


def _wrong_batch(f: Function, is_wrong: bool) -> Value:
    a, b = f.argument((6, 16, 32)), f.argument((6, 32, 16))
    if is_wrong:
        b = f.inserted(f.sliced(b, (4, 0, 0), (1, 32, 16)), b, (5, 0, 0))
    return f.contracted(a, b, "bmk,bkn->bmn", (6, 16, 16))


def _matvec(f: Function, is_wrong: bool) -> Value:
    a, x = f.argument((64, 64)), f.argument((64,))
    return f.contracted(a, x, "km,k->m" if is_wrong else "mk,k->m", (64,))


_fault("batch matmul: the last batch reads the B before it", _wrong_batch)
_fault("matvec: A is read transposed", _matvec)

# --- layers -----------------------------------------------------------------------------------------------------------


def _layer(change: Callable[[Function, Value, Value], Value]) -> Make:
    def make(f: Function, is_wrong: bool) -> Value:
        p, bias = parts.matmul(f, f.argument((40, 200)), f.argument((200, 40))), f.argument((40,))
        return change(f, p, bias) if is_wrong else parts.relu(f, parts.biased(f, p, bias))

    return make


def _partly_biased(f: Function, p: Value, bias: Value) -> Value:
    tile = parts.relu(f, f.sliced(p, (0, 32), (40, 8)))
    return f.inserted(tile, parts.relu(f, parts.biased(f, p, bias)), (0, 32))


_fault("layer: the bias is skipped", _layer(lambda f, p, b: parts.relu(f, p)))
_fault("layer: the bias is skipped in the last tile", _layer(_partly_biased))
_fault(
    "layer: the bias is added twice", _layer(lambda f, p, b: parts.relu(f, parts.biased(f, parts.biased(f, p, b), b)))
)
_fault(
    "layer: the bias is along the other dimension",
    _layer(lambda f, p, b: parts.relu(f, parts.binary(f, "arith.addf", p, (b, "d0")))),
)
_fault("layer: relu is left out", _layer(lambda f, p, b: parts.biased(f, p, b)))
_fault("layer: relu comes before the bias", _layer(lambda f, p, b: parts.biased(f, parts.relu(f, p), b)))
_fault("layer: relu leaks", _layer(lambda f, p, b: f.each(
    "%k = arith.constant 0.001 : f32\n%w = arith.mulf %a0, %k : f32\n%r = arith.maximumf %a0, %w : f32", parts.biased(f, p, b))))  # fmt: skip


def _deep(f: Function, is_wrong: bool) -> Value:
    x, w = f.argument((8, 128)), f.argument((128, 128), scale=0.12)
    for layer in range(6):
        y = parts.relu(f, parts.matmul(f, x, w))
        x = x if is_wrong and layer == 3 else y
    return x


_fault("network: one layer's output is stale", _deep)


def _norm(right: dict[str, float], wrong: dict[str, float], shift: float = 0.0) -> Make:
    def make(f: Function, is_wrong: bool) -> Value:
        x = f.argument(f.rng.standard_normal((16, 200)) + shift)
        return parts.normalised(f, x, **(wrong if is_wrong else right))  # type: ignore[arg-type]

    return make


_fault("layer norm: epsilon is 1e-3, not 1e-5", _norm({}, {"epsilon": 1e-3}))
_fault("layer norm: epsilon is 1e-6, not 1e-5", _norm({}, {"epsilon": 1e-6}))
_fault("layer norm: the variance is divided by n - 1", _norm({}, {"divisor": 199.0}))
_fault("layer norm: the mean is not taken off", _norm({}, {"centred": False}, 0.5))
_fault("rms norm: the mean is taken off", _norm({"centred": False}, {}, 0.5))


def _softmax(change: Callable[[Function, Value], Value], scale: float = 1.0) -> Make:
    def make(f: Function, is_wrong: bool) -> Value:
        x = f.argument((32, 32), scale=scale)
        return change(f, x) if is_wrong else parts.softmax(f, x)

    return make


def _short_softmax(f: Function, x: Value) -> Value:
    powers = parts.unary(f, "math.exp", x)
    sums = parts.summed(f, f.sliced(powers, (0, 0), (32, 31)), [1])
    return parts.binary(f, "arith.divf", powers, (sums, "d0"))


_fault(
    "softmax: along the other dimension",
    _softmax(lambda f, x: parts.transposed(f, parts.softmax(f, parts.transposed(f, x, (1, 0))), (1, 0))),
)
_fault("softmax: the last column is not in the sum", _softmax(_short_softmax))
_fault(
    "softmax: without taking off the maximum, which overflows",
    _softmax(lambda f, x: parts.softmax(f, x, shift=False), 60.0),
)
_fault("softmax: computed in f16", _softmax(lambda f, x: parts.converted(f, _softmax_f16(f, x), "f32")))


def _softmax_f16(f: Function, x: Value) -> Value:
    powers = parts.converted(f, parts.unary(f, "math.exp", x), "f16")
    return parts.binary(f, "arith.divf", powers, (parts.summed(f, powers, [1]), "d0"))


def _attention(kind: str) -> Make:
    def make(f: Function, is_wrong: bool) -> Value:
        q, k, v = f.argument((2, 16, 16)), f.argument((2, 24, 16)), f.argument((2, 24, 16))
        causal = f.argument(np.where(np.tri(16, 24) > 0, 0.0, -1e9))
        late = f.argument(np.where(np.tri(16, 24, 1) > 0, 0.0, -1e9))
        mask, scale = causal, 0.25
        if is_wrong:
            mask = late if kind == "late" else None if kind == "dropped" else causal  # type: ignore[assignment]
            scale = 1 / 16 if kind == "scale" else scale
        if is_wrong and kind == "values":
            v = f.inserted(f.sliced(v, (0, 0, 0), (1, 24, 16)), v, (1, 0, 0))
        return parts.attention(f, q, k, v, mask=mask, scale=scale)

    return make


_fault("attention: the mask is dropped", _attention("dropped"))
_fault("attention: the mask is one late", _attention("late"))
_fault("attention: the scale is 1 / width", _attention("scale"))
_fault("attention: a head reads another's values", _attention("values"))

# --- convolutions and pooling -----------------------------------------------------------------------------------------


def _conv(change: Callable[[Function, Value, Value], Value], kind: str = "f32") -> Make:
    def make(f: Function, is_wrong: bool) -> Value:
        x, w = f.argument((1, 14, 14, 8), kind), f.argument((3, 3, 8, 16), kind)
        if is_wrong:
            return change(f, x, w)
        return parts.conv_2d(f, _bordered(f, x, 1), w)

    return make


def _bordered(f: Function, x: Value, low: int, number: float = 0.0) -> Value:
    return f.padded(x, (0, low, low, 0), (0, 2 - low, 2 - low, 0), number)


def _dilated(f: Function, x: Value, w: Value) -> Value:
    return parts.conv_2d(f, f.padded(x, (0, 2, 2, 0), (0, 2, 2, 0)), w, dilation=2)


def _flipped(f: Function, x: Value, w: Value) -> Value:
    out = f.empty(w.shape, w.kind)
    (flipped,) = f.generic(
        [(w, "2 - d0, 2 - d1, d2, d3")], [(out, parts.letters(4))], parts.letters(4), f"linalg.yield %a0 : {w.kind}"
    )
    return parts.conv_2d(f, _bordered(f, x, 1), flipped)


def _without_channel(f: Function, x: Value, w: Value) -> Value:
    return parts.conv_2d(
        f, _bordered(f, f.sliced(x, (0, 0, 0, 0), (1, 14, 14, 7)), 1), f.sliced(w, (0, 0, 0, 0), (3, 3, 7, 16))
    )


def _strided(is_late: bool) -> Make:
    def make(f: Function, is_wrong: bool) -> Value:
        x, w = f.argument((1, 16, 16, 8)), f.argument((3, 3, 8, 16))
        if not is_wrong:
            return parts.conv_2d(f, f.sliced(x, (0, 0, 0, 0), (1, 15, 15, 8)), w, stride=2)
        if is_late:
            return parts.conv_2d(f, f.sliced(x, (0, 1, 1, 0), (1, 15, 15, 8)), w, stride=2)
        return parts.conv_2d(f, f.sliced(x, (0, 0, 0, 0), (1, 9, 9, 8)), w)

    return make


def _depthwise(f: Function, is_wrong: bool) -> Value:
    x, w = f.argument((1, 12, 12, 16)), f.argument((3, 3, 16))
    if is_wrong:
        w = f.inserted(f.sliced(w, (0, 0, 0), (3, 3, 8)), w, (0, 0, 8))
    return parts.conv_2d(f, x, w, layout="nhwc_hwc")


_fault("convolution: the border is off by one", _conv(lambda f, x, w: parts.conv_2d(f, _bordered(f, x, 2), w)))
_fault(
    "convolution: the border is one off on one side",
    _conv(lambda f, x, w: parts.conv_2d(f, f.padded(x, (0, 1, 0, 0), (0, 1, 2, 0)), w)),
)
_fault("convolution: the border is 1, not 0", _conv(lambda f, x, w: parts.conv_2d(f, _bordered(f, x, 1, 1.0), w)))
_fault("convolution: dilation 2, not 1", _conv(_dilated))
_fault("convolution: filters are flipped", _conv(_flipped))
_fault("convolution: the last channel is dropped", _conv(_without_channel))
_fault(
    "convolution: bf16 operands",
    _conv(lambda f, x, w: parts.conv_2d(f, _bordered(f, _cut(f, x, "bf16"), 1), _cut(f, w, "bf16"))),
)
_fault("convolution: the stride starts one late", _strided(True))
_fault("convolution: stride 1, not 2", _strided(False))
_fault("depthwise: half of the channels read others' filters", _depthwise)


def _cut(f: Function, x: Value, kind: str) -> Value:
    return parts.converted(f, parts.converted(f, x, kind), x.kind)


def _pool(kind: str) -> Make:
    def make(f: Function, is_wrong: bool) -> Value:
        values = f.rng.standard_normal((1, 15, 15, 8)) - (4.0 if kind == "start" else 0.0)
        x = f.argument(values)
        if kind == "start":
            y = parts.pooled(f, x, 3, stride=2, kind="max")
            return parts.relu(f, y) if is_wrong else y
        if kind == "size":
            small = f.sliced(x, (0, 0, 0, 0), (1, 14, 14, 8))
            return (
                parts.pooled(f, small, 2, stride=2, kind="max")
                if is_wrong
                else parts.pooled(f, x, 3, stride=2, kind="max")
            )
        return parts.with_number(f, "arith.divf", parts.pooled(f, x, 3, stride=1, kind="sum"), 8.0 if is_wrong else 9.0)

    return make


_fault("pooling: the maximum starts at 0", _pool("start"))
_fault("pooling: the window is smaller", _pool("size"))
_fault("pooling: the mean is divided by 8, not 9", _pool("count"))

# --- reductions -------------------------------------------------------------------------------------------------------


def _reduction(right: Callable[[Function, Value], Value], wrong: Callable[[Function, Value], Value],
               values: Callable[[np.random.Generator], np.ndarray]) -> Make:  # fmt: skip
    def make(f: Function, is_wrong: bool) -> Value:
        x = f.argument(values(f.rng))
        return wrong(f, x) if is_wrong else right(f, x)

    return make


def _sum(f: Function, x: Value) -> Value:
    return parts.summed(f, x, [1])


def _tail_dropped(f: Function, x: Value) -> Value:
    return _sum(f, f.sliced(x, (0, 0), (x.shape[0], x.shape[1] - 7)))


def _summed_in(kind: str) -> Callable[[Function, Value], Value]:
    return lambda f, x: parts.converted(f, _sum(f, parts.converted(f, x, kind)), "f32")


_fault(
    "sum: along the other dimension",
    _reduction(_sum, lambda f, x: parts.summed(f, x, [0]), lambda g: g.standard_normal((50, 50))),
)
_fault("sum: the last 7 of 1,000 are dropped", _reduction(_sum, _tail_dropped, lambda g: g.standard_normal((8, 1000))))
_fault(
    "sum: the last 7 of 100,000 of one sign are dropped",
    _reduction(_sum, _tail_dropped, lambda g: g.random((4, 100_000))),
)
_fault("sum: accumulated in f16", _reduction(_sum, _summed_in("f16"), lambda g: g.random((8, 3000))))
_fault("sum: accumulated in bf16", _reduction(_sum, _summed_in("bf16"), lambda g: g.random((8, 3000))))
_fault(
    "sum: starts at 1",
    _reduction(_sum, lambda f, x: parts.summed(f, x, [1], 1.0), lambda g: g.standard_normal((8, 1000))),
)
_fault("maximum: the last element is left out", _reduction(
    lambda f, x: f.reduced("%r = arith.maximumf %a0, %o0 : f32", x, [1], -np.inf),
    lambda f, x: f.reduced("%r = arith.maximumf %a0, %o0 : f32", f.sliced(x, (0, 0), (40, 29)), [1], -np.inf),
    lambda g: g.standard_normal((40, 30))))  # fmt: skip
_fault("maximum: a NaN is passed over", _reduction(
    lambda f, x: f.reduced("%r = arith.maximumf %a0, %o0 : f32", x, [1], -np.inf),
    lambda f, x: f.reduced("%r = arith.maxnumf %a0, %o0 : f32", x, [1], -np.inf),
    lambda g: np.where(g.random((20, 30)) < 0.02, np.nan, 1.0)))  # fmt: skip
_fault(
    "argmax: the last of equals",
    _reduction(
        parts.argmax, lambda f, x: parts.argmax(f, x, later=True), lambda g: g.integers(0, 6, (30, 40)).astype(float)
    ),
)
_fault("argmax: off by one", _reduction(parts.argmax, lambda f, x: f.each(
    "%k = arith.constant 1 : i32\n%r = arith.addi %a0, %k : i32", parts.argmax(f, x)), lambda g: g.standard_normal((30, 40))))  # fmt: skip

# --- whole numbers and rounding ---------------------------------------------------------------------------------------


def _whole(right: str, wrong: str, kind: str = "i8", result: str = "") -> Make:
    """Bodies that make %r of %a0 and %a1."""

    def make(f: Function, is_wrong: bool) -> Value:
        a, b = f.argument((20, 30), kind, 1e9), f.argument((20, 30), kind, 1e9)
        return f.each(wrong if is_wrong else right, a, b, kind=result or kind)

    return make


_SATURATED = """%x = arith.extsi %a0 : i8 to i32
%y = arith.extsi %a1 : i8 to i32
%s = arith.addi %x, %y : i32
%h = arith.constant 127 : i32
%l = arith.constant -128 : i32
%c = arith.minsi %s, %h : i32
%d = arith.maxsi %c, %l : i32
%r = arith.trunci %d : i32 to i8"""
_EXTENDED = "%x = arith.ext{0} %a0 : i8 to i32\n%y = arith.ext{0} %a1 : i8 to i32\n%r = arith.muli %x, %y : i32"

_fault("integers: saturated, not wrapped", _whole("%r = arith.addi %a0, %a1 : i8", _SATURATED))
_fault("integers: extended without sign", _whole(_EXTENDED.format("si"), _EXTENDED.format("ui"), result="i32"))
_fault("integers: shifted without sign", _whole(*(
    f"%k = arith.constant 3 : i32\n%r = arith.{name} %a0, %k : i32" for name in ("shrsi", "shrui")), kind="i32"))  # fmt: skip
_fault("integers: divided toward minus infinity", _whole(*(
    f"%k = arith.constant 7 : i16\n%r = arith.{name} %a0, %k : i16" for name in ("divsi", "floordivsi")), kind="i16"))  # fmt: skip
_fault(
    "integers: compared without sign",
    _whole(*(f"%r = arith.{name} %a0, %a1 : i64" for name in ("maxsi", "maxui")), kind="i64"),
)


def _i8_product(f: Function, is_wrong: bool) -> Value:
    a, b = f.argument((20, 90), "i8"), f.argument((90, 20), "i8")
    p = f.contracted(a, b, "mk,kn->mn", (20, 20), "i16" if is_wrong else "i32")
    return f.each("%r = arith.extsi %a0 : i16 to i32", p, kind="i32") if is_wrong else p


def _to_i8(right: dict[str, str], wrong: dict[str, str], halves: bool = False, scale: float = 1.0) -> Make:
    def make(f: Function, is_wrong: bool) -> Value:
        values = f.rng.integers(-40, 40, (30, 30)) * 0.5 if halves else f.rng.standard_normal((30, 30)) * 50
        return parts.quantised(f, f.argument(values), scale, **(wrong if is_wrong else right))

    return make


def _unclamped(f: Function, is_wrong: bool) -> Value:
    x = f.argument(f.rng.standard_normal((30, 30)) * 90)
    if not is_wrong:
        return parts.quantised(f, x, 1.0)
    return f.each(
        "%q = math.roundeven %a0 : f32\n%i = arith.fptosi %q : f32 to i32\n%r = arith.trunci %i : i32 to i8",
        x,
        kind="i8",
    )


_fault("quantised: an i16 accumulator", _i8_product)
_fault("quantised: halves are rounded away from 0", _to_i8({}, {"rounding": "math.round"}, halves=True))
_fault("quantised: cut off, not rounded", _to_i8({}, {"rounding": "math.trunc"}, scale=1.3))
_fault("quantised: not clamped", _unclamped)


def _elementwise(
    right: str, wrong: str, values: Callable[[np.random.Generator], np.ndarray], kind: str = "f32", result: str = ""
) -> Make:
    """Bodies that make %r of %a0."""

    def make(f: Function, is_wrong: bool) -> Value:
        return f.each(wrong if is_wrong else right, f.argument(values(f.rng), kind), kind=result or kind)

    return make


def _normal(g: np.random.Generator) -> np.ndarray:
    return g.standard_normal((30, 50))


def _whole_numbers(g: np.random.Generator) -> np.ndarray:
    return g.integers(-5, 6, (30, 50)).astype(float)


_TRUNCATED_BITS = """%b = arith.bitcast %a0 : f32 to i32
%m = arith.constant -65536 : i32
%c = arith.andi %b, %m : i32
%d = arith.bitcast %c : i32 to f32
%r = arith.truncf %d : f32 to bf16"""

_fault("floor: toward 0", _elementwise("%r = math.floor %a0 : f32", "%r = math.trunc %a0 : f32", _normal))
_fault(
    "round: halves to even, not away from 0",
    _elementwise("%r = math.round %a0 : f32", "%r = math.roundeven %a0 : f32", lambda g: _whole_numbers(g) / 2),
)
_fault("comparison: less or equal, not less", _elementwise(*(
    f"%z = arith.constant 2.0 : f32\n%r = arith.cmpf {name}, %a0, %z : f32" for name in ("olt", "ole")), _whole_numbers, result="i1"))  # fmt: skip
_fault("selection: sides are swapped", _elementwise(*(
    f"%z = arith.constant 0.0 : f32\n%b = arith.cmpf olt, %a0, %z : f32\n%r = arith.select %b, {sides} : f32"
    for sides in ("%a0, %z", "%z, %a0")), _normal))  # fmt: skip
_fault("conversion: f32 to i32 rounded, not cut off", _elementwise(
    "%r = arith.fptosi %a0 : f32 to i32", "%q = math.roundeven %a0 : f32\n%r = arith.fptosi %q : f32 to i32",
    lambda g: _normal(g) * 9, result="i32"))  # fmt: skip
_fault("conversion: f32 to bf16 cut off, not rounded", _elementwise(
    "%r = arith.truncf %a0 : f32 to bf16", _TRUNCATED_BITS, _normal, result="bf16"))  # fmt: skip

# --- functions --------------------------------------------------------------------------------------------------------

_SERIES = """%k1 = arith.constant 1.0 : f32
%k2 = arith.constant 0.5 : f32
%k3 = arith.constant 0.16666667 : f32
%k4 = arith.constant 0.041666668 : f32
%p4 = math.fma %a0, %k4, %k3 : f32
%p3 = math.fma %a0, %p4, %k2 : f32
%p2 = math.fma %a0, %p3, %k1 : f32
%r = math.fma %a0, %p2, %k1 : f32"""
_HALF = "%h = arith.truncf %a0 : f32 to {1}\n%f = math.{0} %h : {1}\n%r = arith.extf %f : {1} to f32"
_RATIONAL = """%k27 = arith.constant 27.0 : f32
%k9 = arith.constant 9.0 : f32
%s = arith.mulf %a0, %a0 : f32
%n = arith.addf %k27, %s : f32
%d = math.fma %k9, %s, %k27 : f32
%q = arith.divf %n, %d : f32
%r = arith.mulf %a0, %q : f32"""
_GELU = """%k = arith.constant 0.70710677 : f32
%h = arith.constant 0.5 : f32
%one = arith.constant 1.0 : f32
%w = arith.mulf %a0, %k : f32
%e = math.erf %w : f32
%s = arith.addf %e, %one : f32
%x = arith.mulf %a0, %h : f32
%r = arith.mulf %x, %s : f32"""
_GELU_TANH = """%c = arith.constant 0.044715 : f32
%k = arith.constant 0.7978846 : f32
%h = arith.constant 0.5 : f32
%one = arith.constant 1.0 : f32
%a2 = arith.mulf %a0, %a0 : f32
%a3 = arith.mulf %a2, %a0 : f32
%i = math.fma %c, %a3, %a0 : f32
%w = arith.mulf %i, %k : f32
%e = math.tanh %w : f32
%s = arith.addf %e, %one : f32
%x = arith.mulf %a0, %h : f32
%r = arith.mulf %x, %s : f32"""
_LOG1P = "%one = arith.constant 1.0 : f32\n%s = arith.addf %a0, %one : f32\n%r = math.log %s : f32"
_EXPM1 = "%one = arith.constant 1.0 : f32\n%s = math.exp %a0 : f32\n%r = arith.subf %s, %one : f32"

_fault("exp: of low order", _elementwise("%r = math.exp %a0 : f32", _SERIES, lambda g: g.random((30, 50)) - 0.5))
_fault("exp: in f16", _elementwise("%r = math.exp %a0 : f32", _HALF.format("exp", "f16"), _normal))
_fault(
    "rsqrt: in f16, as without a step of Newton's",
    _elementwise("%r = math.rsqrt %a0 : f32", _HALF.format("rsqrt", "f16"), lambda g: g.random((30, 50)) + 0.1),
)
_fault(
    "tanh: of low order",
    _elementwise("%r = math.tanh %a0 : f32", _RATIONAL, lambda g: g.standard_normal((30, 50)) * 0.3),
)
_fault("gelu: by tanh, not erf", _elementwise(_GELU, _GELU_TANH, _normal))
_fault(
    "log1p: as log(1 + x), near 0",
    _elementwise("%r = math.log1p %a0 : f32", _LOG1P, lambda g: g.random((30, 50)) * 1e-4),
)
_fault(
    "expm1: as exp(x) - 1, near 0",
    _elementwise("%r = math.expm1 %a0 : f32", _EXPM1, lambda g: g.random((30, 50)) * 1e-4),
)
_fault("sigmoid: the sign is lost", _elementwise(*(
    f"{sign}\n%e = math.exp %n : f32\n%k = arith.constant 1.0 : f32\n%d = arith.addf %e, %k : f32\n%r = arith.divf %k, %d : f32"
    for sign in ("%n = arith.negf %a0 : f32", "%n = math.absf %a0 : f32")), _normal))  # fmt: skip

# --- moves and loops --------------------------------------------------------------------------------------------------


def _gather(f: Function, is_wrong: bool) -> Value:
    x, places = f.argument((30, 20)), f.argument(f.rng.integers(0, 29, 16), "i32")
    if is_wrong:
        places = f.each("%k = arith.constant 1 : i32\n%r = arith.addi %a0, %k : i32", places)
    return parts.gathered(f, x, places)


def _slice(f: Function, is_wrong: bool) -> Value:
    x = f.argument((30, 30))
    return parts.unary(f, "math.exp", f.sliced(x, (2, 3), (9, 9), (2, 3) if not is_wrong else (3, 2)))


def _insert(f: Function, is_wrong: bool) -> Value:
    x, part = f.argument((20, 20)), f.argument((8, 8))
    return f.inserted(part, x, (5, 6 + is_wrong))


def _transpose(f: Function, is_wrong: bool) -> Value:
    x = parts.unary(f, "math.absf", f.argument((24, 24, 4)))
    return x if is_wrong else parts.transposed(f, x, (1, 0, 2))


def _loop(f: Function, is_wrong: bool) -> Value:
    x, w = f.argument((16, 16)), f.argument((16, 16), scale=0.25)
    return f.repeated(9 if is_wrong else 10, x, lambda _, s: parts.matmul(f, s, w))


def _border_rows(f: Function, is_wrong: bool) -> Value:
    f.dynamic = dict.fromkeys((37,), "")
    p = parts.matmul(f, f.argument((37, 40)), f.argument((40, 24)))
    last = f.scalar(36, "index")
    return _scaled_at(f, p, f"%b = arith.cmpi eq, %i, {last} : index", 0.0) if is_wrong else p


_fault("gather: rows are off by one", _gather)
_fault("slice: strides are swapped", _slice)
_fault("insert: off by one", _insert)
_fault("transpose: left out", _transpose)
_fault("loop: one time too few", _loop)
_fault("dynamic shapes: the last row, behind the last whole tile, is 0", _border_rows)
