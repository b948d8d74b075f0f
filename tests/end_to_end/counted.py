"""A suite whose ops are counted, and a package with a plugin of two switches, for `harness run`, `ir` and `ablate`."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from tests.end_to_end.conftest import Harness

STOCK, MARKED, LONG = "twice/stock@vm", "twice/marked@vm", "long/stock@vm"
# Some files of a dispatch's IR are named after its function, and no file can have a name of this length.
LONG_NAME = "f" * 230
SUITE = f"""\
name = "counted"
baseline = "stock"

[models.twice]
mlir = "twice.mlir"
function = "main"
inputs = [{{ shape = [4, 8] }}]

[models.long]
mlir = "long.mlir"
function = "{LONG_NAME}"
inputs = [{{ shape = [4, 8] }}]

[variants.stock]

[variants.marked]
description = "another program from phase flow on"
plugins = [{{ name = "switches", options = {{ double = false, mark = true }} }}]

[devices.vm]
uri = "local-sync"
backend = "vmvx"
compile_flags = ["--iree-hal-target-device=local", "--iree-hal-local-target-device-backends=vmvx"]

[matrix]
exclude = ["long/marked@*"]

[ir]
input = ["arith.addf", "tensor.*"]
flow = ["flow.dispatch", "executables:arith.addf"]
bufferized = ["memref.alloc*"]

[gates.dispatches]
metric = "flow/flow.dispatch"
cases = "twice/*"

[measure]
budget_s = 0.1
generations = 2
"""
PROGRAM = """\
func.func @main(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %twice = arith.addf %x, %x : tensor<4x8xf32>
  return %twice : tensor<4x8xf32>
}
"""
PLUGIN = """\
from dataclasses import dataclass

from harness.plugins import Plugin, Rewrite


@dataclass(frozen=True, kw_only=True)
class Options:
    double: bool = True
    mark: bool = False


def steps(options):
    found = []
    if options.double:
        found.append(Rewrite(function="switches.rewrites:double", arguments={}))
    if options.mark:
        found.append(Rewrite(function="switches.rewrites:mark", phase="flow", arguments={}))
    return tuple(found)


SWITCHES = Plugin(name="switches", version="1", description="", options=Options, steps=steps)
"""
REWRITES = """\
from iree.compiler import ir
from iree.compiler.dialects import arith


def double(module):
    \"\"\"x + x becomes 2 x, which is the same to the last bit.\"\"\"
    sums = []

    def visit(op):
        if op.name == "arith.addf" and op.operands[0] == op.operands[1]:
            sums.append(op)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    for op in sums:
        kind = op.results[0].type
        with ir.InsertionPoint(op), op.location:
            two = arith.constant(kind, ir.DenseElementsAttr.get_splat(kind, ir.FloatAttr.get(kind.element_type, 2.0)))
            op.results[0].replace_all_uses_with(arith.mulf(op.operands[0], two))
        op.erase()
    return len(sums)


def mark(module):
    \"\"\"What nothing reads.\"\"\"
    module.operation.attributes["switches.mark"] = ir.UnitAttr.get()
    return 1
"""


def lay_out(folder: Path) -> None:
    """Write the suite, its models, and a folder `packages` in which the plugin is as if it were installed."""
    (folder / "counted.toml").write_text(SUITE)
    (folder / "twice.mlir").write_text(PROGRAM)
    (folder / "long.mlir").write_text(PROGRAM.replace("@main", f"@{LONG_NAME}"))
    package, installed = folder / "packages/switches", folder / "packages/switches-1.dist-info"
    for path in (package, installed):
        path.mkdir(parents=True)
    (package / "__init__.py").write_text(PLUGIN)
    (package / "rewrites.py").write_text(REWRITES)
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: switches\nVersion: 1\n")
    (installed / "entry_points.txt").write_text("[harness.plugins]\nswitches = switches:SWITCHES\n")


class WithPackages(Harness):
    """The `harness` command in a folder that was laid out, with the plugin as if it were installed."""

    def __call__(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run it to its end."""
        return subprocess.run(
            self.command(*arguments),
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=240,
            env={**os.environ, "PYTHONPATH": str(self.folder / "packages")},
            check=False,
        )
