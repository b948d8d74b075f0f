"""Reading what the compiler and iree-dump-module say; the texts are those of IREE 3.13.0."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.compile.facts import (
    error_lines,
    exported_functions,
    module_sizes,
    parse_statistics,
    status_text,
    tail,
    warning_lines,
)
from harness.results.records import Sizes, Statistics

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

STATISTICS: dict[str, Any] = {
    "stream-aggregate": {
        "global": {"constant-count": 1, "constant-size": 64, "variable-count": 0, "variable-size": 8},
        "synchronization": {"await-count": 2},
        "execution": {
            "submission-count": 3,
            "transient-memory-size": 128,
            "fill-count": 4,
            "copy-count": 5,
            "dispatch-count": 6,
            "call-count": 0,
        },
        "executable": {"executable-count": 7},
    }
}

DUMP = """\
Imported Functions:
  [  0] hal.ex.file.from_memory(!vm.ref<?>, i64, i32) -> (!vm.ref<?>)
  [  1] hal.buffer.assert(!vm.ref<?>, !vm.ref<?>, i64) -> ()

Exported Functions:
  [  0] main(!vm.ref<?>, !vm.ref<?>) -> (!vm.ref<?>, !vm.ref<?>, f32)
        iree.abi.declaration: sync func @main(%input0: tensor<4x8xf32>) -> (%output0: tensor<4x4xf32>, %output2: f32)
  [  1] nothing(!vm.ref<?>) -> ()
        iree.abi.declaration: sync func @nothing(%input0: tensor<4xf32>) -> ()
  [ 12] torch-jit export/1 (a) "ü"(!vm.ref<?>) -> (!vm.ref<?>)
        iree.abi.declaration: sync func @torch-jit export/1 (a) "ü"(%input0: i32) -> (%output0: tensor<4xbf16>)
  [ 13] __init() -> ()

//===----------------------------------------------------------------------===//
// Sections
//===----------------------------------------------------------------------===//
  [  0] section(a) -> (b)
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


def test_exports_have_their_number_of_results() -> None:
    assert exported_functions(DUMP) == {"main": 3, "nothing": 0, 'torch-jit export/1 (a) "ü"': 1}


@pytest.mark.parametrize("text", ["", "Exported Functions:\n", "Imported Functions:\n  [  0] f() -> ()\n"])
def test_a_dump_without_exports_has_none(text: str) -> None:
    assert exported_functions(text) == {}


def test_statistics_are_read_from_the_compilers_json() -> None:
    assert parse_statistics(json.dumps(STATISTICS)) == Statistics(
        dispatches=6,
        copies=5,
        fills=4,
        awaits=2,
        submissions=3,
        executables=7,
        transient_bytes=128,
        constant_bytes=64,
        variable_bytes=8,
    )


@given(cut=st.integers(0, len(json.dumps(STATISTICS)) - 1))
def test_statistics_that_were_cut_short_are_none(cut: int) -> None:
    assert parse_statistics(json.dumps(STATISTICS)[:cut]) is None


@pytest.mark.parametrize("text", ["[]", "{}", "null", '{"stream-aggregate": {"global": {}}}', "3"])
def test_statistics_of_another_form_are_none(text: str) -> None:
    assert parse_statistics(text) is None


def write_zip(path: Path, members: dict[str, int]) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, size in members.items():
            archive.writestr(name, b"x" * size)
    return path


def test_a_module_is_bytecode_constants_and_executables(tmp_path: Path) -> None:
    module = write_zip(tmp_path / "m.vmfb", {"module.fb": 5, "b.so": 3, "_const.bin": 7, "a.so": 2})
    assert module_sizes(module) == Sizes(
        module_bytes=module.stat().st_size, vm_bytes=5, constant_bytes=7, dispatch_bytes={"a.so": 2, "b.so": 3}
    )


def test_a_module_that_is_no_zip_is_bytecode_as_a_whole(tmp_path: Path) -> None:
    (tmp_path / "m.vmfb").write_bytes(b"0123456789")
    assert module_sizes(tmp_path / "m.vmfb") == Sizes(module_bytes=10, vm_bytes=10, constant_bytes=0, dispatch_bytes={})


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
