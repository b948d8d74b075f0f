"""Peers: numpy for the matrix product of product.mlir, one that goes wrong as it is told to, and one that is absent."""

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from harness.peers import Peer, PeerModel, Ready, Setting

Array = NDArray[Any]


@dataclass(frozen=True, kw_only=True)
class NumpyOptions:
    """How the sum of products is computed."""

    method: Literal["matmul", "einsum"] = "matmul"


def _refuses(model: PeerModel, _: object) -> str | None:
    return None if len(model.inputs) == 3 else "the model is no product of two matrices with a shift"


def _product(method: str, a: Array, b: Array, shift: Array) -> Array:
    x = a @ b if method == "matmul" else np.einsum("ik,kj->ij", a, b)
    y = np.exp(shift)
    result: Array = np.exp(x) * y + y * y
    return result


def _prepare(_: PeerModel, arguments: Sequence[Array], __: Setting, options: NumpyOptions) -> Ready:
    last: list[Array] = []

    def call() -> None:
        last[:] = [_product(options.method, *arguments)]

    return Ready(call=call, outputs=lambda: [array.copy() for array in last])


NUMPY_PRODUCT = Peer(
    name="numpy-product",
    title="numpy",
    description="numpy's matmul and exp on one thread",
    install="pip install numpy",
    options=NumpyOptions,
    missing=lambda: None,
    version=lambda: np.__version__,
    refuses=_refuses,
    prepare=_prepare,
)


@dataclass(frozen=True, kw_only=True)
class UnluckyOptions:
    """What becomes of it."""

    fate: Literal["refuses", "raises", "dies", "hangs", "wrong", "shape", "dies late"]


def _refuses_by_fate(_: PeerModel, options: UnluckyOptions) -> str | None:
    return "it has a headache" if options.fate == "refuses" else None


def _prepare_by_fate(model: PeerModel, arguments: Sequence[Array], setting: Setting, options: UnluckyOptions) -> Ready:
    if options.fate == "raises":
        raise ValueError("no such operation: Frobnicate")
    if options.fate == "dies":
        os.abort()
    if options.fate == "hangs":
        time.sleep(3600)
    right = _prepare(model, arguments, setting, NumpyOptions())
    calls = count(1)

    def call() -> None:
        if options.fate == "dies late" and next(calls) == 10:
            os.abort()
        right.call()

    def outputs() -> list[Array]:
        right_ones = list(right.outputs())
        if options.fate == "wrong":
            return [2 * array for array in right_ones]
        return [array.T for array in right_ones] if options.fate == "shape" else right_ones

    return Ready(call=call, outputs=outputs)


UNLUCKY_PRODUCT = Peer(
    name="unlucky-product",
    title="Unlucky",
    description="goes wrong as it is told to",
    install="pip install luck",
    options=UnluckyOptions,
    missing=lambda: None,
    version=lambda: "0",
    refuses=_refuses_by_fate,
    prepare=_prepare_by_fate,
)

ABSENT = Peer(
    name="absent-product",
    title="Absent",
    description="is never installed",
    install="pip install 'iree-harness[absent]'",
    options=NumpyOptions,
    missing=lambda: "absent is not installed",
    version=lambda: "0",
    refuses=_refuses,
    prepare=_prepare,
)
