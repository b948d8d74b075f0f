"""Toolchains and small compiled programs whose outputs are looked at."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from harness.process import Limits, run
from harness.toolchain import Toolchain
from tests.builders import CPU_FLAGS
from tests.fakes.fake_toolchain import make_fake_toolchain

CompileInto = Callable[[Path, str], Path]


@pytest.fixture
def fake(tmp_path: Path) -> Toolchain:
    return make_fake_toolchain(tmp_path / "toolchain")


@pytest.fixture
def compile_into(real_toolchain: Toolchain) -> CompileInto:
    """Compile a program with the installed compiler to module.vmfb in a folder; the folder."""

    def compile_it(folder: Path, text: str) -> Path:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "model.mlir").write_text(text)
        command = [str(real_toolchain.iree_compile), "model.mlir", "-o", "module.vmfb", *CPU_FLAGS]
        finished = run(command, cwd=folder, limits=Limits(seconds=120))
        assert finished.ok, finished.stderr[:2000]
        return folder

    return compile_it
