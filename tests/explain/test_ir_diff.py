"""What the compiler decided for a dispatch, and what it did differently for a part of a program, in sentences."""

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

from syrupy.assertion import SnapshotAssertion

from harness.explain.code import Code, Work, code_changes
from harness.explain.decisions import (
    Tensor,
    decisions_of,
    operations_in,
    tensor_changes,
)
from harness.explain.ir_diff import Program, schedule_differences, with_differences
from harness.ir.differences import Executable
from harness.records.explanation import Part
from harness.records.run import Build, Statistics
from tests.explain.conftest import FLOW, OLD_PIPELINE, OLD_TILES, a_convolution, configured

LABELS = ("3.10.0", "3.12.0")

# --- Decisions ---


def test_what_is_decided_for_a_gpu() -> None:
    pipeline = (
        "#iree_gpu.pipeline<TileAndFuse> workgroup_size = [256, 1, 1] subgroup_size = 64, "
        "{gpu_pipeline_options = #iree_gpu.pipeline_options<prefetch_num_stages = 2>}"
    )
    kind = "#iree_gpu.mma_layout<MFMA_F32_16x16x4_F32>"
    tiles = f"#iree_gpu.lowering_config<{{mma_kind = {kind}, reduction = [0, 0, 8], workgroup = [64, 128, 0]}}>"
    encoding = "#iree_encoding.encoding<operand_index = 0 : index, op_type = matmul, element_types = [f32, f32, f32]>"
    flow = FLOW.replace("readonly:tensor<8x12x8xf32>>,", f"readonly:tensor<8x12x?xf16, {encoding}>>,", 1)
    found = decisions_of(a_convolution(flow=flow, configured=configured(pipeline, tiles)))
    assert found.tiles == {"mma_kind": kind, "reduction": "[8]", "workgroup": "[64, 128]"}
    assert (found.options["workgroup_size"], found.options["subgroup_size"]) == ("[256, 1, 1]", "64")
    assert found.tensors[0] == Tensor(is_input=True, shape=("8", "12", "?"), element="f16", encoding=encoding)


def test_what_operations_are_called() -> None:
    maximum = ("  %3 = arith.extf %in : f16 to f32", "  %4 = arith.maximumf %3, %out : f32")
    four = (f"  %3 = math.{name} %in : f32" for name in ("exp", "tanh", "sqrt", "absf"))
    texts = ["%5 = tensor.pad %4 low[1] high[1] {", "%6 = linalg.conv_2d_nchw_fchw", "%8 = tensor.empty() : t"]
    for kinds, body in (('"parallel", "reduction"', maximum), ('"parallel"', ()), ('"parallel"', four)):
        header = f"%0 = linalg.generic {{iterator_types = [{kinds}]}} ins(%1 : t) outs(%2 : t) {{"
        texts += [header, "^bb0(%in: f32, %out: f32):", *body, "  linalg.yield %3 : f32", "} -> t"]
    names = ("a reduction by maximumf", "a copy", "elementwise exp, tanh, sqrt, ...", "tensor.pad")
    assert dict(operations_in(texts)) == dict.fromkeys((*names, "linalg.conv_2d_nchw_fchw"), 1)


# --- What differs ---


def a_program(label: str, executables: Sequence[Executable], code: Mapping[str, Code]) -> Program:
    return Program(label=label, executables={each.name: each for each in executables}, code=code)


def differences(
    base: Executable | list[Executable], head: Executable | list[Executable], *codes: Code
) -> tuple[str, tuple[str, ...]]:
    """Where a part of these dispatches differs, in what, and the lines."""
    sides = [side if isinstance(side, list) else [side] for side in (base, head)]
    names = [tuple(executable.name for executable in side) for side in sides]
    part = Part(base=names[0], head=names[1], matched_by="", operation="conv", base_ns=3e6, head_ns=1e6)
    programs = [
        a_program(label, side, {side[0].name: code} if code else {})
        for label, side, code in zip(LABELS, sides, codes or (None, None), strict=True)
    ]
    found = with_differences(part, programs[0], programs[1])
    return "; ".join((found.differs_at, *found.what)), found.lines


