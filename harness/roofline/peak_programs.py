"""A program of nothing but fused multiply-adds, for the peak of what IREE's own code can compute."""

from __future__ import annotations

# So many independent sums hide the latency of a multiply-add, and still fit sixteen registers beside two factors.
_SUMS = 12
_STEPS = 64
OPERATIONS_PER_ELEMENT = _SUMS * (2 * _STEPS + 1) + _SUMS - 1
# Of each thread: some 200 us of work, so that starting a call weighs little.
ELEMENTS_PER_THREAD = 1 << 14


def multiply_add_loop(elements: int) -> str:
    """MLIR of a function on a vector, whose every element goes through `OPERATIONS_PER_ELEMENT` operations."""
    body = []
    for number in range(_SUMS):
        body += [f"%k{number} = arith.constant {number + 1}.0 : f32", f"%y{number}_0 = arith.mulf %x, %k{number} : f32"]
    for step in range(1, _STEPS + 1):  # the sums take turns, so that neighbours do not wait for each other
        body += [f"%y{one}_{step} = math.fma %y{one}_{step - 1}, %half, %one : f32" for one in range(_SUMS)]
    total = f"%y0_{_STEPS}"
    for number in range(1, _SUMS):
        body.append(f"%t{number} = arith.addf {total}, %y{number}_{_STEPS} : f32")
        total = f"%t{number}"
    tensor, same = f"tensor<{elements}xf32>", "affine_map<(i) -> (i)>"
    lines = "\n".join(f"    {line}" for line in (*body, f"linalg.yield {total} : f32"))
    return f"""\
func.func @main(%argument: {tensor}) -> {tensor} {{
  %one = arith.constant 1.0 : f32
  %half = arith.constant 0.5 : f32
  %empty = tensor.empty() : {tensor}
  %result = linalg.generic {{indexing_maps = [{same}, {same}], iterator_types = ["parallel"]}}
      ins(%argument : {tensor}) outs(%empty : {tensor}) {{
  ^bb0(%x: f32, %unused: f32):
{lines}
  }} -> {tensor}
  return %result : {tensor}
}}
"""
