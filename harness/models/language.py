"""Programs of language models: attention, a transformer's block, norms, and products that are scaled and quantised.

They are written as IREE's importers write them: f16 and bf16 are summed, normalised and exponentiated in f32 and
rounded after each operation; a fused attention is `iree_linalg_ext.attention`, a decomposed one is a product, a softmax
and a product. With `dynamic` the sequence's length is open in the program; the inputs have the sizes all the same.
"""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from harness.models.builder import Builder, BuiltModel, Seed, Size, render
from harness.models.inputs import HELD_AS
from harness.models.model import Input
from harness.models.onnx_file import OnnxGraph

Dtype = Literal["f32", "f16", "bf16"]
Form = Literal["fused", "decomposed"]
Kind = Literal["layer", "rms"]

_EPSILON = 1e-5
# Of the quantised product: what stands for zero in its operands and in its result, and what its sums are scaled by.
_ZERO_LEFT, _ZERO_RIGHT, _ZERO_RESULT, _SCALE = 4, -3, 5, 2.0**-3


@dataclass(frozen=True, kw_only=True)
class Common:
    """What all but the quantised product have."""

    dtype: Dtype = "f32"  # Of all tensors but a norm's weights, which are f32
    dynamic: bool = False  # Whether the program leaves the sequence's length open
    seed: Seed = 0  # Of the first input; the others have the next


@dataclass(frozen=True, kw_only=True)
class AttentionParameters(Common):
    """A whole sequence that is read, or one new token beside a cache: then `queries` is 1."""

    heads: Size = 8  # Attention heads, each by itself
    queries: Size = 256  # Rows of the result; a number of 1 stays known where the program is dynamic
    keys: Size = 256  # Rows of the keys and values
    depth: Size = 64  # Width of a head
    form: Form = "fused"  # One operation, or a product, a softmax and a product
    causal: bool = False  # Whether a query sees only the keys up to its own place; the last query sees all


@dataclass(frozen=True, kw_only=True)
class BlockParameters(Common):
    """Norm, causal attention, norm, two layers with a GELU, each half added to its input; weights are constants."""

    sequence: Size = 256  # Rows of the input
    heads: Size = 4  # Attention heads, each by itself
    depth: Size = 64  # Width of a head; all together are as wide as a row
    inner: Size = 1024  # Width between the two layers
    form: Form = "fused"  # Of the attention, as in builder `attention`
    kind: Kind = "layer"  # Norms that subtract the mean and add a bias, or divide by the root mean square only


@dataclass(frozen=True, kw_only=True)
class NormParameters(Common):
    """A norm over the columns."""

    sequence: Size = 2048  # Rows
    width: Size = 1024  # Columns
    kind: Kind = "layer"  # Subtract the mean and add a bias, or divide by the root mean square only


@dataclass(frozen=True, kw_only=True)
class ProductParameters(Common):
    """Result[m, n] = gelu(softmax(left)[m, k] * right[k, n]), both of them arguments."""

    m: Size = 512  # Rows, the length of the sequence
    n: Size = 512  # Columns of the right matrix
    k: Size = 512  # Columns of the left matrix, which the softmax is over


@dataclass(frozen=True, kw_only=True)
class QuantizedParameters:
    """Result[m, n] = requantised(left[m, k] * right[k, n]), all i8 with zero points; the right one is a constant."""

    m: Size = 512  # Rows, the length of the sequence
    n: Size = 512  # Columns of the right matrix
    k: Size = 512  # What is summed over, in i32
    dynamic: bool = False  # Whether the program leaves the number of rows open
    seed: Seed = 0  # Of the left matrix; the right one has the next


def _written(
    template: str, params: Any, inputs: tuple[Input, ...], sizes: Mapping[str, int], open_axes: str, **values: Any
) -> BuiltModel:
    known = {axis: "?" if params.dynamic and axis in open_axes else size for axis, size in sizes.items()}
    text = render(template, **{**asdict(params), **values}, sizes=known)
    return BuiltModel(text=text, function="main", inputs=inputs)


def _inputs(params: Common | QuantizedParameters, *shapes: tuple[int, ...]) -> tuple[Input, ...]:
    dtype = params.dtype if isinstance(params, Common) else "i8"
    return tuple(Input(shape=shape, dtype=dtype, seed=params.seed + at) for at, shape in enumerate(shapes))


