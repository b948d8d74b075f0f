"""Planted faults of reductions, whole numbers, rounding, functions, moves and loops."""

from collections.abc import Callable

import numpy as np

from benchmarks.outputs import parts
from benchmarks.outputs.building import Array, Function, Value
from benchmarks.outputs.faults import Make, fault, scaled_at

Values = Callable[[np.random.Generator], Array]

# --- reductions -------------------------------------------------------------------------------------------------------


def _reduction(right: Callable[[Function, Value], Value], wrong: Callable[[Function, Value], Value],
               values: Values) -> Make:  # fmt: skip
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


fault(
    "sum: along the other dimension",
    _reduction(_sum, lambda f, x: parts.summed(f, x, [0]), lambda g: g.standard_normal((50, 50))),
)
fault("sum: the last 7 of 1,000 are dropped", _reduction(_sum, _tail_dropped, lambda g: g.standard_normal((8, 1000))))
fault(
    "sum: the last 7 of 100,000 of one sign are dropped",
    _reduction(_sum, _tail_dropped, lambda g: g.random((4, 100_000))),
)
fault("sum: accumulated in f16", _reduction(_sum, _summed_in("f16"), lambda g: g.random((8, 3000))))
fault("sum: accumulated in bf16", _reduction(_sum, _summed_in("bf16"), lambda g: g.random((8, 3000))))
fault(
    "sum: starts at 1",
    _reduction(_sum, lambda f, x: parts.summed(f, x, [1], 1.0), lambda g: g.standard_normal((8, 1000))),
)
fault("maximum: the last element is left out", _reduction(
    lambda f, x: f.reduced("%r = arith.maximumf %a0, %o0 : f32", x, [1], -np.inf),
    lambda f, x: f.reduced("%r = arith.maximumf %a0, %o0 : f32", f.sliced(x, (0, 0), (40, 29)), [1], -np.inf),
    lambda g: g.standard_normal((40, 30))))  # fmt: skip
fault("maximum: a NaN is passed over", _reduction(
    lambda f, x: f.reduced("%r = arith.maximumf %a0, %o0 : f32", x, [1], -np.inf),
    lambda f, x: f.reduced("%r = arith.maxnumf %a0, %o0 : f32", x, [1], -np.inf),
    lambda g: np.where(g.random((20, 30)) < 0.02, np.nan, 1.0)))  # fmt: skip
fault(
    "argmax: the last of equals",
    _reduction(
        parts.argmax, lambda f, x: parts.argmax(f, x, later=True), lambda g: g.integers(0, 6, (30, 40)).astype(float)
    ),
)
_NEXT = "%k = arith.constant 1 : i32\n%r = arith.addi %a0, %k : i32"
fault(
    "argmax: off by one",
    _reduction(parts.argmax, lambda f, x: f.each(_NEXT, parts.argmax(f, x)), lambda g: g.standard_normal((30, 40))),
)

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

fault("integers: saturated, not wrapped", _whole("%r = arith.addi %a0, %a1 : i8", _SATURATED))
fault("integers: extended without sign", _whole(_EXTENDED.format("si"), _EXTENDED.format("ui"), result="i32"))
_COMPARED = "%r = arith.{} %a0, %a1 : i64"
_SHIFTED = "%k = arith.constant 3 : i32\n%r = arith.{} %a0, %k : i32"
_DIVIDED = "%k = arith.constant 7 : i16\n%r = arith.{} %a0, %k : i16"
fault("integers: shifted without sign", _whole(_SHIFTED.format("shrsi"), _SHIFTED.format("shrui"), kind="i32"))
fault(
    "integers: divided toward minus infinity",
    _whole(_DIVIDED.format("divsi"), _DIVIDED.format("floordivsi"), kind="i16"),
)
fault("integers: compared without sign", _whole(_COMPARED.format("maxsi"), _COMPARED.format("maxui"), kind="i64"))


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


fault("quantised: an i16 accumulator", _i8_product)
fault("quantised: halves are rounded away from 0", _to_i8({}, {"rounding": "math.round"}, halves=True))
fault("quantised: cut off, not rounded", _to_i8({}, {"rounding": "math.trunc"}, scale=1.3))
fault("quantised: not clamped", _unclamped)


