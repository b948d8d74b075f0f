"""Running a module once through iree-run-module, and comparing what it gives with what is right.

Outputs are read from files that iree-run-module writes, on every device alike: reading them back through
iree.runtime fails on some Vulkan drivers in 3.13.0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from harness.compile.facts import tail
from harness.errors import CaseError
from harness.process import Limits, run
from harness.suite.values import Tolerance
from harness.toolchain import Toolchain

Array = npt.NDArray[np.generic]


def run_command(
    *, function: str, inputs: Sequence[str], parameters: Sequence[str], uri: str, run_flags: Sequence[str], outputs: int
) -> tuple[str, ...]:
    """The iree-run-module command line, as it is run in a folder that holds module and inputs.

    Args:
        inputs: Texts of --input=.
        parameters: Texts of --parameters=.
    """
    return (
        "iree-run-module",
        "--module=module.vmfb",
        f"--device={uri}",
        f"--function={function}",
        *(f"--parameters={text}" for text in parameters),
        *(f"--input={text}" for text in inputs),
        *(f"--output=@output{position}.npy" for position in range(outputs)),
        *run_flags,
    )


def run_once(
    toolchain: Toolchain, command: Sequence[str], folder: Path, *, limits: Limits, cpus: frozenset[int] | None
) -> list[Array]:
    """Run that command line in a folder and read its outputs.

    Raises:
        CaseError: The tool failed, was stopped at a limit, or wrote no output.
    """
    finished = run([str(toolchain.runtime_tool(command[0])), *command[1:]], cwd=folder, limits=limits, cpus=cpus)
    if not finished.ok:
        message = f"{command[0]} {finished.how_it_ended(limits)}"
        reason = _reason(finished.stderr)
        raise CaseError("verify", f"{message}: {reason}" if reason else message, tail(finished.stderr))
    wanted = sum(flag.startswith("--output=") for flag in command)
    try:
        return [_load(folder / f"output{position}.npy") for position in range(wanted)]
    except (OSError, ValueError) as error:
        raise CaseError("verify", f"{command[0]} exited with 0, but its output cannot be read: {error}") from None


def _reason(stderr: str) -> str:
    """IREE's status text, without the source position before it and the trace behind it."""
    line = next((line for line in stderr.splitlines() if line.strip()), "")
    status = line.split(": ", 1)[-1] if ".c:" in line or ".cc:" in line else line
    return status.split("; while invoking", 1)[0].strip()


def _load(path: Path) -> Array:
    array: Array = np.load(path)
    if array.dtype.kind == "V" and array.dtype.itemsize == 2:  # bf16, which .npy has no name for
        return (array.view(np.uint16).astype(np.uint32) << 16).view(np.float32)
    return array


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

    Args:
        outputs: One array a result, of any shape.
        reference: The same number of arrays.
    """
    if len(outputs) != len(reference):
        return Difference(
            max_absolute=0.0,
            max_relative=0.0,
            problem=f"{len(outputs)} outputs are not {len(reference)}",
        )
    worst_absolute = worst_relative = 0.0
    for position, (ours, right) in enumerate(zip(outputs, reference, strict=True)):
        if ours.shape != right.shape:
            problem = f"output {position} has shape {ours.shape} where {right.shape} is right"
            return Difference(max_absolute=worst_absolute, max_relative=worst_relative, problem=problem)
        a, b = ours.astype(np.float64), right.astype(np.float64)
        finite = np.isfinite(a) & np.isfinite(b)
        error = np.abs(a - b, where=finite, out=np.zeros_like(b))
        absolute = float(error.max(initial=0.0))
        scale = float(np.abs(b[finite]).max(initial=0.0))
        worst_absolute = max(worst_absolute, absolute)
        worst_relative = max(worst_relative, absolute / scale if scale else absolute)
        if wrong := _problem(position, a, b, error, tolerance):
            return Difference(max_absolute=worst_absolute, max_relative=worst_relative, problem=wrong)
    return Difference(max_absolute=worst_absolute, max_relative=worst_relative, problem=None)


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
    allowed = tolerance.absolute + tolerance.relative * np.abs(np.where(odd_b, 0.0, b))
    beyond = error > allowed
    if not beyond.any():
        return None
    worst = np.unravel_index(int(np.argmax(error - allowed)), error.shape)
    index = ", ".join(str(int(one)) for one in worst)
    return (
        f"output {position} differs in {int(beyond.sum())} of {error.size} values, worst at [{index}]: "
        f"{a[worst]:.7g} where {b[worst]:.7g} is right"
    )
