"""Networks in ncnn's two files, and the same networks in ONNX.

A .param file is text, a layer a line; its .bin has the layers' weights in the same order:

    7767517                                  the format's mark
    3 4                                      how many layers and blobs
    Input        data   0 1 x                type, name, how many inputs and outputs, their blobs, key=value ...
    Split        twice  1 2 x a b
    Convolution  conv   1 1 a y 0=64 1=3 -23310=1,0.2      keys from -23300 down hold lists: their length, then values

In the .bin a convolution's weights follow a mark of four bytes that says f32 or f16; biases and slopes are f32, and
all of it is little-endian. The reader knows what the published super-resolution networks use and refuses all else,
since a key that it passed over (a stride, say) would give another network. Their bytes are pinned
(harness.models.weights), so it is not asked again whether a file is whole.

Two layers are spelt out in simpler operations of ONNX, because IREE 3.13 imports the ONNX operator and computes
something else: of DepthToSpace in CRD mode the channels come out in another order, and PRelu's slopes are laid along
the rows where there are as many of these as channels.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from harness.models.model import Input
from harness.models.onnx_graph import OnnxGraph

Floats = NDArray[np.float32]
_FIRST_LIST = -23300
# By type of layer: its keys by their number in the file, and what those are that are left out.
_KEYS: Mapping[str, Mapping[int, tuple[str, Any]]] = {
    "Input": {},
    "Split": {},
    "Convolution": {
        0: ("channels", None),
        1: ("kernel", None),
        4: ("padding", 0),
        5: ("has_bias", 0),
        6: ("weight_count", None),
        9: ("activation", 0),
        10: ("activation_parameters", ()),
    },
    "PReLU": {0: ("slope_count", None)},
    "Concat": {0: ("axis", 0)},
    "Eltwise": {0: ("operation", 0), 1: ("coefficients", ())},
    "BinaryOp": {0: ("operation", 0)},
    "Interp": {0: ("method", None), 1: ("height_scale", None), 2: ("width_scale", None)},
    "PixelShuffle": {0: ("factor", None)},
}
_F32_MARK, _F16_MARK = 0, 0x01306B47
_LEAKY_RELU = 2
_SUM, _ADD = 1, 0
_RESIZE: Mapping[int, Mapping[str, Any]] = {
    1: {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"},
    3: {"mode": "cubic", "coordinate_transformation_mode": "half_pixel", "cubic_coeff_a": -0.75},
}


@dataclass(frozen=True, kw_only=True)
class Layer:
    """One layer."""

    kind: str  # Its type's name in ncnn
    name: str
    inputs: tuple[str, ...]  # The blobs that it reads
    output: str
    options: Mapping[str, Any] = field(default_factory=dict)  # Its keys, by the names of _KEYS, those left out included
    # Of a convolution `weight` (channels, channels of its input, kernel, kernel) and, if it has one, `bias` (channels);
    # of a PReLU `slope` (channels)
    weights: Mapping[str, Floats] = field(default_factory=dict)

    def refuse(self, what: str) -> ValueError:
        """The error for a layer that is not supported, `what` saying why."""
        return ValueError(f"ncnn layer {self.name} ({self.kind}) {what}; name another network")


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
        """What makes blob `end` of blob `start`, which becomes the input."""
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
    """Read both files to their ends."""
    first_name: dict[str, str] = {}
    layers = []
    with binary.open("rb") as file:
        for line in param.read_text(encoding="ascii").splitlines()[2:]:
            kind, name, input_count, output_count, *words = line.split()
            if kind not in _KEYS:
                raise ValueError(f"ncnn layer {name} is of the type {kind}, and known are {', '.join(_KEYS)}")
            begin, end = int(input_count), int(input_count) + int(output_count)
            inputs, outputs = [first_name[blob] for blob in words[:begin]], words[begin:end]
            first_name.update(dict.fromkeys(outputs, inputs[0] if kind == "Split" else outputs[0]))
            if kind == "Split":
                continue
            options = _options(words[end:], kind, name)
            layers.append(
                Layer(
                    kind=kind,
                    name=name,
                    inputs=tuple(inputs),
                    output=outputs[0],
                    options=options,
                    weights=_weights(file, kind, options),
                )
            )
        if left := len(file.read()):
            raise ValueError(f"{left} bytes of {binary} are left over after the last layer's weights")
    return Network(layers=tuple(layers))


def _options(words: list[str], kind: str, layer: str) -> dict[str, Any]:
    keys = _KEYS[kind]
    options = dict(keys.values())
    for word in words:
        key, _, text = word.partition("=")
        position, is_list = int(key), int(key) <= _FIRST_LIST
        position = _FIRST_LIST - position if is_list else position
        name, otherwise = keys.get(position, ("", None))
        if not name or is_list != isinstance(otherwise, tuple):
            raise ValueError(f"ncnn layer {layer} has the key {key}, which is not supported for {kind}")
        options[name] = tuple(map(float, text.split(",")[1:])) if is_list else _number(text)
    return options


def _number(text: str) -> float:
    return float(text) if "." in text else int(text)


def _weights(file: IO[bytes], kind: str, options: Mapping[str, Any]) -> dict[str, Floats]:
    """What a layer has in the .bin, which is read on from where it is."""
    if kind == "PReLU":
        return {"slope": _floats(file, options["slope_count"])}
    if kind != "Convolution":
        return {}
    channels, kernel, count = options["channels"], options["kernel"], options["weight_count"]
    mark = int.from_bytes(file.read(4), "little")
    if mark == _F32_MARK:
        values = _floats(file, count)
    elif mark == _F16_MARK:
        values = np.frombuffer(file.read(2 * count), "<f2").astype(np.float32)
        file.read(-2 * count % 4)  # padding
    else:
        raise ValueError(f"ncnn weights have the mark {mark:#010x}, which is neither f32's nor f16's")
    weights = {"weight": values.reshape(channels, -1, kernel, kernel)}
    if options["has_bias"]:
        weights["bias"] = _floats(file, channels)
    return weights


def _floats(file: IO[bytes], count: int) -> Floats:
    return np.frombuffer(file.read(4 * count), "<f4").astype(np.float32)


class _Blob(NamedTuple):
    """A blob in the graph: the name of its value, and its sizes; the batch is 1."""

    value: str
    channels: int
    height: int
    width: int


def write_onnx(network: Network, channels: int, height: int, width: int) -> bytes:
    """The network as an ONNX model, serialised.

    Its input is one image, 1 x channels x height x width, f32. Equal arguments give equal bytes.
    """
    graph = OnnxGraph(name="main", inputs=(Input(shape=(1, channels, height, width)),))
    first, *others = network.layers
    blobs = {first.output: _Blob("input0", channels, height, width)}
    for layer in others:
        blobs[layer.output] = _WRITERS[layer.kind](graph, layer, *(blobs[blob] for blob in layer.inputs))
    return graph.finish(blobs[network.layers[-1].output].value)


def _write_convolution(graph: OnnxGraph, layer: Layer, x: _Blob) -> _Blob:
    options = layer.options
    constants = [graph.weight(value) for value in layer.weights.values()]
    result = graph.node("Conv", x.value, *constants, pads=[options["padding"]] * 4)
    if options["activation"] == _LEAKY_RELU:
        (slope,) = options["activation_parameters"]
        result = graph.node("LeakyRelu", result, alpha=slope)
    elif options["activation"]:
        raise layer.refuse(f"has activation {options['activation']}, where leaky ReLU (2) is supported")
    border = 2 * options["padding"] - options["kernel"] + 1
    return _Blob(result, options["channels"], x.height + border, x.width + border)


def _write_prelu(graph: OnnxGraph, layer: Layer, x: _Blob) -> _Blob:
    """max(x, 0) + slope * min(x, 0)."""
    zero = graph.weight(0.0)
    below = graph.node("Min", x.value, zero)
    scaled = graph.node("Mul", below, graph.weight(layer.weights["slope"].reshape(1, -1, 1, 1)))
    return x._replace(value=graph.node("Add", graph.node("Max", x.value, zero), scaled))


def _write_concat(graph: OnnxGraph, layer: Layer, *parts: _Blob) -> _Blob:
    if layer.options["axis"] != 0:
        raise layer.refuse(f"joins along axis {layer.options['axis']}, where channels (0) are supported")
    value = graph.node("Concat", *(part.value for part in parts), axis=1)
    return parts[0]._replace(value=value, channels=sum(part.channels for part in parts))


def _write_weighted_sum(graph: OnnxGraph, layer: Layer, *parts: _Blob) -> _Blob:
    factors = layer.options["coefficients"] or (1.0,) * len(parts)
    if layer.options["operation"] != _SUM or len(parts) != 2:
        raise layer.refuse("is not the weighted sum of two blobs, which alone is supported")
    terms = [
        part.value if factor == 1.0 else graph.node("Mul", part.value, graph.weight(float(factor)))
        for part, factor in zip(parts, factors, strict=True)
    ]
    return parts[0]._replace(value=graph.node("Add", *terms))


def _write_sum(graph: OnnxGraph, layer: Layer, *parts: _Blob) -> _Blob:
    if layer.options["operation"] != _ADD or len(parts) != 2:
        raise layer.refuse("is not the sum of two blobs, which alone is supported")
    return parts[0]._replace(value=graph.node("Add", *(part.value for part in parts)))


def _write_resize(graph: OnnxGraph, layer: Layer, x: _Blob) -> _Blob:
    method, vertical, horizontal = (layer.options[name] for name in ("method", "height_scale", "width_scale"))
    if method not in _RESIZE:
        raise layer.refuse(f"resizes by method {method}; nearest (1) and bicubic (3) are supported")
    scales = graph.weight(np.array([1, 1, vertical, horizontal], np.float32))
    result = graph.node("Resize", x.value, "", scales, **_RESIZE[method])
    return _Blob(result, x.channels, int(x.height * vertical), int(x.width * horizontal))


def _write_pixel_shuffle(graph: OnnxGraph, layer: Layer, x: _Blob) -> _Blob:
    """Each group of factor * factor channels becomes one, with that many pixels for each of its own."""
    factor = layer.options["factor"]
    fewer, height, width = x.channels // (factor * factor), x.height * factor, x.width * factor
    apart = graph.node("Reshape", x.value, graph.weight([1, fewer, factor, factor, x.height, x.width]))
    transposed = graph.node("Transpose", apart, perm=[0, 1, 4, 2, 5, 3])
    joined = graph.node("Reshape", transposed, graph.weight([1, fewer, height, width]))
    return _Blob(joined, fewer, height, width)


_WRITERS: Mapping[str, Callable[..., _Blob]] = {
    "Convolution": _write_convolution,
    "PReLU": _write_prelu,
    "Concat": _write_concat,
    "Eltwise": _write_weighted_sum,
    "BinaryOp": _write_sum,
    "Interp": _write_resize,
    "PixelShuffle": _write_pixel_shuffle,
}
