"""The trunk of ESRGAN's generator: residual-in-residual dense blocks, three dense blocks and a residual each.

    result = 0.2 * dense(dense(dense(x))) + x, `blocks` times

The published network has 23 of them, and so 345 convolutions, before and after which come a few that matter little.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from harness.models.builder import Builder, BuiltModel
from harness.models.mlir_text import Tensor
from harness.models.residual_dense_block import BlockBody, Size

DENSE_BLOCKS = 3


@dataclass(frozen=True, kw_only=True)
class Parameters:
    """Sizes of the trunk.

    Attributes:
        height: Rows of the image.
        width: Columns of the image.
        channels: Channels of the trunk's input and output.
        growth: Channels that each inner convolution adds.
        blocks: How many residual-in-residual blocks follow each other.
        seed: Of the weights and of the input.
    """

    height: Size = 64
    width: Size = 64
    channels: Size = 64
    growth: Size = 32
    blocks: Size = 23
    seed: Annotated[int, Field(ge=0)] = 0


def _trunk(params: Parameters, body: BlockBody) -> Tensor:
    x = body.argument
    for number in range(params.blocks):
        inner = x
        for dense in range(DENSE_BLOCKS):
            inner = body.block(inner, params.growth, f"block{number}_dense{dense}")
        x = body.scale_and_add(inner, x)
    return x


def _image(params: Parameters) -> tuple[int, ...]:
    return 1, params.channels, params.height, params.width


def build(params: Parameters) -> BuiltModel:
    """Write the blocks with random weights of the seed."""
    body = BlockBody(_image(params), params.seed)
    return body.built(_trunk(params, body))


def write_onnx(params: Parameters) -> bytes:
    """The same blocks in ONNX."""
    from harness.models.residual_dense_block_onnx import OnnxBlockBody

    body = OnnxBlockBody(_image(params), params.seed)
    return body.serialised(_trunk(params, body))


BUILDER = Builder(
    name="rrdb-trunk",
    version="1",
    description="The trunk of ESRGAN's generator: residual-in-residual dense blocks.",
    parameters=Parameters,
    build=build,
    onnx=write_onnx,
)
