"""Tensors of a .safetensors file: eight bytes that say how long the JSON header is, the header, and then the data.

The layout is simple enough to be read here, which saves a dependency for one model.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harness.errors import CaseError

_DTYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "i1", "U8": "u1"}
_LENGTH_BYTES = 8


def read_safetensors(path: Path) -> dict[str, NDArray[Any]]:
    """All tensors of a file by name, mapped rather than read.

    Raises:
        CaseError: The file is broken, or has an element type that numpy lacks (stage `model`).
        OSError: The file cannot be read.
    """
    try:
        content = np.memmap(path, mode="r", dtype=np.uint8)
        begin = _LENGTH_BYTES + int.from_bytes(content[:_LENGTH_BYTES].tobytes(), "little")
        header = json.loads(content[_LENGTH_BYTES:begin].tobytes())
        header.pop("__metadata__", None)
        return {name: _tensor(content[begin:], entry) for name, entry in header.items()}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise CaseError(
            "model",
            f"{path} is no whole .safetensors file ({type(error).__name__}: {error}); write or download it again",
        ) from None


def _tensor(data: NDArray[np.uint8], entry: Mapping[str, Any]) -> NDArray[Any]:
    begin, end = entry["data_offsets"]
    tensor: NDArray[Any] = data[begin:end].view(_DTYPES[entry["dtype"]]).reshape(entry["shape"])
    return tensor
