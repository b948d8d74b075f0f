"""Assembly as functions, blocks and instructions."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.explain.assembly import A_POINTER, Effect, architecture_of, effect_of, find_loops, read_functions
from tests.explain.conftest import AARCH64, CONVOLUTION, X86, function, instruction


def test_functions_of_a_real_file_have_their_instructions_and_loops() -> None:
    found = read_functions(X86, {CONVOLUTION, "memset", "nobody"})
    assert set(found) == {CONVOLUTION, "memset"}
    convolution, memset = found[CONVOLUTION], found["memset"]
    assert len(convolution.instructions) == 188
    assert [(loop.depth, loop.innermost) for loop in find_loops(convolution.successors)] == [
        (1, False),
        (2, False),
        (3, False),
        (4, False),
        (5, False),
        (6, True),
    ]
    assert [(loop.depth, loop.innermost) for loop in find_loops(memset.successors)] == [(1, True), (1, True)]
    assert memset.instructions[-1].name == "retq"


def test_a_block_ends_where_control_may_go_elsewhere() -> None:
    found = function(
        """
        je .LBB0_2
        incq %rax
        .LBB0_1:
        decq %rax
        jne .LBB0_1
        .LBB0_2:
        jmpq *%rcx
        .LBB0_3:
        retq
    """.replace("        ", "")
    )
    assert [[item.name for item in block] for block in found.blocks] == [
        ["je"],
        ["incq"],
        ["decq", "jne"],
        ["jmpq"],
        ["retq"],
        [],
    ]
    assert [set(after) for after in found.successors] == [{1, 3}, {2}, {2, 3}, set(), set(), set()]


@pytest.mark.parametrize(
    ("line", "name", "operands"),
    [
        ("retq", "retq", ()),
        (
            "vfmadd231ps\t(%r10,%rcx,4){1to16}, %zmm14, %zmm0",
            "vfmadd231ps",
            ("(%r10,%rcx,4){1to16}", "%zmm14", "%zmm0"),
        ),
        ("vmovsd\t%xmm0, %xmm1, %xmm1 {%k1}", "vmovsd", ("%xmm0", "%xmm1", "%xmm1 {%k1}")),
        ("movq\t%rax, 8(%rsp)                  # 8-byte Spill", "movq", ("%rax", "8(%rsp)")),
        ("{vex}\tvpdpbusd\t%ymm0, %ymm1, %ymm2", "vpdpbusd", ("%ymm0", "%ymm1", "%ymm2")),
        ("ld1\t{ v0.4s, v1.4s }, [x8], #32", "ld1", ("{ v0.4s, v1.4s }", "[x8]", "#32")),
        ("add\tx11, x11, #16                   // a remark", "add", ("x11", "x11", "#16")),
    ],
)
def test_an_instruction(line: str, name: str, operands: tuple[str, ...]) -> None:
    found = instruction(line)
    assert (found.name, found.operands) == (name, operands)


def test_equal_functions_are_known_by_their_instructions() -> None:
    again = X86.replace(".LBB0_", ".LBB7_").replace("_begin0", "_begin7").replace("_end0", "_end7")
    other = X86.replace("cmpq\t$3, %r9", "cmpq\t$4, %r9")
    prints = [read_functions(text, {CONVOLUTION})[CONVOLUTION].fingerprint for text in (X86, again, other)]
    assert prints[0] == prints[1] != prints[2]


@pytest.mark.parametrize(
    ("text", "architecture"),
    [
        (X86, "x86-64"),
        (AARCH64, "AArch64"),
        ('\t.attribute\t5, "rv64i2p1"\nf:\n\tflw\tfs0, 0(a0)\n\tret\n', None),
        ("\t.functype\tf (i32) -> ()\nf:\n\tlocal.get\t0\n", None),
        ("", None),
    ],
    ids=["x86-64", "AArch64", "RISC-V", "WebAssembly", "nothing"],
)
def test_what_a_file_is_for(text: str, architecture: str | None) -> None:
    assert architecture_of(text) == architecture


def test_names_may_be_quoted_or_have_an_underscore() -> None:
    text = '"main$async_dispatch_0":\n\tretq\n.Lfunc_end0:\n_other:\n\tnop\n\tretq\n\t.cfi_endproc\n\tnop\n'
    found = read_functions(text, {"main$async_dispatch_0", "other"})
    assert {name: len(item.instructions) for name, item in found.items()} == {"main$async_dispatch_0": 1, "other": 2}


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


Graph = Sequence[Sequence[int]]


def nested(successors: Graph) -> list[tuple[list[int], int, bool]]:
    return [(sorted(loop.blocks), loop.depth, loop.innermost) for loop in find_loops(successors)]


@pytest.mark.parametrize(
    ("successors", "loops"),
    [
        ([], []),
        ([[1], [2], []], []),
        ([[1, 2], [2], []], []),
        ([[0, 1], []], [([0], 1, True)]),
        ([[1], [1, 2], []], [([1], 1, True)]),
        ([[1], [2], [2, 3], [1, 4], []], [([1, 2, 3], 1, False), ([2], 2, True)]),
        ([[1], [1, 2], [2, 3], []], [([1], 1, True), ([2], 1, True)]),
        ([[2], [2], [1, 3], []], [([1, 2], 1, True)]),
        ([[1, 2], [2], [1, 3], []], [([1, 2], 1, True)]),
        ([[1], [2], [3], [2, 4], [1, 5], []], [([1, 2, 3, 4], 1, False), ([2, 3], 2, True)]),
    ],
    ids=[
        "no block",
        "a line",
        "a branch",
        "the first block",
        "one",
        "one in another",
        "two after each other",
        "entered in its middle",
        "entered at two places",
        "two blocks in four",
    ],
)
def test_loops(successors: Graph, loops: list[tuple[list[int], int, bool]]) -> None:
    assert nested(successors) == loops


def test_many_blocks_need_no_recursion() -> None:
    size = 5_000
    (loop,) = find_loops([[(place + 1) % size] for place in range(size)])
    assert (len(loop.blocks), loop.depth, loop.innermost) == (size, 1, True)


@given(st.lists(st.lists(st.integers(0, 7), max_size=2), min_size=8, max_size=8))
def test_outermost_loops_are_the_blocks_that_come_back_to_themselves(successors: list[list[int]]) -> None:
    def reached(block: int) -> set[int]:
        found: set[int] = set()
        waiting = list(successors[block])
        while waiting:
            following = waiting.pop()
            if following not in found:
                found.add(following)
                waiting += successors[following]
        return found

    loops = find_loops(successors)
    outermost = [loop.blocks for loop in loops if loop.depth == 1]
    assert sorted(block for blocks in outermost for block in blocks) == [n for n in range(8) if n in reached(n)]
    for loop in loops:
        inside = [other for other in loops if other.blocks < loop.blocks]
        assert loop.innermost == (not inside)
        assert loop.depth == 1 + sum(loop.blocks < other.blocks for other in loops)
