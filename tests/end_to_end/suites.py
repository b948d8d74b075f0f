"""The suites that end-to-end tests run: small enough that a run takes seconds."""

from pathlib import Path

from tests.programs import program

CPU = """\
[devices.cpu]
uri = "local-sync"
backend = "llvm-cpu"
compile_flags = [
    "--iree-hal-target-device=local",
    "--iree-hal-local-target-device-backends=llvm-cpu",
    "--iree-llvmcpu-target-cpu=host",
]
pin = true

[measure]
budget_s = 0.3
generations = 3
"""

PIPELINE = "--iree-preprocessing-pass-pipeline=builtin.module"
BUILDER = 'builder = "residual-dense-block"'
PARAMS = "params = { height = 4, width = 4, channels = 8, growth = 4 }\n"
SMALL = (
    f"""
name = "small"
description = "a tiny block in a few forms"
baseline = "stock"

[models.tiny]
{BUILDER}
{PARAMS}
[variants.stock]

[variants.channels-last]
flags = ["{PIPELINE}(util.func(iree-preprocessing-convert-conv-to-channels-last))"]

[variants.inert]
description = "func.func where util.func is meant, so that nothing matches"
flags = ["{PIPELINE}(func.func(iree-preprocessing-convert-conv-to-channels-last))"]

"""
    + CPU
)
GPU = """
[devices.gpu]
uri = "vulkan"
backend = "vulkan-spirv"
compile_flags = ["--iree-hal-target-device=vulkan"]
"""

DOUBLE = program("main x:4\ny = addf x x\nreturn y")

# A matmul, so that code for every x86-64 or Arm processor is several times slower than code for the one that is here.
PRODUCT = program("main a:192x192 b:192x192\ne = empty 192x192\nz = fill zero e\nc = matmul a b z\nreturn c")
COMPARED = (
    f"""
name = "small"
baseline = "stock"

[models.product]
mlir = "product.mlir"
function = "main"
inputs = [{{ shape = [192, 192], seed = 0 }}, {{ shape = [192, 192], seed = 1 }}]

[variants.stock]

[variants.slow]
flags = ["--iree-llvmcpu-target-cpu=generic", "--iree-opt-level=O0"]

[variants.inert]
description = "func.func where util.func is meant, so that nothing matches"
flags = ["{PIPELINE}(func.func(iree-preprocessing-convert-conv-to-channels-last))"]

"""
    + CPU
    + """
[gates.copies]
metric = "copies"
"""
)

STOCK, MARKED, LONG = "twice/stock@vm", "twice/marked@vm", "long/stock@vm"
# Some files of a dispatch's IR are named after its function, and no file can have a name of this length.
LONG_NAME = "f" * 230
COUNTED = f"""\
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
_TWICE = program("main x:4x8\ntwice = addf x x\nreturn twice")
_PLUGIN = """\
from dataclasses import dataclass

from harness.plugins import Plugin, Rewrite


@dataclass(frozen=True, kw_only=True)
class Options:
    double: bool = True
    mark: bool = False


def steps(options):
    double = Rewrite(function="switches.rewrites:double", arguments={})
    mark = Rewrite(function="switches.rewrites:mark", phase="flow", arguments={})
    return tuple(step for step, on in ((double, options.double), (mark, options.mark)) if on)


SWITCHES = Plugin(name="switches", version="1", description="", options=Options, steps=steps)
"""
_REWRITES = """\
from iree.compiler import ir
from iree.compiler.dialects import arith

from harness.rewrites.operations import find, replace


def double(module):
    \"\"\"x + x becomes 2 x, which is the same to the last bit.\"\"\"
    (op,) = find(module, "arith.addf")
    kind = op.results[0].type
    with ir.InsertionPoint(op), op.location:
        two = arith.constant(kind, ir.DenseElementsAttr.get_splat(kind, ir.FloatAttr.get(kind.element_type, 2.0)))
        replace(op, arith.mulf(op.operands[0], two))
    return 1


def mark(module):
    \"\"\"What nothing reads.\"\"\"
    module.operation.attributes["switches.mark"] = ir.UnitAttr.get()
    return 1
"""


def lay_out_counted(folder: Path) -> None:
    """Write the suite `counted`, its models, and a folder `packages` with its plugin as if it were installed."""
    (folder / "counted.toml").write_text(COUNTED)
    (folder / "twice.mlir").write_text(_TWICE)
    (folder / "long.mlir").write_text(_TWICE.replace("@main", f"@{LONG_NAME}"))
    package, installed = folder / "packages/switches", folder / "packages/switches-1.dist-info"
    for path in (package, installed):
        path.mkdir(parents=True)
    (package / "__init__.py").write_text(_PLUGIN)
    (package / "rewrites.py").write_text(_REWRITES)
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: switches\nVersion: 1\n")
    (installed / "entry_points.txt").write_text("[harness.plugins]\nswitches = switches:SWITCHES\n")