LONG_LOOP = Work(instructions=93, registers="zmm", multiply_adds=64, accumulators=frozenset("12345678"), loads=72)
SHORT_LOOP = Work(instructions=12, scalar_multiply_adds=8, accumulators=frozenset("1"), loads=16, lane_moves=24)
NARROW, WIDE = (Work(instructions=9, registers=kind) for kind in ("xmm", "zmm"))


def a_code(loop: Work | None = None, fingerprint: str = "", **whole: Any) -> Code:
    """The code of a dispatch with this innermost loop; `whole` is of all of it."""
    return Code(whole=replace(loop or Work(), **whole), main_loop=loop, fingerprint=fingerprint or repr(loop))


def tiled(pipeline: str = OLD_PIPELINE, size: int = 8) -> Executable:
    """One with that pipeline and a size of its tiles, and code of its own."""
    tiles = f"#iree_cpu.lowering_config<vector_common_parallel = [1, 1, {size}]>"
    return a_convolution(configured=configured(pipeline, tiles, "[1]"), targets=f"llvm.{pipeline}")


PLAIN, FMA = a_convolution(), a_convolution(targets="llvm.fma")
OLDER_IR = configured(OLD_PIPELINE, OLD_TILES, "[1, 1, 8]")
OLD = a_convolution(configured=OLDER_IR)
KERNEL = a_convolution("m_dispatch_0_conv_8_f32", configured=OLDER_IR)
RESPELT = configured("#iree_cpu.pipeline<DoubleTilingExpert>", OLD_TILES)
CODE, OTHER = a_code(LONG_LOOP), a_code(LONG_LOOP, fingerprint="other")
RELU = FLOW.index("  %5 = linalg.generic")
WITHOUT_RELU = FLOW[:RELU] + FLOW[FLOW.index("  some.store") :]
ONLY_RELU = FLOW[: FLOW.index("  %3 = linalg.fill")] + FLOW[RELU:]
APART = [a_convolution("a", flow=WITHOUT_RELU), a_convolution("b", flow=ONLY_RELU)]
COPY = "func.func @copy() {\n  return\n}"
COPIES = [a_convolution(f"copy_{n}", flow=COPY, configured="", targets=f"llvm.memcpy {n}") for n in (0, 1)]


def test_what_the_compiler_did_differently(snapshot: SnapshotAssertion) -> None:
    cases: dict[str, tuple[Any, ...]] = {
        "nothing": (PLAIN, PLAIN),
        "the code alone": (PLAIN, PLAIN, CODE, OTHER),
        "the IR alone": (OLD, FMA, CODE, CODE),
        "another pipeline": (OLD, FMA),
        "tiles, and an option of one side": (tiled(), tiled(f"{OLD_PIPELINE}, {{enable_loop_peeling}}", 16)),
        "another spelling": (
            a_convolution(configured=configured(OLD_PIPELINE, OLD_TILES)),
            a_convolution(configured=RESPELT, targets="llvm.fma"),
        ),
        "sums in order": tuple(
            a_convolution(targets=f'"llvm.intr.vector.reduce.fadd"(%1) <{{fastmathFlags = #llvm.fastmath<{flags}>}}>')
            for flags in ("reassoc", "none")
        ),
        "light operations after another pipeline": (
            OLD,
            a_convolution(flow=FLOW.replace("arith.maximumf", "arith.minimumf"), targets="llvm.fma"),
        ),
        "a microkernel": (PLAIN, a_convolution(targets="llvm.call @iree_uk_mmt4d(%0)")),
        "a phase that one release lacks": (a_convolution(flow=""), FMA),
        "one side fuses": (APART, a_convolution("c")),
        "one side splits": (APART[0], [a_convolution("b"), a_convolution("c")]),
        "a kernel under another name": (
            KERNEL,
            [a_convolution("n_dispatch_0_conv_2d_f32", targets="llvm.fma"), *COPIES],
        ),
        "only one side has it": ([], [a_convolution("a")]),
    }
    assert {name: differences(*sides)[0] for name, sides in cases.items()} == snapshot


