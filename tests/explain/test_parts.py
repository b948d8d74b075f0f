"""Which executables of two programs do the same work, where the compiler fused some of them on one side."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.explain.parts import Counterparts, in_order, match_parts
from tests.explain.modules import an_executable


def matched(base: Sequence[str], head: Sequence[str]) -> list[tuple[str, str, str]]:
    """Parts of executables that are written `name` or `name=code`, as names joined with blanks."""
    sides = [[an_executable(*each.split("=")) for each in side] for side in (base, head)]
    return [
        (" ".join(each.name for each in part.base), " ".join(each.name for each in part.head), part.matched_by)
        for part in match_parts(*sides)
    ]


def test_pairs_stay_pairs() -> None:
    assert matched(["a", "b_dispatch_1_conv_4x4=x"], ["b_dispatch_0_conv_4x4=y", "a"]) == [
        ("a", "a", "same code"),
        ("b_dispatch_1_conv_4x4", "b_dispatch_0_conv_4x4", "operation and shape"),
    ]


def test_what_stands_between_the_same_neighbours_is_one_part() -> None:
    assert matched(["first", "pad", "conv", "last"], ["first", "padded-conv", "last"]) == [
        ("first", "first", "same code"),
        ("pad conv", "padded-conv", "fused or split"),
        ("last", "last", "same code"),
    ]
    assert matched(["pad", "conv"], ["fused"]) == [("pad conv", "fused", "fused or split")]


def test_as_many_of_a_kind_are_pairs_in_their_order() -> None:
    """Convolutions in another layout, with copies between them on one side."""
    base = ["m_dispatch_0_conv_8x8", "m_dispatch_1_slow_memcpy", "m_dispatch_2_conv_9x9"]
    head = ["n_dispatch_0_conv_2d_nhwc_8x8", "n_dispatch_1_conv_2d_nhwc_9x9"]
    assert matched(base, head) == [
        ("m_dispatch_0_conv_8x8 m_dispatch_1_slow_memcpy", "n_dispatch_0_conv_2d_nhwc_8x8", "fused or split"),
        ("m_dispatch_2_conv_9x9", "n_dispatch_1_conv_2d_nhwc_9x9", "operation"),
    ]
    (part,) = matched(base, head[:1])
    assert part == (" ".join(base), head[0], "fused or split")


CONV = "_dispatch_1_conv_8x8_f32"


@pytest.mark.parametrize("before", [True, False], ids=["before it", "after it"])
def test_a_leftover_joins_the_neighbour_whose_code_differs(before: bool) -> None:
    around = [f"m{CONV}=conv", "pad", "same"] if before else ["same", "pad", f"m{CONV}=conv"]
    fused = [f"n{CONV}=conv-and-pad", "same"] if before else ["same", f"n{CONV}=conv-and-pad"]
    together = (f"m{CONV} pad" if before else f"pad m{CONV}", f"n{CONV}", "fused or split")
    assert sorted(matched(around, fused)) == sorted([together, ("same", "same", "same code")])


def test_the_neighbour_before_comes_first() -> None:
    base = ["m_dispatch_0_conv_1=a", "pad", "m_dispatch_2_matmul_1=b"]
    head = ["n_dispatch_0_conv_1=c", "n_dispatch_1_matmul_1=d"]
    assert matched(base, head) == [
        ("m_dispatch_0_conv_1 pad", "n_dispatch_0_conv_1", "fused or split"),
        ("m_dispatch_2_matmul_1", "n_dispatch_1_matmul_1", "operation and shape"),
    ]


def test_a_leftover_between_equal_code_is_of_one_side() -> None:
    assert matched(["a", "gone", "b"], ["a", "b", "new", "newer"]) == [
        ("a", "a", "same code"),
        ("gone", "", ""),
        ("b", "b", "same code"),
        ("", "new", ""),
        ("", "newer", ""),
    ]


def test_leftovers_of_both_sides_may_join_one_pair() -> None:
    base = ["m_dispatch_0_conv_1=a", "pad", "same", "more"]
    head = ["relu", "n_dispatch_0_conv_1=b", "same"]
    assert matched(base, head)[0] == ("m_dispatch_0_conv_1 pad", "relu n_dispatch_0_conv_1", "fused or split")


@given(
    st.lists(st.sampled_from("abcdef"), max_size=8, unique=True),
    st.lists(st.sampled_from("abcdef"), max_size=8, unique=True),
    st.sets(st.sampled_from("abcdef")),
)
def test_every_executable_is_in_exactly_one_part(base: list[str], head: list[str], changed: set[str]) -> None:
    sides = [
        [
            an_executable(f"{side}_dispatch_{place}_{code}_1", code * (which if code in changed else 1))
            for place, code in enumerate(codes)
        ]
        for which, (side, codes) in enumerate((("m", base), ("n", head)), start=1)
    ]
    parts = match_parts(*sides)
    assert sorted(each.name for part in parts for each in part.base) == sorted(each.name for each in sides[0])
    assert sorted(each.name for part in parts for each in part.head) == sorted(each.name for each in sides[1])
    for part in parts:
        assert part.base or part.head
        assert bool(part.matched_by) == bool(part.base and part.head)
        for side, of_part in zip(sides, (part.base, part.head), strict=True):
            places = [side.index(each) for each in of_part]
            assert places == sorted(places)


def test_the_order_of_dispatches() -> None:
    executables = [an_executable("a"), an_executable("b"), an_executable("never")]
    assert [each.name for each in in_order(executables, ["b", "a", "b", "of nobody"])] == ["b", "a"]


def test_what_a_part_does() -> None:
    pad, conv = an_executable("m_dispatch_0_pad_f32"), an_executable("m_dispatch_1_conv_4x4_f32")
    both = Counterparts(base=(pad, conv, pad), head=(an_executable("x"),), matched_by="fused or split")
    assert both.operation == "pad_f32 + conv_4x4_f32"
    assert Counterparts(base=(), head=(an_executable("_encoding_0"),), matched_by="").operation == "_encoding_0"
