"""Running a module once through iree-run-module, and comparing what it gives with what is right.

Outputs are read from files that iree-run-module writes, on every device alike: reading them back through
iree.runtime fails on some Vulkan drivers in 3.13.0.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from harness.errors import CaseError
from harness.models.model import Tolerance
from harness.process import Finished, Limits, run
from harness.toolchain import Toolchain
from harness.toolchain.messages import status_text, tail

Array = npt.NDArray[np.generic]

_OUTPUT_FLAG = "--output="
_NO_NPY_FORM = "unsupported data encoding"
_BF16_OUTPUT = re.compile(r"%output(\d+): tensor<((?:\d+x)*)bf16>")


def run_command(
    *,
    function: str,
    inputs: Sequence[str],
    parameters: Sequence[str],
    uri: str,
    more_uris: Sequence[str] = (),
    run_flags: Sequence[str],
    outputs: int,
) -> tuple[str, ...]:
    """The iree-run-module command line, as it is run in a folder that holds module and inputs.

    Args:
        inputs: Texts of --input=.
        parameters: Texts of --parameters=.
    """
    return (
        "iree-run-module",
        "--module=module.vmfb",
        *(f"--device={one}" for one in (uri, *more_uris)),
        f"--function={function}",
        *(f"--parameters={text}" for text in parameters),
        *(f"--input={text}" for text in inputs),
        *(f"--output=@output{position}.npy" for position in range(outputs)),
        *run_flags,
    )


def run_once(
    toolchain: Toolchain,
    command: Sequence[str],
    folder: Path,
    *,
    limits: Limits,
    cpus: frozenset[int] | None,
    environment: Mapping[str, str] | None = None,
) -> list[Array]:
    """Run that command line in a folder and read its outputs.

    The tool has no .npy form for bf16 and gives up; it is then run again, with those outputs written as raw bytes.

    Raises:
        CaseError: The tool failed, was stopped at a limit, or wrote no output.
    """
    finished = _run(toolchain, command, folder, limits, cpus, environment)
    raw: dict[str, tuple[int, ...]] = {}
    if _NO_NPY_FORM in finished.stderr and (raw := _bf16_outputs(finished.stderr)):
        again = [flag.replace(".npy", ".bin") if flag in raw else flag for flag in command]
        finished = _run(toolchain, again, folder, limits, cpus, environment)
    if not finished.ok:
        message = f"{command[0]} {finished.how_it_ended(limits)}"
        if finished.limit is not None:
            message += "; give it more with --call-timeout"
        elif reason := status_text(finished.stderr):
            message += f": {reason}"
        raise CaseError("verify", message, tail(finished.stderr))
    wanted = [flag for flag in command if flag.startswith(_OUTPUT_FLAG)]
    try:
        return [
            _load_bf16(folder / f"output{position}.bin", raw[flag])
            if flag in raw
            else load_array(folder / f"output{position}.npy")
            for position, flag in enumerate(wanted)
        ]
    except ValueError as error:
        raise CaseError("verify", f"{command[0]} exited with status 0, but an output {error}") from None


def _run(
    toolchain: Toolchain,
    command: Sequence[str],
    folder: Path,
    limits: Limits,
    cpus: frozenset[int] | None,
    environment: Mapping[str, str] | None,
) -> Finished:
    tool = str(toolchain.runtime_tool(command[0]))
    try:
        return run([tool, *command[1:]], cwd=folder, limits=limits, cpus=cpus, env=environment)
    except OSError as error:
        raise CaseError(
            "verify", f"{command[0]} cannot be started ({error.strerror}); reinstall the toolchain"
        ) from None


def _bf16_outputs(stderr: str) -> dict[str, tuple[int, ...]]:
    """Shapes of the bf16 outputs by their --output= flag, from the declaration in the tool's own message."""
    return {
        f"{_OUTPUT_FLAG}@output{position}.npy": tuple(int(size) for size in sizes.split("x")[:-1])
        for position, sizes in _BF16_OUTPUT.findall(stderr)
    }


def _load_bf16(path: Path, shape: tuple[int, ...]) -> Array:
    try:
        return _widen(np.fromfile(path, dtype="<u2").reshape(shape))
    except (OSError, ValueError):
        raise ValueError(f"is not there or was cut short ({path.name})") from None


def _widen(bits: npt.NDArray[np.uint16]) -> Array:
    wide: Array = (bits.astype(np.uint32) << np.uint32(16)).view(np.float32)
    return wide