def test_lines_that_decide_come_first_and_many_are_cut() -> None:
    head = a_convolution(configured=configured().replace("1x8x12x8xf32", "1x8x12x9xf32"), targets="llvm.fma")
    _, lines = differences(OLD, head)
    deciding = lines[: lines.index("@@")]
    assert OLD_PIPELINE in deciding[0] and "ConvTileAndDecomposeExpert" in deciding[1]
    assert all("translation_info" in line or "lowering_config" in line for line in deciding)
    texts = ["\n".join(f"llvm.{name} {n}" for n in range(400)) for name in ("a", "b")]
    _, lines = differences(a_convolution(targets=texts[0]), a_convolution(targets=texts[1]))
    assert (len(lines), lines[-1]) == (201, "@@ and 600 lines more")


def test_a_dispatch_whose_ir_was_not_read_stays_as_it_is() -> None:
    part = Part(base=("a",), head=("b",), matched_by="", operation="conv", base_ns=3e6, head_ns=1e6)
    assert with_differences(part, a_program("base", [], {}), a_program("head", [a_convolution("b")], {})) == part


def tensors(text: str) -> list[Tensor]:
    """Inputs and one output, as `8x12xf32 4xf32 #encoding`."""
    shapes, _, encoding = text.partition("#")
    words = [word.split("x") for word in shapes.split()]
    return [
        Tensor(is_input=place < len(words), shape=tuple(shape), element=element, encoding=encoding)
        for place, (*shape, element) in enumerate(words, start=1)
    ]


def test_tensors(snapshot: SnapshotAssertion) -> None:
    pairs = [
        ("8x12xf32 4xf32", "1x8x12xf32 4xf32"),
        ("8x12xf32 4xf32", "12x8xf32 4xf16"),
        ("8x12xf32 4xf32", "8x12xf32 4xf32 #x"),
        ("8x12xf32 4xf32 #y", "8x12xf32 4xf32 #x"),
        ("8x12xf32 4xf32", "8x12xf32 4xf32 4xf32"),
        ("1xf32 2xf32 3xf32 4xf32 5xf32", "1xf16 2xf16 3xf16 4xf16 5xf16"),
    ]
    said = {
        f"{base} -> {head}": "; ".join(tensor_changes(tensors(base), tensors(head), LABELS)) for base, head in pairs
    }
    assert said == snapshot


def test_final_code(snapshot: SnapshotAssertion) -> None:
    whole = a_code(SHORT_LOOP, instructions=120), a_code(LONG_LOOP, instructions=4000, calls=("expf",))
    cases = {
        "all of it": whole,
        "spills in the loop": (CODE, a_code(replace(LONG_LOOP, spills=30))),
        "spills elsewhere": (CODE, a_code(LONG_LOOP, spills=40)),
        "without multiply-adds": (a_code(NARROW), a_code(WIDE)),
        "without a loop": (a_code(), a_code(Work(instructions=9))),
    }
    assert {name: code_changes(base, head, LABELS) for name, (base, head) in cases.items()} == snapshot


def test_the_schedule() -> None:
    zero = Statistics(**dict.fromkeys((field.name for field in fields(Statistics)), 0))
    base = replace(zero, dispatches=10, copies=13, transient_bytes=19_796_992)
    head = replace(zero, dispatches=10, copies=1, transient_bytes=14_004_224, constant_bytes=64)
    builds = [Build(case="c", command=(), cache_key="", statistics=each) for each in (base, head, None)]
    assert schedule_differences(builds[0], builds[1]) == (
        "copies: 13 on base, 1 on head",
        "transient memory: 18.9 MiB on base, 13.4 MiB on head",
        "constants: 0 bytes on base, 64 bytes on head",
    )
    assert schedule_differences(builds[0], builds[0]) == schedule_differences(builds[0], builds[2]) == ()
