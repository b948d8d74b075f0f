"""Calls of modules through the scripted tools, and of small programs through the installed ones, compiled once."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.process import Limits, run
from harness.toolchain import Toolchain
from harness.verify.outputs import ModuleCall
from tests.builders import CPU_FLAGS
from tests.fakes.fake_toolchain import make_fake_toolchain
from tests.programs import program

Compile = Callable[..., Path]
MATMUL = program("main a:4x8 b:8x4\ne = empty 4x4\nz = fill zero e\nc = matmul a b z\nreturn c")


def make_call(toolchain: Toolchain, folder: Path, *run_flags: str, **fields: Any) -> ModuleCall:
    """A call of `main` on one device."""
    base = {"toolchain": toolchain, "folder": folder, "function": "main", "uris": ("local-sync",)}
    return ModuleCall(run_flags=run_flags, **{**base, **fields})


@pytest.fixture
def fake(tmp_path: Path) -> Toolchain:
    return make_fake_toolchain(tmp_path / "toolchain")


@pytest.fixture(scope="session")
def compile_text(real_toolchain: Toolchain, tmp_path_factory: pytest.TempPathFactory) -> Compile:
    """Compile a program to module.vmfb in a folder; the folder, which is the same for the same program and flags."""
    folders: dict[tuple[str, ...], Path] = {}

    def compile_it(text: str, *flags: str) -> Path:
        key = (text, *flags)
        if key not in folders:
            folder = folders[key] = tmp_path_factory.mktemp("compiled")
            (folder / "model.mlir").write_text(text)
            command = [str(real_toolchain.iree_compile), "model.mlir", "-o", "module.vmfb", *(flags or CPU_FLAGS)]
            finished = run(command, cwd=folder, limits=Limits(seconds=120))
            assert finished.ok, finished.stderr[:2000]
        return folders[key]

    return compile_it
