"""How many of which ops a program has at each phase, with the real compiler, and which of them a suite names."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from harness.errors import CaseError, UsageError
from harness.ir.counts import OpCounts, check_wanted, count_files, select_counts
from harness.metrics import PHASES
from harness.process import Limits
from harness.toolchain import Toolchain
from tests.ir.conftest import LIMITS, Count

# ----------------------------------------------------------------------------------------------------------- selection

COUNTS = {
    "flow": OpCounts(
        host={"flow.dispatch": 10, "arith.constant": 3}, executables={"arith.constant": 5, "linalg.fill": 2}
    ),
    "bufferized": OpCounts(host={}, executables={"memref.alloc": 2, "memref.alloca": 15, "linalg.fill": 2}),
}


@pytest.mark.parametrize(
    ("phase", "pattern", "count"),
    [
        ("flow", "flow.dispatch", 10),
        ("flow", "arith.constant", 8),
        ("flow", "host:arith.constant", 3),
        ("flow", "executables:arith.constant", 5),
        ("flow", "*", 20),
        ("bufferized", "memref.alloc", 2),
        ("bufferized", "memref.alloc*", 17),
        ("bufferized", "memref", 0),
        ("bufferized", "mystery.op", 0),
    ],
)
def test_a_pattern_may_have_a_place_and_wildcards(phase: str, pattern: str, count: int) -> None:
    assert select_counts(COUNTS, {phase: [pattern]}) == {f"{phase}/{pattern}": count}
    assert sum(COUNTS[phase].matching(pattern).values()) == count


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ({"flwo": ["linalg.*"]}, "there is no phase 'flwo'; name one of start, input, abi, preprocessing, "),
        ({"flow": ["device:linalg.*"]}, "there is no place 'device', as in 'device:linalg.*'; write host:... or "),
    ],
)
def test_an_unknown_phase_or_place_is_refused(wanted: Mapping[str, Sequence[str]], message: str) -> None:
    with pytest.raises(UsageError) as refused:
        check_wanted(wanted)
    assert str(refused.value).startswith(message)


# ------------------------------------------------------------------------------------------------------------ counting

ALLOCATIONS = """
%s @host() {
  "mystery.outer"() ({ "mystery.inner"() : () -> () }) : () -> ()
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
EXPECTED = {
    "start": {
        "func.func": 1,
        "linalg.conv_2d_nchw_fchw": 1,
        "linalg.*": 6,  # a fill, the convolution, a generic, and each has its linalg.yield
        "tensor.insert_slice": 2,
        "builtin.module": 0,  # the outermost is not counted
    },
    "input": {"util.func": 1, "func.func": 0, "linalg.conv_2d_nchw_fchw": 1, "tensor.insert_slice": 2},
    "abi": {"hal.tensor.import": 1, "hal.tensor.export": 1},
    "dispatch-creation": {"flow.dispatch.workgroups": 2, "tensor.insert_slice": 0, "flow.tensor.update": 2},
    "flow": {
        "flow.executable": 2,
        "host:flow.executable": 2,  # what holds an executable is not inside it
        "executables:flow.executable.export": 2,
        "flow.dispatch": 2,
        "flow.tensor.update": 2,
        "linalg.generic": 2,
    },
    "stream": {"stream.cmd.dispatch": 2, "stream.cmd.fill": 0, "flow.*": 0},
    "executable-sources": {"hal.executable": 2, "hal.executable.variant": 2},
    # The convolution's tile does not fit its result's rows, so it is made on the stack and then copied. The dispatch
    # that only copies has buffers earlier.
    "bufferized": {"memref.alloca": 1, "func.func": 2, "host:*": 0},
    "executable-targets": {"linalg.*": 0, "memref.*": 0, "llvm.func": 2, "llvm.alloca": 1},
    "hal": {"hal.executable.binary": 1, "llvm.*": 0},
    "vm": {"vm.module": 1, "hal.*": 0},
}


def test_every_phase_has_its_ops(counts: Mapping[str, OpCounts]) -> None:
    assert tuple(counts) == PHASES
    selected = select_counts(counts, {phase: list(expected) for phase, expected in EXPECTED.items()})
    assert selected == {f"{phase}/{op}": n for phase, expected in EXPECTED.items() for op, n in expected.items()}
    assert {phase for phase, ops in counts.items() if ops.count("memref.alloc*")} == {"bufferized"}
    assert [counts[phase].count("host:linalg.*") for phase in ("dispatch-creation", "flow", "stream")] == [0, 0, 0]
    assert counts["input"].executables == {}


@pytest.mark.parametrize(("function", "end"), [("func.func", "return"), ("util.func private", "util.return")])
def test_allocations_inside_executables_and_outside(function: str, end: str, count: Count, tmp_path: Path) -> None:
    file = tmp_path / "ir.mlir"
    file.write_text(ALLOCATIONS % (function, end))
    counts = count({"executable-sources": file})["executable-sources"]
    returns = end if "." in end else "func.return"
    once = (function.split()[0], "memref.alloc", returns, "hal.executable", "mystery.outer", "mystery.inner")
    assert counts.host == dict.fromkeys(once, 1)
    for op, count_of_it in (("executables:memref.alloc", 2), ("memref.alloc", 3), ("executables:builtin.module", 1)):
        assert counts.count(op) == count_of_it


def test_a_counter_that_fails_is_a_failed_case(model: Path, real_toolchain: Toolchain, tmp_path: Path) -> None:
    broken = tmp_path / "flow.mlir"
    broken.write_text("func.func @main( {")
    why = "the IR at phase 'flow' cannot be read back (expected non-function type); leave phases out"
    with pytest.raises(CaseError, match=re.escape(why)):
        count_files({"start": model, "flow": broken}, toolchain=real_toolchain, limits=LIMITS)
    why = "the counter of ops exited with status 1 at start: FileNotFoundError: "
    with pytest.raises(CaseError, match=why):
        count_files({"start": tmp_path / "gone.mlir"}, toolchain=real_toolchain, limits=LIMITS)
    slow = replace(real_toolchain, python_options=("-c", "import time; time.sleep(60)"))
    why = "the counter of ops ran past its limit of 0.5 s at start; give it more with --compile-timeout"
    with pytest.raises(CaseError, match=why):
        count_files({"start": model}, toolchain=slow, limits=Limits(seconds=0.5))
