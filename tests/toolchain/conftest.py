"""A cache of its own for each test, a toolchain's folders with nothing real in them, and tools that are scripts."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError
from importlib.util import spec_from_loader
from pathlib import Path

import pytest

from harness.toolchain import Toolchain, find

ScriptTool = Callable[..., Toolchain]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@dataclass
class Package:
    """What importlib.metadata says of an installed package."""

    version: str


@dataclass
class Installation:
    """An installation as importlib shows it: packages by name, and modules by name as folders below `root`."""

    root: Path
    packages: dict[str, Package]
    modules: dict[str, str]
    compiler_tools: Path
    runtime_tools: Path


@pytest.fixture
def installation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Installation:
    """A pair of release 3.13.0 whose tools are empty files; the test may change what it likes."""
    here = Installation(
        root=tmp_path,
        packages={"iree-base-compiler": Package("3.13.0"), "iree-base-runtime": Package("3.13.0")},
        modules={"iree.compiler": "compiler", "iree._runtime_libs": "runtime"},
        compiler_tools=tmp_path / "compiler" / "_mlir_libs",
        runtime_tools=tmp_path / "runtime",
    )
    for file in (
        here.compiler_tools / "iree-compile",
        here.compiler_tools / "libIREECompiler.so",
        here.runtime_tools / "iree-run-module",
    ):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()

    def distribution(name: str) -> Package:
        try:
            return here.packages[name]
        except KeyError:
            raise PackageNotFoundError(name) from None

    def find_spec(name: str) -> object:
        if name not in here.modules:
            raise ModuleNotFoundError(f"No module named {name!r}")
        spec = spec_from_loader(name, None, is_package=True)
        assert spec is not None
        spec.submodule_search_locations = [str(here.root / here.modules[name])]
        return spec

    monkeypatch.setattr(find, "distribution", distribution)
    monkeypatch.setattr(find, "find_spec", find_spec)
    return here


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
    """A folder of wheels that pip takes for the only index there is, without uv."""
    folder = tmp_path / "wheels"
    folder.mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.delenv("PIP_EXTRA_INDEX_URL", raising=False)
    monkeypatch.setattr(shutil, "which", lambda _: None)
    return folder
