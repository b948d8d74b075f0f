"""What single instructions do."""

from __future__ import annotations

import pytest

from harness.explain.instructions import A_POINTER, Effect, effect_of
from tests.explain.conftest import instruction


@pytest.mark.parametrize(
    ("line", "effect"),
    [
        (
            "vfmadd231ps (%r10,%rcx,4){1to16}, %zmm14, %zmm0",
            Effect(registers="zmm", multiply_adds=1, accumulator="%zmm0", loads=1),
        ),
        ("vfnmadd213ss %xmm1, %xmm2, %xmm3", Effect(scalar_multiply_adds=1, accumulator="%xmm3")),
        ("vmulps %ymm1, %ymm2, %ymm3", Effect(registers="ymm", multiply_adds=1)),
        ("mulss (%rax), %xmm0", Effect(scalar_multiply_adds=1, loads=1)),
        ("vpdpbusd %ymm0, %ymm1, %ymm2", Effect(registers="ymm", multiply_adds=1, accumulator="%ymm2")),
        ("vaddps %xmm0, %xmm1, %xmm2", Effect(registers="xmm")),
        ("vxorps %xmm0, %xmm0, %xmm0", Effect()),
        ("vaddss %xmm0, %xmm1, %xmm2", Effect()),
        ("vpminsd %xmm0, %xmm1, %xmm2", Effect(registers="xmm")),
        ("vbroadcastss 4(%rax), %ymm0", Effect(registers="ymm", loads=1)),
        ("vmovaps %zmm0, (%rcx,%r15,4)", Effect(registers="zmm")),
        ("vmovups %ymm1, 64(%rsp)", Effect(registers="ymm", spills=1)),
        ("vmovups -96(%rbp), %ymm1", Effect(registers="ymm", loads=1, spills=1)),
        (
            "vfmadd231ps 64(%rsp), %ymm1, %ymm2",
            Effect(registers="ymm", multiply_adds=1, accumulator="%ymm2", loads=1, spills=1),
        ),
        ("vmovups %ymm1, 64(%rsp,%rax,4)", Effect(registers="ymm")),
        ("vinsertps $16, 4(%rax), %xmm0, %xmm0", Effect(loads=1, lane_moves=1)),
        ("vgatherdps (%rax,%zmm3,4), %zmm0 {%k1}", Effect(registers="zmm", loads=1, lane_moves=1)),
        ("vpermt2ps %zmm0, %zmm1, %zmm2", Effect(registers="zmm", lane_moves=1)),
        ("movq %rax, 8(%rsp)", Effect()),
        ("imulq %rax, %rcx", Effect()),
        ("callq expf@PLT", Effect(calls="expf")),
        ("callq *%rax", Effect(calls=A_POINTER)),
        ("vzeroupper", Effect()),
    ],
)
def test_x86(line: str, effect: Effect) -> None:
    assert effect_of(instruction(line), "x86-64") == effect


def test_without_a_frame_another_register_is_no_place_on_the_stack() -> None:
    line = instruction("vmovups -96(%rbp), %ymm1")
    assert effect_of(line, "x86-64", framed=False) == Effect(registers="ymm", loads=1)


@pytest.mark.parametrize(
    ("line", "effect"),
    [
        ("fmla v0.4s, v1.4s, v2.s[0]", Effect(registers="q", multiply_adds=1, accumulator="v0")),
        ("fmla z0.s, p0/m, z1.s, z2.s", Effect(registers="z", multiply_adds=1, accumulator="z0")),
        ("sdot v3.4s, v1.16b, v2.4b[1]", Effect(registers="q", multiply_adds=1, accumulator="v3")),
        ("fmadd s0, s1, s2, s3", Effect(scalar_multiply_adds=1, accumulator="s3")),
        ("fmul v0.4s, v1.4s, v2.4s", Effect(registers="q", multiply_adds=1)),
        ("fmul s0, s1, s2", Effect(scalar_multiply_adds=1)),
        ("madd x0, x1, x2, x3", Effect()),
        ("mul x0, x1, x2", Effect()),
        ("ldp q5, q6, [x10], #32", Effect(loads=2)),
        ("ldr x8, [x1, #32]", Effect()),
        ("str q1, [sp, #16]", Effect(spills=1)),
        ("ldp q0, q1, [sp, #32]", Effect(loads=2, spills=2)),
        ("str q1, [sp, x8]", Effect()),
        ("stp d9, d8, [sp, #-32]!", Effect()),
        ("zip1 v2.4s, v2.4s, v3.4s", Effect(registers="q", lane_moves=1)),
        ("mov v0.s[1], v1.s[0]", Effect(lane_moves=1)),
        ("movi v0.2d, #0000000000000000", Effect()),
        ("bl expf", Effect(calls="expf")),
        ("blr x8", Effect(calls=A_POINTER)),
        ("ret", Effect()),
    ],
)
def test_aarch64(line: str, effect: Effect) -> None:
    assert effect_of(instruction(line), "AArch64") == effect
