"""Assembly as functions, blocks and instructions."""

from __future__ import annotations

import pytest

from harness.explain.assembly import architecture_of, read_functions
from harness.explain.loops import find_loops
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
