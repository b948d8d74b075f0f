"""What the compiler did differently for a part of a program, in sentences."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from harness.explain.code import Code, InnerLoop, code_changes
from harness.explain.decisions import Tensor, operation_changes, tensor_changes
from harness.explain.ir_diff import FINAL_CODE, Program, schedule_differences, with_differences
from harness.ir.differences import Executable
from harness.records.explanation import Part
from harness.records.run import Build, Statistics
from tests.explain.conftest import FLOW, OLD_PIPELINE, OLD_TILES, an_executable, configured

LABELS = ("3.10.0", "3.12.0")
OLD = configured(OLD_PIPELINE, OLD_TILES, "[1, 1, 8]")
LONG_LOOP = InnerLoop(depth=6, instructions=93, registers="zmm", multiply_adds=64, accumulators=8, loads=72)


def a_code(*inner: InnerLoop, fingerprint: str = "", **fields: Any) -> Code:
    """The code of a dispatch with these innermost loops."""
    code = Code(
        size_bytes=None,
        registers=max((loop.registers for loop in inner), default=""),
        loops=len(inner),
        depth=max((loop.depth for loop in inner), default=0),
        multiply_adds=sum(loop.multiply_adds for loop in inner),
        scalar_multiply_adds=sum(loop.scalar_multiply_adds for loop in inner),
        spills=sum(loop.spills for loop in inner),
        calls=(),
        inner=inner,
        fingerprint=fingerprint or repr(inner),
    )
    return replace(code, **fields)


def a_part(base: tuple[str, ...], head: tuple[str, ...]) -> Part:
    return Part(base=base, head=head, matched_by="operation and shape", operation="conv", base_ns=3e6, head_ns=1e6)


def differences(
    base: Executable | list[Executable], head: Executable | list[Executable], *codes: Code
) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
    """Where a part of these dispatches differs, in what, and the lines."""
    sides = [side if isinstance(side, list) else [side] for side in (base, head)]
    part = a_part(*(tuple(executable.name for executable in side) for side in sides))
    programs = [
        Program.of(label, side, {side[0].name: code} if code else {})
        for label, side, code in zip(LABELS, sides, codes or (None, None), strict=True)
    ]
    found = with_differences(part, programs[0], programs[1])
    return found.differs_at, found.what, found.lines


# ------------------------------------------------------------------------------------------ pipeline and tile sizes


def test_another_pipeline_with_other_tiles() -> None:
    phase, what, lines = differences(
        an_executable(configured=OLD),
        an_executable(configured=configured().replace("1x8x12x8xf32", "1x8x12x9xf32"), targets="llvm.fma"),
    )
    assert phase == "executable-configurations"
    assert what == (
        "the pipeline goes from CPUDoubleTilingExpert with vector_common_parallel = [1, 1, 8] "
        "to ConvTileAndDecomposeExpert with [1, 4, 1, 6]",
        "distribution goes from [4, 5, 6] to [0, 4, 5, 6] and vector_reduction from [1, 1, 1] to [8, 1, 1]",
    )
    # What decides comes before other lines that differ, and is not there twice.
    deciding = lines[: lines.index("@@")]
    assert OLD_PIPELINE in deciding[0] and "ConvTileAndDecomposeExpert" in deciding[1]
    assert all("translation_info" in line or "lowering_config" in line for line in deciding)
    assert not any("lowering_config" in line for line in lines[len(deciding) :] if line[0] in "+-")


def test_other_tiles_and_options_of_one_pipeline() -> None:
    tiles = "#iree_cpu.lowering_config<vector_common_parallel = [1, 1, %d]>"
    peeled = configured(f"{OLD_PIPELINE}, {{enable_loop_peeling}}", tiles % 16, "[1]")
    _, what, _ = differences(
        an_executable(configured=configured(OLD_PIPELINE, tiles % 8, "[1]")),
        an_executable(configured=peeled, targets="x"),
    )
    assert what == (
        "vector_common_parallel goes from [1, 1, 8] to [1, 1, 16]",
        "only 3.12.0 has the pipeline's option enable_loop_peeling",
    )


def test_an_option_of_the_pipeline_that_has_another_value() -> None:
    tiles = "#iree_cpu.lowering_config<vector_common_parallel = [1, 1, 8]>"
    base, head = (
        an_executable(configured=configured(f"{OLD_PIPELINE} workgroup_size = {size}", tiles, "[1]"), targets=size)
        for size in ("[2, 2, 16]", "[64, 1, 1]")
    )
    _, what, _ = differences(base, head)
    assert what == ("the pipeline's option workgroup_size goes from [2, 2, 16] to [64, 1, 1]",)


def test_what_releases_spell_otherwise_is_no_difference() -> None:
    new = "#iree_cpu.pipeline<DoubleTilingExpert>"
    phase, what, _ = differences(
        an_executable(configured=configured(OLD_PIPELINE, OLD_TILES)),
        an_executable(configured=configured(new, OLD_TILES), targets="llvm.fma"),
    )
    assert phase == "executable-targets"
    assert what == ("operations, tensors and tile sizes are the same, and the IR differs from executable-targets on",)


def test_operations_that_take_little_time_come_after_another_pipeline() -> None:
    fused = FLOW.replace("arith.maximumf", "arith.minimumf")
    _, what, _ = differences(an_executable(configured=OLD), an_executable(flow=fused, targets="llvm.fma"))
    assert what[0].startswith("the pipeline goes from CPUDoubleTilingExpert")
    assert what[-1] == "the operations go from elementwise maximumf to elementwise minimumf"


def test_a_microkernel() -> None:
    _, what, _ = differences(an_executable(), an_executable(targets="llvm.call @iree_uk_mmt4d(%0)"))
    assert what == ("only 3.12.0 calls the microkernel iree_uk_mmt4d",)


# ----------------------------------------------------------------------------------------------- where they differ


def test_the_same_program() -> None:
    assert differences(an_executable(), an_executable()) == ("", (), ())
    code = a_code(LONG_LOOP)
    same = "the final code is the same, instruction for instruction"
    assert differences(an_executable(), an_executable(), code, code) == ("", (same,), ())


def test_the_same_ir_and_other_code() -> None:
    phase, what, lines = differences(
        an_executable(), an_executable(), a_code(LONG_LOOP), a_code(LONG_LOOP, fingerprint="other")
    )
    assert (phase, lines) == (FINAL_CODE, ())
    assert what == (
        "its IR is the same at every phase, and LLVM makes other code of it",
        "the final code has the same loops and multiply-adds, in other instructions",
    )


def test_other_ir_and_the_same_code() -> None:
    code = a_code(LONG_LOOP)
    phase, what, _ = differences(an_executable(configured=OLD), an_executable(targets="llvm.fma"), code, code)
    assert phase == "executable-configurations"
    assert what[0] == "the final code is the same, instruction for instruction"
    assert what[1].startswith("the pipeline goes from")


def test_phases_of_one_release_are_not_compared() -> None:
    phase, what, _ = differences(an_executable(flow=""), an_executable(targets="llvm.fma"))
    assert phase == "executable-targets"
    assert what == ("operations, tensors and tile sizes are the same, and the IR differs from executable-targets on",)


def test_a_dispatch_whose_ir_was_not_read() -> None:
    part = a_part(("a",), ("b",))
    assert with_differences(part, Program.of("base", []), Program.of("head", [an_executable("b")])) == part


def test_many_lines_are_cut() -> None:
    texts = ["\n".join(f"llvm.{name} {n}" for n in range(400)) for name in ("a", "b")]
    _, _, lines = differences(an_executable(targets=texts[0]), an_executable(targets=texts[1]))
    assert len(lines) == 201
    assert lines[-1] == "@@ and 600 lines more"


# ---------------------------------------------------------------------------------------------- fusion, one side only


def test_what_one_side_fuses() -> None:
    begin = FLOW.index("  %5 = linalg.generic")
    alone = FLOW[:begin] + FLOW[FLOW.index("  iree_tensor_ext.dispatch.tensor.store") :]
    relu = FLOW[: FLOW.index("  %3 = linalg.fill")] + FLOW[begin:]
    phase, what, lines = differences(
        [an_executable("a", flow=alone), an_executable("b", flow=relu)], [an_executable("c")]
    )
    assert phase == "flow"
    assert what == ("3.12.0 fuses it: 2 dispatches on 3.10.0, 1 on 3.12.0",)
    assert lines
    _, what, _ = differences(an_executable("a", flow=alone), [an_executable("b"), an_executable("c")])
    assert what == (
        "3.12.0 splits it: 1 dispatch on 3.10.0, 2 on 3.12.0",
        "only 3.12.0 fuses linalg.fill, a contraction and 2 times elementwise maximumf into it",
    )


def test_another_pipeline_of_what_is_split_tells_more_than_the_copy_beside_it() -> None:
    copy = "func.func @main_dispatch_1_slow_memcpy() {\n  return\n}"
    _, what, _ = differences(
        an_executable("m_dispatch_0_conv_8_f32", configured=OLD),
        [
            an_executable("n_dispatch_0_conv_8_f32", targets="llvm.fma"),
            an_executable("n_dispatch_1_slow_memcpy", flow=copy, configured="", targets="llvm.memcpy"),
        ],
    )
    assert what[0].startswith("the pipeline goes from CPUDoubleTilingExpert with vector_common_parallel = [1, 1, 8]")
    assert what[-1] == "3.12.0 splits it: 1 dispatch on 3.10.0, 2 on 3.12.0"


def test_the_kernel_beside_copies_is_compared_under_any_name() -> None:
    flow = "func.func @copy() {\n  return\n}"
    copies = [an_executable(f"copy_{n}", flow=flow, configured="", targets=f"llvm.memcpy {n}") for n in (0, 1)]
    other = an_executable("n_dispatch_0_conv_2d_8_f32", flow=FLOW.replace("8x12x8", "12x8x8"), targets="llvm.fma")
    _, what, _ = differences([an_executable("m_dispatch_0_conv_8_f32", configured=OLD)], [other, *copies])
    assert any(sentence.startswith("the pipeline goes from CPUDoubleTilingExpert") for sentence in what)


def test_a_dispatch_of_one_side() -> None:
    part = replace(a_part((), ("a",)), matched_by="")
    found = with_differences(part, Program.of("3.10.0", []), Program.of("3.12.0", [an_executable("a")]))
    assert found.differs_at == "flow"
    assert found.what == ("only 3.12.0 has it: linalg.fill, a contraction and elementwise maximumf",)
    assert found.lines == ()


def test_operations() -> None:
    assert operation_changes({"a": 1}, {"a": 1}, LABELS) == []
    assert operation_changes({"a": 2, "b": 1}, {"b": 1}, LABELS) == ["only 3.10.0 fuses 2 times a into it"]
    assert operation_changes({"a": 1}, {"b": 1, "c": 1}, LABELS) == ["the operations go from a to b and c"]


# ---------------------------------------------------------------------------------------------------------- tensors


def tensors(*texts: str, encoding: str = "") -> list[Tensor]:
    """Inputs and one output."""
    found = []
    for place, text in enumerate(texts):
        *shape, element = text.split("x")
        access = "writeonly" if place == len(texts) - 1 else "readonly"
        found.append(Tensor(access=access, shape=tuple(shape), element=element, encoding=encoding))
    return found


@pytest.mark.parametrize(
    ("base", "head", "sentences"),
    [
        (tensors("8x12xf32", "4xf32"), tensors("8x12xf32", "4xf32"), []),
        (tensors("8x12xf32", "4xf32"), tensors("1x8x12xf32", "4xf32"), []),
        (tensors(), tensors("4xf32"), []),
        (
            tensors("8x12xf32", "4xf32"),
            tensors("12x8xf32", "4xf16"),
            [
                "input 0 is transposed",
                "input 0 goes from 8x12xf32 to 12x8xf32 (transposed) and the output goes from 4xf32 to 4xf16",
            ],
        ),
        (
            tensors("8x12xf32", "4xf32"),
            tensors("8x14xf32", "4xf32"),
            ["input 0 goes from 8x12xf32 to 8x14xf32 (padded)"],
        ),
        (
            tensors("8x14xf32", "4xf32"),
            tensors("8x12xf32", "4xf32"),
            ["input 0 goes from 8x14xf32 to 8x12xf32 (without padding)"],
        ),
        (
            tensors("8x?xf32", "4xf32"),
            tensors("8x12xf32", "4xf32"),
            ["input 0 goes from 8x?xf32 to 8x12xf32"],
        ),
        (
            tensors("8x12xf32", "4xf32"),
            tensors("8x12xf32", "4xf32", encoding="#x"),
            ["only 3.12.0 encodes input 0 and the output (data tiling)"],
        ),
        (
            tensors("8x12xf32", "4xf32", encoding="#y"),
            tensors("8x12xf32", "4xf32", encoding="#x"),
            ["input 0 and the output have another encoding"],
        ),
        (
            tensors("8x12xf32", "4xf32"),
            tensors("8x12xf32", "4xf32", "4xf32"),
            ["it reads and writes 2 tensors on 3.10.0, 3 on 3.12.0"],
        ),
        (
            tensors("1xf32", "2xf32", "3xf32", "4xf32", "5xf32"),
            tensors("1xf16", "2xf16", "3xf16", "4xf16", "5xf16"),
            [
                "input 0 goes from 1xf32 to 1xf16, input 1 goes from 2xf32 to 2xf16, "
                "input 2 goes from 3xf32 to 3xf16 and 2 more change"
            ],
        ),
    ],
)
def test_tensors(base: list[Tensor], head: list[Tensor], sentences: list[str]) -> None:
    assert tensor_changes(base, head, LABELS) == sentences


# ---------------------------------------------------------------------------------------------------------- final code


def test_the_innermost_loop() -> None:
    short = InnerLoop(depth=5, instructions=12, scalar_multiply_adds=8, accumulators=1, loads=16, lane_moves=24)
    base, head = a_code(short, size_bytes=900), a_code(LONG_LOOP, size_bytes=20_000, calls=("expf",))
    assert code_changes(base, head, LABELS) == [
        "the innermost loop has 8 multiply-adds of single numbers on 3.10.0, "
        "64 multiply-adds in zmm registers on 3.12.0",
        "its multiply-adds go to 1 accumulator on 3.10.0, 8 on 3.12.0",
        "it loads 2 registers a multiply-add on 3.10.0, 1.1 on 3.12.0",
        "it moves single elements of vectors 24 times on 3.10.0, 0 on 3.12.0",
        "the code has 1 loop, 5 deep on 3.10.0, 1 loop, 6 deep on 3.12.0",
        "the code takes 900 bytes on 3.10.0, 19.5 KiB on 3.12.0",
        "the code calls nothing on 3.10.0, expf on 3.12.0",
    ]


def test_spills() -> None:
    spilling = replace(LONG_LOOP, spills=30)
    assert code_changes(a_code(LONG_LOOP), a_code(spilling), LABELS) == [
        "it moves vector registers to or from the stack 0 times on 3.10.0, 30 on 3.12.0"
    ]
    assert code_changes(a_code(LONG_LOOP), a_code(LONG_LOOP, spills=40), LABELS) == [
        "the code moves vector registers to or from the stack 0 times on 3.10.0, 40 on 3.12.0"
    ]


def test_code_without_multiply_adds() -> None:
    narrow, wide = (InnerLoop(depth=1, instructions=9, registers=kind) for kind in ("xmm", "zmm"))
    assert code_changes(a_code(narrow), a_code(wide), LABELS) == [
        "the code computes in xmm registers on 3.10.0, zmm on 3.12.0"
    ]
    assert (
        code_changes(a_code(), a_code(replace(wide, registers="")), LABELS)[0] == "only the code on 3.12.0 has a loop"
    )


# ------------------------------------------------------------------------------------------------ outside of dispatches


def a_build(**statistics: int) -> Build:
    names = ("dispatches", "copies", "fills", "awaits", "submissions", "executables")
    zero = dict.fromkeys((*names, "transient_bytes", "constant_bytes", "variable_bytes"), 0)
    return Build(case="c", command=(), cache_key="", statistics=Statistics(**{**zero, **statistics}))


def test_the_schedule() -> None:
    base = a_build(dispatches=10, copies=13, transient_bytes=19_796_992)
    head = a_build(dispatches=10, copies=1, transient_bytes=14_004_224, constant_bytes=64)
    assert schedule_differences(base, head) == (
        "copies: 13 on base, 1 on head",
        "transient memory: 18.9 MiB on base, 13.4 MiB on head",
        "constants: 0 bytes on base, 64 bytes on head",
    )
    assert schedule_differences(base, base) == ()
    assert schedule_differences(base, replace(head, statistics=None)) == ()
