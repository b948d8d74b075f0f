"""A real compiled module for the worker, made once."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest

from harness.measure.values import LoadableModule
from harness.toolchain import Toolchain

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
    folder = tmp_path_factory.mktemp("matmul")
    (folder / "model.mlir").write_text(_MATMUL)
    np.save(folder / "input.npy", np.eye(32, dtype=np.float32))
    subprocess.run(
        [
            str(real_toolchain.iree_compile),
            "model.mlir",
            "-o",
            "module.vmfb",
            "--iree-hal-target-device=local",
            "--iree-hal-local-target-device-backends=llvm-cpu",
            "--iree-llvmcpu-target-cpu=host",
        ],
        cwd=folder,
        check=True,
    )
    return _loadable("matmul", folder / "module.vmfb", folder / "input.npy", real_toolchain)


def _loadable(name: str, module: Path, argument: Path, toolchain: Toolchain) -> LoadableModule:
    return LoadableModule(
        name=name,
        module=module,
        function="main",
        arguments=({"file": str(argument)}, {"file": str(argument)}),
        parameters={},
        run_flags=(),
        toolchain=toolchain,
    )
