"""Running a module once: its outputs as arrays, or one sentence that says what went wrong."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from harness.errors import CaseError
from harness.models.inputs import write_arguments
from harness.models.model import Input
from harness.process import Limits
from harness.toolchain import Toolchain
from harness.verify.outputs import Array, run_command, run_once
from tests.fakes.fake_toolchain import calls, make_fake_toolchain
from tests.verify.conftest import CompileInto

THREE_OUTPUTS = """
func.func @main(%a: tensor<2x3xf32>, %b: tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<2xi32>, f32) {
  %sum = arith.addf %a, %b : tensor<2x3xf32>
  %ints = arith.constant dense<[7, -8]> : tensor<2xi32>
  %scalar = arith.constant 2.5 : f32
  return %sum, %ints, %scalar : tensor<2x3xf32>, tensor<2xi32>, f32
}
"""
TWICE_IN_BF16 = """
func.func @main(%a: tensor<2x2xbf16>) -> (tensor<2x2xf32>, tensor<2x2xbf16>, tensor<bf16>) {
  %wide = arith.extf %a : tensor<2x2xbf16> to tensor<2x2xf32>
  %twice = arith.addf %a, %a : tensor<2x2xbf16>
  %scalar = arith.constant dense<-0.5> : tensor<bf16>
  return %wide, %twice, %scalar : tensor<2x2xf32>, tensor<2x2xbf16>, tensor<bf16>
}
"""


def command_of(
    *run_flags: str, outputs: int = 1, inputs: Sequence[str] = (), parameters: Sequence[str] = ()
) -> tuple[str, ...]:
    return run_command(
        function="main",
        inputs=inputs,
        parameters=parameters,
        uri="local-sync",
        run_flags=run_flags,
        outputs=outputs,
    )


def run_it(
    toolchain: Toolchain,
    command: Sequence[str],
    folder: Path,
    limits: Limits = Limits(seconds=60),  # noqa: B008
) -> list[Array]:
    return run_once(toolchain, command, folder, limits=limits, cpus=None)


def failure_of(toolchain: Toolchain, command: Sequence[str], folder: Path, **limits: float) -> CaseError:
    """The error of a run that fails, after a look that it is one line about verifying."""
    with pytest.raises(CaseError) as caught:
        run_it(toolchain, command, folder, Limits(seconds=limits.get("seconds", 60)))
    assert caught.value.stage == "verify"
    assert "\n" not in str(caught.value)
    return caught.value


def test_the_command_names_files_of_the_folder_only() -> None:
    command = command_of("--x=1", outputs=2, inputs=["@input0.npy", "4xbf16=@input1.bin"], parameters=["w=w.irpa"])
    assert command == (
        "iree-run-module",
        "--module=module.vmfb",
        "--device=local-sync",
        "--function=main",
        "--parameters=w=w.irpa",
        "--input=@input0.npy",
        "--input=4xbf16=@input1.bin",
        "--output=@output0.npy",
        "--output=@output1.npy",
        "--x=1",
    )


def test_outputs_come_in_order(fake: Toolchain, tmp_path: Path) -> None:
    first, second = run_it(fake, command_of("--fake-values=1,2", "--fake-values=3", outputs=2), tmp_path)
    assert first.tolist() == [1.0, 2.0]
    assert second.tolist() == [3.0]


def test_a_function_without_results_gives_no_outputs(fake: Toolchain, tmp_path: Path) -> None:
    assert run_it(fake, command_of(outputs=0), tmp_path) == []


def test_a_failure_says_the_status_of_the_tool(fake: Toolchain, tmp_path: Path) -> None:
    status = "c/runtime/src/iree/vm/x.c:1: INVALID_ARGUMENT; bad shape; while invoking native function f"
    error = failure_of(fake, command_of("--fake-exit=1", f"--fake-stderr={status}"), tmp_path)
    assert str(error) == "iree-run-module exited with status 1: INVALID_ARGUMENT; bad shape"
    assert error.stderr == status


def test_a_failure_without_a_word_still_says_how_it_ended(fake: Toolchain, tmp_path: Path) -> None:
    assert str(failure_of(fake, command_of("--fake-exit=3"), tmp_path)) == "iree-run-module exited with status 3"


def test_a_crash_names_its_signal(fake: Toolchain, tmp_path: Path) -> None:
    assert str(failure_of(fake, command_of("--fake-signal=FPE"), tmp_path)) == "iree-run-module was ended by SIGFPE"


def test_a_hang_is_ended_and_says_how_to_wait_longer(fake: Toolchain, tmp_path: Path) -> None:
    error = failure_of(fake, command_of("--fake-sleep=60"), tmp_path, seconds=0.2)
    assert str(error) == "iree-run-module ran past its limit of 0.2 s; give it more with --call-timeout"


def test_an_output_that_was_not_written_is_a_failure(fake: Toolchain, tmp_path: Path) -> None:
    error = failure_of(fake, command_of("--fake-no-output"), tmp_path)
    assert str(error) == (
        "iree-run-module exited with status 0, but an output cannot be read (output0.npy: No such file or directory)"
    )


@pytest.mark.parametrize("content", [b"", b"\x93NUMPY\x01", b"no array"])
def test_an_output_that_was_cut_short_is_a_failure(fake: Toolchain, tmp_path: Path, content: bytes) -> None:
    (tmp_path / "output0.npy").write_bytes(content)
    error = failure_of(fake, command_of("--fake-no-output"), tmp_path)
    assert str(error) == "iree-run-module exited with status 0, but an output is no whole .npy file (output0.npy)"


def test_a_missing_tool_is_a_failure(tmp_path: Path) -> None:
    broken = make_fake_toolchain(tmp_path / "broken", missing=["iree-run-module"])
    assert str(failure_of(broken, command_of(), tmp_path)) == (
        "iree-run-module cannot be started (No such file or directory); reinstall the toolchain"
    )


def test_it_runs_once(fake: Toolchain, tmp_path: Path) -> None:
    run_it(fake, command_of(), tmp_path)
    assert len(calls(fake)) == 1


def test_three_outputs_of_a_real_module(real_toolchain: Toolchain, compile_into: CompileInto, tmp_path: Path) -> None:
    folder = compile_into(tmp_path / "bench", THREE_OUTPUTS)
    np.save(folder / "a.npy", np.arange(6, dtype=np.float32).reshape(2, 3))
    total, ints, scalar = run_it(real_toolchain, command_of(inputs=["@a.npy", "2x3xf32=1"], outputs=3), folder)
    assert total.tolist() == [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]
    assert (ints.dtype.name, ints.tolist()) == ("int32", [7, -8])
    assert (scalar.shape, float(scalar)) == ((), 2.5)


@pytest.mark.parametrize(
    ("inputs", "said"),
    [
        (
            ["2x4xf32=1", "2x3xf32=1"],
            "INVALID_ARGUMENT; input0 shape dimension 1 mismatch; expected 3 but have 4; "
            "expected shape `2x3`, actual shape `2x4`",
        ),
        (["2x3xf32=1"], "INVALID_ARGUMENT; input list and function mismatch; expected 2 arguments but passed 1"),
        (["@gone.npy", "2x3xf32=1"], "UNKNOWN; unable to open file `gone.npy` with mode 2; parsing input"),
    ],
)
def test_wrong_inputs_are_refused_in_irees_own_words(
    real_toolchain: Toolchain, compile_into: CompileInto, tmp_path: Path, inputs: list[str], said: str
) -> None:
    folder = compile_into(tmp_path / "bench", THREE_OUTPUTS)
    error = failure_of(real_toolchain, command_of(inputs=inputs, outputs=3), folder)
    assert str(error).startswith(f"iree-run-module exited with status 1: {said}")
    assert "while invoking" not in str(error)
    assert "func @" not in str(error)


def test_bf16_outputs_are_read_though_the_tool_has_no_npy_form_for_them(
    real_toolchain: Toolchain, compile_into: CompileInto, tmp_path: Path
) -> None:
    folder = compile_into(tmp_path / "bench", TWICE_IN_BF16)
    (argument,) = write_arguments([Input(shape=(2, 2), dtype="bf16", fill="constant", value=1.5)], folder)
    (folder / argument.file.name).symlink_to(argument.file)
    wide, twice, scalar = run_it(real_toolchain, command_of(inputs=[argument.flag], outputs=3), folder)
    assert wide.tolist() == [[1.5, 1.5], [1.5, 1.5]]
    assert (twice.dtype.name, twice.tolist()) == ("float32", [[3.0, 3.0], [3.0, 3.0]])
    assert (scalar.shape, float(scalar)) == ((), -0.5)
