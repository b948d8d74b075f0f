"""libxsmm's program for the multi-layer perceptron: its numbers, its layouts, and which models it takes."""

import ctypes
import shutil
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest

from harness.models.inputs import bf16_bits, from_bf16_bits
from harness.models.mlp import Parameters, weights
from harness.models.model import Input
from harness.peers import PeerModel, Setting, libxsmm
from harness.peers.libxsmm import build_library, compiler
from harness.peers.peer import Array, Ready
from harness.plugins.options import NoOptions, as_json

PEER = libxsmm.PEER


def model(builder: str = "mlp", **params: Any) -> PeerModel:
    values = as_json(Parameters(**params))
    shape = (values["batch"], values["width"])
    return PeerModel(
        name="m", builder=builder, params=values, inputs=(Input(shape=shape, dtype=values["dtype"], seed=0),)
    )


def argument(params: Parameters) -> Array:
    x = np.random.default_rng(1).standard_normal((params.batch, params.width), dtype=np.float32)
    return from_bf16_bits(bf16_bits(x)) if params.dtype == "bf16" else x


def reference(params: Parameters, x: Array) -> Array:
    """The layers with exact sums; in bf16 each layer's result is rounded once."""
    y = x.astype(np.float64)
    for weight, bias in weights(params):
        if params.dtype == "bf16":
            weight, bias = from_bf16_bits(bf16_bits(weight)), from_bf16_bits(bf16_bits(bias))
        y = np.maximum(y @ weight.T.astype(np.float64) + bias, 0)
        if params.dtype == "bf16":
            y = from_bf16_bits(bf16_bits(y)).astype(np.float64)
    return y


def ready(params: Parameters, x: Array, cache: Path, threads: int = 1) -> Ready:
    reason = PEER.missing()
    if reason is not None:
        pytest.skip(f"{reason}; {PEER.install}")
    try:
        return PEER.prepare(model(**as_json(params)), [x], Setting(threads=threads, cache=cache), NoOptions())
    except RuntimeError as error:
        if "kernels for this processor" not in str(error):
            raise
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("libxsmm")


# Several blocks of each kind, blocks that are no powers of two, a single row, rows that no block divides well.
SIZES = [(64, 96), (12, 48), (1, 64), (37, 40)]


@pytest.mark.parametrize(("batch", "width"), SIZES)
@pytest.mark.parametrize(("layers", "dtype"), [(1, "f32"), (2, "f32"), (3, "f32"), (2, "bf16")])
def test_its_numbers(batch: int, width: int, layers: int, dtype: Literal["f32", "bf16"], cache: Path) -> None:
    params = Parameters(batch=batch, width=width, layers=layers, dtype=dtype)
    x = argument(params)
    program = ready(params, x, cache)
    program.call()
    (y,) = program.outputs()
    assert y.shape == (batch, width)
    assert y.dtype == np.float32
    if dtype == "bf16":  # a layer rounds once: values of bf16, off by a last bit where sums differ
        assert np.array_equal(y, from_bf16_bits(bf16_bits(y)))
    relative, absolute = (2**-7, 1e-3) if dtype == "bf16" else (1e-4, 1e-5)
    np.testing.assert_allclose(y, reference(params, x), rtol=relative, atol=absolute)
    program.call()
    (again,) = program.outputs()
    assert np.array_equal(again, y)
    assert not np.shares_memory(again, y)


@pytest.mark.parametrize("dtype", ["f32", "bf16"])
def test_threads_take_rows_and_change_no_bit_and_no_number_stays_none(
    dtype: Literal["f32", "bf16"], cache: Path
) -> None:
    params = Parameters(batch=96, width=64, dtype=dtype)
    x = argument(params)
    x[3, 5] = np.nan
    results = []
    for threads in (1, 2, 8):
        program = ready(params, x, cache, threads)
        program.call()
        results.append(program.outputs()[0])
    assert all(np.array_equal(result, results[0], equal_nan=True) for result in results)
    assert np.isnan(results[0][3]).all()
    assert not np.isnan(np.delete(results[0], 3, axis=0)).any()


@pytest.mark.parametrize(
    ("params", "reason"),
    [
        ({}, None),
        ({"dtype": "bf16"}, None),
        ({"width": 7}, None),  # a block of its own
        ({"width": 7, "dtype": "bf16"}, "a width of 7 has no even divisor from 8 to 32, so it has no good blocks"),
        ({"width": 1021}, "a width of 1021 has no divisor from 8 to 32, so it has no good blocks"),
        ({"builder": "residual-dense-block"}, "it is given programs for the builder mlp only"),
    ],
)
def test_which_models_it_takes(params: dict[str, Any], reason: str | None) -> None:
    assert PEER.refuses(model(**params), NoOptions()) == reason


def test_what_is_missing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "no-such-compiler")
    assert PEER.missing() == "there is no C compiler no-such-compiler"
    monkeypatch.setenv("CC", "sh")  # there
    monkeypatch.setattr(libxsmm, "_header", lambda: None)
    assert PEER.missing() == "there is no libxsmm.h"
    assert PEER.version() == "unknown"


needs_compiler = pytest.mark.skipif(not shutil.which(compiler()), reason="there is no C compiler")


@needs_compiler
def test_a_source_becomes_a_library_and_only_changes_compile_anew(tmp_path: Path) -> None:
    source, header = tmp_path / "number.c", tmp_path / "version.h"

    def built(version: str, number: int) -> Path:
        header.write_text(f'#define VERSION "{version}"')
        source.write_text(f'#include "version.h"\nint number(void) {{ return {number}; }}')
        return build_library(source, (), tmp_path)

    first = built("1", 42)
    assert ctypes.CDLL(str(first)).number() == 42
    assert built("1", 42) == first
    assert len({first, built("2", 42), built("2", 2)}) == 3
    assert not list(tmp_path.glob("*.unfinished"))
    source.write_text("nonsense")
    with pytest.raises(RuntimeError, match=r"\S+ exited with status 1: .*number\.c:1:.*error"):
        build_library(source, (), tmp_path)
