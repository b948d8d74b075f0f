"""A suite with every kind of model and of path in it, and plugins with every number of switches."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any

import pytest
from pydantic import Field

from harness.plugins import Flags, NoOptions, Plugin, registry
from tests.builders import CPU_FLAGS, FLAGS, flag_plugin


@dataclass(frozen=True, kw_only=True)
class Three:
    """Three switches, and what is none."""

    fill: bool = True
    size: int = 4
    transpose: Annotated[bool, Field(description="off by default")] = False
    relu: bool


@dataclass(frozen=True, kw_only=True)
class One:
    """One switch."""

    strided: bool = False


@dataclass(frozen=True, kw_only=True)
class Sized:
    """A switch, and what has to be given."""

    size: int
    padded: bool = True


@dataclass(frozen=True, kw_only=True)
class Careful:
    """Two switches that do not go together in every way."""

    first: bool = True
    second: bool = True

    def __post_init__(self) -> None:
        if self.second and not self.first:
            raise ValueError("second needs first")


def a_plugin(name: str, options: type[Any]) -> Plugin[Any]:
    """A plugin whose options change nothing that matters here."""
    steps = (Flags(compile=("--iree-opt-level=O3",)),)
    return Plugin(name=name, version="1", description="", options=options, steps=lambda _: steps)


PLUGINS = {
    "three": a_plugin("three", Three),
    "one": a_plugin("one", One),
    "sized": a_plugin("sized", Sized),
    "careful": a_plugin("careful", Careful),
    "bare": a_plugin("bare", NoOptions),
    "other": flag_plugin("other", "--iree-opt-strip-assertions"),
    "my org/one": a_plugin("my org/one", One),
}
FILES = ("net.mlir", "net.onnx", "x.npy", "y.npy", "z.npy", "weights.irpa", "flags.toml")
SUITE = f"""\
name = "small"
description = "what is measured otherwise"
baseline = "stock"
flagset_files = ["flags.toml"]

[models.net]
mlir = "net.mlir"
function = "main"
inputs = [{{ npy = "x.npy" }}, {{ shape = [4], seed = 7 }}, {{ shape = [], value = 2.0 }}]
parameters = {{ model = "weights.irpa", more = "weights.irpa" }}
expected = ["y.npy", "z.npy"]
tolerance = {{ relative = 0.01 }}

[models.imported]
onnx = "net.onnx"
opset = 18

[models.built]
builder = "residual-dense-block"
params = {{ height = 8, width = 8 }}

[variants.stock]
description = "as it comes"

[variants.tiled]
flagsets = ["tiling"]
flags = ["--iree-opt-level=O2"]
plugins = ["other"]

[variants.padded]
plugins = [{{ name = "sized", options = {{ size = 8, padded = false }} }}, "other"]

[devices.cpu]
uri = "local-sync"
backend = "llvm-cpu"
compile_flags = {list(CPU_FLAGS)}

[devices.threads]
uri = "local-task"
backend = "llvm-cpu"
compile_flags = {list(CPU_FLAGS)}

[matrix]
exclude = ["built/*@threads"]

[[expect]]
cases = "net/tiled@*"
fails = "no"

[floors]
latency = 0.5

[gates.copies]
metric = "copies"

[measure]
budget_s = 60
generations = 4
"""


def register(patch: pytest.MonkeyPatch) -> None:
    """Pretend that a package registers the plugins."""
    module = ModuleType("a_package")
    points = []
    for number, (name, plugin) in enumerate(PLUGINS.items()):
        vars(module)[f"PLUGIN{number}"] = plugin
        points.append(EntryPoint(name, f"a_package:PLUGIN{number}", "harness.plugins"))
    patch.setitem(sys.modules, "a_package", module)
    installed = EntryPoints(points)
    patch.setattr(registry, "entry_points", lambda **wanted: installed.select(**wanted))


def write_suite(folder: Path) -> Path:
    """Write the suite and the files that it names; its path."""
    for name in FILES:
        (folder / name).touch()
    (folder / "flags.toml").write_text(FLAGS)
    (folder / "suite.toml").write_text(SUITE)
    return folder / "suite.toml"
