"""Assembly and IR of dispatches, modules of the scripted toolchain, and an iree-profile that prints given rows."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from harness.compare.samplers import Module
from harness.ir.differences import EXECUTABLE_PHASES, Executable, canonical_lines
from harness.process import Limits
from harness.toolchain import Toolchain
from tests.builders import a_loadable
from tests.compare.runs import a_build, a_case
from tests.fakes.fake_toolchain import make_fake_toolchain

LIMITS = Limits(seconds=60)

FLOW = """\
func.func @main_dispatch_0_conv_32x10x6x8x3x3_f32(\
%arg0: !iree_tensor_ext.dispatch.tensor<readonly:tensor<8x12x8xf32>>, \
%arg1: !iree_tensor_ext.dispatch.tensor<readonly:tensor<32x8x3x3xf32>>, \
%arg2: !iree_tensor_ext.dispatch.tensor<writeonly:tensor<32x10x6xf32>>) {
  %2 = tensor.empty() : tensor<32x10x6xf32>
  %3 = linalg.fill ins(%cst : f32) outs(%2 : tensor<32x10x6xf32>) -> tensor<32x10x6xf32>
  %4 = linalg.generic {iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]} \
ins(%arg0, %arg1 : tensor<8x12x8xf32>, tensor<32x8x3x3xf32>) outs(%3 : tensor<32x10x6xf32>) {
  ^bb0(%in: f32, %in_0: f32, %out: f32):
    %6 = arith.mulf %in, %in_0 : f32
    %7 = arith.addf %out, %6 : f32
    linalg.yield %7 : f32
  } -> tensor<32x10x6xf32>
  %5 = linalg.generic {iterator_types = ["parallel", "parallel", "parallel"]} ins(%4 : t) outs(%2 : t) {
  ^bb0(%in: f32, %out: f32):
    %6 = arith.maximumf %in, %cst : f32
    linalg.yield %6 : f32
  } -> tensor<32x10x6xf32>
  some.store %5, %arg2 : tensor<32x10x6xf32>
  return
}"""

NEW_PIPELINE = "#iree_cpu.pipeline<ConvTileAndDecomposeExpert>"
NEW_TILES = (
    "#iree_cpu.lowering_config<distribution = [0, 4, 5, 6, 0, 0, 0], "
    "vector_common_parallel = [1, 4, 1, 6, 0, 0, 0], vector_reduction = [0, 0, 0, 0, 8, 1, 1]>"
)
OLD_PIPELINE = "CPUDoubleTilingExpert"
OLD_TILES = (
    "#iree_cpu.lowering_config<distribution = [4, 5, 6, 0, 0, 0], "
    "vector_common_parallel = [1, 1, 8, 0, 0, 0], vector_reduction = [0, 0, 0, 1, 1, 1]>"
)


def configured(pipeline: str = NEW_PIPELINE, tiles: str = NEW_TILES, fill: str = "[1, 4, 1, 6]") -> str:
    """The dispatch of `FLOW` once it is configured."""
    return f"""\