def load_array(path: Path) -> Array:
    """The values of a .npy file; bf16, which numpy writes as two bytes without a meaning, as float32.

    Raises:
        ValueError: It is missing, or no whole .npy file; the message is a phrase about the file.
    """
    try:
        array: Array = np.load(path, allow_pickle=False)
    except OSError as error:
        raise ValueError(f"cannot be read ({path.name}: {error.strerror})") from None
    except (ValueError, EOFError):
        raise ValueError(f"is no whole .npy file ({path.name})") from None
    return _widen(array.view(np.uint16)) if array.dtype.kind == "V" and array.dtype.itemsize == 2 else array


@dataclass(frozen=True, kw_only=True)
class Difference:
    """How far outputs are from the reference.

    Attributes:
        max_absolute: Largest |a - b|.
        max_relative: max |a - b| / max |b|; 0 where both are all zero.
        problem: What is wrong, as a phrase; None: they agree within the tolerance.
    """

    max_absolute: float
    max_relative: float
    problem: str | None


def compare_outputs(outputs: Sequence[Array], reference: Sequence[Array], tolerance: Tolerance) -> Difference:
    """Compare all outputs of a call with the right ones.

    Of integers only the absolute tolerance counts: an index of 10001 is not nearly 10000.

    Args:
        outputs: One array a result, of any shape.
        reference: The same number of arrays.
    """
    if len(outputs) != len(reference):
        return Difference(
            max_absolute=0.0,
            max_relative=0.0,
            problem=f"outputs are {len(outputs)} where {len(reference)} are right",
        )
    worst_absolute = worst_relative = 0.0
    for position, (ours, right) in enumerate(zip(outputs, reference, strict=True)):
        if ours.shape != right.shape:
            problem = f"output {position} has shape {ours.shape} where {right.shape} is right"
            return Difference(max_absolute=worst_absolute, max_relative=worst_relative, problem=problem)
        if ours.dtype.kind == "i" and right.dtype.kind == "u" and ours.dtype.itemsize == right.dtype.itemsize:
            ours = ours.view(right.dtype)  # IREE's integers have no sign, and its tools print them with one
        is_complex = "c" in ours.dtype.kind + right.dtype.kind
        a, b = _parts(ours, is_complex), _parts(right, is_complex)
        finite = np.isfinite(a) & np.isfinite(b)
        error = np.zeros_like(b)
        with np.errstate(over="ignore"):  # far apart is infinitely far, which is beyond any tolerance
            np.abs(np.subtract(a, b, where=finite, out=error), out=error)
        integers = ours.dtype.kind in "biu" and right.dtype.kind in "biu"
        if integers:  # beyond 2**53, float64 takes neighbours for equal
            error = np.maximum(error, ours != right)
        absolute = float(error.max(initial=0.0))
        scale = float(np.abs(b[finite]).max(initial=0.0))
        worst_absolute = max(worst_absolute, absolute)
        worst_relative = max(worst_relative, absolute / scale if scale else absolute)
        if wrong := _problem(position, a, b, error, replace(tolerance, relative=0.0) if integers else tolerance):
            return Difference(max_absolute=worst_absolute, max_relative=worst_relative, problem=wrong)
    return Difference(max_absolute=worst_absolute, max_relative=worst_relative, problem=None)


def _parts(array: Array, is_complex: bool) -> npt.NDArray[np.float64]:
    """The values as float64; complex ones as pairs, along one more axis."""
    if is_complex:
        array = np.stack([array.real, array.imag], axis=-1)
    return array.astype(np.float64)


def _problem(
    position: int,
    a: npt.NDArray[np.float64],
    b: npt.NDArray[np.float64],
    error: npt.NDArray[np.float64],
    tolerance: Tolerance,
) -> str | None:
    odd_a, odd_b = ~np.isfinite(a), ~np.isfinite(b)
    if odd_b.any():
        if not np.array_equal(a[odd_b], b[odd_b], equal_nan=True) or odd_a.sum() != odd_b.sum():
            return f"output {position} has NaN or infinity in other places than the reference"
    elif odd_a.any():
        return f"output {position} has {int(odd_a.sum())} NaN or infinite values of {a.size}"
    with np.errstate(over="ignore"):
        allowed = tolerance.absolute + tolerance.relative * np.abs(np.where(odd_b, 0.0, b))
    beyond = error > allowed
    if not beyond.any():
        return None
    excess = np.subtract(error, allowed, where=beyond, out=np.full(error.shape, -np.inf))
    worst = np.unravel_index(int(np.argmax(excess)), error.shape)
    index = ", ".join(str(int(one)) for one in worst)
    return (
        f"output {position} differs in {int(beyond.sum())} of {error.size} values, worst at [{index}]: "
        f"{a[worst]:.7g} where {b[worst]:.7g} is right"
    )
