"""Programs of language models: attention, a transformer's block, norms, and products that are scaled and quantised.

They are written as IREE's importers write them: f16 and bf16 are summed, normalised and exponentiated in f32 and
rounded after each operation; a fused attention is `iree_linalg_ext.attention`, a decomposed one is a product, a softmax
and a product. With `dynamic` the sequence's length is open in the program; the inputs have the sizes all the same.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from harness.models.builder import Builder, BuiltModel, Seed, Size, render
from harness.models.model import Input
from harness.models.onnx_file import OnnxGraph

Form = Literal["fused", "decomposed"]
Kind = Literal["layer", "rms"]

_EPSILON = 1e-5
# Of the quantised product: what stands for zero in its operands and in its result, and what its sums are scaled by.
_ZEROS = {"zero_left": 4, "zero_right": -3, "zero_result": 5}
_SCALE = 2.0**-3


@dataclass(frozen=True, kw_only=True)
class Common:
    """What all have."""

    dynamic: bool = False  # Whether the program leaves the sequence's length open
    seed: Seed = 0  # Of the first input; the others have the next


@dataclass(frozen=True, kw_only=True)
class FloatParameters(Common):
    """What all have but the quantised product."""

    dtype: Literal["f32", "f16", "bf16"] = "f32"  # Of all tensors but a norm's weights, which are f32


@dataclass(frozen=True, kw_only=True)
class AttentionParameters(FloatParameters):
    """A whole sequence that is read, or one new token beside a cache: then `queries` is 1."""

    heads: Size = 8  # Attention heads, each by itself
    queries: Size = 256  # Rows of the result; a number of 1 stays known where the program is dynamic
    keys: Size = 256  # Rows of the keys and values
    depth: Size = 64  # Width of a head
    form: Form = "fused"  # One operation, or a product, a softmax and a product
    causal: bool = False  # Whether a query sees only the keys up to its own place; the last query sees all

    def __post_init__(self) -> None:
        if self.causal and self.queries > self.keys:
            raise ValueError(
                f"queries is {self.queries}, of which the first would see none of {self.keys} keys; "
                "give more keys, or fewer queries"
            )


@dataclass(frozen=True, kw_only=True)
class BlockParameters(FloatParameters):
    """Norm, causal attention, norm, two layers with a GELU, each half added to its input; weights are constants."""

    sequence: Size = 256  # Rows of the input
    heads: Size = 4  # Attention heads, each by itself
    depth: Size = 64  # Width of a head; all together are as wide as a row
    inner: Size = 1024  # Width between the two layers
    form: Form = "fused"  # Of the attention, as in builder `attention`
    kind: Kind = "layer"  # Norms that subtract the mean and add a bias, or divide by the root mean square only


@dataclass(frozen=True, kw_only=True)
class NormParameters(FloatParameters):
    """A norm over the columns."""

    sequence: Size = 1024  # Rows
    width: Size = 1024  # Columns
    kind: Kind = "layer"  # Subtract the mean and add a bias, or divide by the root mean square only


@dataclass(frozen=True, kw_only=True)
class ProductParameters(FloatParameters):
    """Result[m, n] = gelu(softmax(left)[m, k] * right[k, n]), both of them arguments."""

    m: Size = 512  # Rows, the length of the sequence
    n: Size = 512  # Columns of the right matrix
    k: Size = 512  # Columns of the left matrix, which the softmax is over


@dataclass(frozen=True, kw_only=True)
class QuantizedParameters(Common):
    """Result[m, n] = requantised(left[m, k] * right[k, n]), all i8 with zero points; the right one is a constant."""

    m: Size = 512  # Rows, the length of the sequence
    n: Size = 512  # Columns of the right matrix
    k: Size = 512  # What is summed over, in i32


def _written(
    template: str, params: Any, sizes: Mapping[str, int], inputs: Sequence[str], open_axes: str, **values: Any
) -> BuiltModel:
    """The program of a template; an axis is a letter, and `inputs` say which axes each has."""
    values = {**asdict(params), **values}
    known = {axis: "?" if params.dynamic and axis in open_axes else size for axis, size in sizes.items()}
    shapes = [tuple(sizes[axis] for axis in axes) for axes in inputs]
    made = [Input(shape=shape, dtype=values["dtype"], seed=params.seed + at) for at, shape in enumerate(shapes)]
    return BuiltModel(text=render(template, **values, sizes=known), function="main", inputs=tuple(made))


def build_attention(params: AttentionParameters) -> BuiltModel:
    """Write the attention."""
    sizes = {"h": params.heads, "q": params.queries, "k": params.keys, "e": params.depth}
    return _written("attention.mlir", params, sizes, ["hqe", "hke", "hke"], "k" if params.queries == 1 else "qk")


def _attention(graph: OnnxGraph, params: AttentionParameters, query: str, key: str, value: str) -> str:
    scores = graph.node("MatMul", query, graph.node("Transpose", key, perm=[0, 2, 1]))
    scores = graph.node("Mul", scores, graph.weight(params.depth**-0.5))
    if params.causal:
        every = np.full((params.queries, params.keys), -np.inf, dtype=np.float32)
        scores = graph.node("Add", scores, graph.weight(np.triu(every, k=params.keys - params.queries + 1)))
    return graph.node("MatMul", graph.node("Softmax", scores, axis=-1), value)


def block_weights(params: BlockParameters) -> dict[str, NDArray[np.float32]]:
    """The weights by name, not yet rounded: matrices [in, out] that keep values of order 1, and norms near 1 and 0."""
    rng, width = np.random.default_rng(params.seed + 1), params.heads * params.depth
    weights = {}
    for name in ("query", "key", "value", "out", "up", "down"):
        shape = (params.inner if name == "down" else width, params.inner if name == "up" else width)
        weights[f"weight_{name}"] = rng.standard_normal(shape, dtype=np.float32) / np.float32(math.sqrt(shape[0]))
    for at in range(2):
        weights[f"norm{at}"] = 1 + rng.standard_normal(width, dtype=np.float32) / 8
        if params.kind == "layer":
            weights[f"shift{at}"] = rng.standard_normal(width, dtype=np.float32) / 8
    return weights


def build_block(params: BlockParameters) -> BuiltModel:
    """Write the block with random weights of the seed."""
    width = params.heads * params.depth
    sizes = {"q": params.sequence, "k": params.sequence, "h": params.heads, "e": params.depth}
    sizes |= {"d": width, "c": width, "f": params.inner}
    return _written("transformer_block.mlir", params, sizes, ["qd"], "qk", weights=block_weights(params))


def _block(graph: OnnxGraph, params: BlockParameters, x: str) -> str:
    rows, heads, depth = params.sequence, params.heads, params.depth
    stored = {name: graph.weight(values) for name, values in block_weights(params).items()}

    def norm(value: str, at: int) -> str:
        return graph.node("LayerNormalization", value, stored[f"norm{at}"], stored[f"shift{at}"], epsilon=_EPSILON)

    def linear(value: str, name: str) -> str:
        return graph.node("MatMul", value, stored[f"weight_{name}"])

    def split(value: str) -> str:
        return graph.node("Transpose", graph.node("Reshape", value, graph.weight([rows, heads, depth])), perm=[1, 0, 2])

    before = norm(x, 0)
    attention = AttentionParameters(queries=rows, keys=rows, depth=depth, causal=True)
    attended = _attention(graph, attention, *(split(linear(before, name)) for name in ("query", "key", "value")))
    joined = graph.node("Transpose", attended, perm=[1, 0, 2])
    y = graph.node("Add", x, linear(graph.node("Reshape", joined, graph.weight([rows, heads * depth])), "out"))
    return graph.node("Add", y, linear(graph.gelu(linear(norm(y, 1), "up")), "down"))


def build_norm(params: NormParameters) -> BuiltModel:
    """Write the norm."""
    inputs = ["sd", "d", "d"] if params.kind == "layer" else ["sd", "d"]
    model = _written("norm.mlir", params, {"s": params.sequence, "d": params.width}, inputs, "s")
    return replace(model, inputs=(model.inputs[0], *(replace(value, dtype="f32") for value in model.inputs[1:])))


def _norm(graph: OnnxGraph, _: NormParameters, x: str, weight: str, bias: str) -> str:
    return graph.node("LayerNormalization", x, weight, bias, epsilon=_EPSILON)


def build_product(params: ProductParameters) -> BuiltModel:
    """Write softmax, product and GELU."""
    sizes = {axis: getattr(params, axis) for axis in "mnk"}
    return _written("softmax_matmul_gelu.mlir", params, sizes, ["mk", "kn"], "m")


def _product(graph: OnnxGraph, _: ProductParameters, left: str, right: str) -> str:
    return graph.gelu(graph.node("MatMul", graph.node("Softmax", left, axis=-1), right))


def quantized_right(params: QuantizedParameters) -> NDArray[np.int8]:
    """The right matrix, [k, n]: small whole numbers around its zero point, so that few results reach i8's ends."""
    values = np.random.default_rng(params.seed + 1).integers(-5, 6, size=(params.k, params.n), dtype=np.int8)
    return np.asarray(values + np.int8(_ZEROS["zero_right"]))


