"""How many of which ops a small program has at each phase, with the real compiler."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from harness.errors import CaseError
from harness.ir import OpCounts, count_files, count_ops, select_counts
from harness.metrics import PHASES
from harness.process import Limits
from harness.toolchain import Toolchain
from tests.ir.programs import HASWELL_FLAGS, LIMITS

ALLOCATIONS = """
%s @host() {
  %%0 = memref.alloc() : memref<4xf32>
  %s
}
hal.executable private @dispatch {
  hal.executable.variant public @vmvx target(<"vmvx", "vmvx-bytecode-fb">) {
    builtin.module {
      func.func @main() {
        %%0 = memref.alloc() : memref<4xf32>
        %%1 = memref.alloc() : memref<8xf32>
        return
      }
    }
  }
}
"""


def test_every_phase_has_its_ops(counts: Mapping[str, OpCounts]) -> None:
    assert tuple(counts) == PHASES
    wanted = {
        "start": ["func.func", "linalg.conv_2d_nchw_fchw", "linalg.*", "tensor.insert_slice", "builtin.module"],
        "input": ["util.func", "func.func", "linalg.conv_2d_nchw_fchw", "tensor.insert_slice"],
        "abi": ["hal.tensor.import", "hal.tensor.export"],
        "dispatch-creation": ["flow.dispatch.workgroups", "tensor.insert_slice", "flow.tensor.update"],
        "flow": ["flow.executable", "flow.dispatch", "flow.tensor.update", "linalg.generic"],
        "stream": ["stream.cmd.dispatch", "stream.cmd.fill", "flow.*"],
        "executable-sources": ["hal.executable", "hal.executable.variant"],
        "executable-targets": ["linalg.*", "memref.*", "llvm.func"],
        "hal": ["hal.executable.binary", "llvm.*"],
        "vm": ["vm.module", "hal.*"],
    }
    assert select_counts(counts, wanted) == {
        "start/func.func": 1,
        "start/linalg.conv_2d_nchw_fchw": 1,
        "start/linalg.*": 6,  # a fill, the convolution, a generic, and each has its linalg.yield
        "start/tensor.insert_slice": 2,
        "start/builtin.module": 0,  # the outermost is not counted
        "input/util.func": 1,
        "input/func.func": 0,
        "input/linalg.conv_2d_nchw_fchw": 1,
        "input/tensor.insert_slice": 2,
        "abi/hal.tensor.import": 1,
        "abi/hal.tensor.export": 1,
        "dispatch-creation/flow.dispatch.workgroups": 2,
        "dispatch-creation/tensor.insert_slice": 0,
        "dispatch-creation/flow.tensor.update": 2,
        "flow/flow.executable": 2,
        "flow/flow.dispatch": 2,
        "flow/flow.tensor.update": 2,
        "flow/linalg.generic": 2,
        "stream/stream.cmd.dispatch": 2,
        "stream/stream.cmd.fill": 0,
        "stream/flow.*": 0,
        "executable-sources/hal.executable": 2,
        "executable-sources/hal.executable.variant": 2,
        "executable-targets/linalg.*": 0,
        "executable-targets/memref.*": 0,
        "executable-targets/llvm.func": 2,
        "hal/hal.executable.binary": 1,
        "hal/llvm.*": 0,
        "vm/vm.module": 1,
        "vm/hal.*": 0,
    }


def test_an_allocation_of_a_dispatch_shows_once_it_has_buffers(counts: Mapping[str, OpCounts]) -> None:
    """The convolution's tile does not fit its result's rows, so it is made on the stack and then copied."""
    assert {phase for phase, ops in counts.items() if ops.count("memref.alloc*")} == {"bufferized"}
    assert counts["bufferized"].count("memref.alloca") == 1
    assert counts["executable-targets"].count("llvm.alloca") == 1
    assert counts["bufferized"].count("func.func") == 2, "the dispatch that only copies has buffers earlier"
    assert counts["bufferized"].host == {}


def test_dispatches_hold_what_computes(counts: Mapping[str, OpCounts]) -> None:
    for phase in ("dispatch-creation", "flow", "stream", "executable-sources", "executable-configurations"):
        assert counts[phase].count("host:linalg.*") == 0, phase
        assert counts[phase].count("executables:linalg.*") >= 6, phase
    assert counts["input"].executables == {}
    assert counts["flow"].count("host:flow.executable") == 2, "what holds an executable is not inside it"
    assert counts["flow"].count("executables:flow.executable.export") == 2


@pytest.mark.parametrize(("function", "end"), [("func.func", "return"), ("util.func private", "util.return")])
def test_allocations_inside_executables_and_outside(
    function: str, end: str, real_toolchain: Toolchain, tmp_path: Path
) -> None:
    file = tmp_path / "ir.mlir"
    file.write_text(ALLOCATIONS % (function, end))
    counts = count_files({"executable-sources": file}, toolchain=real_toolchain, limits=LIMITS)["executable-sources"]
    assert counts.host == {function.split()[0]: 1, "memref.alloc": 1, end if "." in end else "func.return": 1} | {
        "hal.executable": 1
    }
    assert counts.count("executables:memref.alloc") == 2
    assert counts.count("memref.alloc") == 3
    assert counts.count("executables:builtin.module") == 1


def test_counts_are_the_same_wherever_the_compiler_stops(
    counts: Mapping[str, OpCounts], model: Path, real_toolchain: Toolchain, tmp_path: Path
) -> None:
    phases = ["executable-configurations", "flow", "start"]
    some = count_ops(HASWELL_FLAGS, model, phases, toolchain=real_toolchain, limits=LIMITS, scratch=tmp_path)
    assert list(some) == ["start", "flow", "executable-configurations"]
    assert some == {phase: counts[phase] for phase in phases}
    assert list(tmp_path.iterdir()) == [], "the scratch folder is left as it was"
    assert count_ops(HASWELL_FLAGS, model, [], toolchain=real_toolchain, limits=LIMITS) == {}


def test_a_program_without_dispatches(real_toolchain: Toolchain, tmp_path: Path) -> None:
    model = tmp_path / "net.mlir"
    model.write_text("func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> { return %x : tensor<4xf32> }")
    counts = count_ops(HASWELL_FLAGS, model, ["flow", "bufferized"], toolchain=real_toolchain, limits=LIMITS)
    assert counts["bufferized"] == OpCounts(host={}, executables={})
    assert counts["flow"].executables == {}


def test_ops_of_dialects_that_nobody_knows_count_too(real_toolchain: Toolchain, tmp_path: Path) -> None:
    file = tmp_path / "net.mlir"
    file.write_text('"mystery.outer"() ({ "mystery.inner"() : () -> () }) : () -> ()')
    counts = count_files({"start": file}, toolchain=real_toolchain, limits=LIMITS)
    assert counts["start"].host == {"mystery.outer": 1, "mystery.inner": 1}


def test_ir_that_does_not_parse_is_a_failed_case(model: Path, real_toolchain: Toolchain, tmp_path: Path) -> None:
    file = tmp_path / "flow.mlir"
    file.write_text("func.func @main( {")
    with pytest.raises(CaseError) as failed:
        count_files({"start": model, "flow": file}, toolchain=real_toolchain, limits=LIMITS)
    assert failed.value.stage == "ir"
    assert str(failed.value) == (
        "the IR at phase 'flow' cannot be read back (expected non-function type); leave this phase out"
    )


def test_a_counter_that_hits_its_limit_is_a_failed_case(model: Path, real_toolchain: Toolchain) -> None:
    slow = replace(real_toolchain, python_options=("-c", "import time; time.sleep(60)"))
    with pytest.raises(CaseError) as failed:
        count_files({"start": model}, toolchain=slow, limits=Limits(seconds=0.5))
    assert str(failed.value) == (
        "the counter of ops ran past its limit of 0.5 s at start; give it more with --compile-timeout"
    )


def test_a_counter_that_breaks_says_so(real_toolchain: Toolchain, tmp_path: Path) -> None:
    with pytest.raises(CaseError) as failed:
        count_files({"start": tmp_path / "gone.mlir"}, toolchain=real_toolchain, limits=LIMITS)
    assert str(failed.value).startswith("the counter of ops exited with status 1 at start: FileNotFoundError: ")
