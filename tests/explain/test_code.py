"""Final code: what instructions do, the facts of functions in assembly, and those of a real program."""

from pathlib import Path
from typing import Any

import pytest

from harness.explain.code import (
    A_POINTER,
    Work,
    effect_on_aarch64,
    effect_on_x86,
    final_code,
    read_code,
    read_instruction,
)
from harness.toolchain import Toolchain
from tests.explain.conftest import a_module
from tests.ir.conftest import HASWELL_FLAGS, LIMITS, MODEL


def adds_to(register: str, **more: Any) -> dict[str, Any]:
    return {"accumulators": frozenset({register}), **more}


X86_EFFECTS: dict[str, dict[str, Any]] = {
    "vfmadd231ps (%r10,%rcx,4){1to16}, %zmm14, %zmm0 {%k1}": adds_to("%zmm0", multiply_adds=1, loads=1),
    "vfmadd231ps 64(%rsp), %ymm1, %ymm2": adds_to("%ymm2", multiply_adds=1, loads=1, spills=1),
    "vfnmadd213ss %xmm1, %xmm2, %xmm3": adds_to("%xmm3", scalar_multiply_adds=1),
    "vmulps %ymm1, %ymm2, %ymm3": {"multiply_adds": 1},
    "{vex} vpdpbusd %ymm0, %ymm1, %ymm2": adds_to("%ymm2", multiply_adds=1),
    "vmovups %ymm1, 64(%rsp)": {"spills": 1},
    "vmovups -96(%rbp), %ymm1": {"loads": 1, "spills": 1},
    "vmovups %ymm1, 64(%rsp,%rax,4)": {},
    "vinsertps $16, 4(%rax), %xmm0, %xmm0": {"loads": 1, "lane_moves": 1},
    "movq %rax, 8(%rsp)": {},
    "callq expf@PLT": {"calls": ("expf",)},
    "callq *%rax": {"calls": (A_POINTER,)},
}
AARCH64_EFFECTS: dict[str, dict[str, Any]] = {
    "fmla v0.4s, v1.4s, v2.s[0]": adds_to("v0", registers="q", multiply_adds=1),
    "fmla z0.s, p0/m, z1.s, z2.s": adds_to("z0", registers="z", multiply_adds=1),
    "fmadd s0, s1, s2, s3": adds_to("s0", scalar_multiply_adds=1),
    "fmul v0.4s, v1.4s, v2.4s": {"registers": "q", "multiply_adds": 1},
    "ldp q0, q1, [sp, #32]": {"registers": "q", "loads": 2, "spills": 2},
    "zip1 v2.4s, v2.4s, v3.4s": {"registers": "q", "lane_moves": 1},
    "mov v0.s[1], v1.s[0]": {"lane_moves": 1},
    "mul x0, x1, x2": {},
    "blr x8": {"calls": (A_POINTER,)},
}


@pytest.mark.parametrize("line", [*X86_EFFECTS, *AARCH64_EFFECTS])
def test_what_an_instruction_does(line: str) -> None:
    instruction = read_instruction(f"\t{line}")
    assert instruction is not None
    if line in AARCH64_EFFECTS:
        assert effect_on_aarch64(instruction) == Work(**AARCH64_EFFECTS[line])
    else:
        wide = next((kind for kind in ("zmm", "ymm", "xmm") if kind in line), "")
        assert effect_on_x86(instruction) == Work(registers=wide, **X86_EFFECTS[line])


CONVOLUTION = "main_dispatch_0_conv_16x16x32x3x3x16_f32"
# As LLVM writes x86-64's assembly: two loops, the inner one with two accumulators.
X86 = """\
main_dispatch_0_conv_16x16x32x3x3x16_f32:
.Lfunc_begin0:
	movq	%rsp, %rbp
	xorl	%r8d, %r8d
.LBB0_1:                                # =>This Loop Header: Depth=1
	vmovups	-96(%rbp), %zmm0
	xorl	%r9d, %r9d
.LBB0_2:                                #   Parent Loop BB0_1 Depth=1
	vmovups	(%r10,%rcx), %zmm14
	vfmadd231ps	(%r10,%rcx,4){1to16}, %zmm14, %zmm0
	vfmadd231ps	64(%r10,%rcx,4){1to16}, %zmm14, %zmm1
	incq	%r9
	cmpq	$3, %r9
	jne	.LBB0_2
	incq	%r8
	jne	.LBB0_1
	vmovups	%zmm0, (%rsi)
	retq
.Lfunc_end0:
	nop
"""


def test_facts_of_a_function() -> None:
    convolution = read_code(X86, {CONVOLUTION})[CONVOLUTION]
    sums = frozenset({"%zmm0", "%zmm1"})
    assert convolution.main_loop == Work(instructions=6, registers="zmm", multiply_adds=2, accumulators=sums, loads=3)
    assert (convolution.whole.instructions, convolution.whole.spills) == (14, 1)
    assert read_code('\t.attribute\t5, "rv64i2p1"\nf:\n\tflw\tfs0, 0(a0)\n\tret\n', {"f"}) == {}, "it is RISC-V's"
    again = X86.replace(".LBB0_", ".LBB7_").replace("_begin0", "_begin7").replace("_end0", "_end7")
    other = X86.replace("cmpq\t$3, %r9", "cmpq\t$4, %r9")
    prints = [read_code(text, {CONVOLUTION})[CONVOLUTION].fingerprint for text in (X86, again, other)]
    assert prints[0] == prints[1] != prints[2]


AARCH64_FLAGS = ("--iree-llvmcpu-target-triple=aarch64-unknown-linux-gnu", "--iree-llvmcpu-target-cpu=generic")


@pytest.mark.parametrize(("flags", "registers"), [((), "xmm ymm"), (AARCH64_FLAGS, "q")], ids=["x86-64", "AArch64"])
def test_a_real_program(flags: tuple[str, ...], registers: str, real_toolchain: Toolchain, tmp_path: Path) -> None:
    module = a_module(real_toolchain, tmp_path / "module", compile_flags=(*HASWELL_FLAGS, *flags))
    module.mlir.write_text(MODEL)
    names = ["main_dispatch_0_conv_32x10x6x8x3x3_f32", "main_dispatch_1_slow_memcpy"]
    found = final_code(module, names, tmp_path / "code", LIMITS)
    assert sorted(found) == names
    convolution = found[names[0]]
    assert convolution.whole.multiply_adds > 0
    assert convolution.main_loop is not None
    assert 0 < convolution.main_loop.instructions < convolution.whole.instructions
    assert convolution.whole.registers in registers.split()
    assert found[names[1]].whole.multiply_adds == 0
