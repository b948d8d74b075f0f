"""Halide's program for the channelled convolution: its numbers, its two schedules, and which models it takes."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest

from harness.models.channelled_convolution import Parameters, write_onnx
from harness.models.model import Input
from harness.peers import PeerModel, Setting, halide
from harness.peers.halide import PEER, HalideOptions, Schedule, natural_vector, schedules, tutorial
from harness.peers.peer import Array
from harness.plugins.options import as_json
from tests.models.conftest import run_onnx_bytes


def image(params: Parameters) -> tuple[int, int, int, int]:
    return params.batch, params.height + 2, params.width + 2, params.channels_in


def model(params: Parameters, builder: str = "channelled-convolution") -> PeerModel:
    inputs = (Input(shape=image(params), dtype="f32", seed=0),)
    return PeerModel(name="m", builder=builder, params=as_json(params), inputs=inputs)


def argument(params: Parameters) -> Array:
    return np.random.default_rng(1).standard_normal(image(params), dtype=np.float32)


# Images that tiles do not divide, and one smaller than a tile.
@pytest.mark.parametrize("params", [{"width": 7, "channels_out": 24}, {"width": 3, "channels_out": 2}])
@pytest.mark.parametrize(("form", "threads"), [("named", 1), ("generic", 2)])
@pytest.mark.parametrize("schedule", ["best", "tutorial"])
def test_both_schedules_of_any_size(
    params: dict[str, int], form: Literal["named", "generic"], threads: int, schedule: Any, tmp_path: Path
) -> None:
    pytest.importorskip("halide")
    sizes = Parameters(batch=2, height=3, channels_in=4, form=form, **params)
    x = argument(sizes)
    options = HalideOptions(schedule=schedule)
    ready = PEER.prepare(model(sizes), [x], Setting(threads=threads, cache=tmp_path), options)
    ready.call()
    (result,) = ready.outputs()
    (right,) = run_onnx_bytes(write_onnx(sizes), x)
    np.testing.assert_allclose(result, right, rtol=1e-4, atol=1e-5)
    ready.call()
    assert not np.shares_memory(ready.outputs()[0], result)


def test_the_best_is_found_once_and_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("halide")
    params = Parameters(batch=1, height=2, width=8, channels_in=4, channels_out=16)
    two = schedules(natural_vector())[:2]
    trials = []

    def second(candidates: Sequence[Schedule], calls: Sequence[object], _: object) -> Schedule:
        trials.append(len(calls))
        return candidates[1]

    monkeypatch.setattr(halide, "schedules", lambda _: two)
    monkeypatch.setattr(halide, "fastest", second)
    setting = Setting(threads=1, cache=tmp_path)
    for _ in range(2):
        PEER.prepare(model(params), [argument(params)], setting, HalideOptions()).call()
    assert trials == [2]


def test_the_fastest_is_that_of_the_least_time() -> None:
    candidates = [Schedule(vector=8, vectors=2, columns=columns, unroll=1) for columns in (4, 5, 6)]
    clock = iter(range(10**6))
    calls = {4: 7, 5: 3, 6: 5}  # reads of the clock that a call makes
    made = [lambda ticks=calls[schedule.columns]: [next(clock) for _ in range(ticks)] for schedule in candidates]
    assert halide.fastest(candidates, made, lambda: next(clock)).columns == 5


def test_tiles_by_vector_width_and_which_models_it_takes() -> None:
    assert tutorial(16) == Schedule(vector=16, vectors=4, columns=5, unroll=2)
    assert tutorial(8) == Schedule(vector=8, vectors=3, columns=4, unroll=2)
    assert tutorial(16).within(3, 24) == Schedule(vector=16, vectors=1, columns=3, unroll=2)
    assert PEER.refuses(model(Parameters()), HalideOptions()) is None
    refused = PEER.refuses(model(Parameters(), "mlp"), HalideOptions())
    assert refused == "it is given programs for the builder channelled-convolution only"
