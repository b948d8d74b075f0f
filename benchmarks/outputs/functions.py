"""How far IREE's functions of the math dialect are off, in units of the type's rounding, over ranges of values."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy import special

from benchmarks.outputs.building import Array, Function, held_as
from benchmarks.outputs.judging import TARGETS
from benchmarks.outputs.recording import Keeper
from harness.verify.rounding import UNIT
from harness.verify.scalar_ops import allowed_units

_POINTS = 20_001
# Everything of either sign, everything positive, and what inverse functions are made for.
_ALL, _POSITIVE, _INSIDE, _ABOVE_ONE = (-40.0, 40.0), (1e-30, 1e30), (-0.9999999, 0.9999999), (1.0, 1e30)
_RANGES: dict[str, tuple[Callable[[Array], Array], tuple[float, float]]] = {
    "sqrt": (np.sqrt, _POSITIVE),
    "rsqrt": (lambda x: 1.0 / np.sqrt(x), _POSITIVE),
    "cbrt": (np.cbrt, (-1e30, 1e30)),
    "exp": (np.exp, (-87.0, 88.0)),
    "exp2": (np.exp2, (-125.0, 127.0)),
    "expm1": (np.expm1, (-87.0, 88.0)),
    "log": (np.log, _POSITIVE),
    "log2": (np.log2, _POSITIVE),
    "log10": (np.log10, _POSITIVE),
    "log1p": (np.log1p, (-0.9999999, 1e30)),
    "sin": (np.sin, (-1e4, 1e4)),
    "cos": (np.cos, (-1e4, 1e4)),
    "tan": (np.tan, (-1e4, 1e4)),
    "asin": (np.arcsin, _INSIDE),
    "acos": (np.arccos, _INSIDE),
    "atan": (np.arctan, (-1e30, 1e30)),
    "sinh": (np.sinh, (-87.0, 87.0)),
    "cosh": (np.cosh, (-87.0, 87.0)),
    "tanh": (np.tanh, _ALL),
    "asinh": (np.arcsinh, (-1e15, 1e15)),
    "acosh": (np.arccosh, _ABOVE_ONE),
    "atanh": (np.arctanh, _INSIDE),
    "erf": (special.erf, _ALL),
    "erfc": (special.erfc, (-5.0, 9.0)),
}
# Of these, which bring their argument to a period or multiply it: how much they rise.
_SLOPES: dict[str, Callable[[Array], Array]] = {
    "sin": np.cos,
    "cos": np.sin,
    "tan": lambda x: 1.0 + np.tan(x) ** 2,
    "exp2": lambda x: np.exp2(x) * np.log(2.0),
}
_LARGEST = {"f16": 65504.0, "f32": 3.4e38, "f64": np.inf}
# What the smallest argument is beside zero.
_SMALLEST = 1e-6


@dataclass(frozen=True, kw_only=True)
class Off:
    """How far one function is off.

    Attributes:
        units: Of half a unit in the last place, the largest for each target; empty where IREE does not compile it.
        at: The argument where it is largest.
        allowed: What the reference's shaking lets a single result be off by, by chance.
    """

    name: str
    kind: str
    units: tuple[float, ...]
    at: float
    allowed: float
    failed: str = ""


def points(low: float, high: float, kind: str) -> Array:
    """Arguments over a range: evenly, by magnitude on either side of zero, and close to one."""
    sides = []
    for sign, end in ((-1.0, -low), (1.0, high)):
        if end > 0:
            least = max(low, _SMALLEST * min(1.0, end)) if low > 0 else _SMALLEST * min(1.0, end)
            sides.append(sign * np.geomspace(least, end, _POINTS))
    near = 1.0 + np.linspace(-0.3, 0.3, _POINTS)
    every = np.concatenate([np.linspace(low, high, _POINTS), *sides, near, -near])
    limit = 6e4 if kind == "f16" else np.inf
    held = held_as(every[(every >= low) & (every <= high) & (np.abs(every) < limit)], kind)
    return np.unique(held[(held >= low) & (held <= high)])


def measure(kind: str, keeper: Keeper, names: Sequence[str] = tuple(_RANGES)) -> list[Off]:
    """Every function, for every target."""
    functions = []
    for name in names:
        f = Function(f"{name}_{kind}")
        x = f.argument(points(*_RANGES[name][1], kind), kind)
        functions.append(f.returned(f.each(f"%r = math.{name} %a0 : {kind}", x)))
    flags = ("--iree-input-demote-f64-to-f32=false",) if kind == "f64" else ()
    given = [keeper.outputs(functions, target, flags) for target in TARGETS]
    found = []
    for name, f in zip(names, functions, strict=True):
        failed = [sentence for _, sentences in given for sentence in sentences if f"`{f.name}`" in sentence]
        of = partial(_off, name, kind, np.asarray(f.arguments[0][1], dtype=np.float64))
        off = [of(np.asarray(outputs[f.name][0], dtype=np.float64)) for outputs, _ in given if f.name in outputs]
        found.append(
            Off(name=name, kind=kind, units=tuple(units for units, _ in off), allowed=allowed_units(f"math.{name}"),
                at=max(off)[1] if off else np.nan, failed=failed[0] if failed else "")
        )  # fmt: skip
    return found


def _off(name: str, kind: str, x: Array, got: Array) -> tuple[float, float]:
    """The largest error and where it is. An error of the argument's rounding is none where a function rounds it."""
    function = _RANGES[name][0]
    with np.errstate(all="ignore"):
        right = function(x)
        scale = np.maximum(np.abs(right) * UNIT[kind], 2.0**-24 if kind == "f16" else 2.0**-126)
        if name in _SLOPES:
            argument = np.maximum(np.abs(x), 0.0 if name == "exp2" else np.pi)
            scale = np.maximum(scale, np.abs(argument * _SLOPES[name](x)) * UNIT[kind])
        units = np.where(got == right, 0.0, np.abs(got - right) / scale)
        units = np.where(np.abs(right) >= _LARGEST[kind], 0.0, units)
        units = np.where(np.isnan(got) & ~np.isnan(right), np.inf, units)
    worst = int(np.argmax(units))
    return float(units[worst]), float(x[worst])