def build_quantized(params: QuantizedParameters) -> BuiltModel:
    """Write product and requantisation."""
    sizes = {axis: getattr(params, axis) for axis in "mnk"}
    values = {**_ZEROS, "scale": _SCALE, "right": quantized_right(params), "dtype": "i8"}
    return _written("quantized_matmul.mlir", params, sizes, ["mk"], "m", **values)


def _quantized(graph: OnnxGraph, params: QuantizedParameters, left: str) -> str:
    zeros = [graph.weight(np.asarray(zero, dtype=np.int8)) for zero in _ZEROS.values()]
    right, scale, one = graph.weight(quantized_right(params)), graph.weight(_SCALE), graph.weight(1.0)
    return graph.node("QLinearMatMul", left, scale, zeros[0], right, one, zeros[1], one, zeros[2])


def _builder(
    name: str, description: str, parameters: type[Any], build: Callable[[Any], BuiltModel], nodes: Callable[..., str]
) -> Builder[Any]:
    """A builder whose ONNX form is made of these nodes, which take the graph, the parameters and the inputs."""

    def onnx(params: Any) -> bytes | None:
        """None for what ONNX Runtime has no product of on a CPU, and for the norm that opset 17 has no node of."""
        if getattr(params, "dtype", "f32") != "f32" or getattr(params, "kind", "layer") != "layer":
            return None
        graph = OnnxGraph(name="main", inputs=build(params).inputs)
        return graph.finish(nodes(graph, params, *(f"input{at}" for at in range(len(graph.inputs)))))

    return Builder(name=name, description=description, parameters=parameters, build=build, onnx=onnx)


_ATTENTION = "Attention over a sequence, or of one token beside a cache: fused or decomposed, causal or not."
ATTENTION_BUILDER = _builder("attention", _ATTENTION, AttentionParameters, build_attention, _attention)
_BLOCK = "A transformer's block: causal attention and two layers with a GELU, each behind a norm."
BLOCK_BUILDER = _builder("transformer-block", _BLOCK, BlockParameters, build_block, _block)
_NORM = "A layer norm, or one by the root mean square."
NORM_BUILDER = _builder("layer-norm", _NORM, NormParameters, build_norm, _norm)
_PRODUCT = "A softmax of rows, their product with a matrix, and its GELU."
PRODUCT_BUILDER = _builder("softmax-matmul-gelu", _PRODUCT, ProductParameters, build_product, _product)
_QUANTIZED = "A product of i8 matrices with zero points, requantised to i8."
QUANTIZED_BUILDER = _builder("quantized-matmul", _QUANTIZED, QuantizedParameters, build_quantized, _quantized)