# --- attention --------------------------------------------------------------------------------------------------------


def _attention_inputs(params: AttentionParameters) -> tuple[Input, ...]:
    query, key = ((params.heads, rows, params.depth) for rows in (params.queries, params.keys))
    return _inputs(params, query, key, key)


def build_attention(params: AttentionParameters) -> BuiltModel:
    """Write the attention."""
    sizes = {"h": params.heads, "q": params.queries, "k": params.keys, "e": params.depth}
    open_axes = "k" if params.queries == 1 else "qk"
    return _written("attention.mlir", params, _attention_inputs(params), sizes, open_axes)


def _attend(graph: OnnxGraph, names: list[str], queries: int, keys: int, depth: int, causal: bool) -> str:
    query, key, value = names
    turned = graph.node("Transpose", key, perm=[0, 2, 1])
    scores = graph.node("Mul", graph.node("MatMul", query, turned), graph.weight(depth**-0.5))
    if causal:
        hidden = np.triu(np.full((queries, keys), -np.inf, dtype=np.float32), k=keys - queries + 1)
        scores = graph.node("Add", scores, graph.weight(hidden))
    return graph.node("MatMul", graph.node("Softmax", scores, axis=-1), value)


def attention_onnx(params: AttentionParameters) -> bytes | None:
    """The same in ONNX, decomposed; None but for f32, the one type that ONNX Runtime multiplies on a CPU as it is."""
    if params.dtype != "f32":
        return None
    graph = OnnxGraph(name="main", inputs=_attention_inputs(params))
    names = ["input0", "input1", "input2"]
    return graph.finish(_attend(graph, names, params.queries, params.keys, params.depth, params.causal))


# --- a transformer's block --------------------------------------------------------------------------------------------


def block_weights(params: BlockParameters) -> dict[str, NDArray[np.float32]]:
    """The weights by name, not yet rounded: matrices [in, out] that keep values of order 1, and norms near 1 and 0."""
    rng, width = np.random.default_rng(params.seed + 1), params.heads * params.depth
    outs = {"query": width, "key": width, "value": width, "out": width, "up": params.inner, "down": width}
    weights = {}
    for name, out in outs.items():
        inside = params.inner if name == "down" else width
        weights[f"weight_{name}"] = rng.standard_normal((inside, out), dtype=np.float32) / np.float32(math.sqrt(inside))
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
    inputs = _inputs(params, (params.sequence, width))
    return _written("transformer_block.mlir", params, inputs, sizes, "qk", weights=block_weights(params))


def block_onnx(params: BlockParameters) -> bytes | None:
    """The same in ONNX; None for other types than f32, and for the norm that opset 17 has no node of."""
    if params.dtype != "f32" or params.kind != "layer":
        return None
    rows, heads, depth = params.sequence, params.heads, params.depth
    graph = OnnxGraph(name="main", inputs=_inputs(params, (rows, heads * depth)))
    stored = {name: graph.weight(values) for name, values in block_weights(params).items()}

    def norm(value: str, at: int) -> str:
        return graph.node("LayerNormalization", value, stored[f"norm{at}"], stored[f"shift{at}"], epsilon=_EPSILON)

    def linear(value: str, name: str) -> str:
        return graph.node("MatMul", value, stored[f"weight_{name}"])

    def split(value: str) -> str:
        return graph.node("Transpose", graph.node("Reshape", value, graph.weight([rows, heads, depth])), perm=[1, 0, 2])

    before = norm("input0", 0)
    names = [split(linear(before, name)) for name in ("query", "key", "value")]
    joined = graph.node("Transpose", _attend(graph, names, rows, rows, depth, True), perm=[1, 0, 2])
    context = graph.node("Reshape", joined, graph.weight([rows, heads * depth]))
    y = graph.node("Add", "input0", linear(context, "out"))
    return graph.finish(graph.node("Add", y, linear(graph.gelu(linear(norm(y, 1), "up")), "down")))


# --- norms and products -----------------------------------------------------------------------------------------------


def _norm_inputs(params: NormParameters) -> tuple[Input, ...]:
    per_column = [Input(shape=(params.width,), seed=params.seed + at) for at in (1, 2)]
    return (*_inputs(params, (params.sequence, params.width)), *per_column[: 2 if params.kind == "layer" else 1])


