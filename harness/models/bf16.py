"""bf16, which numpy lacks: the upper half of a float32."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def bf16_bits(values: NDArray[Any]) -> NDArray[np.uint16]:
    """Round float32 values to bf16, ties to even; its 16 bits, little-endian."""
    single = np.asarray(values, dtype="<f4")
    bits = single.view("<u4")
    rounded = (bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16)
    return np.asarray(np.where(np.isnan(single), np.uint32(0x7FC0), rounded), dtype="<u2")


def from_bf16_bits(bits: NDArray[np.uint16]) -> NDArray[np.float32]:
    """The float32 values of 16 bits each."""
    return np.asarray(np.asarray(bits, dtype="<u4") << np.uint32(16), dtype="<u4").view("<f4")
