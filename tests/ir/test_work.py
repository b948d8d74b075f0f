"""Models -> their work, through the real compiler; what was counted once is not counted again."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.errors import CaseError
from harness.ir.work import count_work
from harness.models.materialize import ModelArtifact, materialize
from harness.models.model import Input, Model
from harness.process import Limits
from harness.records.run import Work
from harness.toolchain import Toolchain

LIMITS = Limits(seconds=120)


def make(tmp_path: Path, toolchain: Toolchain, **given: Any) -> ModelArtifact:
    model = Model(name="model", **{"params": {}, "parameters": {}, **given})
    return materialize(model, store=tmp_path / "models", toolchain=toolchain, limits=LIMITS)


def count(tmp_path: Path, toolchain: Toolchain, artifact: ModelArtifact) -> Work:
    return count_work(
        artifact.name,
        artifact.mlir,
        artifact.function,
        [argument.shape for argument in artifact.inputs],
        sha256=artifact.sha256,
        flags=("--iree-opt-data-tiling",),
        toolchain=toolchain,
        limits=LIMITS,
        memos=tmp_path / "memos",
    )


def test_the_residual_dense_block_has_the_operations_that_the_seed_says(
    tmp_path: Path, real_toolchain: Toolchain
) -> None:
    artifact = make(tmp_path, real_toolchain, builder="residual-dense-block", params={"height": 90, "width": 62})
    work = count(tmp_path, real_toolchain, artifact)
    pixels, growth, channels = 90 * 62, 32, 64
    products = (
        9 * pixels * (sum((channels + n * growth) * growth for n in range(4)) + (channels + 4 * growth) * channels)
    )
    assert products * 2 == pytest.approx(2.67e9, rel=2e-3)
    assert products * 2 < work.operations < products * 2 * 1.01  # biases, leaky ReLUs and the sum at its end
    assert work.uncounted == {}


def test_chapter_hs_convolution_has_eleven_point_eight_giga_operations(
    tmp_path: Path, real_toolchain: Toolchain
) -> None:
    work = count(tmp_path, real_toolchain, make(tmp_path, real_toolchain, builder="channelled-convolution"))
    assert work.operations == pytest.approx(11.8e9, rel=1e-3)


def test_what_was_counted_is_kept_under_the_models_content(
    tmp_path: Path, real_toolchain: Toolchain, monkeypatch: pytest.MonkeyPatch
) -> None:
    artifact = make(tmp_path, real_toolchain, builder="residual-dense-block", params={"height": 8, "width": 8})
    first = count(tmp_path, real_toolchain, artifact)
    nowhere = replace(real_toolchain, compiler_tools=tmp_path / "nowhere", python=tmp_path / "no-python")
    again = count(tmp_path, nowhere, replace(artifact, name="other"))
    assert again == replace(first, model="other")
    with pytest.raises(CaseError, match="cannot be started"):
        count(tmp_path, nowhere, replace(artifact, sha256="another program"))
    monkeypatch.setattr("harness.ir.work._sources_sha256", lambda: "another way to count")
    with pytest.raises(CaseError, match="cannot be started"):
        count(tmp_path, nowhere, artifact)


def test_a_size_that_depends_on_data_is_told(tmp_path: Path, real_toolchain: Toolchain) -> None:
    source = tmp_path / "data.mlir"
    source.write_text("""
    func.func @main(%n: tensor<i32>) -> tensor<?xf32> {
      %value = tensor.extract %n[] : tensor<i32>
      %size = arith.index_cast %value : i32 to index
      %one = arith.constant 1.0 : f32
      %a = tensor.splat %one[%size] : tensor<?xf32>
      %b = arith.addf %a, %a : tensor<?xf32>
      return %b : tensor<?xf32>
    }
    """)
    artifact = make(
        tmp_path, real_toolchain, mlir=source, function="main", inputs=(Input(dtype="i32", fill="constant", value=3),)
    )
    with pytest.raises(CaseError, match=r"the result of tensor\.extract does not follow from the inputs"):
        count(tmp_path, real_toolchain, artifact)