def _elementwise(right: str, wrong: str, values: Values, kind: str = "f32", result: str = "") -> Make:
    """Bodies that make %r of %a0."""

    def make(f: Function, is_wrong: bool) -> Value:
        return f.each(wrong if is_wrong else right, f.argument(values(f.rng), kind), kind=result or kind)

    return make


def _normal(g: np.random.Generator) -> Array:
    return g.standard_normal((30, 50))


def _whole_numbers(g: np.random.Generator) -> Array:
    return g.integers(-5, 6, (30, 50)).astype(float)


_TRUNCATED_BITS = """%b = arith.bitcast %a0 : f32 to i32
%m = arith.constant -65536 : i32
%c = arith.andi %b, %m : i32
%d = arith.bitcast %c : i32 to f32
%r = arith.truncf %d : f32 to bf16"""

fault("floor: toward 0", _elementwise("%r = math.floor %a0 : f32", "%r = math.trunc %a0 : f32", _normal))
fault(
    "round: halves to even, not away from 0",
    _elementwise("%r = math.round %a0 : f32", "%r = math.roundeven %a0 : f32", lambda g: _whole_numbers(g) / 2),
)
_LESS = "%z = arith.constant 2.0 : f32\n%r = arith.cmpf {}, %a0, %z : f32"
fault(
    "comparison: less or equal, not less",
    _elementwise(_LESS.format("olt"), _LESS.format("ole"), _whole_numbers, result="i1"),
)
_SELECTED = "%z = arith.constant 0.0 : f32\n%b = arith.cmpf olt, %a0, %z : f32\n%r = arith.select %b, {} : f32"
fault("selection: sides are swapped", _elementwise(_SELECTED.format("%a0, %z"), _SELECTED.format("%z, %a0"), _normal))
fault("conversion: f32 to i32 rounded, not cut off", _elementwise(
    "%r = arith.fptosi %a0 : f32 to i32", "%q = math.roundeven %a0 : f32\n%r = arith.fptosi %q : f32 to i32",
    lambda g: _normal(g) * 9, result="i32"))  # fmt: skip
fault("conversion: f32 to bf16 cut off, not rounded", _elementwise(
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

fault("exp: of low order", _elementwise("%r = math.exp %a0 : f32", _SERIES, lambda g: g.random((30, 50)) - 0.5))
fault("exp: in f16", _elementwise("%r = math.exp %a0 : f32", _HALF.format("exp", "f16"), _normal))
fault(
    "rsqrt: in f16, as without a step of Newton's",
    _elementwise("%r = math.rsqrt %a0 : f32", _HALF.format("rsqrt", "f16"), lambda g: g.random((30, 50)) + 0.1),
)
fault(
    "tanh: of low order",
    _elementwise("%r = math.tanh %a0 : f32", _RATIONAL, lambda g: g.standard_normal((30, 50)) * 0.3),
)
fault("gelu: by tanh, not erf", _elementwise(_GELU, _GELU_TANH, _normal))
fault(
    "log1p: as log(1 + x), near 0",
    _elementwise("%r = math.log1p %a0 : f32", _LOG1P, lambda g: g.random((30, 50)) * 1e-4),
)
fault(
    "expm1: as exp(x) - 1, near 0",
    _elementwise("%r = math.expm1 %a0 : f32", _EXPM1, lambda g: g.random((30, 50)) * 1e-4),
)
_SIGMOID = """%n = {} %a0 : f32
%e = math.exp %n : f32
%k = arith.constant 1.0 : f32
%d = arith.addf %e, %k : f32
%r = arith.divf %k, %d : f32"""
fault(
    "sigmoid: the sign is lost",
    _elementwise(_SIGMOID.format("arith.negf"), _SIGMOID.format("math.absf"), _normal),
)

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
    return scaled_at(f, p, f"%b = arith.cmpi eq, %i, {last} : index", 0.0) if is_wrong else p


fault("gather: rows are off by one", _gather)
fault("slice: strides are swapped", _slice)
fault("insert: off by one", _insert)
fault("transpose: left out", _transpose)
fault("loop: one time too few", _loop)
fault("dynamic shapes: the last row, behind the last whole tile, is 0", _border_rows)
