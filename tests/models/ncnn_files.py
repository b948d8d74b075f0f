"""Writing ncnn's two files, as small as a test needs them."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

F16_MARK = 0x01306B47


def weights(count: int, seed: int = 0) -> NDArray[np.float32]:
    """Values that f16 has."""
    return np.random.default_rng(seed).standard_normal(count).astype(np.float16).astype(np.float32)


class Made:
    """A network that grows by a layer at a time."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.binary = b""
        self.blobs: list[str] = []

    def add(self, kind: str, inputs: Sequence[str], output: str, options: str = "") -> str:
        """A layer without weights; its blob."""
        self.blobs.append(output)
        self.lines.append(f"{kind} {output}_layer {len(inputs)} 1 {' '.join([*inputs, output])} {options}")
        return output

    def convolution(self, x: str, output: str, channels: tuple[int, int], options: str = "", *, kernel: int = 3) -> str:
        """A convolution between these numbers of channels, with bias, its weights in f16."""
        read, made = channels
        count = read * made * kernel**2
        kernels = weights(count, len(self.blobs)) / np.float32(8)
        data = kernels.astype("<f2").tobytes()
        self.binary += struct.pack("<I", F16_MARK) + data + b"\0" * (-len(data) % 4)
        self.binary += weights(made, count).tobytes()
        return self.add("Convolution", [x], output, f"0={made} 1={kernel} 4={kernel // 2} 5=1 6={count} {options}")

    def write(self, folder: Path) -> tuple[Path, Path]:
        """Both files."""
        files = folder / "net.param", folder / "net.bin"
        files[0].write_text("\n".join(["7767517", f"{len(self.lines)} {len(self.blobs)}", *self.lines]))
        files[1].write_bytes(self.binary)
        return files
