"""Calls of modules through the scripted tools, and of a small program through the installed ones."""

from pathlib import Path
from typing import Any

import pytest

from harness.toolchain import Toolchain
from harness.verify.outputs import ModuleCall
from tests.fakes.fake_toolchain import make_fake_toolchain
from tests.programs import program

MATMUL = program("main a:4x8 b:8x4\ne = empty 4x4\nz = fill zero e\nc = matmul a b z\nreturn c")


def make_call(toolchain: Toolchain, folder: Path, *run_flags: str, **fields: Any) -> ModuleCall:
    """A call of `main` on one device."""
    base = {"toolchain": toolchain, "folder": folder, "function": "main", "uris": ("local-sync",)}
    return ModuleCall(run_flags=run_flags, **{**base, **fields})


@pytest.fixture
def fake(tmp_path: Path) -> Toolchain:
    return make_fake_toolchain(tmp_path / "toolchain")
