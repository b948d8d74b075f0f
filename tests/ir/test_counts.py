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
from tests.ir.conftest import LIMITS

COUNTS = OpCounts(host={"flow.dispatch": 10, "arith.constant": 3}, executables={"arith.constant": 5, "memref.alloc": 2})


def test_a_pattern_may_have_a_place_and_wildcards() -> None:
    counted = {"flow.dispatch": 10, "arith.constant": 8, "host:arith.constant": 3, "executables:arith.constant": 5,
               "*": 20, "memref.a*": 2, "memref": 0, "mystery.op": 0}  # fmt: skip
    assert select_counts({"flow": COUNTS}, {"flow": list(counted)}) == {
        f"flow/{pattern}": count for pattern, count in counted.items()
    }


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ({"flwo": ["linalg.*"]}, "there is no phase 'flwo'; name one of start, input, abi, preprocessing, "),
        ({"flow": ["device:linalg.*"]}, "there is no place 'device', as in 'device:linalg.*'; write host:... or "),
    ],
)
def test_an_unknown_phase_or_place_is_refused(wanted: Mapping[str, Sequence[str]], message: str) -> None:
    with pytest.raises(UsageError, match=re.escape(message)):
        check_wanted(wanted)


EXPECTED = {
    "start": {
        "func.func": 1,
        "linalg.conv_2d_nchw_fchw": 1,
        "linalg.*": 6,  # a fill, the convolution, a generic, and each has its linalg.yield
        "tensor.insert_slice": 2,
        "builtin.module": 0,  # the outermost is not counted
    },
    "input": {"util.func": 1, "func.func": 0, "linalg.conv_2d_nchw_fchw": 1, "executables:*": 0},
    "abi": {"hal.tensor.import": 1, "hal.tensor.export": 1},
    "dispatch-creation": {"flow.dispatch.workgroups": 2, "host:linalg.*": 0, "flow.tensor.update": 2},
    "flow": {
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


def test_a_counter_that_fails_is_a_failed_case(model: Path, real_toolchain: Toolchain, tmp_path: Path) -> None:
    broken = tmp_path / "flow.mlir"
    broken.write_text("func.func @main( {")
    slow = replace(real_toolchain, python_options=("-c", "import time; time.sleep(60)"))
    for files, toolchain, limits, why in (
        ({"start": model, "flow": broken}, real_toolchain, LIMITS,
         "the IR at phase 'flow' cannot be read back (expected non-function type); leave phases out"),
        ({"start": tmp_path / "gone.mlir"}, real_toolchain, LIMITS,
         "the counter of ops exited with status 1 at start: FileNotFoundError: "),
        ({"start": model}, slow, Limits(seconds=0.5),
         "the counter of ops ran past its limit of 0.5 s at start; give it more with --compile-timeout"),
    ):  # fmt: skip
        with pytest.raises(CaseError, match=re.escape(why)):
            count_files(files, toolchain=toolchain, limits=limits)
