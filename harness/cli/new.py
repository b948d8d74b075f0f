"""`harness new`: a plugin, a suite or those of the harness, which work as they are and are there to be changed."""

from __future__ import annotations

import keyword
import re
import shutil
from importlib.util import find_spec
from pathlib import Path
from string import Template

from cyclopts import App

from harness import __version__
from harness.cli.app import app
from harness.cli.output import tell
from harness.errors import ExitCode, UsageError
from harness.files import shipped
from harness.plugins import PLUGINS
from harness.store.files import writing

new_app = App(name="new", help="Begin a plugin or a suite of your own, or write out the suites of the harness.")
app.command(new_app)

_PROGRAM = """\
func.func @main(%x: tensor<64x256xf32>, %w: tensor<256x256xf32>) -> tensor<64x256xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<64x256xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<64x256xf32>) -> tensor<64x256xf32>
  %y = linalg.matmul ins(%x, %w : tensor<64x256xf32>, tensor<256x256xf32>) outs(%init : tensor<64x256xf32>)
    -> tensor<64x256xf32>
  %twice = arith.addf %y, %y : tensor<64x256xf32>
  return %twice : tensor<64x256xf32>
}
"""
_SUITE = """\
# harness run $file
name = "$name"
description = "a matrix product with and without $subject"
baseline = "stock"

[models.product]
mlir = "$mlir"
function = "main"
inputs = [{ shape = [64, 256], seed = 1 }, { shape = [256, 256], seed = 2 }]

[variants.stock]

[variants.$variant]
$change

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
budget_s = 4
"""
_PYPROJECT = """\
[build-system]
requires = ["hatchling>=1.25"]
build-backend = "hatchling.build"

[project]
name = "$name"
version = "0.1"
description = "A plugin of iree-harness"
requires-python = ">=3.10"
dependencies = ["iree-harness>=$release"]

# Left the name that suites use, right where the plugin is.
[project.entry-points."harness.plugins"]
$name = "$package:PLUGIN"

[tool.hatch.build.targets.wheel]
packages = ["$package"]
"""
_PLUGIN = '''\
"""The plugin $name: what suites name, and which options they give it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from harness.plugins import Plugin, Rewrite
from pydantic import Field


@dataclass(frozen=True, kw_only=True)
class Options:
    """How many places are rewritten at most, from the top of the program."""

    limit: Annotated[int, Field(ge=1)] = 1000


# Raise the version whenever the same program would be rewritten into another one.
PLUGIN = Plugin(
    name="$name",
    version="1",
    description="x + x becomes 2 * x",
    options=Options,
    steps=lambda _: (Rewrite(function="$package.rewrites:double"),),
)
'''
_REWRITES = '''\
"""What $name does to a program. It runs under a toolchain's own Python: import iree.compiler, and not the harness."""

from __future__ import annotations

from iree.compiler import ir
from iree.compiler.dialects import arith


def double(module: ir.Module, *, limit: int = 1000) -> int:
    """Turn x + x into 2 * x, which is the same to the last bit; how many were turned."""
    sums: list[ir.Operation] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op.name == "arith.addf" and op.operands[0] == op.operands[1]:
            sums.append(op)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    del sums[limit:]
    for op in sums:
        with ir.InsertionPoint(op), op.location:
            op.results[0].replace_all_uses_with(arith.mulf(op.operands[0], _two(op.results[0].type)))
        op.erase()
    return len(sums)


def _two(kind: ir.Type) -> ir.Value:
    """The constant 2 of a type, be it a number or a tensor of static shape."""
    if isinstance(kind, ir.ShapedType):
        two = ir.FloatAttr.get(kind.element_type, 2.0)
        return arith.constant(kind, ir.DenseElementsAttr.get_splat(kind, two))
    return arith.constant(kind, 2.0)
'''
_TEST = '''\
"""A rewrite is a function over a module, so its test needs iree.compiler and nothing of the harness."""

from __future__ import annotations

from iree.compiler import ir

from $package.rewrites import double

PROGRAM = """
func.func @main(%x: tensor<4xf32>, %y: f32) -> (tensor<4xf32>, f32, f32) {
  %a = arith.addf %x, %x : tensor<4xf32>
  %b = arith.addf %y, %y : f32
  %c = arith.addf %b, %y : f32
  return %a, %b, %c : tensor<4xf32>, f32, f32
}
"""


def rewritten(**options: int) -> tuple[int, str]:
    with ir.Context(), ir.Location.unknown():
        module = ir.Module.parse(PROGRAM)
        matched = double(module, **options)
        module.operation.verify()
        return matched, str(module)


def test_sums_of_a_value_and_itself_become_products() -> None:
    matched, text = rewritten()
    assert matched == 2
    assert text.count("arith.mulf") == 2
    assert text.count("arith.addf") == 1, "b + y is something else"


def test_no_more_than_the_limit() -> None:
    assert rewritten(limit=1)[0] == 1
'''
_README = """\
# $name

A plugin of iree-harness: $package/rewrites.py has what it does to a program, $package/__init__.py its options.

    pip install --editable .     # a changed rewrite is then compiled anew at the next run
    pytest                       # the rewrite alone
    harness plugins $name        # its options, as suites can give them
    harness run example.toml     # a program with and without it: outputs are checked, then both are timed

A report says how often it matched; that both have the same module here, since IREE folds them to the same code, is said
too. What the rewrite prints is shown by `harness run -v`. docs/plugins.md of the harness (`harness new examples` writes
it) has the other kinds of steps, phases, and what a rewrite may rely on.
"""


