"""Which configurations are worth a try: what holds for those of any operation, and which come first for known ones."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from harness.rewrites.host import VectorUnit
from harness.rewrites.tuned_configuration import LEVELS, PIPELINES
from harness.tune.roots import Loop, Root
from harness.tune.tiles import MOST_FIRST, Configuration, first_configurations, neighbours

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


@given(roots(), st.sampled_from([AVX512, AVX2]))
def test_first_configurations_are_sound_and_all_different(root: Root, unit: VectorUnit) -> None:
    found = first_configurations(root, unit)
    assert 0 < len(found) <= MOST_FIRST
    assert len({configuration.text for configuration in found}) == len(found)
    for configuration in found:
        assert_sound(root, configuration, unit)


@given(roots(), st.data())
def test_neighbours_are_sound_and_differ_in_one_size(root: Root, data: st.DataObject) -> None:
    start = data.draw(st.sampled_from(first_configurations(root, AVX512)))
    found = neighbours(root, start, AVX512)
    assert len({configuration.text for configuration in found}) == len(found)
    for configuration in found:
        assert_sound(root, configuration, AVX512)
        pairs = [
            pair for level, sizes in start.tiles.items() for pair in zip(sizes, configuration.tiles[level], strict=True)
        ]
        assert sum(a != b for a, b in pairs) == 1
