"""How far outputs are from right ones, and whether that is within what rounding explains."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from harness.models.model import Tolerance
from harness.verify.outputs import Array
from harness.verify.rounding import FACTOR
from harness.verify.sampled import places

# Other runtimes take a sigmoid from a rational function around 1/2, so that its small values are as far off as a number
# of that size is rounded: ONNX Runtime gives 0 where 8.6e-8 is right (1.32, onnxruntime/core/mlas/lib/logistic.cpp).
COARSE = 2.0**-22
_Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Right:
    """Right outputs, where they come from, and how far from them other right outputs may be."""

    source: str  # As a report names it
    outputs: Sequence[Array]
    # By how much each element may be off, as the evaluator found it; None: as the tolerance says
    allowed: Sequence[_Floats] | None = None
    coarse: float = 0.0  # By how much any element may be off, since the source itself computes no closer
    # Element types of the outputs, as the evaluator found them; () where they are not known
    kinds: tuple[str, ...] = ()
    axes: tuple[int, ...] = ()  # Along which axis each output was evaluated at some places only; -1 or (): all of it
    key: str = ""  # Where the evaluator's answer lies in the cache, which later calls are held against
    of_case: bool = False  # Whether the source is another of IREE's cases, by name
    advice: str = ""  # What to do where the source is what is wrong, as the end of a sentence
    keeps_state: bool = False  # Whether a call changes what later calls meet, so that these give other outputs


@dataclass(frozen=True, kw_only=True)
class Difference:
    """How far outputs are from right ones."""

    max_absolute: float  # Largest |a - b|
    max_relative: float  # max |a - b| / max |b|; 0 where both are all zero
    spreads: float | None = None  # The largest error in spreads, of which FACTOR are allowed; None where there are none
    problem: str | None  # What is wrong, as a phrase; None: they agree


def compare_outputs(
    outputs: Sequence[Array],
    right: Right,
    tolerance: Tolerance | None = None,
    *,
    whose: str = "right",
    same_elements: bool = False,
) -> Difference:
    """Compare all outputs of a call with right ones.

    An element may be off by what the evaluator allows it, or by the tolerance, whichever is more. Of integers only the
    absolute tolerance counts: an index of 10001 is not nearly 10000.
    """
    if len(outputs) != len(right.outputs):
        number = f"outputs are {len(outputs)} where {len(right.outputs)} are {whose}"
        return Difference(max_absolute=0.0, max_relative=0.0, problem=number)
    if any(axis >= 0 for axis in right.axes):
        parts = zip(outputs, right.axes, strict=True)
        outputs = [ours.take(places(ours.shape[axis]), axis) if 0 <= axis < ours.ndim else ours for ours, axis in parts]
    absolute, relative, spreads = 0.0, 0.0, None if right.allowed is None else 0.0
    problem: str | None = None
    for position, (ours, true) in enumerate(zip(outputs, right.outputs, strict=True)):
        ours, true = _with_one_sign(ours, true)
        kind = right.kinds[position] if right.kinds else ""
        expected = _ELEMENTS.get(kind) if kind else _element(true)
        if ours.shape != true.shape:
            problem = f"has shape {ours.shape} where {true.shape} is {whose}"
        elif same_elements and expected is not None and _element(ours) != expected:
            problem = f"has elements of {ours.dtype} where {kind or true.dtype} is {whose}"
        else:
            allowed = None if right.allowed is None else right.allowed[position]
            one = _compare_one(ours, true, allowed, tolerance, right.coarse, whose)
            absolute, relative = max(absolute, one.max_absolute), max(relative, one.max_relative)
            spreads = None if spreads is None else max(spreads, one.spreads or 0.0)
            problem = one.problem
        if problem is not None:
            problem = f"output {position} {problem}"
            break
    return Difference(max_absolute=absolute, max_relative=relative, spreads=spreads, problem=problem)


def _with_one_sign(ours: Array, true: Array) -> tuple[Array, Array]:
    """Both arrays as unsigned integers where one of them is: IREE's integers have no sign, and their bits count."""
    kinds, sizes = {ours.dtype.kind, true.dtype.kind}, {ours.dtype.itemsize, true.dtype.itemsize}
    if kinds != {"i", "u"} or len(sizes) > 1:
        return ours, true
    unsigned = f"u{ours.dtype.itemsize}"
    return ours.view(unsigned), true.view(unsigned)


# In spreads; what rounding cannot change at all is infinitely far off, which JSON has no number for.
_FARTHEST = 1e12
# Of the evaluator's element types those that .npy files tell apart.
_ELEMENTS = {"f16": ("f", 2), "f32": ("f", 4), "f64": ("f", 8)}


