"""Concatenations of the same tensors share one buffer.

ESRGAN's dense block computes cat(x, x1), cat(x, x1, x2), cat(x, x1, x2, x3) and cat(x, x1, x2, x3, x4): x is copied
four times, x1 four times, and so on, each time into a buffer of its own. The first three are the beginning of the last.
So one buffer of the last one's size is enough: every part is inserted once, when it comes to exist, and each
concatenation is a slice of the buffer as far as it is filled.

    %0 = tensor.empty() : tensor<1x192x90x62xf32>
    %1 = tensor.insert_slice %x into %0[0, 0, 0, 0] ...
    %2 = tensor.insert_slice %x1 into %1[0, 64, 0, 0] ...
    %cat1 = tensor.extract_slice %2[0, 0, 0, 0] [1, 96, 90, 62] ...
    %3 = tensor.insert_slice %x2 into %2[0, 96, 0, 0] ...

Left alone are dynamic shapes, elements smaller than a byte, and what stands in the body of a loop or a branch.

share_concat_find says which concatenations belong together, share_concat_frame what padding the buffer has around it,
share_concat_plan what is inserted and read where, share_concat_reuse which buffers serve several times.
"""

from __future__ import annotations

from iree.compiler import ir

from harness.rewrites.share_concat_buffer import write_buffer
from harness.rewrites.share_concat_find import find_family
from harness.rewrites.share_concat_plan import plan
from harness.rewrites.share_concat_reuse import Buffer

_FUNCTIONS = ("util.func", "func.func")


def share_concat(module: ir.Module, *, padding: bool = True) -> int:
    """Let concatenations share buffers where one is a contiguous run of a larger one's parts.

    Args:
        module: Changed in place; linalg on tensors, as at IREE's phase `input`.
        padding: Make a shared buffer with the constant padding that most of its readers add (the zeros around a
            convolution's input), so that none of them copies a concatenation to pad it. Such a buffer goes on to the
            next family that needs one like it, so that its padding is filled in once only.

    Returns:
        How many concatenations became slices of a larger one.
    """
    shared = 0
    for function in module.body.operations:
        if function.operation.name in _FUNCTIONS:
            for block in function.regions[0].blocks:
                buffers: list[Buffer] = []
                while (family := find_family(block)) is not None:
                    buffers.append(write_buffer(plan(block, family, padding=padding), buffers))
                    shared += len(family.members) - 1
    return shared
