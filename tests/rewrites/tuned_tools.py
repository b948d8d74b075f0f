"""Rewriting, compiling and running small programs, for the tests of the tuning rewrites."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import iree.runtime as rt
import numpy as np
from iree.compiler import ir
from numpy.typing import NDArray

Array = NDArray[Any]

FLAGS = (
    "--iree-hal-target-device=local",
    "--iree-hal-local-target-device-backends=llvm-cpu",
    "--iree-llvmcpu-target-cpu=host",
)


def rewritten(text: str, *rewrites: Callable[[ir.Module], int]) -> tuple[str, list[int]]:
    """The module after some rewrites, verified and printed, and what each has matched."""
    with ir.Context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        matched = [rewrite(module) for rewrite in rewrites]
        module.operation.verify()
        return str(module), matched


def attributes(text: str, op: str, name: str) -> list[str]:
    """An attribute of all operations of that name that carry it."""
    found: list[str] = []

    def visit(one: ir.Operation) -> ir.WalkResult:
        if one.name == op and name in list(one.attributes):
            found.append(str(one.attributes[name]))
        return ir.WalkResult.ADVANCE

    with ir.Context(), ir.Location.unknown():
        ir.Module.parse(text).operation.walk(visit)
    return found


def iree_compile(text: str, *flags: str) -> bytes:
    """What iree-compile makes of a module."""
    spec = find_spec("iree.compiler")
    assert spec is not None
    assert spec.submodule_search_locations
    tool = Path(next(iter(spec.submodule_search_locations))) / "_mlir_libs" / "iree-compile"
    command = [str(tool), "-", *FLAGS, *flags]
    done = subprocess.run(command, input=text.encode(), capture_output=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr.decode(errors="replace")
    return done.stdout


def configurations_taken(text: str) -> list[str]:
    """The lowering configurations of all operations as the CPU backend has them before it generates code."""
    lowered = iree_compile(text, "--compile-to=executable-configurations").decode(errors="replace")
    return re.findall(r"#iree_cpu\.lowering_config<[^>]*>", lowered)


def run(text: str, *arguments: Array, flags: Sequence[str] = ()) -> Array:
    """What `main` gives for these arguments.

    Args:
        flags: Further ones of iree-compile.
    """
    config = rt.Config(device=rt.get_device("local-sync"))
    context = rt.SystemContext(config=config)
    context.add_vm_module(rt.VmModule.copy_buffer(context.instance, iree_compile(text, *flags)))
    return np.asarray(context.modules.module.main(*arguments))


def random(shapes: Sequence[Sequence[int]]) -> list[Array]:
    """Arrays of order 1, the same every time."""
    rng = np.random.default_rng(0)
    return [rng.standard_normal(shape, dtype=np.float32) for shape in shapes]


def convolve(
    image: Array, filter_: Array, *, strides: Sequence[int] = (1, 1), dilations: Sequence[int] = (1, 1)
) -> Array:
    """A convolution of channels-last images in double precision; the filter is [kh, kw, channels_in, channels_out]."""
    image, filter_ = image.astype(np.float64), filter_.astype(np.float64)
    kernel = filter_.shape[:2]
    height, width = (
        (image.shape[1 + axis] - dilations[axis] * (kernel[axis] - 1) - 1) // strides[axis] + 1 for axis in (0, 1)
    )
    total = np.zeros((image.shape[0], height, width, filter_.shape[3]))
    for i in range(kernel[0]):
        for j in range(kernel[1]):
            top, left = i * dilations[0], j * dilations[1]
            bottom, right = top + strides[0] * (height - 1) + 1, left + strides[1] * (width - 1) + 1
            total += image[:, top : bottom : strides[0], left : right : strides[1]] @ filter_[i, j]
    return total