def build_norm(params: NormParameters) -> BuiltModel:
    """Write the norm."""
    return _written("norm.mlir", params, _norm_inputs(params), {"s": params.sequence, "d": params.width}, "s")


def norm_onnx(params: NormParameters) -> bytes | None:
    """The same in ONNX; None for other types than f32, and for the norm that opset 17 has no node of."""
    if params.dtype != "f32" or params.kind != "layer":
        return None
    graph = OnnxGraph(name="main", inputs=_norm_inputs(params))
    return graph.finish(graph.node("LayerNormalization", "input0", "input1", "input2", epsilon=_EPSILON))


def build_product(params: ProductParameters) -> BuiltModel:
    """Write softmax, product and GELU."""
    inputs = _inputs(params, (params.m, params.k), (params.k, params.n))
    return _written("softmax_matmul_gelu.mlir", params, inputs, {axis: getattr(params, axis) for axis in "mnk"}, "m")


def product_onnx(params: ProductParameters) -> bytes | None:
    """The same in ONNX; None but for f32."""
    if params.dtype != "f32":
        return None
    graph = OnnxGraph(name="main", inputs=_inputs(params, (params.m, params.k), (params.k, params.n)))
    return graph.finish(graph.gelu(graph.node("MatMul", graph.node("Softmax", "input0", axis=-1), "input1")))


def quantized_right(params: QuantizedParameters) -> NDArray[np.int8]:
    """The right matrix, [k, n]: small whole numbers around its zero point, so that few results reach i8's ends."""
    rng = np.random.default_rng(params.seed + 1)
    return np.asarray(rng.integers(_ZERO_RIGHT - 5, _ZERO_RIGHT + 6, size=(params.k, params.n), dtype=np.int8))


def build_quantized(params: QuantizedParameters) -> BuiltModel:
    """Write product and requantisation."""
    points = {"zero_left": _ZERO_LEFT, "zero_right": _ZERO_RIGHT, "zero_result": _ZERO_RESULT, "scale": _SCALE}
    sizes = {axis: getattr(params, axis) for axis in "mnk"}
    inputs, right = _inputs(params, (params.m, params.k)), quantized_right(params)
    return _written("quantized_matmul.mlir", params, inputs, sizes, "m", **points, right=right, dtype="i8")


def quantized_onnx(params: QuantizedParameters) -> bytes:
    """The same in ONNX."""
    graph = OnnxGraph(name="main", inputs=_inputs(params, (params.m, params.k)))
    right = quantized_right(params)
    operands = [(_ZERO_LEFT, _SCALE), (_ZERO_RIGHT, 1.0), (_ZERO_RESULT, 1.0)]
    left, other, result = (
        (graph.weight(scale), graph.weight(np.asarray(zero, dtype=HELD_AS["i8"]))) for zero, scale in operands
    )
    return graph.finish(graph.node("QLinearMatMul", "input0", *left, graph.weight(right), *other, *result))


ATTENTION_BUILDER = Builder(
    name="attention",
    description="Attention over a sequence, or of one token beside a cache: fused or decomposed, causal or not.",
    parameters=AttentionParameters,
    build=build_attention,
    onnx=attention_onnx,
)
BLOCK_BUILDER = Builder(
    name="transformer-block",
    description="A transformer's block: causal attention and two layers with a GELU, each behind a norm.",
    parameters=BlockParameters,
    build=build_block,
    onnx=block_onnx,
)
NORM_BUILDER = Builder(
    name="layer-norm",
    description="A layer norm, or one by the root mean square.",
    parameters=NormParameters,
    build=build_norm,
    onnx=norm_onnx,
)
PRODUCT_BUILDER = Builder(
    name="softmax-matmul-gelu",
    description="A softmax of rows, their product with a matrix, and its GELU.",
    parameters=ProductParameters,
    build=build_product,
    onnx=product_onnx,
)
QUANTIZED_BUILDER = Builder(
    name="quantized-matmul",
    description="A product of i8 matrices with zero points, requantised to i8.",
    parameters=QuantizedParameters,
    build=build_quantized,
    onnx=quantized_onnx,
)
