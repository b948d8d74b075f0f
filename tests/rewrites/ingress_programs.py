"""Rewriting, printing and running small programs, for the tests of the ingress canonicalisation."""

from __future__ import annotations

from typing import Any

import iree.runtime as rt
import numpy as np
from iree.compiler import compile_str, ir
from numpy.typing import NDArray

from harness.rewrites.ingress import ingress_canonicalize

Array = NDArray[Any]

OPTIONS = ("fill_init", "outs_style", "fold_transpose", "generic_matmul", "relu_to_maximum")

# Of matrices: a whole one, a row for all rows, transposed; then those of a product.
MAPS = """
#whole = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d1)>
#turned = affine_map<(d0, d1) -> (d1, d0)>
#left = affine_map<(d0, d1, d2) -> (d0, d2)>
#right = affine_map<(d0, d1, d2) -> (d2, d1)>
#right_turned = affine_map<(d0, d1, d2) -> (d1, d2)>
#product = affine_map<(d0, d1, d2) -> (d0, d1)>
"""


def rewrite(text: str, *options: str) -> tuple[int, str]:
    """Parse, rewrite with these options on and the others off, verify and print: how many places, and the text."""
    with ir.Context():
        module = ir.Module.parse(text)
        matched = ingress_canonicalize(module, **{option: option in options for option in OPTIONS})
        module.operation.verify()
        return matched, str(module)


def printed(text: str) -> str:
    """The same program with names and layout as MLIR prints them."""
    with ir.Context():
        return str(ir.Module.parse(text))


def assert_rewritten(before: str, after: str, *options: str, places: int) -> None:
    """Check the exact result, all names apart."""
    matched, text = rewrite(before, *options)
    assert text == printed(after)
    assert matched == places


def assert_left_alone(text: str, *options: str) -> None:
    """Check that nothing is matched and nothing changed."""
    assert rewrite(text, *options) == (0, printed(text))


class Compiled:
    """A program on the CPU, called like functions of arrays; uint16 arrays are bf16."""

    def __init__(self, text: str) -> None:
        flags = [
            "--iree-hal-target-device=local",
            "--iree-hal-local-target-device-backends=llvm-cpu",
            "--iree-llvmcpu-target-cpu=host",
        ]
        self._device = rt.get_device("local-sync")
        instance = rt.VmInstance()
        self._module = rt.VmModule.copy_buffer(instance, compile_str(text, extra_args=flags))
        self._context = rt.VmContext(instance, [rt.create_hal_module(instance, self._device), self._module])

    def __call__(self, function: str, *arguments: Array) -> Array:
        """The function's one result."""
        values, results = rt.VmVariantList(len(arguments)), rt.VmVariantList(1)
        for argument in arguments:
            values.push_ref(self._put(argument))
        self._context.invoke(self._module.lookup_function(function), values, results)
        view = results.get_as_object(0, rt.HalBufferView)
        dtype = next(one.dtype for one in arguments if _element_type(one.dtype) == view.element_type)
        array: Array = view.map().asarray(list(view.shape), dtype).copy()
        return array

    def _put(self, argument: Array) -> Any:
        return self._device.allocator.allocate_buffer_copy(
            memory_type=int(rt.MemoryType.DEVICE_LOCAL),
            allowed_usage=int(rt.BufferUsage.DEFAULT),
            device=self._device,
            buffer=np.require(argument, requirements="C"),
            element_type=_element_type(argument.dtype),
        )


def _element_type(dtype: np.dtype[Any]) -> int:
    if dtype == np.uint16:
        return int(rt.HalElementType.BFLOAT_16)
    return int(rt.array_interop.map_dtype_to_element_type(dtype))