@new_app.command
def plugin(name: str, *, out: Path | None = None) -> int:
    """Write a package with a plugin: entry point, options, a rewrite, its test, and a suite that runs it.

    Args:
        name: Its name in suites, such as fold-transposes.
        out: The folder (default: the name).
    """
    _check_name(name, "plugin")
    package = name.replace("-", "_")
    if keyword.iskeyword(package) or find_spec(package) is not None or name in PLUGINS.names:
        raise UsageError(f"{name!r} is the name of a Python package or a plugin already; choose another")
    folder = out or Path(name)
    suite = {"file": "example.toml", "mlir": "program.mlir", "subject": name, "variant": name}
    _write(
        folder,
        {
            "pyproject.toml": _PYPROJECT,
            f"{package}/__init__.py": _PLUGIN,
            f"{package}/rewrites.py": _REWRITES,
            f"tests/test_{package}.py": _TEST,
            "README.md": _README,
            "example.toml": _SUITE,
            "program.mlir": _PROGRAM,
        },
        {"name": name, "package": package, "release": __version__, **suite, "change": f'plugins = ["{name}"]'},
    )
    tell(f"{folder}: a package with the plugin {name}; README.md there says how to install, test and run it")
    return ExitCode.OK


@new_app.command
def suite(name: str, *, out: Path = Path()) -> int:
    """Write a suite of one small program and two variants, which runs as it is.

    Args:
        name: Of the suite; its files are NAME.toml and NAME.mlir.
        out: The folder.
    """
    _check_name(name, "suite")
    file = out / f"{name}.toml"
    change = (
        '# flags of iree-compile; plugins = ["NAME"] too, `harness plugins` lists them\nflags = ["--iree-opt-level=O3"]'
    )
    values = {"name": name, "file": str(file), "mlir": f"{name}.mlir", "subject": "more optimisation", "variant": "o3"}
    _write(out, {f"{name}.toml": _SUITE, f"{name}.mlir": _PROGRAM}, {**values, "change": change})
    tell(f"{file}: a suite of {name}.mlir in two variants; run it with `harness run {file}`")
    return ExitCode.OK


@new_app.command
def examples(*, out: Path = Path()) -> int:
    """Write out the suites that come with the harness, and the flag sets and docs that they name.

    Args:
        out: The folder.
    """
    folders = ("suites", "flagsets", "docs")
    for name in folders:
        if (out / name).exists():
            raise UsageError(f"{out / name}: is there already; choose another folder with --out")
    files = [file for name in folders for file in shipped(name).rglob("*") if file.is_file() and file.suffix != ".pyc"]
    for file in files:
        path = out / file.relative_to(shipped(""))
        with writing(path, "choose another folder with --out"):
            path.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, path)
    tell(f"{', '.join(str(out / name) for name in folders)}: begin with `harness run {out / 'suites' / 'smoke.toml'}`")
    return ExitCode.OK


def _check_name(name: str, noun: str) -> None:
    if not re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", name) or len(name) > 64:
        raise UsageError(f"a {noun} cannot be called {name[:80]!r}; take small letters, digits and dashes: my-{noun}")


def _write(folder: Path, files: dict[str, str], values: dict[str, str]) -> None:
    """Write files from templates; none is overwritten."""
    for name in files:
        if (folder / name).exists():
            raise UsageError(f"{folder / name}: is there already; choose another name, or another folder with --out")
    for name, text in files.items():
        path = folder / name
        with writing(path, "choose another folder with --out"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(Template(text).substitute(values), encoding="utf-8")
