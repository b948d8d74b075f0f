"""Planted faults, and defects that IREE has, beside the reference: each is to be refused."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.outputs.building import Array, Function, Value
from benchmarks.outputs.faults import Fault, all_faults
from benchmarks.outputs.judging import TARGETS, Judged, judged, linalg_of, reference
from benchmarks.outputs.recording import Keeper

_AT_ONCE = 8


@dataclass(frozen=True, kw_only=True)
class Planted:
    """What came of one fault.

    Attributes:
        control: What the reference says of the right form, compiled likewise; None for a defect, which has none.
    """

    name: str
    verdict: Judged
    control: Judged | None = None


def groups() -> Iterator[tuple[Fault, ...]]:
    """The faults, as many as are compiled as one module; all of one need the same flags."""
    faults = all_faults()
    for flags in dict.fromkeys(fault.flags for fault in faults):
        alike = [fault for fault in faults if fault.flags == flags]
        yield from (tuple(alike[at : at + _AT_ONCE]) for at in range(0, len(alike), _AT_ONCE))


def judge_faults(group: int, keeper: Keeper) -> tuple[list[Planted], list[str]]:
    """The faults of a group, compiled for this machine; and what is wrong with the list itself, a sentence each."""
    faults = list(groups())[group]
    text = linalg_of("\n".join(fault.right.text() for fault in faults), faults[0].flags)
    both = [form for fault in faults for form in (fault.right, fault.wrong)]
    outputs, failed = keeper.outputs(both, "host", faults[0].flags)
    found = []
    for fault in faults:
        if fault.right.name in outputs and fault.wrong.name in outputs:
            right = reference(text, fault.right)
            found.append(
                Planted(
                    name=fault.name,
                    verdict=judged(right, outputs[fault.wrong.name]),
                    control=judged(right, outputs[fault.right.name]),
                )
            )
    return found, failed


def _of_one(name: str, operation: str, values: Sequence[float], other: Sequence[float] = ()) -> Function:
    f = Function(name)
    x = f.argument(np.array(values))
    if not other:
        return f.returned(f.each(f"%r = math.{operation} %a0 : f32", x))
    return f.returned(f.each(f"%r = math.{operation} %a0, %a1 : f32", x, f.argument(np.array(other))))


def _insert() -> Function:
    f = Function("insert_rank_2")
    x, zero = f.argument(np.arange(16.0).reshape(4, 4)), f.scalar(0, "index")
    number = f.scalar(99.0, "f32")
    return f.returned(f.made((4, 4), "f32", f"tensor.insert {number} into {x.name}[{zero}, {zero}] : {{type}}"))


def _from_elements() -> Function:
    f = Function("from_elements_3x1x1")
    x = f.argument(np.array([5.0, 7.0]))
    parts = []
    for at in (0, 1):
        place, name = f.scalar(at, "index"), f.new()
        f.add(f"{name} = tensor.extract {x.name}[{place}] : {f.type(x)}")
        parts.append(name)
    elements = ", ".join([parts[0], parts[1], parts[0]])
    made: Value = f.made((3, 1, 1), "f32", f"tensor.from_elements {elements} : {{type}}")
    return f.returned(made)


_SMALL = (1e-6, -1e-5, 1e-4, -1e-3)
# Programs, and what is right by NumPy's float64 alone.
_DEFECTS: dict[str, tuple[Callable[[], Function], Callable[..., Array]]] = {
    "`math.cbrt` of infinity": (lambda: _of_one("cbrt_inf", "cbrt", (np.inf, 8.0)), np.cbrt),
    "`math.sinh` near 0": (lambda: _of_one("sinh_small", "sinh", _SMALL), np.sinh),
    "`math.asinh` near 0": (lambda: _of_one("asinh_small", "asinh", _SMALL), np.arcsinh),
    "`math.asinh` of large negative numbers": (
        lambda: _of_one("asinh_negative", "asinh", (-1e3, -1e5, -1e15)),
        np.arcsinh,
    ),
    "`math.acosh` of large numbers": (lambda: _of_one("acosh_large", "acosh", (1e3, 1e20)), np.arccosh),
    "`math.atanh` near 0": (lambda: _of_one("atanh_small", "atanh", _SMALL), np.arctanh),
    "`math.atan2` of zeros": (lambda: _of_one("atan2_zeros", "atan2", (0.0, 1.0), (0.0, 1.0)), np.arctan2),
    "`math.powf` of a negative base": (
        lambda: _of_one("powf_negative", "powf", (-2.0, -2.0, 2.0), (2.0, 3.0, 3.0)),
        np.power,
    ),
    "`tensor.insert` at rank 2": (_insert, lambda x: np.where(np.arange(16).reshape(4, 4) == 0, 99.0, x)),
    "`tensor.from_elements` of 3x1x1": (_from_elements, lambda x: x[[0, 1, 0]].reshape(3, 1, 1)),
}


@dataclass(frozen=True, kw_only=True)
class Defect:
    """What came of a program that IREE compiles wrongly.

    Attributes:
        right: By NumPy alone; what the reference says agrees with it, or there is no such row.
    """

    name: str
    target: str
    verdict: Judged
    got: Array
    right: Array


def judge_defects(keeper: Keeper) -> tuple[list[Defect], list[str]]:
    """Each defect for each target, and what could not be judged."""
    functions = {name: make() for name, (make, _) in _DEFECTS.items()}
    text = linalg_of("\n".join(function.text() for function in functions.values()))
    found, failed = [], []
    for target in TARGETS:
        outputs, sentences = keeper.outputs(list(functions.values()), target, ())
        failed.extend(sentences)
        for name, function in functions.items():
            if function.name not in outputs:
                continue
            given = [held.astype(np.float64) for _, held in function.arguments]
            right = np.asarray(_DEFECTS[name][1](*given))
            said = reference(text, function)
            if not judged(said, [right.astype(np.float32)]).is_right:
                failed.append(f"{name}: the reference and NumPy disagree")
                continue
            got = outputs[function.name]
            found.append(Defect(name=name, target=target, verdict=judged(said, got), got=got[0], right=right))
    return found, failed
