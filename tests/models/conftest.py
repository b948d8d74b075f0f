"""The installed toolchain, and running small modules with it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from harness import process
from harness.models import ModelArtifact, materialize
from harness.models.model import Model
from harness.toolchain.values import Toolchain

LIMITS = process.Limits(seconds=120)

Materialize = Callable[[Model], ModelArtifact]
RunMain = Callable[..., list[NDArray[Any]]]


def _package_folder(module: str) -> Path:
    spec = find_spec(module)
    assert spec is not None
    assert spec.submodule_search_locations
    return Path(next(iter(spec.submodule_search_locations)))


@pytest.fixture(scope="session")
def toolchain() -> Toolchain:
    return Toolchain(
        version=version("iree-base-compiler"),
        revision="",
        compiler_sha256="0" * 64,
        python=Path(sys.executable),
        compiler_tools=_package_folder("iree.compiler") / "_mlir_libs",
        runtime_tools=_package_folder("iree._runtime_libs"),
    )


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "store"


@pytest.fixture
def make(store: Path, toolchain: Toolchain) -> Materialize:
    """Materialize into the test's own store."""
    return lambda model: materialize(model, store=store, toolchain=toolchain, limits=LIMITS)


@pytest.fixture
def run_main(tmp_path: Path, toolchain: Toolchain) -> RunMain:
    """Compile an artifact for the CPU and run it once with its arguments; its outputs."""

    def run(command: Sequence[str | Path], cwd: Path) -> None:
        finished = process.run([str(part) for part in command], cwd=cwd, limits=LIMITS)
        assert finished.ok, finished.stderr

    def run_main(artifact: ModelArtifact, outputs: int = 1) -> list[NDArray[Any]]:
        module = tmp_path / "module.vmfb"
        flags = [
            "--iree-hal-target-device=local",
            "--iree-hal-local-target-device-backends=llvm-cpu",
            "--iree-llvmcpu-target-cpu=host",
            "--iree-input-demote-f64-to-f32=false",  # on by default, and then f64 arguments are refused
        ]
        run([toolchain.iree_compile, *flags, artifact.mlir.name, "-o", module], artifact.mlir.parent)
        results = [tmp_path / f"output{position}.npy" for position in range(outputs)]
        command: list[str | Path] = [
            toolchain.runtime_tool("iree-run-module"),
            f"--module={module}",
            "--device=local-sync",
            f"--function={artifact.function}",
            *(f"--input={argument.flag}" for argument in artifact.arguments),
            *(f"--parameters={scope}={path.resolve()}" for scope, path in artifact.parameters.items()),
            *(f"--output=@{result}" for result in results),
        ]
        run(command, artifact.arguments[0].file.parent if artifact.arguments else tmp_path)
        return [np.load(result) for result in results]

    return run_main
