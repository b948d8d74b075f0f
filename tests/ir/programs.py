"""A small program with a convolution and a concatenation, and the flags that it is compiled with."""

from __future__ import annotations

import struct

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
