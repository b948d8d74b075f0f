"""Files of safetensors: tensors come out as they went in."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.errors import CaseError
from harness.models.weight_formats import read_safetensors


def write(path: Path, header: dict[str, Any], data: bytes) -> Path:
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)
    return path


def test_tensors_come_out_as_they_went_in(tmp_path: Path) -> None:
    matrix, ids = np.arange(6, dtype=np.float32).reshape(2, 3), np.array([7, -8])
    header = {
        "__metadata__": {"format": "pt"},
        "ids": {"dtype": "I64", "shape": [2], "data_offsets": [24, 40]},
        "matrix": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]},
    }
    found = read_safetensors(write(tmp_path / "net.safetensors", header, matrix.tobytes() + ids.tobytes()))
    assert list(found) == ["ids", "matrix"]
    np.testing.assert_array_equal(found["matrix"], matrix)
    np.testing.assert_array_equal(found["ids"], ids)


@pytest.mark.parametrize(
    ("header", "data"),
    [
        ({"matrix": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}}, b"short"),
        ({"matrix": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 20]}}, bytes(24)),
        ({"matrix": {"dtype": "BF16", "shape": [2], "data_offsets": [0, 4]}}, bytes(4)),
        ({"matrix": "F32"}, bytes(4)),
    ],
)
def test_broken_files_are_told(tmp_path: Path, header: dict[str, Any], data: bytes) -> None:
    path = write(tmp_path / "net.safetensors", header, data)
    with pytest.raises(CaseError, match=r"net\.safetensors is no whole \.safetensors file \(.*\); write or") as caught:
        read_safetensors(path)
    assert caught.value.stage == "model"


@pytest.mark.parametrize("content", [b"", b"\x05", bytes(8), b"\xff" * 16])
def test_so_are_files_of_something_else(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "net.safetensors"
    path.write_bytes(content)
    with pytest.raises(CaseError, match="is no whole"):
        read_safetensors(path)
