"""Planted faults: programs with a right form and a wrong one, which a compiler at fault could have made of it."""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module

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
    # They are kept as their modules are read, in this order, which their names hang on.
    for name in ("layers", "elements"):
        import_module(f"benchmarks.outputs.faults_of_{name}")
    found = []
    for at, (name, (make, flags)) in enumerate(_FAULTS.items()):
        both = []
        for is_wrong in (False, True):
            f = Function(f"fault_{at}_{'wrong' if is_wrong else 'right'}", seed=1000 + at)
            both.append(f.returned(make(f, is_wrong)))
        found.append(Fault(name=name, flags=flags, right=both[0], wrong=both[1]))
    return found


def fault(name: str, make: Make, *flags: str) -> None:
    """Keep a fault: `make` puts a function together, in its right or its wrong form."""
    _FAULTS[name] = (make, flags)


def scaled_at(f: Function, x: Value, places: str, factor: float) -> Value:
    """A matrix with some elements times a factor; `places` makes %b of %i and %j."""
    k = f.scalar(factor, x.kind)
    body = f"""%i = linalg.index 0 : index
               %j = linalg.index 1 : index
               {places}
               %w = arith.mulf %a0, {k} : {x.kind}
               %r = arith.select %b, %w, %a0 : {x.kind}"""
    return f.each(body, x)
