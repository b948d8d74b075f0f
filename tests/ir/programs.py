"""A small program with the flags that it is compiled with, and programs of single operations with their work."""

from __future__ import annotations

import struct
from collections.abc import Sequence

from iree.compiler import ir

from harness.ir.program import ProgramWork, work_of
from harness.process import Limits

LIMITS = Limits(seconds=120, memory_bytes=8 << 30)
# Whatever processor the tests run on: its vectors decide which temporaries a dispatch needs.
HASWELL_FLAGS = (
    "--iree-hal-target-device=local",
    "--iree-hal-local-target-device-backends=llvm-cpu",
    "--iree-llvmcpu-target-triple=x86_64-unknown-linux-gnu",
    "--iree-llvmcpu-target-cpu=haswell",
)
WEIGHT = struct.pack("<2304f", *(element / 256 for element in range(32 * 8 * 3 * 3))).hex().upper()
# relu(conv(x)), and x itself without its border.
MODEL = f"""
#same = affine_map<(n, c, h, w) -> (n, c, h, w)>
func.func @main(%x: tensor<1x8x12x8xf32>) -> tensor<1x40x10x6xf32> {{
  %zero = arith.constant 0.0 : f32
  %weight = arith.constant dense_resource<weight> : tensor<32x8x3x3xf32>
  %empty = tensor.empty() : tensor<1x32x10x6xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<1x32x10x6xf32>) -> tensor<1x32x10x6xf32>
  %conv = linalg.conv_2d_nchw_fchw {{dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>}}
    ins(%x, %weight : tensor<1x8x12x8xf32>, tensor<32x8x3x3xf32>)
    outs(%init : tensor<1x32x10x6xf32>) -> tensor<1x32x10x6xf32>
  %relu = linalg.generic {{
      indexing_maps = [#same, #same], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}}
      ins(%conv : tensor<1x32x10x6xf32>) outs(%empty : tensor<1x32x10x6xf32>) {{
  ^bb0(%in: f32, %out: f32):
    %positive = arith.maximumf %in, %zero : f32
    linalg.yield %positive : f32
  }} -> tensor<1x32x10x6xf32>
  %crop = tensor.extract_slice %x[0, 0, 1, 1] [1, 8, 10, 6] [1, 1, 1, 1]
    : tensor<1x8x12x8xf32> to tensor<1x8x10x6xf32>
  %both = tensor.empty() : tensor<1x40x10x6xf32>
  %one = tensor.insert_slice %relu into %both[0, 0, 0, 0] [1, 32, 10, 6] [1, 1, 1, 1]
    : tensor<1x32x10x6xf32> into tensor<1x40x10x6xf32>
  %two = tensor.insert_slice %crop into %one[0, 32, 0, 0] [1, 8, 10, 6] [1, 1, 1, 1]
    : tensor<1x8x10x6xf32> into tensor<1x40x10x6xf32>
  return %two : tensor<1x40x10x6xf32>
}}
{{-#
  dialect_resources: {{ builtin: {{ weight: "0x04000000{WEIGHT}" }} }}
#-}}
"""


def function(arguments: str, results: str, *lines: str) -> str:
    """A module with one function `main`."""
    body = "\n".join(f"    {line}" for line in lines)
    return f"module {{\n  util.func public @main({arguments}) -> ({results}) {{\n{body}\n  }}\n}}\n"


def work(text: str, *shapes: Sequence[int], entry: str = "main") -> ProgramWork:
    """Of one call.

    Args:
        shapes: Of the arguments, where their types do not say them.
    """
    with ir.Context() as context, ir.Location.unknown():
        context.allow_unregistered_dialects = True
        return work_of(ir.Module.parse(text), entry, shapes)


def zeros(name: str, kind: str) -> tuple[str, ...]:
    """Lines that fill a tensor of that static type, as contractions begin with."""
    element = kind.rstrip(">").rpartition("x")[2]
    return (
        f"%{name}_zero = arith.constant 0.0 : {element}",
        f"%{name}_empty = tensor.empty() : {kind}",
        f"%{name} = linalg.fill ins(%{name}_zero : {element}) outs(%{name}_empty : {kind}) -> {kind}",
    )


def elementwise(name: str, operation: str, source: str, kind: str, *, loops: int = 1) -> str:
    """A line that applies `operation`, in terms of %x, to each element."""
    identity = (
        f"affine_map<({', '.join(f'd{n}' for n in range(loops))}) -> ({', '.join(f'd{n}' for n in range(loops))})>"
    )
    kinds = ", ".join(['"parallel"'] * loops)
    element = kind.rstrip(">").rpartition("x")[2]
    return (
        f"%{name}_empty = tensor.empty() : {kind}\n    "
        f"%{name} = linalg.generic {{indexing_maps = [{identity}, {identity}], iterator_types = [{kinds}]}} "
        f"ins({source} : {kind}) outs(%{name}_empty : {kind}) {{\n"
        f"    ^bb0(%x: {element}, %out: {element}):\n      %y = {operation} : {element}\n"
        f"      linalg.yield %y : {element}\n    }} -> {kind}"
    )
