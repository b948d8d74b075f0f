"""The arith and math dialects on ensembles: floats in float64, integers in their own width."""

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import special

from harness.verify.rounding import UNIT, Array, Shaker, UnsupportedError, merged

_Binary = Callable[[Array, Array], Array]
_INTEGERS = {8: np.int8, 16: np.int16, 32: np.int32, 64: np.int64}


def is_float(kind: str) -> bool:
    """Whether an element type is one of the floats that ensembles hold."""
    return kind in UNIT


def dtype_of(kind: str) -> np.dtype[Any]:
    """What holds an element type: float64, bool, or an integer of its width."""
    if kind in UNIT:
        return np.dtype(np.float64)
    if kind == "i1":
        return np.dtype(np.bool_)
    if kind == "index":
        return np.dtype(np.int64)
    width = kind.lstrip("sui")
    if kind[:1] in "sui" and width.isdigit() and int(width) in _INTEGERS:
        return np.dtype(_INTEGERS[int(width)])
    raise UnsupportedError(f"elements of {kind}")


def _unsigned(values: Array) -> Array:
    return values if values.dtype == bool else values.view(f"u{values.dtype.itemsize}")


def _signed(values: Array, dtype: np.dtype[Any]) -> Array:
    return values.astype(f"u{dtype.itemsize}").view(dtype) if dtype.kind != "b" else values.astype(bool)


def _bit_length(values: Array) -> Array:
    """How many bits an unsigned number has, up to its first one."""
    width = 8 * values.dtype.itemsize
    for shift in (1, 2, 4, 8, 16, 32):
        if shift < width:
            values = values | (values >> shift)
    return np.bitwise_count(values)


