"""What of a tool's output is the reason; the texts are those of IREE 3.13.0."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.toolchain.tools import error_lines, status_text, tail, warning_lines

# A pass that does not exist, and a parenthesis that is not closed: both exit with 0 and write a module.
UNREGISTERED = """\
MLIR Textual PassPipeline Parser:1:1: error: 'bogus' does not refer to a registered pass or pass pipeline
bogus
^
ERROR: mismatched parenthesis in pass pipeline `builtin.module(bogus)`
"""
UNBALANCED = "ERROR: mismatched parenthesis in pass pipeline `builtin.module(bogus`\n"

GENERIC_CPU = """\
model.mlir:5:8: warning: while creating CPU target:\x20
Defaulting to targeting a generic CPU for the target architecture will result in poor performance.

This can be done in two ways:
  %c = linalg.matmul ins(%a, %b : tensor<4x8xf32>, tensor<8x4xf32>)
       ^
model.mlir:1:1: note: called from
func.func @main(%a: tensor<4x8xf32>, %b: tensor<8x4xf32>) -> (tensor<4x4xf32>, tensor<4xi32>, f32) {
^
"""


def test_errors_are_found_in_what_the_compiler_prints_while_it_exits_with_0() -> None:
    assert error_lines(UNREGISTERED) == (
        "'bogus' does not refer to a registered pass or pass pipeline",
        "mismatched parenthesis in pass pipeline `builtin.module(bogus)`",
    )
    assert error_lines(UNBALANCED) == ("mismatched parenthesis in pass pipeline `builtin.module(bogus`",)


def test_an_error_loses_its_position_and_keeps_its_text() -> None:
    assert error_lines("model.mlir:1:17: error: expected non-function type\nfunc.func @main( {\n") == (
        "expected non-function type",
    )
    assert error_lines("fatal error: out of luck: error: twice\n") == ("out of luck: error: twice",)


@pytest.mark.parametrize(
    "text", ["", "\n", GENERIC_CPU, "m.mlir:1:1: remark: no error\n", '  // error: in a comment of the "source"\n']
)
def test_what_is_no_error_is_not_taken_for_one(text: str) -> None:
    assert error_lines(text) == ()


def test_a_warning_that_only_announces_the_next_line_has_that_line() -> None:
    assert warning_lines(GENERIC_CPU) == (
        "while creating CPU target: Defaulting to targeting a generic CPU for the target architecture will result in "
        "poor performance.",
    )
    assert warning_lines("a.mlir:1:1: warning: cut short:") == ("cut short",)


def test_a_warning_is_told_once() -> None:
    text = "a.mlir:1:1: warning: slow\nb.mlir:2:2: warning: slow\nWARNING: odd\n"
    assert warning_lines(text) == ("slow", "odd")
    assert error_lines(text) == ()


@pytest.mark.parametrize(
    ("printed", "said"),
    [
        (
            "c/runtime/src/iree/modules/hal/utils/buffer_diagnostics.c:225: INVALID_ARGUMENT; input0 shape dimension 1 "
            "mismatch; expected 8 but have 7; expected shape `4x8`, actual shape `4x7`; while invoking native function "
            "hal.buffer_view.assert; while calling import; \n[ 0] bytecode module@1:192 -; invoking function 'main'",
            "INVALID_ARGUMENT; input0 shape dimension 1 mismatch; expected 8 but have 7; expected shape `4x8`, actual "
            "shape `4x7`",
        ),
        (
            "c/runtime/src/iree/vm/invocation.c:103: INVALID_ARGUMENT; input list and function mismatch; expected 2 "
            "arguments but passed 1; invoking function 'main'; `sync func @main(%input0: i32) -> ()`",
            "INVALID_ARGUMENT; input list and function mismatch; expected 2 arguments but passed 1",
        ),
        (
            "\x1b[31mFLAGS ERROR: (╯°□°)╯︵👻\x1b[0m\n"
            "c/runtime/src/iree/base/tooling/flags.c:428: INVALID_ARGUMENT; flag 'bogus' not recognized\n",
            "INVALID_ARGUMENT; flag 'bogus' not recognized",
        ),
        (
            "Error invoking function: c/runtime/src/iree/vm/x.c:1: RESOURCE_EXHAUSTED; no more; while invoking native",
            "RESOURCE_EXHAUSTED; no more",
        ),
        ("\n  a library is missing\nand more\n", "a library is missing"),
        ("", ""),
    ],
)
def test_the_reason_of_a_runtime_tool_is_its_status(printed: str, said: str) -> None:
    assert status_text(printed) == said


@given(st.text())
def test_the_tail_ends_the_text_and_is_short(text: str) -> None:
    kept = tail(text, lines=3, characters=50)
    assert len(kept) <= 50
    assert len(kept.splitlines()) <= 3


def test_the_tail_keeps_the_last_lines() -> None:
    assert tail("a\nb\nc\n\n", lines=2) == "b\nc"
    assert tail("abcdef", characters=3) == "def"


def test_a_target_is_named_without_the_features_of_its_cpu() -> None:
    features = ",".join(f"+feature{number}" for number in range(60))
    kept = '#hal.executable.target<"llvm-cpu", "embedded-elf-x86_64", '
    target = kept + f'{{cpu = "znver4", cpu_features = "{features}"}}>'
    said = f"m.mlir:1:2: error: failed to run translation for backend {target}\n"
    short = f"failed to run translation for backend {kept}{{...}}>"
    assert error_lines(said) == (short,)
    assert tail(said) == f"m.mlir:1:2: error: {short}"
