"""Shared concatenations compute the same: in any graph, and in dense blocks of exporters, with their memory."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Sequence
from functools import cache, partial
from itertools import accumulate
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from harness.models.model import Input
from harness.models.onnx_graph import OnnxGraph
from harness.rewrites.channels_last import channels_last
from harness.rewrites.share_concat import share_concat
from tests.programs import Writer, interpret
from tests.rewrites.tools import (
    CPU,
    VULKAN,
    Array,
    Compiled,
    argument_shapes,
    assert_left_alone,
    compiled,
    dense_block,
    lowered,
    printed,
    random,
    rewritten,
)

_LARGEST = 30  # elements along an axis


def _join(numbers: Sequence[int], separator: str = ",") -> str:
    return separator.join(map(str, numbers))


@st.composite
def programs(draw: st.DrawFn) -> str:
    """Squares, pads and concatenations along one axis, many of the parts of an earlier one with some more or fewer."""
    rank = draw(st.integers(1, 4))
    axis = draw(st.integers(0, rank - 1))
    shape = draw(st.lists(st.integers(1, 3), min_size=rank, max_size=rank))
    low, high = (draw(st.lists(st.integers(0, 1), min_size=rank, max_size=rank)) for _ in range(2))
    if draw(st.integers(0, 3)):
        low[axis] = high[axis] = 0
    sizes = draw(st.lists(st.integers(1, 3), min_size=1, max_size=3))
    arguments = [(*shape[:axis], size, *shape[axis + 1 :]) for size in sizes]
    writer = Writer(" ".join(f"v{number}:{_join(argument, 'x')}" for number, argument in enumerate(arguments)))
    values, joins = list(writer.shapes), list[list[str]]()

    def cropped(value: str) -> str:
        """A padded value's first elements along every axis, to go on with."""
        constant = draw(st.sampled_from(["zero", "zero", "one"]))
        padded = writer.add(f"pad {value} {constant} {_join(low)} {_join(high)}")
        values.append(writer.add(f"extract {padded} {_join([0] * rank)} {_join(writer.shapes[value], 'x')}"))
        return values[-1]

    def parts() -> list[str]:
        """Of an earlier concatenation with more before or after them, or some of them; or of any values."""
        some = draw(st.lists(st.sampled_from(values), min_size=2, max_size=3))
        if not joins or draw(st.integers(0, 2)) == 0:
            return some
        earlier = draw(st.sampled_from(joins))
        first = draw(st.integers(0, len(earlier) - 2))
        shorter = earlier[first : draw(st.integers(first + 2, len(earlier)))]
        return draw(st.sampled_from([[*earlier, cropped(some[0])], [cropped(some[0]), *earlier], shorter]))

    def chained(joined: list[str], ends: list[int]) -> str:
        """Parts inserted in any order; maybe one of them somewhere before that, where it is overwritten."""
        result = writer.add(f"empty {_join((*shape[:axis], ends[-1], *shape[axis + 1 :]), 'x')}")
        places = draw(st.permutations(list(zip(joined, ends, strict=True))))
        if draw(st.integers(0, 4)) == 0:
            places = [places[-1], *places]
        for part, end in places:
            offset = end - writer.shapes[part][axis]
            result = writer.add(f"insert {part} {result} {_join([offset if n == axis else 0 for n in range(rank)])}")
        return result

    for _ in range(draw(st.integers(1, 12))):
        value = draw(st.sampled_from(values))
        match draw(st.sampled_from(["square", "pad", "join", "join", "chain"])):
            case "square":
                values.append(writer.add(f"mulf {value} {value}"))
            case "pad":
                cropped(value)
            case how:
                joined = parts()
                ends = list(accumulate(writer.shapes[part][axis] for part in joined))
                if ends[-1] > _LARGEST:
                    continue
                joins.append(joined)
                if how == "join":
                    values.append(writer.add(f"concat {axis} {' '.join(joined)}"))
                else:
                    values.append(chained(joined, ends))
    return writer.module(draw(st.lists(st.sampled_from(values), min_size=1, unique=True)))


@settings(max_examples=60)
@given(before=programs(), padding=st.booleans())
def test_the_results_are_the_same_and_nothing_is_left_to_share(before: str, padding: bool) -> None:
    """By an interpreter to which unwritten memory is NaN: a slice that is read too early, or garbage, would show."""
    share = partial(share_concat, padding=padding)
    after, (matched,) = rewritten(before, share)
    event(f"shares: {matched > 0}, with a frame: {'linalg.fill' in after}")
    arguments: list[Array] = random(argument_shapes(before))
    expected, results = (interpret(text, arguments) for text in (before, after))
    assert [result.tobytes() for result in results] == [result.tobytes() for result in expected]
    assert_left_alone(after, share)
    if not matched:
        assert after == printed(before)


CHANNELS, GROWTH, HEIGHT, WIDTH = 8, 4, 10, 6
SHAPE = (1, CHANNELS, HEIGHT, WIDTH)
CONVOLUTIONS = 5
# The harness's own model: chains of tensor.insert_slice, as in the issue.
built_block = partial(dense_block, height=HEIGHT, width=WIDTH, channels=CHANNELS, growth=GROWTH)


