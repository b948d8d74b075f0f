"""The final code of dispatches, as facts."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from pathlib import Path

import pytest

from harness.errors import CaseError
from harness.explain.code import InnerLoop, final_code, function_sizes, read_code
from harness.toolchain import Toolchain
from tests.explain.conftest import AARCH64, CONVOLUTION, X86
from tests.ir.conftest import HASWELL_FLAGS, LIMITS, MODEL


def an_object_file(sizes: Mapping[str, int]) -> bytes:
    """One with functions of so many bytes, and nothing in them."""
    names, symbols = b"\0", bytes(24)
    for name, size in sizes.items():
        symbols += struct.pack("<IBBHQQ", len(names), 2, 0, 1, 0, size)
        names += name.encode() + b"\0"
    described = [
        bytes(64),
        struct.pack("<IIQQQQIIQQ", 0, 2, 0, 0, 64, len(symbols), 2, 0, 8, 24),
        struct.pack("<IIQQQQIIQQ", 0, 3, 0, 0, 64 + len(symbols), len(names), 0, 0, 1, 0),
    ]
    place = 64 + len(symbols) + len(names)
    header = struct.pack("<HHIQQQIHHHHHH", 1, 62, 1, 0, 0, place, 0, 64, 0, 0, 64, len(described), 0)
    return b"\x7fELF\x02\x01\x01".ljust(16, b"\0") + header + symbols + names + b"".join(described)


def test_a_convolution_of_a_real_program() -> None:
    found = read_code(X86, {CONVOLUTION}, {CONVOLUTION: 1200})[CONVOLUTION]
    loop = InnerLoop(depth=6, instructions=93, registers="zmm", multiply_adds=64, accumulators=8, loads=72)
    assert found.inner == (loop,)
    assert found.main_loop == loop
    assert (found.size_bytes, found.registers) == (1200, "zmm")
    assert (found.loops, found.depth, found.multiply_adds, found.scalar_multiply_adds) == (6, 6, 64, 0)
    assert (found.spills, found.calls) == (0, ())


def test_loops_without_arithmetic_and_arithmetic_without_loops() -> None:
    found = read_code(X86, {"memset", "__math_xflow"})
    memset, overflow = found["memset"], found["__math_xflow"]
    assert memset.inner == (InnerLoop(depth=1, instructions=4), InnerLoop(depth=1, instructions=4))
    assert (memset.registers, memset.size_bytes) == ("", None)
    assert (overflow.loops, overflow.depth, overflow.main_loop) == (0, 0, None)
    assert (overflow.registers, overflow.scalar_multiply_adds, overflow.spills) == ("", 1, 2)


def test_aarch64() -> None:
    found = read_code(AARCH64, {"main_dispatch_0_matmul_8x8x64_f32"})["main_dispatch_0_matmul_8x8x64_f32"]
    assert found.inner == (
        InnerLoop(
            depth=1, instructions=9, registers="q", multiply_adds=2, accumulators=2, loads=3, lane_moves=1, spills=1
        ),
    )
    assert found.registers == "q"
    assert (found.scalar_multiply_adds, found.calls) == (1, ("expf",))


def test_of_other_targets_nothing_is_known() -> None:
    assert read_code('\t.attribute\t5, "rv64i2p1"\nf:\n\tret\n', {"f"}) == {}


def test_bytes_of_functions() -> None:
    data = an_object_file({"main$async_dispatch_0": 1200, "memset": 77})
    assert function_sizes(data) == {"main$async_dispatch_0": 1200, "memset": 77}
    assert function_sizes(data[:-1]) == {}
    assert function_sizes(b"MZ" + data) == {}


def test_a_real_program(real_toolchain: Toolchain, tmp_path: Path) -> None:
    model, folder = tmp_path / "net.mlir", tmp_path / "code"
    model.write_text(MODEL)
    folder.mkdir()
    names = ["main_dispatch_0_conv_32x10x6x8x3x3_f32", "main_dispatch_1_slow_memcpy"]
    found = final_code(HASWELL_FLAGS, model, names, toolchain=real_toolchain, folder=folder, limits=LIMITS)
    assert sorted(found) == names
    convolution = found[names[0]]
    assert convolution.multiply_adds + convolution.scalar_multiply_adds > 0
    assert convolution.loops >= convolution.depth > 0
    assert convolution.registers != "zmm"
    assert convolution.size_bytes
    assert found[names[1]].multiply_adds == 0


def test_a_program_that_does_not_compile(real_toolchain: Toolchain, tmp_path: Path) -> None:
    model, folder = tmp_path / "net.mlir", tmp_path / "code"
    model.write_text("nonsense")
    folder.mkdir()
    with pytest.raises(CaseError, match="on its way to the final code"):
        final_code(HASWELL_FLAGS, model, ["f"], toolchain=real_toolchain, folder=folder, limits=LIMITS)
