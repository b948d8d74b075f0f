"""Networks in ncnn's two files, and the same networks in ONNX.

A .param file is text, a layer a line; its .bin has the layers' weights in the same order:

    7767517                                  the format's mark
    3 4                                      how many layers and blobs
    Input        data   0 1 x                type, name, how many inputs and outputs, their blobs, key=value ...
    Split        twice  1 2 x a b
    Convolution  conv   1 1 a y 0=64 1=3 -23310=1,0.2      keys from -23300 down hold lists: their length, then values

In the .bin a convolution's weights are f16, behind a mark of four bytes; biases and slopes are f32, and all of it is
little-endian. The reader knows what the published super-resolution networks use. Their bytes are pinned
(harness.models.weights), so it is not asked what else a file might hold, or whether it is whole.

Two layers are spelt out in simpler operations of ONNX, because IREE 3.13 imports the ONNX operator and computes
something else: of DepthToSpace in CRD mode the channels come out in another order, and PRelu's slopes are laid along
the rows where there are as many of these as channels.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from harness.models.model import Input
from harness.models.onnx_file import OnnxGraph

Floats = NDArray[np.float32]
_FIRST_LIST = -23300
_RESIZE: Mapping[int, Mapping[str, Any]] = {
    1: {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"},
    3: {"mode": "cubic", "coordinate_transformation_mode": "half_pixel", "cubic_coeff_a": -0.75},
}


class Layer(NamedTuple):
    """One layer, which makes a blob of others."""

    kind: str  # Its type's name in ncnn
    inputs: tuple[str, ...]
    output: str
    options: Mapping[int, Any]  # By their numbers in the file, those of lists too: 10 for -23310
    # Of a convolution [channels, channels of its input, kernel, kernel] and bias; of a PReLU its slopes
    weights: tuple[Floats, ...]


# Each layer comes after those whose blobs it reads; the last one's is the result. There are no Splits: they only give a
# blob more names, and all layers call it by its first.
Network = tuple[Layer, ...]


def between(network: Network, start: str, end: str) -> Network:
    """What makes blob `end` of blob `start`, which becomes the input."""
    needed, taken = {end}, list[Layer]()
    for layer in reversed(network):
        if layer.output in needed and layer.output != start:
            taken.append(layer)
            needed.update(layer.inputs)
    return (Layer("Input", (), start, {}, ()), *reversed(taken))


def read_network(param: Path, binary: Path) -> Network:
    """Read both files."""
    first_name: dict[str, str] = {}
    layers = []
    with binary.open("rb") as file:
        for line in param.read_text(encoding="ascii").splitlines()[2:]:
            kind, _, input_count, output_count, *words = line.split()
            begin, end = int(input_count), int(input_count) + int(output_count)
            inputs, outputs = tuple(first_name[blob] for blob in words[:begin]), words[begin:end]
            first_name.update(dict.fromkeys(outputs, inputs[0] if kind == "Split" else outputs[0]))
            if kind != "Split":
                options = dict(map(_option, words[end:]))
                layers.append(Layer(kind, inputs, outputs[0], options, _weights(file, kind, options)))
    return tuple(layers)


def _option(word: str) -> tuple[int, Any]:
    key, _, text = word.partition("=")
    if int(key) <= _FIRST_LIST:
        return _FIRST_LIST - int(key), [float(number) for number in text.split(",")[1:]]
    return int(key), float(text) if "." in text else int(text)


def _weights(file: IO[bytes], kind: str, options: Mapping[int, Any]) -> tuple[Floats, ...]:
    """What a layer has in the .bin, which is read on from where it is."""
    if kind == "PReLU":
        return (_floats(file, options[0]),)
    if kind != "Convolution":
        return ()
    channels, kernel, count = options[0], options[1], options[6]
    file.read(4)  # a mark: f16
    values = np.frombuffer(file.read(2 * count), "<f2").astype(np.float32)
    file.read(-2 * count % 4)  # padding
    return values.reshape(channels, -1, kernel, kernel), _floats(file, channels)


def _floats(file: IO[bytes], count: int) -> Floats:
    return np.frombuffer(file.read(4 * count), "<f4").astype(np.float32)


class _Blob(NamedTuple):
    """A blob in the graph: the name of its value, and its sizes; the batch is 1."""

    value: str
    channels: int
    height: int
    width: int


def write_onnx(network: Network, channels: int, height: int, width: int) -> bytes:
    """The network as an ONNX model, serialised; its input is one image, 1 x channels x height x width, f32."""
    graph = OnnxGraph(name="main", inputs=(Input(shape=(1, channels, height, width)),))
    first, *others = network
    blobs = {first.output: _Blob("input0", channels, height, width)}
    for layer in others:
        blobs[layer.output] = _WRITERS[layer.kind](graph, layer, *(blobs[blob] for blob in layer.inputs))
    return graph.finish(blobs[network[-1].output].value)


def _write_convolution(graph: OnnxGraph, layer: Layer, x: _Blob) -> _Blob:
    channels, kernel, padding = layer.options[0], layer.options[1], layer.options.get(4, 0)
    result = graph.node("Conv", x.value, *map(graph.weight, layer.weights), pads=[padding] * 4)
    if 9 in layer.options:  # an activation: in the published networks always a leaky ReLU
        result = graph.node("LeakyRelu", result, alpha=layer.options[10][0])
    border = 2 * padding - kernel + 1
    return _Blob(result, channels, x.height + border, x.width + border)


def _write_prelu(graph: OnnxGraph, layer: Layer, x: _Blob) -> _Blob:
    """max(x, 0) + slope * min(x, 0)."""
    zero = graph.weight(0.0)
    below = graph.node("Min", x.value, zero)
    scaled = graph.node("Mul", below, graph.weight(layer.weights[0].reshape(1, -1, 1, 1)))
    return x._replace(value=graph.node("Add", graph.node("Max", x.value, zero), scaled))


def _write_concat(graph: OnnxGraph, _: Layer, *parts: _Blob) -> _Blob:
    value = graph.node("Concat", *(part.value for part in parts), axis=1)
    return parts[0]._replace(value=value, channels=sum(part.channels for part in parts))


def _write_sum(graph: OnnxGraph, layer: Layer, *parts: _Blob) -> _Blob:
    """Of two blobs, each with a factor where the layer is an Eltwise."""
    terms = [
        part.value if factor == 1.0 else graph.node("Mul", part.value, graph.weight(factor))
        for part, factor in zip(parts, layer.options.get(1, [1.0, 1.0]), strict=True)
    ]
    return parts[0]._replace(value=graph.node("Add", *terms))


def _write_resize(graph: OnnxGraph, layer: Layer, x: _Blob) -> _Blob:
    method, vertical, horizontal = (layer.options[key] for key in range(3))
    scales = graph.weight(np.array([1, 1, vertical, horizontal], np.float32))
    result = graph.node("Resize", x.value, "", scales, **_RESIZE[method])
    return _Blob(result, x.channels, int(x.height * vertical), int(x.width * horizontal))


def _write_pixel_shuffle(graph: OnnxGraph, layer: Layer, x: _Blob) -> _Blob:
    """Each group of factor * factor channels becomes one, with that many pixels for each of its own."""
    factor = layer.options[0]
    fewer, height, width = x.channels // (factor * factor), x.height * factor, x.width * factor
    apart = graph.node("Reshape", x.value, graph.weight([1, fewer, factor, factor, x.height, x.width]))
    transposed = graph.node("Transpose", apart, perm=[0, 1, 4, 2, 5, 3])
    joined = graph.node("Reshape", transposed, graph.weight([1, fewer, height, width]))
    return _Blob(joined, fewer, height, width)


_WRITERS: Mapping[str, Callable[..., _Blob]] = {
    "Convolution": _write_convolution,
    "PReLU": _write_prelu,
    "Concat": _write_concat,
    "Eltwise": _write_sum,
    "BinaryOp": _write_sum,
    "Interp": _write_resize,
    "PixelShuffle": _write_pixel_shuffle,
}