def torch_block() -> str:
    """What PyTorch exports, in the torch dialect; 4 channels, growth 2, 5x6."""
    return (Path(__file__).parent / "data" / "dense_block_torch.mlir").read_text()


def onnx_block(*, kernel: int = 3) -> str:
    """ESRGAN's dense block, saved as ONNX and imported; `kernel` is that of the last convolution."""
    rng = np.random.default_rng(0)
    graph = OnnxGraph(name="main", inputs=(Input(shape=SHAPE),))

    def weight(*shape: int) -> str:
        return graph.weight(np.asarray(rng.standard_normal(shape) / 4, np.float32))

    parts = ["input0"]
    for number in range(CONVOLUTIONS):
        joined = graph.node("Concat", *parts, axis=1) if number else "input0"
        is_last = number == CONVOLUTIONS - 1
        channels, size = (CHANNELS, kernel) if is_last else (GROWTH, 3)
        operands = weight(channels, CHANNELS + number * GROWTH, size, size), weight(channels)
        y = graph.node("Conv", joined, *operands, kernel_shape=[size] * 2, pads=[size // 2] * 4)
        parts.append(y if is_last else graph.node("LeakyRelu", y, alpha=0.2))
    result = graph.node("Add", graph.node("Mul", parts[-1], weight()), "input0")
    with TemporaryDirectory() as folder:
        file = Path(folder) / "model.onnx"
        file.write_bytes(graph.finish(result))
        command = [sys.executable, "-m", "iree.compiler.tools.import_onnx", str(file)]
        return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout


def channels_last_block() -> str:
    """A part then lies in the buffer with gaps; two dispatches more transpose the image and the result."""
    return rewritten(lowered(built_block(), "input"), channels_last)[0]


class Model(NamedTuple):
    """A model and what sharing makes of it."""

    text: Callable[[], str]  # Makes what the front end hands over
    shared: int  # How many concatenations become slices
    stock: tuple[int, int, int]  # Dispatches, copies and fills of the model as it is
    padded: tuple[int, int, int]  # The same once buffers are shared that have the padding around them
    plain: tuple[int, int, int]  # The same once buffers are shared that have none
    shape: tuple[int, ...] = SHAPE  # Of the argument
    targets: Sequence[Sequence[str]] = (CPU,)


BLOCK = Model(built_block, 3, (10, 13, 5), (10, 0, 1), (10, 1, 5))
MODELS = {
    "built": BLOCK._replace(targets=(CPU, VULKAN)),
    "two built blocks": Model(partial(built_block, blocks=2), 6, (20, 26, 10), (20, 0, 1), (20, 2, 10)),
    "onnx": BLOCK._replace(text=onnx_block),
    "onnx, a 1x1 convolution reads all": Model(partial(onnx_block, kernel=1), 3, (9, 13, 4), (10, 0, 1), (9, 1, 4)),
    "torch": BLOCK._replace(text=torch_block, shape=(1, 4, 5, 6)),
    "channels last": Model(channels_last_block, 3, (26, 0, 5), (12, 0, 1), (17, 0, 5)),
}


@pytest.fixture(scope="module", params=MODELS)
def model(request: pytest.FixtureRequest) -> Model:
    """One of the models, as text at phase `input`."""
    found: Model = MODELS[request.param]
    text = found.text()
    at_input = text if "util.func" in text else lowered(text, "input")
    return found._replace(text=lambda: at_input)


@cache
def variants(text: str, target: Sequence[str]) -> tuple[list[int], tuple[Compiled, ...]]:
    """What is shared; and the model as it is, with shared buffers that have padding, and with ones that have none."""
    shared = [rewritten(text, partial(share_concat, padding=padding)) for padding in (True, False)]
    modules = tuple(compiled(one, target) for one in (text, *(after for after, _ in shared)))
    return [matched for _, (matched,) in shared], modules


def test_copies_go_memory_goes_down_and_numbers_stay(model: Model) -> None:
    for target in model.targets:
        matched, modules = variants(model.text(), target)
        assert matched == [model.shared] * 2
        assert [module.counts for module in modules] == [model.stock, model.padded, model.plain]
        stock, padded, plain = (module.statistics.transient_bytes or 0 for module in modules)
        assert plain > 0
        assert padded <= plain < stock
        assert padded <= 0.51 * stock
    before, *after = (module(*random([model.shape])) for module in variants(model.text(), CPU)[1])
    assert after == [before, before]
    assert any(before[0])


def test_the_block_of_the_issue_at_its_own_size() -> None:
    """1x64x90x62, as in https://github.com/iree-org/iree/issues/11102: 13 copies, and 19.8 MB on a CPU."""
    text, _ = rewritten(lowered(dense_block(), "input"), share_concat)
    statistics = compiled(text, CPU, "--compile-to=stream").statistics
    assert statistics.copies <= 1
    assert statistics.transient_bytes is not None
    assert statistics.transient_bytes <= 10_300_000
