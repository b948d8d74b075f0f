"""A cache of its own for each test, an installation with nothing real in it, and tools that are scripts."""

import os
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from harness.toolchain import Toolchain
from tests.fakes.fake_wheels import unpack_wheels, write_wheels

ScriptTool = Callable[..., Toolchain]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def installation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of this interpreter's packages: a pair of release 9.8.0 in a few kilobytes, for the test to change."""
    folder = unpack_wheels(write_wheels(tmp_path / "wheels", "9.8.0"), tmp_path / "site-packages")
    monkeypatch.setattr(sys, "path", [str(folder), *(path for path in sys.path if "site-packages" not in path)])
    return folder


@pytest.fixture
def script_tool(real_toolchain: Toolchain, tmp_path: Path) -> ScriptTool:
    """Make a toolchain in which one tool runs these shell commands, and the others are not there."""

    def make(commands: str, name: str = "iree-run-module") -> Toolchain:
        tool = tmp_path / name
        tool.write_text(f"#!/bin/sh\n{commands}\n")
        tool.chmod(0o755)
        return replace(real_toolchain, compiler_tools=tmp_path, runtime_tools=tmp_path)

    return make


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of wheels that pip takes for the only index there is."""
    folder = tmp_path / "wheels"
    folder.mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.delenv("PIP_EXTRA_INDEX_URL", raising=False)
    return folder
