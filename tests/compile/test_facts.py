"""Reading what the compiler and iree-dump-module say; the texts are those of IREE 3.13.0."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.compile.iree_compile import exported_functions, module_sizes, parse_statistics
from harness.records.run import Sizes, Statistics

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
