"""Rewriting programs at IREE's phase `flow`, and running them, for the tests of rewrites that stand there."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from iree.compiler import compile_str, ir
from numpy.typing import NDArray

from harness.process import Limits
from harness.toolchain import find_toolchain
from harness.verify.outputs import run_command, run_once

Array = NDArray[np.float32]
Rewrite = Callable[[ir.Module], int]

FLAGS = {
    "local-sync": [
        "--iree-hal-target-device=local",
        "--iree-hal-local-target-device-backends=llvm-cpu",
        "--iree-llvmcpu-target-cpu=host",
    ],
    "vulkan": ["--iree-hal-target-device=vulkan"],
}


def rewrite(text: str | bytes, *rewrites: Rewrite) -> tuple[list[int], str]:
    """Parse, rewrite, verify and print: how many places each rewrite matched, and the text."""
    with ir.Context():
        module = ir.Module.parse(text)
        matched = [one(module) for one in rewrites]
        module.operation.verify()
        return matched, str(module)


def lowered(text: str, phase: str, device: str = "local-sync", *flags: str) -> str:
    """What IREE makes of a program up to a phase."""
    module: bytes = compile_str(text, extra_args=[*FLAGS[device], *flags, f"--compile-to={phase}"])
    return module.decode()


def at_flow(text: str, device: str = "local-sync", *flags: str) -> str:
    """What IREE makes of a program up to the phase where the rewrites stand."""
    return lowered(text, "flow", device, *flags)


@dataclass(frozen=True, kw_only=True)
class Compiled:
    """A program that was compiled on from the phase.

    Attributes:
        folder: Where it is, as module.vmfb.
        device: The driver it is for.
        results: How many the function main has.
        counts: Dispatches, copies and fills, by IREE's scheduling statistics.
    """

    folder: Path
    device: str
    results: int
    counts: dict[str, int]

    def __call__(self, *arguments: Array) -> list[bytes]:
        """The bytes of the results of the function main; read back by the tool, as not all drivers let Python do it."""
        for number, argument in enumerate(arguments):
            np.save(self.folder / f"input{number}.npy", argument)
        command = run_command(
            function="main",
            inputs=[f"@input{number}.npy" for number in range(len(arguments))],
            parameters=[],
            uri=self.device,
            run_flags=[],
            outputs=self.results,
        )
        arrays = run_once(find_toolchain(), command, self.folder, limits=Limits(seconds=60), cpus=None)
        return [array.tobytes() for array in arrays]


def compiled(text: str, folder: Path, device: str = "local-sync") -> Compiled:
    """Compile a program that is at the phase."""
    folder.mkdir()
    file = folder / "statistics.json"
    flags = ["--iree-scheduling-dump-statistics-format=json", f"--iree-scheduling-dump-statistics-file={file}"]
    module = compile_str(text, extra_args=[*FLAGS[device], *flags, "--compile-from=flow"])
    (folder / "module.vmfb").write_bytes(module)
    found = json.loads(file.read_text())["stream-aggregate"]["execution"]
    counts = {kind: found[f"{kind}-count"] for kind in ("dispatch", "copy", "fill")}
    return Compiled(folder=folder, device=device, results=text.count("hal.tensor.export"), counts=counts)


def random_arrays(*shapes: Sequence[int]) -> list[Array]:
    """The same ones for the same shapes."""
    generator = np.random.default_rng(7)
    return [generator.standard_normal(shape).astype(np.float32) for shape in shapes]
