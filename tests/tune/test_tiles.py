"""Which configurations are worth a try: what holds for those of any operation, and which come first for known ones."""

import math
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.rewrites.operations import find
from harness.rewrites.regions import isolate
from harness.rewrites.targets import LEVELS, PIPELINES, VectorUnit, host_vector_unit
from harness.tune.tiles import (
    MOST_FIRST,
    Configuration,
    Loop,
    LoopKind,
    Root,
    first_configurations,
    neighbours,
    spec_of,
)
from tests.programs import program
from tests.rewrites.tools import configurations_taken, iree_compile, rewritten

AVX512, AVX2 = VectorUnit(64, 32), VectorUnit(32, 16)


@st.composite
def roots(draw: st.DrawFn) -> Root:
    """Generics of any loops, matrix products and convolutions."""
    size = st.sampled_from([1, 2, 3, 7, 10, 16, 62, 64, 90, 97, 128, 1536])
    op, kinds = draw(
        st.sampled_from(
            [
                ("linalg.conv_2d_nhwc_hwcf", "pppprrr"),
                ("linalg.conv_2d_nchw_fchw", "pppprrr"),
                ("linalg.depthwise_conv_2d_nhwc_hwc", "pppprr"),
                ("linalg.pooling_nhwc_max", "pppprr"),
                ("linalg.mmt4d", "pprppr"),
                ("linalg.batch_matmul", "pppr"),
            ]
        )
        | st.tuples(st.just("linalg.generic"), st.text("pr", max_size=3).map("p".__add__))
    )
    loops = tuple(Loop(size=draw(size), kind="parallel" if kind == "p" else "reduction") for kind in kinds)
    parallel = [number for number, kind in enumerate(kinds) if kind == "p"]
    return Root(
        op=op,
        loops=loops,
        operands=("tensor<16x16xf32>", "tensor<16xf32>"),
        element_bits=draw(st.sampled_from([8, 16, 32, 64])),
        innermost=draw(st.sampled_from(parallel)) if op == "linalg.generic" else parallel[-1],
        matcher="",
        pipeline="DoubleTilingExpert",
        tiles=draw(st.sampled_from([{}, {"distribution": tuple(64 if kind == "p" else 0 for kind in kinds)}])),
    )


def assert_sound(root: Root, configuration: Configuration, unit: VectorUnit) -> None:
    """It is one that the compiler takes and vectorises, whose accumulators fit the registers."""
    assert configuration.pipeline in PIPELINES
    for level, sizes in configuration.tiles.items():
        for loop, size in zip(root.loops, sizes, strict=True):
            assert not size or (loop.kind == LEVELS[level] and loop.size % size == 0)
    register, outer = configuration.tiles["vector_common_parallel"], configuration.tiles["distribution"]
    assert all(not whole or whole % size == 0 for whole, size in zip(outer, register, strict=True) if size)
    # An accumulator is a vector, or where the vectors lie along the reduction an element.
    assert math.prod(size or 1 for size in register) * root.element_bits // 8 < unit.vector_bytes * unit.registers


@given(roots(), st.data())
def test_first_configurations_and_neighbours_are_sound_and_all_different(root: Root, data: st.DataObject) -> None:
    unit = data.draw(st.sampled_from([AVX512, AVX2]))
    first = first_configurations(root, unit)
    assert 0 < len(first) <= MOST_FIRST
    start = data.draw(st.sampled_from(first))
    near = neighbours(root, start, unit)
    for found in (first, near):
        assert len({configuration.text for configuration in found}) == len(found)
        for configuration in found:
            assert_sound(root, configuration, unit)
    for configuration in near:
        pairs = (zip(sizes, configuration.tiles[level], strict=True) for level, sizes in start.tiles.items())
        assert sum(a != b for pair in pairs for a, b in pair) == 1


_KINDS: dict[str, LoopKind] = {"p": "parallel", "r": "reduction"}
_WINDOW = "{dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>}"


def a_root(op: str, loops: str, shapes: str, attributes: str = "") -> Root:
    """A named operation of f32 on two inputs.

    Args:
        loops: `8p 8p 8r`.
        shapes: Of the inputs and the output.
    """
    types = [f"tensor<{shape}xf32>" for shape in shapes.split()]
    parts = [Loop(size=int(loop[:-1]), kind=_KINDS[loop[-1]]) for loop in loops.split()]
    return Root(
        op=op,
        loops=tuple(parts),
        operands=tuple(types),
        element_bits=32,
        innermost=max(number for number, loop in enumerate(parts) if loop.kind == "parallel"),
        matcher=f"%0 = {op} {attributes} ins(%arg0, %arg1 : {types[0]}, {types[1]}) outs(%arg2 : {types[2]}) "
        f"-> {types[2]}",
        pipeline="DoubleTilingExpert",
        tiles={},
    )


def a_program(root: Root) -> str:
    """One that runs a root, from zeros, in a dispatch region of its own: windows outside of one become generics."""
    a, b, c = (re.sub(r"tensor<(.*)xf32>", r"\1", type_) for type_ in root.operands)
    operation = root.matcher.partition("= ")[2].replace("%arg0", "%a").replace("%arg1", "%b").replace("%arg2", "%f")
    text = program(f"main a:{a} b:{b}\ne = empty {c}\nf = fill zero e\nresult:{c} = | {operation}\nreturn result")
    return rewritten(text, lambda module: len([isolate(op) for op in find(module, root.op)]))[0]


MATMUL = a_root("linalg.matmul", "64p 128p 32r", "64x32 32x128 64x128")


@pytest.mark.parametrize(
    "root",
    [
        MATMUL,
        a_root("linalg.conv_2d_nhwc_hwcf", "2p 6p 8p 32p 3r 3r 16r", "2x8x10x16 3x3x16x32 2x6x8x32", _WINDOW),
        a_root("linalg.conv_2d_nchw_fchw", "2p 8p 6p 32p 16r 3r 3r", "2x16x8x34 8x16x3x3 2x8x6x32", _WINDOW),
        a_root("linalg.depthwise_conv_2d_nhwc_hwc", "2p 6p 8p 32p 3r 3r", "2x8x10x32 3x3x32 2x6x8x32", _WINDOW),
        a_root("linalg.mmt4d", "4p 4p 8r 8p 16p 1r", "4x8x8x1 4x8x16x1 4x4x8x16"),
    ],
    ids=lambda root: root.op,
)
def test_the_compiler_takes_what_is_tried_first(root: Root, tmp_path: Path) -> None:
    first = first_configurations(root, host_vector_unit())[0]
    spec = tmp_path / "spec.mlir"
    spec.write_text(spec_of([(root, first)]))
    flag = f"--iree-codegen-tuning-spec-path={spec}"
    levels = ", ".join(f"{level} = {list(sizes)}" for level, sizes in first.tiles.items())
    assert f"#iree_cpu.lowering_config<{levels}>" in configurations_taken(a_program(root), flag)
    assert iree_compile(a_program(root), flag)


def test_of_equal_operations_in_a_spec_the_first_counts() -> None:
    first, second = first_configurations(MATMUL, AVX2)[:2]
    assert spec_of([(MATMUL, first), (MATMUL, second)]) == spec_of([(MATMUL, first)])
