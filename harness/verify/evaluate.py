"""A program's right outputs, and by how much each may be off: linalg on tensors, evaluated with NumPy.

It runs in a process of its own, since parsing foreign IR in LLVM's libraries may end that process:
python -m harness.verify.evaluate REQUEST.json gives one JSON object on stdout, and arrays in the request's folder.
"""

import json
import math
import re
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from harness.models.inputs import ARGUMENTS, load_argument
from harness.verify import generic_ops, tensor_ops  # noqa: F401 (they know operations)
from harness.verify.interpreter import Evaluator, Exported, Program, TooLongError, kind_of
from harness.verify.rounding import FACTOR, TINY, UNIT, Array, Shaker, UnsupportedError, spread
from harness.verify.sampled import WHOLE, Plan, plan_sample
from harness.verify.scalar_ops import dtype_of

_SAMPLES = (9, 5, 3)
# By how much the spread that so many samples show may be raised towards that of similar elements: with fewer it is
# smaller by chance more often.
_RAISE = {9: 3.0, 5: 10.0, 3: 100.0}
# So many elements within two octaves are similar enough to give each of them their typical spread.
_SIMILAR = 16


def split_resources(text: str) -> tuple[str, dict[str, bytes]]:
    """A module's text without its resources, and the bytes of each, which the bindings do not give."""
    head, mark, tail = text.partition("{-#")
    found = re.findall(r'"?([\w.$-]+)"?\s*:\s*"0x([0-9A-Fa-f]*)"', tail) if mark else []
    return head, {name: bytes.fromhex(data) for name, data in found}


def parameter_reader(files: Mapping[str, str]) -> Callable[[str, str], bytes]:
    """Reads external weights with IREE's own readers of .irpa, .gguf and .safetensors files."""
    from iree import runtime

    indices: dict[str, dict[str, Any]] = {}

    def read(scope: str, key: str) -> bytes:
        if scope not in indices:
            if scope not in files:
                raise UnsupportedError(f"parameters of the scope {scope!r}, which the suite does not give")
            index = runtime.ParameterIndex()
            index.load(files[scope])
            indices[scope] = dict(index.items())
        if key not in indices[scope]:
            raise UnsupportedError(f"the parameter {key!r}, which is not in its file")
        entry = indices[scope][key]
        return bytes(entry.file_view if entry.is_file else entry.splat_pattern)

    return read


class Evaluation(NamedTuple):
    """What an evaluation found."""

    outputs: list[Exported]
    samples: int  # Of the ensembles
    axes: tuple[int, ...]  # For each output the axis along which it was evaluated at sampled.places only; -1: all of it
    keeps_state: bool  # Whether a call changes what later calls meet


def evaluate(
    text: str,
    function: str,
    inputs: Sequence[Array],
    files: Mapping[str, str],
    seconds: float,
    *,
    orders_ties: bool = True,
) -> Evaluation:
    """The outputs of a program as ensembles; a part of them where all would take too long."""
    from iree.compiler import ir, passmanager

    head, resources = split_resources(text)
    with ir.Context() as context:
        context.allow_unregistered_dialects = True
        module = ir.Module.parse(head)
        passmanager.PassManager.parse("builtin.module(linalg-generalize-named-ops)").run(module.operation)
        program = Program(module, resources, parameter_reader(files), orders_ties)
        try:
            return _within(program, WHOLE, function, inputs, seconds)
        except TooLongError as error:
            try:
                plan = plan_sample(ir, Evaluator(program, Shaker(samples=1), math.inf).functions[function])
            except UnsupportedError:
                raise error from None
            return _within(program, plan, function, inputs, seconds)


def _within(program: Program, plan: Plan, function: str, inputs: Sequence[Array], seconds: float) -> Evaluation:
    """The outputs with as many samples as there is time for, which a first, exact pass tells."""
    began = time.process_time()
    deadline = began + seconds
    _called(Evaluator(program, Shaker(samples=1), deadline, plan), function, inputs)
    took = time.process_time() - began
    samples = next((s for s in _SAMPLES if took * s * 1.3 < deadline - time.process_time()), None)
    if samples is None:
        raise TooLongError(f"about {took * _SAMPLES[-1]:.0f} s with the fewest samples")
    run = Evaluator(program, Shaker(samples=samples), deadline, plan)
    return Evaluation(_called(run, function, inputs), samples, plan.results, run.keeps_state)