def _compare_one(
    ours: Array, true: Array, allowed: _Floats | None, tolerance: Tolerance | None, coarse: float, whose: str
) -> Difference:
    """One output beside the right one: how far apart their elements are, and how far they may be."""
    is_complex = "c" in ours.dtype.kind + true.dtype.kind
    integers = ours.dtype.kind in "biu" and true.dtype.kind in "biu"
    a, b = _parts(ours, is_complex), _parts(true, is_complex)
    limit = np.zeros(b.shape) if tolerance is None else _limit(b, tolerance, integers=integers)
    if allowed is not None:
        limit = np.maximum(limit, allowed[..., None] if is_complex else allowed)
    if not integers:
        limit = np.maximum(limit, coarse)
    anything = np.isposinf(limit)
    same = (a == b) | (np.isnan(a) & np.isnan(b)) | anything
    if integers:  # beyond 2**53, float64 takes neighbours for equal
        same &= (ours == true) | anything
    known = np.isfinite(a) & np.isfinite(b) & ~same
    error = np.where(same, 0.0, np.inf)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        error[known] = np.maximum(np.abs(a - b), integers)[known]
        spreads = FACTOR * error / np.where(limit > 0, limit, np.where(error > 0, 1e-300, 1.0))
    absolute = float(error[known].max(initial=0.0))
    scale = float(np.abs(b[np.isfinite(b)]).max(initial=0.0))
    problem, beyond = None, ~(error <= limit)
    if beyond.any():
        in_spreads = allowed is not None and tolerance is None
        shown = (ours, true) if integers else (a, b)
        problem = _problem(*shown, beyond=beyond, spreads=spreads, in_spreads=in_spreads, whose=whose)
    return Difference(
        max_absolute=absolute,
        max_relative=absolute / scale if scale else absolute,
        spreads=None if allowed is None else min(float(spreads.max(initial=0.0)), _FARTHEST),
        problem=problem,
    )


def _problem(
    a: Array, b: Array, *, beyond: npt.NDArray[np.bool_], spreads: _Floats, in_spreads: bool, whose: str
) -> str:
    """What is wrong with the elements that are beyond their limits, as a phrase."""
    odd = beyond & ~np.isfinite(a) & np.isfinite(b)
    if odd.any():
        return (
            f"has {int(odd.sum())} NaN or infinite values of {a.size} where finite ones are {whose}, the first at "
            f"[{_place(odd, int(np.argmax(odd)))}]: {a[odd][0]} where {b[odd][0]:.7g} is {whose}"
        )
    worst = int(np.argmax(np.where(beyond, spreads, -np.inf)))
    far = ""
    if in_spreads:
        how = f"{spreads.flat[worst]:.3g} spreads of its rounding; {FACTOR:g} are allowed"
        far = f" ({how})" if spreads.flat[worst] < _FARTHEST else " (and no rounding changes that value)"
    ours, true = _told_apart(a.flat[worst], b.flat[worst])
    return (
        f"differs in {int(beyond.sum())} of {beyond.size} values, worst at [{_place(beyond, worst)}]: {ours} where "
        f"{true} is {whose}{far}"
    )


def _limit(right: _Floats, tolerance: Tolerance, *, integers: bool) -> _Floats:
    """By how much each element may be off: where no absolute tolerance is given, it goes by their root mean square."""
    finite = np.where(np.isfinite(right), right, 0.0)
    relative = 0.0 if integers else tolerance.relative
    absolute = tolerance.absolute
    if absolute is None:
        largest = float(np.abs(finite).max(initial=0.0)) or 1.0
        absolute = relative * largest * float(np.sqrt(np.mean((finite / largest) ** 2))) if finite.size else 0.0
    limit: _Floats = absolute + relative * np.abs(finite)
    return limit


def below_tolerance(right: Right, tolerance: Tolerance | None) -> tuple[int, ...]:
    """Positions of the outputs for which zeros would pass, though they are none."""
    positions = []
    for position, true in enumerate(right.outputs):
        allowed = None if right.allowed is None else [right.allowed[position]]
        one = Right(source="", outputs=[true], allowed=allowed)
        if true.size and true.any() and compare_outputs([np.zeros_like(true)], one, tolerance).problem is None:
            positions.append(position)
    return tuple(positions)


def left_open(right: Right) -> list[npt.NDArray[np.bool_]]:
    """For each output, where the evaluator allows any value of the element type."""
    found = []
    for output, allowed in zip(right.outputs, right.allowed or (), strict=False):
        most = 2.0 ** (8 * output.dtype.itemsize) - 1 if output.dtype.kind in "iu" else np.inf
        found.append(allowed >= most)
    return found


def unjudged(right: Right) -> str:
    """How many values may be anything, as a sentence; "" where none may."""
    counts = [
        f"{int(free.sum())} of {free.size} values of output {position}"
        for position, free in enumerate(left_open(right))
        if free.any()
    ]
    why = "it reads outside of a tensor, converts what a type cannot hold, or may overflow"
    return f"not judged: {', '.join(counts)}, for which the program allows anything ({why})" if counts else ""


def _element(array: Array) -> tuple[str, int]:
    """The kind and size of an array's elements; IREE's tools print booleans as bytes."""
    kind = "i" if array.dtype.kind in "bu" and array.dtype.itemsize == 1 else array.dtype.kind
    return kind, array.dtype.itemsize


def _parts(array: Array, is_complex: bool) -> _Floats:
    """The values as float64; complex ones as pairs, along one more axis."""
    if is_complex:
        array = np.stack([array.real, array.imag], axis=-1)
    return array.astype(np.float64)


def _told_apart(a: np.generic, b: np.generic) -> tuple[str, str]:
    """Two different numbers, with as many digits as that takes."""
    if a.dtype.kind in "biu" and b.dtype.kind in "biu":
        return str(int(a)), str(int(b))
    texts = [(f"{a:.{digits}g}", f"{b:.{digits}g}") for digits in (7, 17)]
    return next((pair for pair in texts if pair[0] != pair[1]), texts[-1])


def _place(array: npt.NDArray[np.generic], flat: int) -> str:
    return ", ".join(str(int(place)) for place in np.unravel_index(flat, array.shape))
