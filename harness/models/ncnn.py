"""Networks in ncnn's two files, and the same networks in ONNX.

A .param file is text, a layer a line; its .bin has the layers' weights in the same order:

    7767517                                  the format's mark
    3 4                                      how many layers and blobs
    Input        data   0 1 x                type, name, how many inputs and outputs, their blobs, key=value ...
    Split        twice  1 2 x a b
    Convolution  conv   1 1 a y 0=64 1=3 -23310=1,0.2      keys from -23300 down hold lists: their length, then values

In the .bin a convolution's weights follow a mark of four bytes that says f32 or f16; biases and slopes are f32, and
all of it is little-endian. The reader knows what the published super-resolution networks use and refuses all else; it
passes over no key and no byte.

Two layers are spelt out in simpler operations of ONNX, because IREE 3.13 imports the ONNX operator and computes
something else: of DepthToSpace in CRD mode the channels come out in another order, and PRelu's slopes are laid along
the rows where there are as many of these as channels.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harness.errors import CaseError
from harness.models.model import Input
from harness.models.onnx_graph import OnnxGraph

Floats = NDArray[np.float32]
Number = int | float | tuple[float, ...]
Shape = tuple[int, int, int]  # channels, rows, columns; the batch is 1
_MAGIC = "7767517"
_FIRST_LIST = -23300
_REQUIRED = None
# By type of layer: its keys by their number in the file, and what those are that are left out. A key that is not here
# would change what the layer does (a stride, say), so it is refused.
_KEYS: Mapping[str, Mapping[int, tuple[str, Number | None]]] = {
    "Input": {},
    "Split": {},
    "Convolution": {
        0: ("channels", _REQUIRED),
        1: ("kernel", _REQUIRED),
        4: ("padding", 0),
        5: ("has_bias", 0),
        6: ("weight_count", _REQUIRED),
        9: ("activation", 0),
        10: ("activation_parameters", ()),
    },
    "PReLU": {0: ("slope_count", _REQUIRED)},
    "Concat": {0: ("axis", 0)},
    "Eltwise": {0: ("operation", 0), 1: ("coefficients", ())},
    "BinaryOp": {0: ("operation", 0)},
    "Interp": {0: ("method", _REQUIRED), 1: ("height_scale", _REQUIRED), 2: ("width_scale", _REQUIRED)},
    "PixelShuffle": {0: ("factor", _REQUIRED)},
}
_LISTS = frozenset({"activation_parameters", "coefficients"})
_REALS = frozenset({"height_scale", "width_scale"})
_F16_MARK = 0x01306B47
_F32_MARK = 0
_ALIGNMENT = 4
_LEAKY_RELU = 2
_SUM, _ADD = 1, 0
_RESIZE: Mapping[int, Mapping[str, Any]] = {
    1: {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"},
    3: {"mode": "cubic", "coordinate_transformation_mode": "half_pixel", "cubic_coeff_a": -0.75},
}


@dataclass(frozen=True, kw_only=True)
class Layer:
    """One layer.

    Attributes:
        kind: Its type's name in ncnn.
        inputs: The blobs that it reads.
        options: Its keys, by the names of _KEYS.
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


class FormatError(ValueError):
    """What is wrong with a file, as a phrase that follows its path: `layer 3: ...`."""


@dataclass(frozen=True, kw_only=True)
class Line:
    """One layer as its line has it.

    Attributes:
        options: Its keys by their names here, those left out included.
    """

    kind: str
    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    options: Mapping[str, Number]


def parse_param(text: str) -> list[Line]:
    """The layers in the file's order, in which each comes after those whose blobs it reads.

    Raises:
        FormatError: The text is cut short, too long, or has a layer or a key that this reader does not know.
    """
    lines = [line for line in text.splitlines() if line.strip()]
    if not lines or lines[0].strip() != _MAGIC:
        raise FormatError(f"its first line is not {_MAGIC}, as an ncnn .param file's is")
    layers, blobs = _counts(lines[1] if len(lines) > 1 else "")
    found = len(lines) - 2
    if found != layers:
        raise FormatError(f"it has {found} layers where its second line says {layers}")
    parsed = [_parse(line, f"layer {number}") for number, line in enumerate(lines[2:], 1)]
    defined = set[str]()
    for number, line in enumerate(parsed, 1):
        for blob in line.inputs:
            if blob not in defined:
                raise FormatError(f"layer {number} ({line.name}) reads blob {blob}, which no layer before it makes")
        for blob in line.outputs:
            if blob in defined:
                raise FormatError(f"layer {number} ({line.name}) makes blob {blob} a second time")
            defined.add(blob)
    if len(defined) != blobs:
        raise FormatError(f"it has {len(defined)} blobs where its second line says {blobs}")
    return parsed


def _counts(line: str) -> tuple[int, int]:
    try:
        layers, blobs = (int(word) for word in line.split())
    except ValueError:
        raise FormatError(f"its second line is {line.strip()[:40]!r}, not the numbers of layers and blobs") from None
    return layers, blobs


