"""Programs of convolutions, and rewriting and running them, for the tests of channels_last and regions_in_place."""

from __future__ import annotations

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
Rewrite = Callable[[ir.Module], int]

FLAGS = (
    "--iree-hal-target-device=local",
    "--iree-hal-local-target-device-backends=llvm-cpu",
    "--iree-llvmcpu-target-cpu=host",
)
MAPS = """\
#channel = affine_map<(n, c, h, w) -> (c)>
#same = affine_map<(n, c, h, w) -> (n, c, h, w)>
"""
ALL_PARALLEL = 'iterator_types = ["parallel", "parallel", "parallel", "parallel"]'


def rewritten(text: str, *rewrites: Rewrite) -> tuple[str, list[int]]:
    """The module after some rewrites, verified and printed, and what each has matched."""
    with ir.Context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        matched = [rewrite(module) for rewrite in rewrites]
        module.operation.verify()
        return str(module), matched


def printed(text: str) -> str:
    """The same program with names and layout as MLIR prints them."""
    return rewritten(text)[0]


def count(text: str, name: str) -> int:
    """How many operations of that name a program has."""
    return text.count(f"{name} ")


def run(text: str, *arguments: Array) -> Array:
    """What `main` gives for these arguments."""
    context = rt.SystemContext(config=rt.Config(device=rt.get_device("local-sync")))
    context.add_vm_module(rt.VmModule.copy_buffer(context.instance, _compile(text)))
    result = context.modules.module.main(*arguments)
    return np.array(result.to_host())  # copied, since the buffer goes with its owner


def random(shapes: Sequence[Sequence[int]]) -> list[Array]:
    """Arrays of order 1, the same every time."""
    rng = np.random.default_rng(0)
    return [rng.standard_normal(shape, dtype=np.float32) for shape in shapes]


def agree(text: str, shapes: Sequence[Sequence[int]], *rewrites: Rewrite) -> list[int]:
    """Check that a program gives the same before and after some rewrites; what each has matched."""
    after, matched = rewritten(text, *rewrites)
    arguments = random(shapes)
    expected = run(text, *arguments)
    np.testing.assert_allclose(run(after, *arguments), expected, rtol=1e-5, atol=1e-5 * float(abs(expected).max()))
    return matched


def tensor(shape: Sequence[int]) -> str:
    """The type of a tensor."""
    return f"tensor<{'x'.join(map(str, shape))}xf32>"


def constant(name: str, shape: Sequence[int], seed: int = 0) -> str:
    """A tensor of random numbers."""
    values = np.random.default_rng(seed).standard_normal(shape, dtype=np.float32) / np.float32(np.sqrt(np.prod(shape)))
    return f'%{name} = arith.constant dense<"0x{values.tobytes().hex()}"> : {tensor(shape)}'


def convolution(
    result: str,
    image: str,
    weights: str,
    shapes: Sequence[Sequence[int]],
    *,
    strides: Sequence[int] = (1, 1),
    dilations: Sequence[int] = (1, 1),
    name: str = "linalg.conv_2d_nchw_fchw",
) -> str:
    """A convolution that starts from %zero; the shapes are those of the image, the weights and the result."""
    image_type, weights_type, type_ = map(tensor, shapes)
    steps = f"strides = dense<{list(strides)}> : vector<2xi64>, dilations = dense<{list(dilations)}> : vector<2xi64>"
    return f"""
    %{result}_empty = tensor.empty() : {type_}
    %{result}_start = linalg.fill ins(%zero : f32) outs(%{result}_empty : {type_}) -> {type_}
    %{result} = {name} {{{steps}}}
      ins(%{image}, %{weights} : {image_type}, {weights_type}) outs(%{result}_start : {type_}) -> {type_}"""


def pad(result: str, image: str, shape: Sequence[int], *, value: str = "zero") -> str:
    """One row above, none below, one column left, two columns right."""
    n, c, h, w = shape
    return f"""
    %{result} = tensor.pad %{image} low[0, 0, 1, 1] high[0, 0, 0, 2] {{
    ^bb0(%{result}_n: index, %{result}_c: index, %{result}_h: index, %{result}_w: index):
      tensor.yield %{value} : f32
    }} : {tensor(shape)} to {tensor((n, c, h + 1, w + 3))}"""


def function(body: str, arguments: dict[str, Sequence[int]], result: str, shape: Sequence[int]) -> str:
    """A module with `main`; %zero and %two are there for all."""
    parameters = ", ".join(f"%{name}: {tensor(one)}" for name, one in arguments.items())
    return f"""{MAPS}
  func.func @main({parameters}) -> {tensor(shape)} {{
    %zero = arith.constant 0.0 : f32
    %two = arith.constant 2.0 : f32
    {body}
    return %{result} : {tensor(shape)}
  }}"""


def _compile(text: str) -> bytes:
    spec = find_spec("iree.compiler")
    assert spec is not None
    assert spec.submodule_search_locations
    tool = Path(next(iter(spec.submodule_search_locations))) / "_mlir_libs" / "iree-compile"
    done = subprocess.run([str(tool), "-", *FLAGS], input=text.encode(), capture_output=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr.decode(errors="replace")
    return done.stdout