def _called(run: Evaluator, function: str, inputs: Sequence[Array]) -> list[Exported]:
    entry = run.functions.get(function)
    if entry is None:
        raise UnsupportedError(f"a program without @{function}")
    places = entry.regions[0].blocks[0].arguments
    arguments: list[Any] = [
        _argument(values, place.type, run.shaker) for values, place in zip(inputs, places, strict=False)
    ]
    results = run.call(function, [*arguments, *[None] * (len(places) - len(arguments))])
    types = list(entry.attributes["function_type"].value.results)
    return [
        result if isinstance(result, Exported) else Exported(result, kind_of(type_))
        for result, type_ in zip(results, types, strict=True)
    ]


def _argument(values: Array, type_: Any, shaker: Shaker) -> Array:
    """An input as an ensemble; what the program has as another type (f64 that is demoted) is converted."""
    kind = kind_of(type_)
    if kind in UNIT or values.dtype.kind == "f":
        given = "f32" if values.dtype == np.float32 else kind
        return shaker.flushed(np.asarray(values, dtype=np.float64)[None], given)
    return np.asarray(values).astype(dtype_of(kind) if kind[:1] in "sui" else values.dtype)[None]


def tolerances(output: Exported) -> tuple[Array, Array]:
    """The exact values of an output, and by how much each element may be off.

    A spread that is small by chance is raised to the typical one of the elements of similar magnitude; of few, by a
    factor that the number of samples gives.
    """
    values = output.values
    exact = values[0]
    # Processors may take what is below the smallest normal number for zero, before an operation and after it.
    least = 2.0 * TINY[output.kind] if output.kind in ("f32", "bf16") else 0.0
    flushed = np.where((exact != 0) & (np.abs(exact) < least), least, 0.0)
    if values.shape[0] == 1:
        return exact, flushed
    samples = values.astype(np.float64)
    with np.errstate(invalid="ignore", over="ignore"):
        own = spread(samples)
        farthest = np.nan_to_num(np.abs(samples[1:] - samples[:1]).max(axis=0), nan=np.inf, posinf=np.inf)
    same = (np.isnan(samples).all(axis=0)) | (np.isinf(samples) & (samples == samples[:1])).all(axis=0)
    shaken = (own > 0) & np.isfinite(own) & ~same
    allowed = np.where(same, 0.0, np.maximum(FACTOR * own, farthest))
    if output.kind not in UNIT:  # one step to either side of an edge, and no more
        allowed = np.where(farthest <= 1, farthest, allowed)
    if shaken.any() and output.kind in UNIT:
        typical = _typical(np.abs(samples[0][shaken]), own[shaken], _RAISE[values.shape[0]])
        allowed[shaken] = np.maximum(allowed[shaken], FACTOR * typical)
    return exact, np.maximum(allowed, flushed)


def _typical(magnitudes: Array, spreads: Array, most: float) -> Array:
    """The geometric mean of the spreads of elements within two octaves; of few, at most so many times their own."""
    octaves = np.where(magnitudes > 0, np.frexp(magnitudes)[1] // 2, np.iinfo(np.int32).min)
    _, which, numbers = np.unique(octaves, return_inverse=True, return_counts=True)
    typical = np.exp(np.bincount(which, np.log(spreads)) / numbers)[which]
    return np.where(numbers[which] < _SIMILAR, np.minimum(typical, most * spreads), typical)


def main(request: Path) -> None:
    """Answer a request: what harness.verify.reference writes."""
    asked = json.loads(request.read_text())
    arguments = ARGUMENTS.validate_python(asked["arguments"])
    answer: dict[str, Any]
    try:
        found = evaluate(
            Path(asked["program"]).read_text(),
            asked["function"],
            [load_argument(argument) for argument in arguments],
            asked["parameters"],
            asked["seconds"],
            orders_ties=asked["orders_ties"],
        )
        kinds = []
        for position, output in enumerate(found.outputs):
            exact, allowed = tolerances(output)
            np.save(request.parent / f"right{position}.npy", exact)
            np.save(request.parent / f"allowed{position}.npy", allowed)
            kinds.append(output.kind)
        answer = {"kinds": kinds, "samples": found.samples, "axes": list(found.axes), "state": found.keeps_state}
    except UnsupportedError as error:
        answer = {"unsupported": str(error)}
    except TooLongError as error:
        answer = {"too_long": str(error)}
    json.dump(answer, sys.stdout)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
