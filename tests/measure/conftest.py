"""A real compiled module for the worker, made once."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest

from harness.measure.session import LoadableModule
from harness.toolchain import Toolchain
from tests.builders import CPU_FLAGS

_ON_TWO_DEVICES = """
func.func @main(%a: tensor<32x32xf32>, %b: tensor<32x32xf32>) -> tensor<32x32xf32> {
  %c = arith.addf %a, %b : tensor<32x32xf32>
  %d = flow.tensor.transfer %c : tensor<32x32xf32> to #hal.device.promise<@dev_b>
  %e = arith.mulf %d, %d : tensor<32x32xf32>
  %f = flow.tensor.transfer %e : tensor<32x32xf32> to #hal.device.promise<@dev_a>
  return %f : tensor<32x32xf32>
}
"""
_MATMUL = """
func.func @main(%a: tensor<32x32xf32>, %b: tensor<32x32xf32>) -> tensor<32x32xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<32x32xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<32x32xf32>) -> tensor<32x32xf32>
  %c = linalg.matmul ins(%a, %b : tensor<32x32xf32>, tensor<32x32xf32>) outs(%init : tensor<32x32xf32>)
    -> tensor<32x32xf32>
  return %c : tensor<32x32xf32>
}
"""


@pytest.fixture(scope="session")
def matmul(real_toolchain: Toolchain, tmp_path_factory: pytest.TempPathFactory) -> LoadableModule:
    """A 32x32 matmul for local devices; a call takes some microseconds."""
    return _compiled("matmul", _MATMUL, ["local"], tmp_path_factory.mktemp("matmul"), real_toolchain)


@pytest.fixture(scope="session")
def on_two_devices(real_toolchain: Toolchain, tmp_path_factory: pytest.TempPathFactory) -> LoadableModule:
    """A sum on a first local device, and its square on a second."""
    folder, devices = tmp_path_factory.mktemp("on-two"), ["dev_a=local[0]", "dev_b=local[1]"]
    return _compiled("on-two", _ON_TWO_DEVICES, devices, folder, real_toolchain)


def _compiled(name: str, text: str, devices: list[str], folder: Path, real_toolchain: Toolchain) -> LoadableModule:
    (folder / "model.mlir").write_text(text)
    np.save(folder / "input.npy", np.eye(32, dtype=np.float32))
    subprocess.run(
        [
            str(real_toolchain.iree_compile),
            "model.mlir",
            "-o",
            "module.vmfb",
            *(f"--iree-hal-target-device={device}" for device in devices),
            *CPU_FLAGS[1:],
        ],
        cwd=folder,
        check=True,
    )
    return LoadableModule(
        name=name,
        module=folder / "module.vmfb",
        function="main",
        arguments=({"file": str(folder / "input.npy")},) * 2,
        parameters={},
        run_flags=(),
        toolchain=real_toolchain,
    )