def _parse(line: str, where: str) -> Line:
    words = line.split()
    try:
        kind, name, inputs, outputs = words[0], words[1], int(words[2]), int(words[3])
    except (IndexError, ValueError):
        raise FormatError(f"{where} is {line.strip()[:60]!r}, not type, name and two counts of blobs") from None
    where = f"{where} ({name})"
    if kind not in _KEYS:
        raise FormatError(f"{where} is of the type {kind}, which is not supported; known are {', '.join(_KEYS)}")
    blobs, options = words[4 : 4 + inputs + outputs], words[4 + inputs + outputs :]
    if len(blobs) != inputs + outputs or any("=" in blob for blob in blobs) or min(inputs, outputs) < 0:
        raise FormatError(f"{where} does not name its {inputs} inputs and {outputs} outputs")
    if outputs != 1 and kind != "Split":
        raise FormatError(f"{where} has {outputs} outputs, where {kind} has one")
    return Line(
        kind=kind,
        name=name,
        inputs=tuple(blobs[:inputs]),
        outputs=tuple(blobs[inputs:]),
        options=_options(options, kind, where),
    )


def _options(words: Sequence[str], kind: str, where: str) -> dict[str, Number]:
    keys = _KEYS[kind]
    options: dict[str, Number] = {}
    for word in words:
        key, _, text = word.partition("=")
        try:
            number = int(key)
        except ValueError:
            raise FormatError(f"{where} has {word[:40]!r}, which is no key=value") from None
        is_list = number <= _FIRST_LIST
        position = _FIRST_LIST - number if is_list else number
        name = keys[position][0] if position in keys else ""
        if not name or is_list != (name in _LISTS):
            raise FormatError(f"{where} has the key {key}, which is not supported for {kind}")
        try:
            options[name] = _list(text) if is_list else float(text) if name in _REALS else int(text)
        except ValueError:
            raise FormatError(f"{where} has {word[:40]!r}, whose value cannot be read") from None
    for name, default in keys.values():
        if name not in options:
            if default is None:
                raise FormatError(f"{where} does not say its {name.replace('_', ' ')}")
            options[name] = default
    return options


def _list(text: str) -> tuple[float, ...]:
    """`2,0.2,1.0` -> (0.2, 1.0): the length comes first."""
    length, *values = text.split(",")
    if int(length) != len(values):
        raise ValueError(text)
    return tuple(float(value) for value in values)


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
    arrays = {"weight": weights.marked(count, line.name).reshape(shape)}
    if options["has_bias"]:
        arrays["bias"] = weights.f32(channels, line.name)
    return arrays


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


def write_onnx(network: Network, channels: int, height: int, width: int) -> bytes:
    """The network as an ONNX model, serialised.

    Its input is one image, 1 x channels x height x width, f32. Equal arguments give equal bytes.

    Raises:
        CaseError: A layer has no form in ONNX, or does not fit what it reads (stage `model`).
    """
    return _Writer((channels, height, width)).write(network)


