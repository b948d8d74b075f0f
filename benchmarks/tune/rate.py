"""How many configurations of dispatches of about 1 ms are tried a minute: in a search's races, and each by itself.

By itself is what a script around the tools does: iree-compile of the program with the candidate's tuning spec, and
iree-benchmark-module in a process of its own, once, with its own defaults.
"""

import json
import subprocess
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import tomli_w
from pydantic import TypeAdapter

from benchmarks.tune.measuring import Measuring
from benchmarks.tune.searches import DEVICE, Search
from harness.toolchain import find_toolchain

# So many of a search's candidates are tried by themselves.
_EACH = 12
_COMPILE_FLAGS = (
    "--iree-hal-target-device=local",
    "--iree-hal-local-target-device-backends=llvm-cpu",
    "--iree-llvmcpu-target-cpu=host",
)
# Sums of some hundred products in another order: the largest are some tens.
_TOLERANCE = {"absolute": 1e-3}
_UNITS_NS = {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9}
_SPECS = "dispatches/**/candidate-spec.mlir"


@dataclass(frozen=True, kw_only=True)
class Program:
    """A program of one dispatch, of about 1 ms on one core with AVX-512.

    Attributes:
        inputs: Shapes of f32.
    """

    mlir: str
    inputs: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, kw_only=True)
class Rate:
    """What was found for one program.

    Attributes:
        call_ns: What iree-benchmark-module says that a call takes with the compiler's own configuration.
        raced: Configurations that a search compiled and raced; raced_a_minute: of what both took.
        each: Configurations that were compiled and run each by itself; each_a_minute: likewise.
        failed: Of these, those that did not compile or run, whose time counts too.
    """

    program: str
    call_ns: float | None
    raced: int
    raced_a_minute: float
    each: int
    each_a_minute: float
    failed: int


_PRODUCT = """\
func.func @main(%a: tensor<256x512xf32>, %b: tensor<512x512xf32>) -> tensor<256x512xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<256x512xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<256x512xf32>) -> tensor<256x512xf32>
  %result = linalg.matmul ins(%a, %b : tensor<256x512xf32>, tensor<512x512xf32>)
      outs(%start : tensor<256x512xf32>) -> tensor<256x512xf32>
  return %result : tensor<256x512xf32>
}
"""
_CONVOLUTION = """\
func.func @main(%a: tensor<2x30x30x64xf32>, %b: tensor<3x3x64x64xf32>) -> tensor<2x28x28x64xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<2x28x28x64xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<2x28x28x64xf32>) -> tensor<2x28x28x64xf32>
  %result = linalg.conv_2d_nhwc_hwcf {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>}
      ins(%a, %b : tensor<2x30x30x64xf32>, tensor<3x3x64x64xf32>)
      outs(%start : tensor<2x28x28x64xf32>) -> tensor<2x28x28x64xf32>
  return %result : tensor<2x28x28x64xf32>
}
"""
PROGRAMS = {
    "product": Program(mlir=_PRODUCT, inputs=((256, 512), (512, 512))),
    "convolution": Program(mlir=_CONVOLUTION, inputs=((2, 30, 30, 64), (3, 3, 64, 64))),
}


def measure_rate(name: str, measuring: Measuring, *, quick: bool) -> Rate:
    """The rates of one program; the search goes on where it was stopped, and a rate that is known is read.

    Raises:
        RuntimeError: The search cannot be made, or compiled no configuration.
    """
    search = Search(part="rate", suite=str(_suite(measuring.out)), model=name, without=("*",), budget_s=300.0)
    search = search.quick() if quick else search
    file = measuring.folder(search) / "rate.json"
    if not file.is_file():
        tuning = measuring.tune(search)
        tried = [each for dispatch in tuning.dispatches for each in dispatch.tried] if tuning else []
        specs = sorted(measuring.tuned(search).glob(_SPECS))
        if tuning is None or tuning.candidates_a_minute is None or not specs:
            raise RuntimeError(f"{search.name}: the search compiled no configuration of its dispatch")
        chosen = specs[:: max(1, len(specs) // _EACH)][:_EACH]
        started = time.monotonic()
        took = [_by_itself(name, spec, file.parent / "by-itself") for spec in chosen]
        seconds = time.monotonic() - started
        rate = Rate(
            program=name,
            call_ns=_by_itself(name, None, file.parent / "by-itself"),
            raced=sum(each.generations > 0 for each in tried),
            raced_a_minute=tuning.candidates_a_minute,
            each=len(chosen),
            each_a_minute=60.0 * len(chosen) / seconds,
            failed=took.count(None),
        )
        file.write_text(json.dumps(asdict(rate)))
    return TypeAdapter(Rate).validate_json(file.read_text())


def measured_rates(out: Path) -> list[Rate]:
    """Those that are known."""
    return [TypeAdapter(Rate).validate_json(file.read_text()) for file in sorted(out.glob("rate/*/rate.json"))]


def _suite(out: Path) -> Path:
    folder = out / "rate"
    folder.mkdir(parents=True, exist_ok=True)
    models: dict[str, Any] = {}
    for name, program in PROGRAMS.items():
        (folder / f"{name}.mlir").write_text(program.mlir)
        inputs = [{"shape": list(shape)} for shape in program.inputs]
        models[name] = {"mlir": f"{name}.mlir", "function": "main", "inputs": inputs, "tolerance": _TOLERANCE}
    table = {
        "name": "rate",
        "baseline": "stock",
        "models": models,
        "variants": {"stock": {}},
        "devices": {
            DEVICE: {"uri": "local-sync", "backend": "llvm-cpu", "compile_flags": [*_COMPILE_FLAGS], "pin": True}
        },
    }
    file = folder / "rate.toml"
    file.write_text(tomli_w.dumps(table))
    return file


def _by_itself(name: str, spec: Path | None, folder: Path) -> float | None:
    """Nanoseconds of a call, by compiling and running the program, each in a process of its own; None: one failed."""
    folder.mkdir(parents=True, exist_ok=True)
    tools, program = find_toolchain(), PROGRAMS[name]
    source, module = folder / "program.mlir", folder / "program.vmfb"
    source.write_text(program.mlir)
    with_spec = [] if spec is None else [f"--iree-codegen-tuning-spec-path={spec}"]
    words = [str(tools.iree_compile), str(source), *_COMPILE_FLAGS, *with_spec, "-o", str(module)]
    if subprocess.run(words, capture_output=True).returncode:
        return None
    inputs = [f"--input={'x'.join(map(str, shape))}xf32=0.5" for shape in program.inputs]
    words = [str(tools.runtime_tool("iree-benchmark-module")), f"--module={module}", "--device=local-sync"]
    ran = subprocess.run([*words, "--function=main", *inputs, "--benchmark_format=json"], capture_output=True)
    if ran.returncode:
        return None
    (said,) = json.loads(ran.stdout)["benchmarks"]
    return float(said["real_time"]) * _UNITS_NS[said["time_unit"]]