func.func @main_dispatch_0_conv_32x10x6x8x3x3_f32() \
attributes {{translation_info = #iree_codegen.translation_info<pipeline = {pipeline}>}} {{
  %4 = tensor.empty() : tensor<1x32x10x6xf32>
  %0 = hal.interface.binding.subspan binding(0) : memref<1x8x12x8xf32>
  %5 = linalg.fill {{lowering_config = #iree_cpu.lowering_config<vector_common_parallel = {fill}>}} ins(%cst : f32)
  %7 = linalg.generic {{iterator_types = ["parallel", "parallel", "parallel", "reduction"]}} ins(%0, %3 : t, t) \
outs(%5 : tensor<1x32x10x6xf32>) attrs =  {{lowering_config = {tiles}}} {{
  ^bb0(%in: f32, %in_0: f32, %out: f32):
    linalg.yield %11 : f32
  }} -> tensor<1x32x10x6xf32>
  return
}}"""


def a_convolution(
    name: str = "main_dispatch_0_conv_32x10x6x8x3x3_f32",
    *,
    flow: str = FLOW,
    configured: str = configured(),
    targets: str = "llvm.fmul",
) -> Executable:
    """A dispatch with that IR at three phases; "" leaves a phase out."""
    texts = {"flow": flow, "executable-configurations": configured, "executable-targets": targets}
    phases = {phase: canonical_lines([texts[phase]], [name]) for phase in EXECUTABLE_PHASES if texts.get(phase)}
    return Executable(name=name, phases=phases, dispatches=1)


Row = Mapping[str, Any]


@pytest.fixture
def toolchain(tmp_path: Path) -> Toolchain:
    return make_fake_toolchain(tmp_path / "tools")


def a_module(
    toolchain: Toolchain,
    folder: Path,
    *,
    uri: str = "local-sync",
    run_flags: Sequence[str] = (),
    arguments: Sequence[Mapping[str, Any]] = (),
    parameters: Mapping[str, Path] | None = None,
    compile_flags: Sequence[str] = (),
    **changes: Any,
) -> Module:
    """A case's module, whose file is there; `changes` are of its build."""
    case = a_case(uri=uri, run_flags=tuple(run_flags))
    folder.mkdir(parents=True, exist_ok=True)
    mlir, module = folder / "net.mlir", folder / "built.vmfb"
    mlir.write_text("func.func @main()")
    module.write_bytes(b"code")
    command = ("iree-compile", "model.mlir", "-o", "module.vmfb", *compile_flags)
    loadable = a_loadable(
        case.name,
        toolchain,
        module=module,
        arguments=tuple(arguments),
        parameters=parameters or {},
        run_flags=case.run_flags,
    )
    build = a_build(case, **{"command": command, **changes})
    return Module(files=(), case=case, loadable=loadable, mlir=mlir, build=build)


def with_profiler(toolchain: Toolchain, **prints: Sequence[Row]) -> Toolchain:
    """Give a scripted toolchain an iree-profile: `dispatch` and `queue` are the rows that these commands print."""
    for command, rows in prints.items():
        (toolchain.runtime_tools / f"{command}.jsonl").write_text(lines(rows))
    program = toolchain.runtime_tools / "iree-profile"
    program.write_text('#!/bin/sh\ncat "$(dirname "$0")/$1.jsonl"\n')
    program.chmod(0o755)
    return toolchain


def lines(rows: Sequence[Row]) -> str:
    return "".join(f"{json.dumps(row)}\n" for row in rows)


def a_group(key: str, *, ordinal: int = 0) -> Row:
    """A row of `iree-profile dispatch` that sums one dispatch up."""
    where = {"physical_device_ordinal": 0, "executable_id": 1, "function_ordinal": ordinal}
    return {"type": "host_dispatch_group", "key": key, **where}


def a_device_event(key: str, start: int, end: int, *, ns_per_tick: int = 1) -> Row:
    """A row of `iree-profile dispatch --dispatch_events`."""
    ticks = {"start_tick": start, "end_tick": end, "duration_ticks": end - start}
    times = {"duration_ns": ns_per_tick * (end - start), "clock_fit_available": True, "valid": True}
    return {"type": "dispatch_event", "key": key, **ticks, **times}


def an_event(op: str, start: int, end: int, *, ordinal: int = 2**32 - 1, valid: bool = True) -> Row:
    """A row of `iree-profile queue` with an operation on the host."""
    where = {"physical_device_ordinal": 0, "executable_id": 1 if op == "dispatch" else 0, "function_ordinal": ordinal}
    times = {"start_host_time_ns": start, "end_host_time_ns": end, "valid": valid}
    return {"type": "host_execution_event", "op": op, **where, **times}


def an_executable(name: str, code: str = "") -> Executable:
    """One whose code is this at its first phase and at its last; by default no other executable's."""
    texts = {"flow": code or name, "executable-targets": code or name}
    return Executable(name=name, phases={phase: canonical_lines([text]) for phase, text in texts.items()})
