"""Rewriting, interpreting, compiling and running small programs, for the tests of shared concatenations."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import iree.runtime as rt
import numpy as np
from iree.compiler import ir
from numpy.typing import NDArray

from harness.compile.iree_compile import parse_statistics
from harness.records.run import Statistics
from harness.rewrites.share_concat import share_concat

Array = NDArray[Any]

CPU = (
    "--iree-hal-target-device=local",
    "--iree-hal-local-target-device-backends=llvm-cpu",
    "--iree-llvmcpu-target-cpu=host",
)
VULKAN = ("--iree-hal-target-device=vulkan",)


def rewrite(text: str, *, padding: bool = True) -> tuple[int, str]:
    """Parse, rewrite, verify and print: how many concatenations became slices, and the text."""
    with ir.Context():
        module = ir.Module.parse(text)
        matched = share_concat(module, padding=padding)
        module.operation.verify()
        return matched, str(module)


def printed(text: str) -> str:
    """The same program with names and layout as MLIR prints them."""
    with ir.Context():
        return str(ir.Module.parse(text))


@dataclass(frozen=True, kw_only=True)
class Compiled:
    """A module with what the compiler says of it."""

    module: bytes
    statistics: Statistics

    def run(self, *arguments: Array, function: str = "main") -> list[Array]:
        """The results of a call on the CPU."""
        context = rt.SystemContext(config=rt.Config(device=rt.get_device("local-sync")))
        module = rt.VmModule.copy_buffer(context.instance, self.module)
        context.add_vm_module(module)
        results = context.modules[module.name][function](*arguments)
        return [np.asarray(result) for result in (results if isinstance(results, tuple) else (results,))]


def to_input_phase(text: str) -> str:
    """Linalg on tensors, from whatever the compiler reads."""
    return _iree_compile(text, "--compile-to=input", *CPU).decode()


def compile_module(text: str, *flags: str) -> Compiled:
    """Compile a module, of the phase `input` if its functions are util.func; for the CPU unless the flags say more."""
    phase = ["--compile-from=input"] if "util.func" in text else []
    with TemporaryDirectory() as folder:
        file = Path(folder) / "statistics.json"
        dump = ("--iree-scheduling-dump-statistics-format=json", f"--iree-scheduling-dump-statistics-file={file}")
        module = _iree_compile(text, *phase, *dump, *(flags or CPU))
        statistics = parse_statistics(file.read_text())
    assert statistics is not None
    return Compiled(module=module, statistics=statistics)


def _iree_compile(text: str, *flags: str) -> bytes:
    done = subprocess.run([_tool(), "-", *flags], input=text.encode(), capture_output=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr.decode(errors="replace")
    return done.stdout


@cache
def _tool() -> str:
    spec = find_spec("iree.compiler")
    assert spec is not None
    assert spec.submodule_search_locations
    return str(Path(next(iter(spec.submodule_search_locations))) / "_mlir_libs" / "iree-compile")
