"""Which executables of two programs belong together, and where each pair begins to differ; those of a real program."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from harness.ir.differences import (
    EXECUTABLE_PHASES,
    Executable,
    canonical_lines,
    changed_lines,
    first_difference,
    match_executables,
    read_parts,
    same_code,
    target_changes,
)
from harness.toolchain import Toolchain
from tests.ir.conftest import LIMITS, MODEL, WEIGHT, Dump

ADD = """func.func @f(%arg0: i32) -> i32 {
  %c4 = arith.constant 4 : i32
  %0 = arith.addi %arg0, %c4 : i32
  return %0 : i32
}"""


def an_executable(name: str, flow: str = "", targets: str | None = None, configured: str = "") -> Executable:
    """One with that code at the first and the last phase; each line is an operation."""
    texts = {"flow": flow or name, "executable-configurations": configured, "executable-targets": targets or name}
    return Executable(name=name, phases={phase: canonical_lines([text]) for phase, text in texts.items() if text})


def same(base: str, head: str, symbols: Sequence[str] = ()) -> bool:
    return same_code(canonical_lines([base], symbols), canonical_lines([head], symbols))


@pytest.mark.parametrize(
    ("old", "new", "equal"),
    [
        ("%0", "%sum", True),
        ("%c4", "%c4_i32", True),
        ("@f", '@"main$async_dispatch_7_add"', True),
        ("@f", "@g", False),  # a symbol of somebody else
        ("arith.constant 4", "arith.constant 5", False),
        ("addi", "subi", False),
        ("%arg0, %c4", "%c4, %arg0", False),
    ],
)
def test_names_are_no_difference(old: str, new: str, equal: bool) -> None:
    assert same(ADD, ADD.replace(old, new), ("f", "main$async_dispatch_7_add")) is equal


def test_a_constant_stands_where_it_is_used_until_its_name_is_another_values() -> None:
    lines = canonical_lines(
        [
            "%0 = llvm.mlir.constant(7 : i64) : i64\nllvm.store %0, %p : i64, !llvm.ptr\n%0 = llvm.load %p\nuse %0",
            "%cst = arith.constant dense<[1.0, 2.0]> : vector<2xf32>\n^bb1(%cst: f32):\nuse %cst",
        ]
    )
    texts = ["llvm.store 7, %p : i64, !llvm.ptr", "%0 = llvm.load %p", "use %0", "^bb1(%cst: f32):", "use %cst"]
    assert [line.text for line in lines] == texts


@pytest.mark.parametrize(
    ("base", "head", "equal"),
    [
        ("pipeline = CPUDoubleTilingExpert>", "pipeline = #iree_cpu.pipeline<DoubleTilingExpert>>", True),
        ("flow.dispatch.tensor.load %x : t", "iree_tensor_ext.dispatch.tensor.load %x : t", True),
        ('cpu = "a", cpu_features = "+a,-b"', 'cpu = "a", cpu_features = "+b,+a"', True),
        ("x.binding.subspan binding(0) offset(%c64) : t", "x.binding.subspan binding(0) offset(%c0) : t", True),
        ("x.binding.subspan binding(0) offset(%c64) : t", "x.binding.subspan binding(1) offset(%c64) : t", False),
        ("stream.binding.subspan %arg0[%c64] : t", "stream.binding.subspan %arg0[%c0] : t", True),
        ("m : memref<4x8xf32, strided<[8, 1], offset: ?>>", "m : memref<4x8xf32>", True),
        ("m : memref<4x8xf32, strided<[9, 1], offset: ?>>", "m : memref<4x8xf32, strided<[9, 1], offset: 65>>", True),
        ("} attributes {size = [1 : index, 2 : index]}", "} <size = [1 : index, 2 : index]>", True),
        ("%0 = llvm.load %a {alignment = 4 : i64} : t", "%0 = llvm.load %a <alignment = 4> : t", True),
        ("%0 = llvm.load %a {alignment = 4 : i64} : t", "%0 = llvm.load %a <alignment = 8> : t", False),
        ("%0 = m.load %a, %b {alignment = 4 : i64} : t", "%0 = m.load(%a, %b), alignment(4) : t", True),
        ("%x = d.count_from_slice", "%x = d.count_from_slice()", True),
        ("%0 = m.add %a {fastmathFlags = #m.fastmath<fast>} : t", "%0 = m.add %a fastmath<fast> : t", True),
        ('%0 = "m.sum"(%a) <{fastmathFlags = #m.fastmath<none>}> : (t) -> t', "%0 = m.sum(%a) : (t) -> t", True),
        ("m : memref<4x8xf32, strided<[9, 1]>>", "m : memref<4x8xf32>", False),
    ],
)
def test_spellings_of_releases_and_places_in_memory(base: str, head: str, equal: bool) -> None:
    assert same(base, head) is equal


def test_a_long_operation_is_broken_at_its_attributes_operands_and_results() -> None:
    maps = "affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d1)>"
    line = f'  %0 = linalg.generic {{maps = [{maps}], kinds = ["a, b", "c"]}} ins(%1, %2 : t, t) outs(%3 : t) {{'
    texts = [line.text for line in canonical_lines([line])]
    assert texts == [
        f"  %0 = linalg.generic {{maps = [{maps}],",
        '      kinds = ["a, b", "c"]}',
        "      ins(%1, %2 : t, t)",
        "      outs(%3 : t) {",
    ]
    assert [line.text for line in canonical_lines(["x" * 500])] == ["x" * 500]


def matched(base: Sequence[Executable], head: Sequence[Executable]) -> list[tuple[str, str, str]]:
    return [
        (match.base.name if match.base else "", match.head.name if match.head else "", match.by)
        for match in match_executables(base, head)
    ]


def test_what_says_most_decides() -> None:
    base = [
        an_executable("m_dispatch_0_copy_4xf32", "load", "mov"),
        an_executable("m_dispatch_1_conv_2d_nchw_8x4_f32", "conv", "loops"),
        an_executable("m_dispatch_2_matmul_8x4x2_f32", "matmul", "fma"),
        an_executable("m_dispatch_3_matmul_16x4x2_f32", "more", "fma, fma"),
        an_executable("m_dispatch_4_reduce_DxD_f32", "sum", "add"),
    ]
    head = [
        an_executable("n_dispatch_0_reduce_7_f32", "another sum", "another add"),
        an_executable("n_dispatch_1_matmul_8x4x2_f32", "another matmul", "another fma"),
        an_executable("n_dispatch_2_conv_2d_nchw_9x9_f32", "conv", "vectors"),
        an_executable("n_dispatch_3_fill", "moves", "mov"),
        an_executable("n_dispatch_4_transpose_4x4", "swap", "shuffle"),
    ]
    assert matched(base, head) == [
        ("m_dispatch_0_copy_4xf32", "n_dispatch_3_fill", "same code"),
        ("m_dispatch_1_conv_2d_nchw_8x4_f32", "n_dispatch_2_conv_2d_nchw_9x9_f32", "same input"),
        ("m_dispatch_2_matmul_8x4x2_f32", "n_dispatch_1_matmul_8x4x2_f32", "operation and shape"),
        ("m_dispatch_3_matmul_16x4x2_f32", "n_dispatch_4_transpose_4x4", "place"),
        ("m_dispatch_4_reduce_DxD_f32", "n_dispatch_0_reduce_7_f32", "operation"),
    ]


def test_where_more_are_left_on_one_side_place_says_nothing() -> None:
    base = [an_executable("a"), an_executable("b")]
    head = [an_executable("c"), an_executable("b"), an_executable("d")]
    assert matched(base, head) == [("a", "", ""), ("b", "b", "same code"), ("", "c", ""), ("", "d", "")]
    twins = [an_executable("x", "a", "b"), an_executable("y", "a", "b")]  # of several, the first meets the first
    assert matched(twins, twins[::-1]) == [("x", "y", "same code"), ("y", "x", "same code")]
    assert matched([Executable(name="x", phases={})], [Executable(name="y", phases={})]) == [("x", "y", "place")]


def test_the_first_phase_at_which_both_are_there_and_differ() -> None:
    base, head = an_executable("f", "load", "mov", "a = 1"), an_executable("f", "load", "add")
    assert first_difference(base.phases, head.phases, EXECUTABLE_PHASES) == "executable-targets"
    assert first_difference(base.phases, an_executable("f", "x").phases, EXECUTABLE_PHASES) == "flow"
    assert first_difference(base.phases, base.phases, EXECUTABLE_PHASES) is None
    assert first_difference(base.phases, {}, EXECUTABLE_PHASES) is None


def test_lines_that_differ_have_those_around_them() -> None:
    base = "f {\n  %0 = a.b 1\n  x\n  y\n  z\n  last 1\n}"
    head = "f {\n  %0 = new\n  %1 = a.b 2\n  x\n  y\n  z\n  last 2\n}"
    lines = changed_lines(canonical_lines([base]), canonical_lines([head]))
    expected = ["  f {", "-   %0 = a.b 1", "+   %0 = new", "+   %1 = a.b 2", "    x", "@@", "    z"]
    assert lines == [*expected, "-   last 1", "+   last 2", "  }"]


def test_lines_that_differ_by_their_values_only() -> None:
    base, head = canonical_lines(["a %x, %y\nb"]), canonical_lines(["a %x, %x\nb"])
    assert changed_lines(base, head) == ["- a %x, %y", "+ a %x, %x", "  b"]
    assert changed_lines(base, base) == []


def test_targets() -> None:
    base = '#t<"llvm-cpu", "elf", {cpu = "haswell", cpu_features = "+a,-b,+c.d", size = 16 : i64}>'
    head = '#t<"llvm-cpu", "elf", {cpu = "znver4", cpu_features = "+c.d,+b,+e", size = 16 : i64, ukernels = "none"}>'
    assert target_changes(base, base.replace("+a,-b,+c.d", "+c.d,+a")) == []
    assert target_changes(base.replace("+a,", "+avx2,"), base.replace("+a,", "+avx,+avx2,+sse4.1,")) == []
    assert target_changes(base, head) == [
        'cpu: "haswell" and "znver4"',
        "cpu_features: only base has +a",
        "cpu_features: only head has +b, +e",
        'ukernels: none and "none"',
    ]


PHASES = ("start", *EXECUTABLE_PHASES)


def test_a_real_program_has_executables_at_every_phase_and_meets_another_one_but_for_what_differs(
    dumps: Mapping[str, Path], dump: Dump, real_toolchain: Toolchain
) -> None:
    """The other's name and those of its dispatches are others, and its convolution has a minimum after it."""
    other = dump(MODEL.replace("@main", "@net").replace("maximumf", "minimumf"), PHASES)
    ours = {phase: dumps[phase] for phase in PHASES}
    base, head = (read_parts(files, toolchain=real_toolchain, limits=LIMITS) for files in (ours, other))
    for executable in base.executables:
        assert tuple(executable.phases) == EXECUTABLE_PHASES, executable.name
        assert executable.operation and executable.dispatches >= 1
    (convolution,) = (executable for executable in base.executables if executable.kind == "conv")
    assert convolution.pipeline
    assert any("lowering_config" in line.text for line in convolution.phases["executable-configurations"])
    assert 'cpu = "haswell"' in base.target
    assert tuple(base.program) == ("start", "flow", "encodings", "stream")
    text = "\n".join(line.text for phase in base.program.values() for line in phase)
    assert "flow.dispatch" in text
    assert not [part for part in (WEIGHT[:64], "func.func @main_dispatch", "\nhal.exec") if part in text]
    same, changed = sorted(match_executables(base.executables, head.executables), key=lambda match: match.by)[::-1]
    assert (same.by, changed.by, changed.base) == ("same code", "operation and shape", convolution)
    assert changed.head is not None
    assert first_difference(convolution.phases, changed.head.phases, EXECUTABLE_PHASES) == "flow"
