"""Final code: assembly as functions, what instructions do, loops, and the facts of dispatches."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.explain.assembly import A_POINTER, Effect, architecture_of, effect_of, find_loops, read_functions
from harness.explain.code import Work, final_code, read_code
from harness.toolchain import Toolchain
from tests.explain.conftest import AARCH64, CONVOLUTION, MATMUL, X86, a_module, function, instruction
from tests.ir.conftest import HASWELL_FLAGS, LIMITS, MODEL

# --- Functions and instructions ---


def test_a_block_ends_where_control_may_go_elsewhere() -> None:
    lines = ("je .LBB0_2", "incq %rax", ".LBB0_1:", "decq %rax", "jne .LBB0_1", ".LBB0_2:", "jmpq *%rcx", "retq")
    found = function("\n".join(lines))
    blocks = [[item.name for item in block] for block in found.blocks]
    assert blocks == [["je"], ["incq"], ["decq", "jne"], ["jmpq"], ["retq"], []]
    assert [set(after) for after in found.successors] == [{1, 3}, {2}, {2, 3}, set(), set(), set()]


def test_names_may_be_quoted_or_have_an_underscore() -> None:
    text = '"main$async_dispatch_0":\n\tretq\n.Lfunc_end0:\n_other:\n\tnop\n\tretq\n\t.cfi_endproc\n\tnop\n'
    found = read_functions(text, {"main$async_dispatch_0", "other", "nobody"})
    assert {name: sum(map(len, item.blocks)) for name, item in found.items()} == {
        "main$async_dispatch_0": 1,
        "other": 2,
    }


def test_equal_functions_are_known_by_their_instructions() -> None:
    again = X86.replace(".LBB0_", ".LBB7_").replace("_begin0", "_begin7").replace("_end0", "_end7")
    other = X86.replace("cmpq\t$3, %r9", "cmpq\t$4, %r9")
    prints = [read_functions(text, {CONVOLUTION})[CONVOLUTION].fingerprint for text in (X86, again, other)]
    assert prints[0] == prints[1] != prints[2]


RISC_V = '\t.attribute\t5, "rv64i2p1"\nf:\n\tflw\tfs0, 0(a0)\n\tret\n'


@pytest.mark.parametrize(
    ("text", "architecture"),
    [
        (X86, "x86-64"),
        (AARCH64, "AArch64"),
        (RISC_V, None),
        ("\t.functype\tf (i32) -> ()\nf:\n\tlocal.get\t0\n", None),
        ("", None),
    ],
    ids=["x86-64", "AArch64", "RISC-V", "WebAssembly", "nothing"],
)
def test_what_a_file_is_for(text: str, architecture: str | None) -> None:
    assert architecture_of(text) == architecture


# --- What one instruction does ---

X86_EFFECTS: dict[str, dict[str, Any]] = {
    "vfmadd231ps (%r10,%rcx,4){1to16}, %zmm14, %zmm0": {"multiply_adds": 1, "accumulator": "%zmm0", "loads": 1},
    "vfmadd231ps 64(%rsp), %ymm1, %ymm2": {
        "multiply_adds": 1,
        "accumulator": "%ymm2",
        "loads": 1,
        "spills": 1,
    },
    "vfnmadd213ss %xmm1, %xmm2, %xmm3": {"scalar_multiply_adds": 1, "accumulator": "%xmm3"},
    "vmulps %ymm1, %ymm2, %ymm3": {"multiply_adds": 1},
    "{vex} vpdpbusd %ymm0, %ymm1, %ymm2": {"multiply_adds": 1, "accumulator": "%ymm2"},
    "vaddps %xmm0, %xmm1, %xmm2": {"registers": "xmm"},
    "vxorps %xmm0, %xmm0, %xmm0": {},
    "vbroadcastss 4(%rax), %ymm0": {"loads": 1},
    "vmovups %ymm1, 64(%rsp)": {"spills": 1},
    "vmovups -96(%rbp), %ymm1": {"loads": 1, "spills": 1},
    "vmovups %ymm1, 64(%rsp,%rax,4)": {},
    "vinsertps $16, 4(%rax), %xmm0, %xmm0": {"loads": 1, "lane_moves": 1},
    "movq %rax, 8(%rsp)": {},
    "callq expf@PLT": {"calls": "expf"},
    "callq *%rax": {"calls": A_POINTER},
}
AARCH64_EFFECTS: dict[str, dict[str, Any]] = {
    "fmla v0.4s, v1.4s, v2.s[0]": {"registers": "q", "multiply_adds": 1, "accumulator": "v0"},
    "fmla z0.s, p0/m, z1.s, z2.s": {"registers": "z", "multiply_adds": 1, "accumulator": "z0"},
    "sdot v3.4s, v1.16b, v2.4b[1]": {"registers": "q", "multiply_adds": 1, "accumulator": "v3"},
    "fmadd s0, s1, s2, s3": {"scalar_multiply_adds": 1, "accumulator": "s3"},
    "fmul v0.4s, v1.4s, v2.4s": {"registers": "q", "multiply_adds": 1},
    "ldp q0, q1, [sp, #32]": {"loads": 2, "spills": 2},
    "stp d9, d8, [sp, #-32]!": {},
    "zip1 v2.4s, v2.4s, v3.4s": {"registers": "q", "lane_moves": 1},
    "mov v0.s[1], v1.s[0]": {"lane_moves": 1},
    "bl expf": {"calls": "expf"},
    "blr x8": {"calls": A_POINTER},
}


@pytest.mark.parametrize("line", X86_EFFECTS)
def test_what_an_instruction_does_on_x86(line: str) -> None:
    wide = next((kind for kind in ("zmm", "ymm") if kind in line), "")
    assert effect_of(instruction(line), "x86-64") == Effect(**{"registers": wide, **X86_EFFECTS[line]})


def test_without_a_frame_another_register_is_no_place_on_the_stack() -> None:
    line = instruction("vmovups -96(%rbp), %ymm1")
    assert effect_of(line, "x86-64", framed=False) == Effect(registers="ymm", loads=1)


@pytest.mark.parametrize("line", AARCH64_EFFECTS)
def test_what_an_instruction_does_on_aarch64(line: str) -> None:
    assert effect_of(instruction(line), "AArch64") == Effect(**AARCH64_EFFECTS[line])


@given(st.lists(st.lists(st.integers(0, 7), max_size=2), min_size=8, max_size=8))
def test_outermost_loops_are_the_blocks_that_come_back_to_themselves(successors: list[list[int]]) -> None:
    reached = [set(after) for after in successors]
    for _ in range(8):
        reached = [after.union(*(reached[block] for block in after)) for after in reached]
    loops = find_loops(successors)
    outermost = [loop.blocks for loop in loops if loop.depth == 1]
    assert sorted(block for blocks in outermost for block in blocks) == [n for n in range(8) if n in reached[n]]
    for loop in loops:
        assert loop.innermost == (not any(other.blocks < loop.blocks for other in loops))
        assert loop.depth == 1 + sum(loop.blocks < other.blocks for other in loops)


# --- The facts of a dispatch ---


def test_facts_by_target() -> None:
    convolution = read_code(X86, {CONVOLUTION})[CONVOLUTION]
    loop = Work(depth=2, instructions=6, registers="zmm", multiply_adds=2, accumulators=2, loads=3)
    assert (convolution.inner, convolution.main_loop) == ((loop,), loop)
    assert (convolution.loops, convolution.depth) == (2, 2)
    assert (convolution.whole.instructions, convolution.whole.spills) == (14, 1)
    found = read_code(AARCH64, {MATMUL})[MATMUL]
    loop = Work(
        depth=1, instructions=9, registers="q", multiply_adds=2, accumulators=2, loads=3, lane_moves=1, spills=1
    )
    assert found.inner == (loop,)
    assert (found.whole.registers, found.whole.scalar_multiply_adds, found.whole.calls) == ("q", 1, ("expf",))
    assert read_code(RISC_V, {"f"}) == {}


def test_a_real_program(real_toolchain: Toolchain, tmp_path: Path) -> None:
    module = a_module(real_toolchain, tmp_path / "module", compile_flags=HASWELL_FLAGS)
    module.mlir.write_text(MODEL)
    names = ["main_dispatch_0_conv_32x10x6x8x3x3_f32", "main_dispatch_1_slow_memcpy"]
    found = final_code(module, names, tmp_path / "code", LIMITS)
    assert sorted(found) == names
    convolution = found[names[0]]
    assert convolution.whole.arithmetic > 0
    assert convolution.loops >= convolution.depth > 0
    assert convolution.whole.registers != "zmm"
    assert found[names[1]].whole.multiply_adds == 0
