"""Writing ncnn's two files, as small as a test needs them."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

F16_MARK = 0x01306B47

# One convolution 2 -> 4 with a leaky ReLU, whose result is used twice.
SMALL = """\
7767517
5 6
Input        input 0 1 data
Convolution  conv  1 1 data a 0=4 1=3 4=1 5=1 6=72 9=2 -23310=1,2.000000e-01
Split        twice 1 2 a a0 a1
PReLU        slope 1 1 a0 b 0=4
BinaryOp     sum   2 1 a1 b result
"""


def weights(count: int, seed: int = 0) -> NDArray[np.float32]:
    """Values that f16 has."""
    return np.random.default_rng(seed).standard_normal(count).astype(np.float16).astype(np.float32)


def marked(values: NDArray[np.float32], *, half: bool) -> bytes:
    """A convolution's weights as the .bin has them."""
    if not half:
        return struct.pack("<I", 0) + values.astype("<f4").tobytes()
    data = values.astype("<f2").tobytes()
    return struct.pack("<I", F16_MARK) + data + b"\0" * (-len(data) % 4)


def small_bin(*, half: bool = True) -> bytes:
    """The weights of SMALL: kernels, bias, slopes."""
    return marked(weights(72), half=half) + weights(4, 1).tobytes() + weights(4, 2).tobytes()


def write(folder: Path, param: str = SMALL, binary: bytes | None = None) -> tuple[Path, Path]:
    """Both files, for read_network."""
    files = folder / "net.param", folder / "net.bin"
    files[0].write_text(param)
    files[1].write_bytes(small_bin() if binary is None else binary)
    return files


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

    def convolution(self, x: str, output: str, channels: tuple[int, int], options: str = "") -> str:
        """A 3x3 convolution between these numbers of channels, with bias."""
        read, made = channels
        count = read * made * 9
        kernels = weights(count, len(self.blobs)) / np.float32(8)
        self.binary += marked(kernels, half=True) + weights(made, count).tobytes()
        return self.add("Convolution", [x], output, f"0={made} 1=3 4=1 5=1 6={count} {options}")

    def write(self, folder: Path) -> tuple[Path, Path]:
        """Both files."""
        text = "\n".join(["7767517", f"{len(self.lines)} {len(self.blobs)}", *self.lines])
        return write(folder, text, self.binary)
