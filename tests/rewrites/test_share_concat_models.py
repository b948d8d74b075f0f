"""Real models have their concatenations shared, whichever front end they come from: fewer copies, the same numbers."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Sequence
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from harness.models.residual_dense_block import Parameters, build
from harness.toolchain import Toolchain
from tests.rewrites.share_concat_models import (
    SHAPE,
    built_block,
    channels_last_block,
    channels_last_shapes,
    onnx_block,
    onnx_densenet,
    onnx_esrgan,
    torch_block,
)
from tests.rewrites.share_concat_tools import CPU, VULKAN, Array, Compiled, compile_module, rewrite, to_input_phase


class Model(NamedTuple):
    """A model and what sharing makes of it.

    Attributes:
        text: Makes what the front end hands over.
        shared: How many concatenations become slices.
        stock: Dispatches, copies and fills of the model as it is.
        padded: The same once buffers are shared that have the padding around them.
        plain: The same once buffers are shared that have none.
        shapes: Of the arguments.
    """

    text: Callable[[], str]
    shared: int
    stock: tuple[int, int, int]
    padded: tuple[int, int, int]
    plain: tuple[int, int, int]
    shapes: Sequence[tuple[int, ...]] = (SHAPE,)


BLOCK = Model(built_block, 3, (10, 13, 5), (10, 0, 1), (10, 1, 5))
MODELS = {
    "built": BLOCK,
    "three built blocks": Model(partial(built_block, 3), 9, (30, 39, 15), (30, 0, 1), (30, 3, 15)),
    "onnx": BLOCK._replace(text=onnx_block),
    "onnx, esrgan": Model(onnx_esrgan, 18, (60, 78, 30), (60, 0, 1), (60, 6, 30)),
    "onnx, a 1x1 convolution reads all": Model(partial(onnx_block, kernel=1), 3, (9, 13, 4), (10, 0, 1), (9, 1, 4)),
    "onnx, densenet": Model(onnx_densenet, 3, (13, 4, 4), (13, 1, 4), (13, 1, 4)),
    "torch": BLOCK._replace(text=torch_block, shapes=[(1, 4, 5, 6)]),
    "channels last": Model(channels_last_block, 3, (24, 0, 5), (10, 0, 1), (15, 0, 5), channels_last_shapes()),
}
COMPILED = [
    *(pytest.param(name, CPU, id=f"{name}, cpu") for name in MODELS),
    *(pytest.param(name, VULKAN, id=f"{name}, vulkan") for name in ("built", "three built blocks", "channels last")),
]


@cache
def at_input(name: str) -> str:
    return to_input_phase(MODELS[name].text())


@cache
def compiled(name: str, target: Sequence[str], padding: bool | None) -> Compiled:
    """The model as it is, or with shared buffers."""
    text = at_input(name)
    return compile_module(text if padding is None else rewrite(text, padding=padding)[1], *target)


def counts(module: Compiled) -> tuple[int, int, int]:
    return module.statistics.dispatches, module.statistics.copies, module.statistics.fills


def arguments(name: str) -> list[Array]:
    rng = np.random.default_rng(0)
    return [rng.standard_normal(shape, dtype=np.float32) for shape in MODELS[name].shapes]


@pytest.mark.parametrize("padding", [True, False])
@pytest.mark.parametrize("name", MODELS)
def test_the_concatenations_are_found(name: str, padding: bool) -> None:
    assert rewrite(at_input(name), padding=padding)[0] == MODELS[name].shared


@pytest.mark.parametrize(("name", "target"), COMPILED)
def test_the_copies_go(name: str, target: Sequence[str]) -> None:
    model = MODELS[name]
    variants = [compiled(name, target, padding) for padding in (None, True, False)]
    assert [counts(variant) for variant in variants] == [model.stock, model.padded, model.plain]


@pytest.mark.parametrize(("name", "target"), COMPILED)
def test_memory_goes_down(name: str, target: Sequence[str]) -> None:
    stock, padded, plain = (
        compiled(name, target, padding).statistics.transient_bytes for padding in (None, True, False)
    )
    assert padded <= plain < stock
    if "densenet" not in name:  # nothing pads what it joins
        assert padded <= stock / 2


@pytest.mark.parametrize("target", [CPU, VULKAN], ids=["cpu", "vulkan"])
def test_the_block_of_the_issue_at_its_own_size(target: Sequence[str]) -> None:
    """1x64x90x62, as in https://github.com/iree-org/iree/issues/11102: 13 copies, and 19.8 MB on a CPU."""
    text = to_input_phase(str(build(Parameters()).text))
    statistics = compile_module(rewrite(text)[1], *target).statistics
    assert statistics.copies <= 1
    assert statistics.transient_bytes <= 10_300_000


@pytest.mark.parametrize("padding", [True, False])
@pytest.mark.parametrize("name", MODELS)
def test_the_numbers_are_the_same_bit_for_bit(name: str, padding: bool) -> None:
    (before,), (after,) = (compiled(name, CPU, one).run(*arguments(name)) for one in (None, padding))
    assert before.tobytes() == after.tobytes()
    assert np.abs(before).max() > 0


@pytest.mark.vulkan
@pytest.mark.parametrize("padding", [True, False])
def test_so_they_are_on_vulkan(padding: bool, real_toolchain: Toolchain, tmp_path: Path) -> None:
    (x,) = arguments("built")
    np.save(tmp_path / "x.npy", x)
    results = []
    for number, module in enumerate(compiled("built", VULKAN, one) for one in (None, padding)):
        (tmp_path / "m.vmfb").write_bytes(module.module)
        flags = ["--module=m.vmfb", "--device=vulkan", "--function=main", "--input=@x.npy", f"--output=@{number}.npy"]
        command = [str(real_toolchain.runtime_tool("iree-run-module")), *flags]
        subprocess.run(command, cwd=tmp_path, capture_output=True, timeout=120, check=True)
        results.append(np.load(tmp_path / f"{number}.npy").tobytes())
    assert results[0] == results[1]
