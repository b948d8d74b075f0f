"""ncnn's layers in ONNX, with static shapes.

Two are spelt out in simpler operations, because IREE 3.13 imports the ONNX operator and computes something else: of
DepthToSpace in CRD mode the channels come out in another order, and PRelu's slopes are laid along the rows where there
are as many of these as channels.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harness.errors import CaseError
from harness.models.ncnn import Layer, Network

OPSET = 17
_IR_VERSION = 8  # that of opset 17
_LEAKY_RELU = 2
_SUM, _ADD = 1, 0
_NEAREST, _BICUBIC = 1, 3

Shape = tuple[int, int, int]  # channels, rows, columns; the batch is 1


def write_onnx(network: Network, channels: int, height: int, width: int) -> bytes:
    """The network as an ONNX model, serialised.

    Its input is one image, 1 x channels x height x width, f32. Equal arguments give equal bytes.

    Raises:
        CaseError: A layer has no form in ONNX, or does not fit what it reads (stage `model`).
    """
    return _Writer((channels, height, width)).write(network)


class _Writer:
    """A graph that grows by a layer at a time; every blob keeps its name."""

    def __init__(self, shape: Shape) -> None:
        from onnx import helper, numpy_helper

        self._helper: Any = helper
        self._from_array: Any = numpy_helper.from_array
        self._input_shape = shape
        self._shapes: dict[str, Shape] = {}
        self._nodes: list[Any] = []
        self._constants: list[Any] = []

    def write(self, network: Network) -> bytes:
        """All layers, as a model."""
        for layer in network.layers:
            self._shapes[layer.output] = self._layer(layer)
        source, result = network.layers[0].output, network.layers[-1].output
        graph = self._helper.make_graph(
            self._nodes, "main", [self._value(source)], [self._value(result)], self._constants
        )
        opset = self._helper.make_opsetid("", OPSET)
        model = self._helper.make_model(graph, opset_imports=[opset], ir_version=_IR_VERSION)
        serialised: bytes = model.SerializeToString(deterministic=True)
        return serialised

    def _layer(self, layer: Layer) -> Shape:
        writers: Mapping[str, Callable[[Layer, list[Shape]], Shape]] = {
            "Input": lambda _layer, _shapes: self._input_shape,
            "Convolution": self._convolution,
            "PReLU": self._prelu,
            "Concat": self._concat,
            "Eltwise": self._weighted_sum,
            "BinaryOp": self._add,
            "Interp": self._resize,
            "PixelShuffle": self._pixel_shuffle,
        }
        return writers[layer.kind](layer, [self._shapes[blob] for blob in layer.inputs])

    def _convolution(self, layer: Layer, shapes: list[Shape]) -> Shape:
        ((channels, height, width),) = shapes
        options: Mapping[str, Any] = layer.options
        weight = layer.weights["weight"]
        if weight.shape[1] != channels:
            raise _refusal(layer, f"has weights for {weight.shape[1]} channels and reads {channels}")
        slope = _leaky_slope(layer)
        result = layer.output if slope is None else f"{layer.output}_linear"
        constants = [self._constant(f"{layer.name}_{name}", value) for name, value in layer.weights.items()]
        self._node("Conv", [*layer.inputs, *constants], result, pads=[options["padding"]] * 4)
        if slope is not None:
            self._node("LeakyRelu", [result], layer.output, alpha=slope)
        border = 2 * options["padding"] - options["kernel"] + 1
        return (weight.shape[0], height + border, width + border)

    def _prelu(self, layer: Layer, shapes: list[Shape]) -> Shape:
        """max(x, 0) + slope * min(x, 0)."""
        ((channels, _, _),) = shapes
        slope = layer.weights["slope"]
        if slope.shape != (channels,):
            raise _refusal(layer, f"has {slope.size} slopes and reads {channels} channels")
        (x,) = layer.inputs
        above, below, scaled = (f"{layer.output}_{part}" for part in ("above", "below", "scaled"))
        zero = self._constant(f"{layer.name}_zero", np.zeros((), np.float32))
        slopes = self._constant(f"{layer.name}_slope", slope.reshape(1, channels, 1, 1))
        self._node("Max", [x, zero], above)
        self._node("Min", [x, zero], below)
        self._node("Mul", [below, slopes], scaled)
        self._node("Add", [above, scaled], layer.output)
        return shapes[0]

    def _concat(self, layer: Layer, shapes: list[Shape]) -> Shape:
        if layer.options["axis"] != 0:
            raise _refusal(layer, f"joins along axis {layer.options['axis']}, where channels (0) are supported")
        if len({shape[1:] for shape in shapes}) != 1:
            raise _refusal(layer, "joins images of several sizes")
        self._node("Concat", layer.inputs, layer.output, axis=1)
        return (sum(shape[0] for shape in shapes), *shapes[0][1:])

    def _weighted_sum(self, layer: Layer, shapes: list[Shape]) -> Shape:
        options: Mapping[str, Any] = layer.options
        factors = options["coefficients"] or (1.0,) * len(shapes)
        if options["operation"] != _SUM or len(shapes) != 2 or len(factors) != 2:
            raise _refusal(layer, "is not the weighted sum of two blobs, which alone is supported")
        terms = [self._scaled(layer, blob, factor) for blob, factor in zip(layer.inputs, factors, strict=True)]
        return self._sum(layer, terms, shapes)

    def _scaled(self, layer: Layer, blob: str, factor: float) -> str:
        if factor == 1.0:
            return blob
        constant = self._constant(f"{layer.name}_{blob}_factor", np.array(factor, np.float32))
        return self._node("Mul", [blob, constant], f"{layer.output}_{blob}_scaled")

    def _add(self, layer: Layer, shapes: list[Shape]) -> Shape:
        if layer.options["operation"] != _ADD or len(shapes) != 2:
            raise _refusal(layer, "is not the sum of two blobs, which alone is supported")
        return self._sum(layer, list(layer.inputs), shapes)

    def _sum(self, layer: Layer, terms: list[str], shapes: list[Shape]) -> Shape:
        if shapes[0] != shapes[1]:
            raise _refusal(layer, f"adds {'x'.join(map(str, shapes[1]))} to {'x'.join(map(str, shapes[0]))}")
        self._node("Add", terms, layer.output)
        return shapes[0]

    def _resize(self, layer: Layer, shapes: list[Shape]) -> Shape:
        ((channels, height, width),) = shapes
        options: Mapping[str, Any] = layer.options
        vertical, horizontal = options["height_scale"], options["width_scale"]
        attributes: dict[str, Any]
        if options["method"] == _NEAREST:
            attributes = {
                "mode": "nearest",
                "coordinate_transformation_mode": "asymmetric",
                "nearest_mode": "floor",
            }
        elif options["method"] == _BICUBIC:
            attributes = {
                "mode": "cubic",
                "coordinate_transformation_mode": "half_pixel",
                "cubic_coeff_a": -0.75,
            }
        else:
            raise _refusal(layer, f"resizes by method {options['method']}; nearest (1) and bicubic (3) are supported")
        scales = self._constant(f"{layer.name}_scales", np.array([1, 1, vertical, horizontal], np.float32))
        self._node("Resize", [*layer.inputs, "", scales], layer.output, **attributes)
        return (channels, int(height * vertical), int(width * horizontal))

    def _pixel_shuffle(self, layer: Layer, shapes: list[Shape]) -> Shape:
        """Each group of factor * factor channels becomes one, with that many pixels for each of its own."""
        ((channels, height, width),) = shapes
        options: Mapping[str, Any] = layer.options
        factor = options["factor"]
        if factor < 1 or channels % (factor * factor):
            raise _refusal(layer, f"spreads {channels} channels over blocks of {factor}x{factor} pixels")
        fewer = channels // (factor * factor)
        shape = (fewer, height * factor, width * factor)
        apart, turned = f"{layer.output}_apart", f"{layer.output}_turned"
        self._reshape(layer.inputs[0], (1, fewer, factor, factor, height, width), apart)
        self._node("Transpose", [apart], turned, perm=[0, 1, 4, 2, 5, 3])
        self._reshape(turned, (1, *shape), layer.output)
        return shape

    def _reshape(self, blob: str, shape: tuple[int, ...], output: str) -> None:
        self._node("Reshape", [blob, self._constant(f"{output}_sizes", np.array(shape, np.int64))], output)

    def _node(self, operator: str, inputs: Any, output: str, **attributes: Any) -> str:
        self._nodes.append(self._helper.make_node(operator, list(inputs), [output], name=output, **attributes))
        return output

    def _constant(self, name: str, value: NDArray[Any]) -> str:
        self._constants.append(self._from_array(np.ascontiguousarray(value), name))
        return name

    def _value(self, blob: str) -> Any:
        from onnx import TensorProto

        return self._helper.make_tensor_value_info(blob, TensorProto.FLOAT, [1, *self._shapes[blob]])


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
