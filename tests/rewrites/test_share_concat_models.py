"""Dense blocks have their concatenations shared, whichever front end they come from: fewer copies, the same numbers."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from harness.models.residual_dense_block import Parameters, build
from harness.rewrites.channels_last import channels_last
from harness.rewrites.share_concat import share_concat
from tests.rewrites.tools import CPU, VULKAN, Compiled, compiled, lowered, random, rewritten

CHANNELS, GROWTH, HEIGHT, WIDTH = 8, 4, 10, 6
SHAPE = (1, CHANNELS, HEIGHT, WIDTH)
CONVOLUTIONS = 5


def built_block(blocks: int = 1) -> str:
    """The harness's own model: chains of tensor.insert_slice, as in the issue."""
    text = build(Parameters(height=HEIGHT, width=WIDTH, channels=CHANNELS, growth=GROWTH, blocks=blocks)).text
    assert isinstance(text, str)
    return text


def torch_block() -> str:
    """What PyTorch exports, in the torch dialect; 4 channels, growth 2, 5x6."""
    return (Path(__file__).parent / "data" / "dense_block_torch.mlir").read_text()


@dataclass
class _Graph:
    """An ONNX graph while it is written."""

    rng: np.random.Generator = field(default_factory=lambda: np.random.default_rng(0))
    nodes: list[Any] = field(default_factory=list)
    weights: list[Any] = field(default_factory=list)

    def node(self, kind: str, *inputs: str, **attributes: Any) -> str:
        """Append one node; its output."""
        output = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [output], **attributes))
        return output

    def weight(self, *shape: int) -> str:
        name = f"w{len(self.weights)}"
        values = np.asarray(self.rng.standard_normal(shape) / 4, np.float32)
        self.weights.append(numpy_helper.from_array(values, name))
        return name

    def convolution(self, x: str, channels_in: int, channels: int, *, kernel: int = 3) -> str:
        weight, bias = self.weight(channels, channels_in, kernel, kernel), self.weight(channels)
        return self.node("Conv", x, weight, bias, kernel_shape=[kernel] * 2, pads=[kernel // 2] * 4)

    def add_scaled(self, update: str, x: str) -> str:
        return self.node("Add", self.node("Mul", update, self.weight()), x)

    def dense_block(self, x: str, *, kernel: int = 3) -> str:
        """ESRGAN's; `kernel` is that of the last convolution."""
        parts = [x]
        for number in range(CONVOLUTIONS - 1):
            joined = self.node("Concat", *parts, axis=1) if number else x
            y = self.convolution(joined, CHANNELS + number * GROWTH, GROWTH)
            parts.append(self.node("LeakyRelu", y, alpha=0.2))
        joined = self.node("Concat", *parts, axis=1)
        channels = CHANNELS + (CONVOLUTIONS - 1) * GROWTH
        return self.add_scaled(self.convolution(joined, channels, CHANNELS, kernel=kernel), x)

    def imported(self, output: str) -> str:
        """The graph, saved and imported."""
        graph = helper.make_graph(
            self.nodes,
            "main",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, SHAPE)],
            [helper.make_tensor_value_info(output, TensorProto.FLOAT, None)],
            self.weights,
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        with TemporaryDirectory() as folder:
            file = Path(folder) / "model.onnx"
            onnx.save(onnx.shape_inference.infer_shapes(model), str(file))
            command = [sys.executable, "-m", "iree.compiler.tools.import_onnx", str(file)]
            return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout


def onnx_block(*, kernel: int = 3) -> str:
    graph = _Graph()
    return graph.imported(graph.dense_block("x", kernel=kernel))


class Model(NamedTuple):
    """A model and what sharing makes of it.

    Attributes:
        text: Makes what the front end hands over.
        shared: How many concatenations become slices.
        stock: Dispatches, copies and fills of the model as it is.
        padded: The same once buffers are shared that have the padding around them.
        plain: The same once buffers are shared that have none.
        shape: Of the argument.
    """

    text: Callable[[], str]
    shared: int
    stock: tuple[int, int, int]
    padded: tuple[int, int, int]
    plain: tuple[int, int, int]
    shape: tuple[int, ...] = SHAPE


def channels_last_block() -> str:
    """A part then lies in the buffer with gaps; two dispatches more transpose the image and the result."""
    return rewritten(lowered(built_block(), "input"), channels_last)[0]


BLOCK = Model(built_block, 3, (10, 13, 5), (10, 0, 1), (10, 1, 5))
MODELS = {
    "built": BLOCK,
    "three built blocks": Model(partial(built_block, 3), 9, (30, 39, 15), (30, 0, 1), (30, 3, 15)),
    "onnx": BLOCK._replace(text=onnx_block),
    "onnx, a 1x1 convolution reads all": Model(partial(onnx_block, kernel=1), 3, (9, 13, 4), (10, 0, 1), (9, 1, 4)),
    "torch": BLOCK._replace(text=torch_block, shape=(1, 4, 5, 6)),
    "channels last": Model(channels_last_block, 3, (26, 0, 5), (12, 0, 1), (17, 0, 5)),
}
COMPILED = [
    *(pytest.param(name, CPU, id=f"{name}, cpu") for name in MODELS),
    *(pytest.param(name, VULKAN, id=f"{name}, vulkan") for name in ("built", "channels last")),
]
PADDINGS: tuple[bool | None, ...] = (None, True, False)


@cache
def at_input(name: str) -> str:
    text = MODELS[name].text()
    return text if "util.func" in text else lowered(text, "input")


@cache
def variants(name: str, target: Sequence[str]) -> tuple[Compiled, ...]:
    """The model as it is, with shared buffers that have padding, and with ones that have none."""
    sharing = [[] if padding is None else [partial(share_concat, padding=padding)] for padding in PADDINGS]
    return tuple(compiled(rewritten(at_input(name), *rewrites)[0], target) for rewrites in sharing)


@pytest.mark.parametrize("padding", [True, False])
@pytest.mark.parametrize("name", MODELS)
def test_the_concatenations_are_found(name: str, padding: bool) -> None:
    assert rewritten(at_input(name), partial(share_concat, padding=padding))[1] == [MODELS[name].shared]


@pytest.mark.parametrize(("name", "target"), COMPILED)
def test_the_copies_go_and_memory_goes_down(name: str, target: Sequence[str]) -> None:
    model = MODELS[name]
    assert [module.counts for module in variants(name, target)] == [model.stock, model.padded, model.plain]
    stock, padded, plain = (module.statistics.transient_bytes for module in variants(name, target))
    assert padded <= plain < stock
    assert padded <= 0.51 * stock


@pytest.mark.parametrize("target", [CPU, VULKAN], ids=["cpu", "vulkan"])
def test_the_block_of_the_issue_at_its_own_size(target: Sequence[str]) -> None:
    """1x64x90x62, as in https://github.com/iree-org/iree/issues/11102: 13 copies, and 19.8 MB on a CPU."""
    text, _ = rewritten(lowered(str(build(Parameters()).text), "input"), share_concat)
    statistics = compiled(text, target).statistics
    assert statistics.copies <= 1
    assert statistics.transient_bytes <= 10_300_000


@pytest.mark.parametrize(
    ("name", "target"), [*COMPILED[: len(MODELS)], pytest.param("built", VULKAN, marks=pytest.mark.vulkan)]
)
def test_the_numbers_are_the_same_bit_for_bit(name: str, target: Sequence[str]) -> None:
    before, *after = (module(*random([MODELS[name].shape])) for module in variants(name, target))
    assert after == [before, before]
    assert any(before[0])