class _Writer:
    """A graph that grows by a layer at a time, with the value and the shape of each blob."""

    def __init__(self, shape: Shape) -> None:
        self._graph = OnnxGraph(name="main", inputs=(Input(shape=(1, *shape)),))
        self._input_shape = shape
        self._values: dict[str, str] = {}
        self._shapes: dict[str, Shape] = {}

    def write(self, network: Network) -> bytes:
        """All layers, as a model."""
        writers: Mapping[str, Callable[[Layer, list[str], list[Shape]], tuple[str, Shape]]] = {
            "Input": lambda _layer, _values, _shapes: ("input0", self._input_shape),
            "Convolution": self._convolution,
            "PReLU": self._prelu,
            "Concat": self._concat,
            "Eltwise": self._weighted_sum,
            "BinaryOp": self._add,
            "Interp": self._resize,
            "PixelShuffle": self._pixel_shuffle,
        }
        for layer in network.layers:
            values = [self._values[blob] for blob in layer.inputs]
            shapes = [self._shapes[blob] for blob in layer.inputs]
            self._values[layer.output], self._shapes[layer.output] = writers[layer.kind](layer, values, shapes)
        return self._graph.finish(self._values[network.layers[-1].output])

    def _convolution(self, layer: Layer, values: list[str], shapes: list[Shape]) -> tuple[str, Shape]:
        ((channels, height, width),) = shapes
        options: Mapping[str, Any] = layer.options
        weight = layer.weights["weight"]
        if weight.shape[1] != channels:
            raise _refusal(layer, f"has weights for {weight.shape[1]} channels and reads {channels}")
        slope = _leaky_slope(layer)
        constants = [self._graph.weight(value) for value in layer.weights.values()]
        result = self._graph.node("Conv", *values, *constants, pads=[options["padding"]] * 4)
        if slope is not None:
            result = self._graph.node("LeakyRelu", result, alpha=slope)
        border = 2 * options["padding"] - options["kernel"] + 1
        return result, (weight.shape[0], height + border, width + border)

    def _prelu(self, layer: Layer, values: list[str], shapes: list[Shape]) -> tuple[str, Shape]:
        """max(x, 0) + slope * min(x, 0)."""
        ((channels, _, _),) = shapes
        slope = layer.weights["slope"]
        if slope.shape != (channels,):
            raise _refusal(layer, f"has {slope.size} slopes and reads {channels} channels")
        (x,) = values
        zero = self._graph.weight(0.0)
        below = self._graph.node("Min", x, zero)
        scaled = self._graph.node("Mul", below, self._graph.weight(slope.reshape(1, channels, 1, 1)))
        return self._graph.node("Add", self._graph.node("Max", x, zero), scaled), shapes[0]

    def _concat(self, layer: Layer, values: list[str], shapes: list[Shape]) -> tuple[str, Shape]:
        if layer.options["axis"] != 0:
            raise _refusal(layer, f"joins along axis {layer.options['axis']}, where channels (0) are supported")
        if len({shape[1:] for shape in shapes}) != 1:
            raise _refusal(layer, "joins images of several sizes")
        return self._graph.node("Concat", *values, axis=1), (sum(shape[0] for shape in shapes), *shapes[0][1:])

    def _weighted_sum(self, layer: Layer, values: list[str], shapes: list[Shape]) -> tuple[str, Shape]:
        options: Mapping[str, Any] = layer.options
        factors = options["coefficients"] or (1.0,) * len(shapes)
        if options["operation"] != _SUM or len(shapes) != 2 or len(factors) != 2:
            raise _refusal(layer, "is not the weighted sum of two blobs, which alone is supported")
        terms = [
            value if factor == 1.0 else self._graph.node("Mul", value, self._graph.weight(float(factor)))
            for value, factor in zip(values, factors, strict=True)
        ]
        return self._sum(layer, terms, shapes)

    def _add(self, layer: Layer, values: list[str], shapes: list[Shape]) -> tuple[str, Shape]:
        if layer.options["operation"] != _ADD or len(shapes) != 2:
            raise _refusal(layer, "is not the sum of two blobs, which alone is supported")
        return self._sum(layer, values, shapes)

    def _sum(self, layer: Layer, terms: list[str], shapes: list[Shape]) -> tuple[str, Shape]:
        if shapes[0] != shapes[1]:
            raise _refusal(layer, f"adds {'x'.join(map(str, shapes[1]))} to {'x'.join(map(str, shapes[0]))}")
        return self._graph.node("Add", *terms), shapes[0]

    def _resize(self, layer: Layer, values: list[str], shapes: list[Shape]) -> tuple[str, Shape]:
        ((channels, height, width),) = shapes
        options: Mapping[str, Any] = layer.options
        if options["method"] not in _RESIZE:
            raise _refusal(layer, f"resizes by method {options['method']}; nearest (1) and bicubic (3) are supported")
        vertical, horizontal = options["height_scale"], options["width_scale"]
        scales = self._graph.weight(np.array([1, 1, vertical, horizontal], np.float32))
        result = self._graph.node("Resize", *values, "", scales, **_RESIZE[options["method"]])
        return result, (channels, int(height * vertical), int(width * horizontal))

    def _pixel_shuffle(self, layer: Layer, values: list[str], shapes: list[Shape]) -> tuple[str, Shape]:
        """Each group of factor * factor channels becomes one, with that many pixels for each of its own."""
        ((channels, height, width),) = shapes
        options: Mapping[str, Any] = layer.options
        factor = options["factor"]
        if factor < 1 or channels % (factor * factor):
            raise _refusal(layer, f"spreads {channels} channels over blocks of {factor}x{factor} pixels")
        fewer = channels // (factor * factor)
        shape = (fewer, height * factor, width * factor)
        apart = self._graph.node("Reshape", *values, self._graph.weight([1, fewer, factor, factor, height, width]))
        transposed = self._graph.node("Transpose", apart, perm=[0, 1, 4, 2, 5, 3])
        return self._graph.node("Reshape", transposed, self._graph.weight([1, *shape])), shape


def _leaky_slope(layer: Layer) -> float | None:
    """The slope below zero of the activation that a convolution has; None: it has none."""
    options: Mapping[str, Any] = layer.options
    if not options["activation"]:
        return None
    if options["activation"] != _LEAKY_RELU or len(options["activation_parameters"]) != 1:
        raise _refusal(layer, f"has activation {options['activation']}, where leaky ReLU (2) is supported")
    slope: float = options["activation_parameters"][0]
    return slope


def _refusal(layer: Layer, what: str) -> CaseError:
    return CaseError("model", f"ncnn layer {layer.name} ({layer.kind}) {what}; name another network")
