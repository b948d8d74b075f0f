"""What programs of builders compute, in numpy: of their arguments, the constants in their text and their parameters.

Formulas take their constants from an iterator, so that a chain of blocks reads on where one has ended.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from harness.models.inputs import from_bf16_bits

Array = NDArray[Any]
Params = Mapping[str, Any]


def constants_of(text: str) -> Iterator[Array]:
    """All constant tensors in the text's order; bf16 as f32 values."""
    blobs = dict(re.findall(r'(\w+): "0x0\d000000([0-9a-f]+)"', text))
    constant = r'arith\.constant dense(?:<"0x([0-9a-f]+)">|_resource<(\w+)>) : tensor<([\dx]+)x(\w+)>'
    for blob, name, shape, dtype in re.findall(constant, text):
        held = {"f32": "<f4", "f16": "<f2", "bf16": "<u2", "i8": "i1"}[dtype]
        values = np.frombuffer(bytes.fromhex(blob or blobs[name]), held).reshape([int(n) for n in shape.split("x")])
        yield from_bf16_bits(values) if dtype == "bf16" else values


def padded_convolution(x: Array, constants: Iterator[Array]) -> Array:
    """3x3, channels first; its bias comes before its weight."""
    bias, weight = next(constants), next(constants)
    windows = sliding_window_view(np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1))), (3, 3), axis=(2, 3))
    return np.asarray(np.einsum("nchwij,ocij->nohw", windows, weight, optimize=True) + bias[:, None, None])


def dense_block(x: Array, constants: Iterator[Array]) -> Array:
    """One residual dense block as PyTorch writes it."""
    parts = [x]
    for _ in range(4):
        y = padded_convolution(np.concatenate(parts, axis=1), constants)
        parts.append(np.where(y > 0, y, 0.2 * y))
    return np.asarray(0.2 * padded_convolution(np.concatenate(parts, axis=1), constants) + x)


def blocks(x: Array, constants: Iterator[Array], params: Params) -> Array:
    """The builder residual-dense-block."""
    for _ in range(params["blocks"]):
        x = dense_block(x, constants)
    return x


def trunk(x: Array, constants: Iterator[Array], params: Params) -> Array:
    """The builder rrdb-trunk."""
    for _ in range(params["blocks"]):
        inner = x
        for _ in range(3):
            inner = dense_block(inner, constants)
        x = 0.2 * inner + x
    return x


def layers(x: Array, constants: Iterator[Array], params: Params) -> Array:
    """The builder mlp, whose two forms store the weights in two ways."""
    for bias, weight in zip(constants, constants, strict=True):
        x = np.maximum(x @ (weight.T if params["form"] == "pytorch" else weight) + bias, 0)
    return x


def convolution(x: Array, constants: Iterator[Array], params: Params) -> Array:
    """The builder channelled-convolution, likewise."""
    filter_, bias = constants
    order = "ijco" if params["form"] == "named" else "cijo"
    windows = sliding_window_view(x, (3, 3), axis=(1, 2))
    return np.asarray(np.maximum(np.einsum(f"nyxcij,{order}->nyxo", windows, filter_) + bias, 0))


def product(left: Array, *others: Any) -> Array:
    """The builder matmul, whose right matrix is an argument or the only constant."""
    *arguments, constants, _ = others
    (right,) = arguments or constants
    return np.asarray(left @ right.astype(np.float64))


def without_biases(x: Array, constants: Iterator[Array], _: Params) -> Array:
    """The builder two-devices."""
    for weight in constants:
        x = np.maximum(x @ weight, 0)
    return x
