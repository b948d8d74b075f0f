"""Networks in ncnn's two files: a .param of text with the layers, and a .bin with their weights in the same order.

In the .bin a convolution's weights follow a mark of four bytes that says f32 or f16; biases and slopes are f32, and
little-endian all. Nothing is passed over: neither a key nor a byte.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harness.errors import CaseError
from harness.models.ncnn_param import FormatError, Line, Number, parse_param

Floats = NDArray[np.float32]

_F16_MARK = 0x01306B47
_F32_MARK = 0
_ALIGNMENT = 4


@dataclass(frozen=True, kw_only=True)
class Layer:
    """One layer.

    Attributes:
        kind: Its type's name in ncnn.
        inputs: The blobs that it reads.
        options: Its keys, by the names of harness.models.ncnn_param.
        weights: Of a convolution `weight` (channels, channels of its input, kernel, kernel) and, if it has one, `bias`
            (channels); of a PReLU `slope` (channels).
    """

    kind: str
    name: str
    inputs: tuple[str, ...]
    output: str
    options: Mapping[str, Number] = field(default_factory=dict)
    weights: Mapping[str, Floats] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Network:
    """Layers, each after those whose blobs it reads. The last one's is the result.

    There are no Splits: they only give a blob more names, and all layers here call it by its first.
    """

    layers: tuple[Layer, ...]

    def maker(self, blob: str) -> Layer:
        """The layer that makes a blob."""
        return next(layer for layer in self.layers if layer.output == blob)

    def between(self, start: str, end: str) -> Network:
        """What makes blob `end` of blob `start`, which becomes the input.

        Raises:
            ValueError: `end` is made of more than `start`.
        """
        needed, taken = {end}, list[Layer]()
        for layer in reversed(self.layers):
            if layer.output == start or layer.output not in needed:
                continue
            if layer.kind == "Input":
                raise ValueError(f"{end} is made of more than {start}")
            taken.append(layer)
            needed.update(layer.inputs)
        source = Layer(kind="Input", name="input", inputs=(), output=start)
        return Network(layers=(source, *reversed(taken)))


def read_network(param: Path, binary: Path) -> Network:
    """Read both files to their ends.

    Raises:
        CaseError: One of them cannot be read, is cut short or too long, or holds what this reader does not know
            (stage `model`).
    """
    file = param
    try:
        lines = parse_param(param.read_text(encoding="ascii"))
        file = binary
        weights = _Weights(binary.read_bytes())
        network = Network(layers=tuple(_layers(lines, weights)))
        weights.require_end()
    except OSError as error:
        raise CaseError("model", f"{file} cannot be read ({error.strerror}); check its path and permissions") from None
    except UnicodeDecodeError:
        raise CaseError("model", f"{file} is no text, as an ncnn .param file is; check its path") from None
    except FormatError as error:
        raise CaseError("model", f"{file}: {error}; fetch it again, or name another file") from None
    return network


def _layers(lines: list[Line], weights: _Weights) -> list[Layer]:
    first_name: dict[str, str] = {}
    layers = []
    for line in lines:
        inputs = tuple(first_name[blob] for blob in line.inputs)
        if line.kind == "Split":
            if not inputs:
                raise FormatError(f"its layer {line.name} splits nothing")
            first_name.update(dict.fromkeys(line.outputs, inputs[0]))
            continue
        (output,) = line.outputs
        first_name[output] = output
        layers.append(
            Layer(
                kind=line.kind,
                name=line.name,
                inputs=inputs,
                output=output,
                options=line.options,
                weights=_weights_of(line, weights),
            )
        )
    return layers


def _weights_of(line: Line, weights: _Weights) -> dict[str, Floats]:
    options: Mapping[str, Any] = line.options
    if line.kind == "PReLU":
        return {"slope": weights.f32(options["slope_count"], line.name)}
    if line.kind != "Convolution":
        return {}
    channels, kernel, count = options["channels"], options["kernel"], options["weight_count"]
    per_channel = channels * kernel * kernel
    if per_channel < 1 or count < 1 or count % per_channel:
        raise FormatError(f"the {count} weights of {line.name} are no whole number of {kernel}x{kernel} kernels")
    shape = (channels, count // per_channel, kernel, kernel)
    found = {"weight": weights.marked(count, line.name).reshape(shape)}
    if options["has_bias"]:
        found["bias"] = weights.f32(channels, line.name)
    return found


class _Weights:
    """A .bin file that is read from its beginning to its end."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._position = 0

    def marked(self, count: int, layer: str) -> Floats:
        """That many values as the mark before them says, as f32."""
        mark = int(np.frombuffer(self._take(4, layer), "<u4")[0])
        if mark == _F32_MARK:
            return self.f32(count, layer)
        if mark != _F16_MARK:
            raise FormatError(f"the weights of {layer} have the mark {mark:#010x}, which is neither f32's nor f16's")
        padded = math.ceil(2 * count / _ALIGNMENT) * _ALIGNMENT
        return np.frombuffer(self._take(padded, layer)[: 2 * count], "<f2").astype(np.float32)

    def f32(self, count: int, layer: str) -> Floats:
        """That many values without a mark."""
        return np.frombuffer(self._take(4 * count, layer), "<f4").astype(np.float32)

    def _take(self, size: int, layer: str) -> bytes:
        taken = self._data[self._position : self._position + size]
        if len(taken) < size:
            raise FormatError(f"it ends within the weights of {layer}")
        self._position += size
        return taken

    def require_end(self) -> None:
        """Refuse a file that goes on."""
        if left := len(self._data) - self._position:
            raise FormatError(f"{left} bytes are left over after the last layer's weights")