def _divided(a: Array, b: Array) -> Array:
    return np.asarray((a - np.fmod(a, b)) // b)


def _ceiled(a: Array, b: Array) -> Array:
    return np.asarray(a // b + (a % b != 0))


def _shifted(function: _Binary) -> _Binary:
    """A shift; anything, here 0, where it is by the width or more."""

    def shift(a: Array, b: Array) -> Array:
        width = 8 * a.dtype.itemsize
        inside = (b >= 0) & (b < width)
        return np.where(inside, function(a, np.where(inside, b, 0)), 0).astype(a.dtype)

    return shift


def _named(**functions: Callable[..., Array]) -> dict[str, Callable[..., Array]]:
    """Functions by the name of their operation in arith or math."""
    return functions


# Of floats: results that are rounded once, extremes, and functions with steps; what is exact or a class of numbers.
_ROUNDED = _named(addf=np.add, subf=np.subtract, mulf=np.multiply, divf=np.divide, truncf=np.positive)
_EXTREMES = _named(maximumf=np.maximum, minimumf=np.minimum, maxnumf=np.fmax, minnumf=np.fmin)
_STEPS = {
    **_named(floor=np.floor, ceil=np.ceil, trunc=np.trunc, roundeven=np.rint),
    **_named(round=lambda x: np.copysign(np.floor(np.abs(x) + 0.5), x)),
}
_EXACT = _named(negf=np.negative, extf=np.positive, absf=np.abs, copysign=np.copysign)
_CLASSES = _named(isnan=np.isnan, isinf=np.isinf, isfinite=np.isfinite)
# Of whole numbers, and of those that are taken without a sign. A quotient by 0 is anything, here numpy's 0.
_INTEGER = {
    **_named(addi=np.add, subi=np.subtract, muli=np.multiply, maxsi=np.maximum, minsi=np.minimum),
    **_named(andi=np.bitwise_and, ori=np.bitwise_or, xori=np.bitwise_xor),
    **_named(divsi=_divided, remsi=np.fmod, floordivsi=np.floor_divide, ceildivsi=_ceiled),
    **_named(shli=_shifted(np.left_shift), shrsi=_shifted(np.right_shift)),
}
_UNSIGNED = {
    **_named(maxui=np.maximum, minui=np.minimum, divui=np.floor_divide, remui=np.remainder, ceildivui=_ceiled),
    **_named(shrui=_shifted(np.right_shift)),
}
# Of i1, for which the same bits mean other things.
_LOGICAL = {
    **_named(addi=np.logical_xor, subi=np.logical_xor, muli=np.logical_and),
    **_named(maxsi=np.logical_and, minui=np.logical_and, minsi=np.logical_or, maxui=np.logical_or),
}
# By how many units (halves of one in the last place) a compiler's approximation in the type itself may be off, besides
# rounding: at least what IREE's were measured to be off by where they are right; docs/statistics.md has the figures.
_ACCURATE, _GOOD, _FAIR, _ROUGH = 0.0, 4.0, 16.0, 32.0
_BY_UNITS = {
    _ACCURATE: _named(sqrt=np.sqrt),
    _GOOD: {
        **_named(exp=np.exp, exp2=np.exp2, expm1=np.expm1, log=np.log, log2=np.log2, log10=np.log10, log1p=np.log1p),
        **_named(sin=np.sin, cos=np.cos, tan=np.tan, cosh=np.cosh, tanh=np.tanh, erf=special.erf),
        **_named(rsqrt=lambda x: 1.0 / np.sqrt(x)),
    },
    _FAIR: {
        **_named(cbrt=np.cbrt, asin=np.arcsin, acos=np.arccos, sinh=np.sinh, erfc=special.erfc),
        **_named(asinh=np.arcsinh, acosh=np.arccosh, atanh=np.arctanh),
    },
    _ROUGH: _named(atan=np.arctan, atan2=np.arctan2),
}
_FUNCTIONS = {name: (function, units) for units, named in _BY_UNITS.items() for name, function in named.items()}
# These bring their argument to a period, or multiply it, in the type itself, which rounds it: at least as a number of
# this size is rounded.
_REDUCED = {"sin": np.pi, "cos": np.pi, "tan": np.pi, "exp2": 0.0}
# By arith.cmpf's numbers: 1 to 6 are ordered, 8 to 13 the same or unordered.
_FLOAT_PREDICATES = (np.equal, np.greater, np.greater_equal, np.less, np.less_equal, np.not_equal)
_INTEGER_PREDICATES = (np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal)
_SIGNED_PREDICATES = 6


def allowed_units(name: str) -> float:
    """By how many units a function of the math dialect may be off, besides rounding."""
    return _FUNCTIONS[name.removeprefix("math.")][1]


def scalar_op(name: str, operands: list[Array], kind: str, from_kind: str, predicate: int, shaker: Shaker) -> Array:
    """The result of one operation of arith or math, element by element."""
    with np.errstate(all="ignore"):
        if is_float(kind) or (operands and is_float(from_kind)):
            return _float_op(name, operands, kind, from_kind, predicate, shaker)
        return merged(_integer_op(name, operands, kind, from_kind, predicate))


def extended_op(name: str, a: Array, b: Array) -> list[Array]:
    """The low and the high half of a product, or a sum and whether it is beyond the type."""
    dtype, width = a.dtype, 8 * a.dtype.itemsize
    x, y = ((values if name == "arith.mulsi_extended" else _unsigned(values)).astype(object) for values in (a, b))
    whole = x + y if name == "arith.addui_extended" else x * y
    low, high = (np.asarray(half & (2**width - 1)).astype(f"u{dtype.itemsize}") for half in (whole, whole >> width))
    return [low.view(dtype), high.astype(bool) if name == "arith.addui_extended" else high.view(dtype)]


def _float_op(
    operation: str, operands: list[Array], kind: str, from_kind: str, predicate: int, shaker: Shaker
) -> Array:
    name = operation.partition(".")[2]
    a, *others = operands
    if name in _ROUNDED:
        return shaker.rounded(_ROUNDED[name](*operands), kind)
    if name in _EXTREMES:
        return shaker.extreme(_EXTREMES[name], a, others[0])
    if name in _STEPS:
        return shaker.stepped(_STEPS[name], a)
    if name in _EXACT:
        return _EXACT[name](*operands)
    if name in _CLASSES:
        return merged(_CLASSES[name](a))
    if name in _FUNCTIONS:
        function, ulps = _FUNCTIONS[name]
        if name in _REDUCED:
            a = shaker.reduced(a, kind, _REDUCED[name])
        return shaker.rounded(function(a, *others), kind, ulps)
    match name:
        case "fma":
            return shaker.rounded(a * others[0] + others[1], kind)
        case "sitofp":
            return shaker.rounded(np.where(a, -1.0, 0.0) if a.dtype == bool else a.astype(np.float64), kind)
        case "uitofp":
            return shaker.rounded(_unsigned(a).astype(np.float64), kind)
        case "fptosi" | "fptoui":
            return _integers_of(a, kind, shaker, signed=name == "fptosi")
        case "remf":
            quotient = a / others[0]
            step = np.nan_to_num(np.trunc(quotient) - shaker.stepped(np.trunc, quotient))
            rest = np.fmod(a, others[0])
            return shaker.rounded(np.where(step == 0, rest, rest + step * others[0]), kind)
        case "powf" | "fpowi":
            exponent = others[0].astype(np.float64)
            scale = np.nan_to_num(np.abs(exponent[:1] * np.log(np.abs(a[:1]))), nan=0.0, posinf=0.0)
            return shaker.rounded(np.power(a, exponent), kind, _FAIR + 2.0 * np.minimum(scale, 2.0**10))
        case "cmpf":
            return _compared(a, others[0], predicate, shaker)
        case "bitcast":
            return _bits_of(a, from_kind, kind)
    raise UnsupportedError(f"{operation} of {from_kind}")


def _compared(a: Array, b: Array, predicate: int, shaker: Shaker) -> Array:
    unordered = np.isnan(a) | np.isnan(b)
    if predicate in (0, 15):
        return np.broadcast_to(np.array(predicate == 15), unordered[:1].shape)
    if predicate in (7, 14):
        return merged(unordered == (predicate == 14))
    is_unordered = predicate > 7
    compared = shaker.compared(_FLOAT_PREDICATES[(predicate - 1) % 7], a, b)
    return merged(compared | unordered if is_unordered else compared & ~unordered)


def _integers_of(values: Array, kind: str, shaker: Shaker, *, signed: bool) -> Array:
    """Rounded toward zero. What the type cannot hold is anything: samples take the ends by turns."""
    integers = shaker.stepped(lambda x: _to_integer(x, kind, signed=signed), values)
    dtype = dtype_of(kind)
    if dtype != np.bool_:
        limits = np.iinfo(dtype if signed else f"u{dtype.itemsize}")
        whole = np.trunc(values[0])
        integers = shaker.anything(integers, ~((whole >= float(limits.min)) & (whole <= float(limits.max))))
    return merged(integers)


def _to_integer(values: Array, kind: str, *, signed: bool) -> Array:
    """Rounded toward zero; beyond 32 or 64 bits the nearest end, and of fewer bits the lowest ones, as compilers do."""
    dtype = dtype_of(kind)
    if dtype.kind == "b":
        return np.asarray(values != 0)
    limits = np.iinfo(f"{'i' if signed else 'u'}{max(4, dtype.itemsize)}")
    inside = np.clip(np.nan_to_num(np.trunc(values)), float(limits.min), float(limits.max))
    whole = inside.astype(np.int64 if signed else np.uint64)
    held = np.where(inside >= float(limits.max), limits.max, whole).astype(limits.dtype)
    return held.astype(f"u{dtype.itemsize}").view(dtype)


def _bits_of(values: Array, from_kind: str, kind: str) -> Array:
    """A float's bits as an integer, or the float of an integer's bits."""
    names = {"f16": np.float16, "f32": np.float32, "f64": np.float64}
    if from_kind in names and not is_float(kind) and values.shape[0] == 1:
        return values.astype(names[from_kind]).view(dtype_of(kind))
    if kind in names and not is_float(from_kind) and values.shape[0] == 1:
        return np.ascontiguousarray(values).view(names[kind]).astype(np.float64)
    raise UnsupportedError(f"arith.bitcast of {from_kind} to {kind}")


def _integer_op(operation: str, operands: list[Array], kind: str, from_kind: str, predicate: int) -> Array:
    dtype = dtype_of(kind)
    name = operation.partition(".")[2]
    a, *others = operands
    if a.dtype == bool and name in _LOGICAL:
        return _LOGICAL[name](a, others[0])
    if name in _INTEGER:
        return np.asarray(_INTEGER[name](a, others[0])).astype(dtype)
    if name in _UNSIGNED:
        return _signed(np.asarray(_UNSIGNED[name](_unsigned(a), _unsigned(others[0]))), dtype)
    match name:
        case "cmpi":
            signed = predicate < _SIGNED_PREDICATES
            if a.dtype == bool and signed and predicate > 1:
                a, others = -a.astype(np.int8), [-others[0].astype(np.int8)]
            x, y = (a, others[0]) if signed else (_unsigned(a), _unsigned(others[0]))
            return _INTEGER_PREDICATES[predicate if signed else predicate - 4](x, y)
        case "extsi":
            return -a.astype(dtype) if a.dtype == bool else a.astype(dtype)
        case "extui" | "index_castui":
            return _unsigned(a).astype(dtype)
        case "trunci":
            return (a & 1).astype(bool) if dtype.kind == "b" and a.dtype != bool else a.astype(dtype)
        case "index_cast":
            return a.astype(dtype)
        case "bitcast":
            return a
        case "absi":
            return np.abs(a)
        case "ctpop":
            return np.bitwise_count(_unsigned(a)).astype(dtype)
        case "ctlz":
            width = 8 * a.dtype.itemsize
            return np.asarray(width - _bit_length(_unsigned(a))).astype(dtype)
        case "cttz":
            width = 8 * a.dtype.itemsize
            return np.where(a == 0, width, np.bitwise_count((_unsigned(a) & -_unsigned(a)) - 1)).astype(dtype)
        case "ipowi":
            power = np.power(a, np.maximum(others[0], 0))  # of a negative exponent: a fraction, which is 0, or +-1
            fraction = np.where(a == 1, 1, np.where(a == -1, 1 - 2 * (others[0] & 1), 0))
            return np.where(others[0] < 0, fraction, power).astype(dtype)
    raise UnsupportedError(f"{operation} of {from_kind}")
