"""Dispatches that write their result to several places, and into the tensor that it is padded to.

https://github.com/iree-org/iree/issues/11102 and https://github.com/iree-org/iree/pull/8662, as IREE 3.13 spells them.
"""

import re
from functools import cache, partial

import pytest

from harness.rewrites.dispatches import fuse_padding, replicate_stores
from tests.programs import program
from tests.rewrites.tools import (
    assert_left_alone,
    at_flow,
    dense_block,
    lowered,
    rewritten,
)

# A value that goes into the tensors of the lines that follow.
HEAD = "main x:4x6 y:4x6\nu = each mulf x y\n"
TWO = f"{HEAD}c = concat 0 u x\nd = concat 0 y u\n"


@cache
def flow_text(text: str) -> str:
    return lowered(text, "flow")


def flow_of(lines: str) -> str:
    return flow_text(program(lines))


@pytest.mark.parametrize(
    ("lines", "results", "copies"),
    [
        pytest.param(f"{TWO}return c d", 2, (4, 2), id="each update has its own"),
        pytest.param(f"{HEAD}c = concat 0 u x\nreturn c u", 2, (2, 1), id="all else shares the last"),
        # That tensor does not exist yet when the dispatch runs, so another result would only be another copy.
        pytest.param(
            f"{HEAD}c = concat 0 u x\nd = insert u c 2,0\ne = concat 0 y u\nreturn c d e u",
            *(3, (6, 4)),
            id="a tensor made of the result keeps its copy",
        ),
    ],
)
def test_a_dispatch_has_as_many_results_as_are_needed(lines: str, results: int, copies: tuple[int, int]) -> None:
    assert f":{results} = flow.dispatch" in rewritten(flow_of(lines), replicate_stores)[0]
    matched, (_, before, _), (_, after, _) = at_flow(program(lines), replicate_stores)
    assert (matched, (before, after)) == ([1], copies)


def test_code_that_others_dispatch_too_is_copied() -> None:
    """The others' code keeps its one store. The copy's function has another name, as all go into one library."""
    flow = flow_of(f"{TWO}w = each mulf y x\nreturn c d w")
    assert flow.count("flow.executable private") == 1
    text, matched = rewritten(flow, replicate_stores)
    assert matched == [1]
    assert text.count("dispatch.tensor.store") == 1 + 2
    assert re.search(r":2 = flow\.dispatch @main_dispatch_0_stores_0::@\S+_stores_0\(", text)
    assert re.search(r"= flow\.dispatch @main_dispatch_0::@\w+_f32\(", text)
    assert re.search(r"func\.func @\w+_stores_0\(", text)


@pytest.mark.parametrize(
    ("lines", "old", "new"),
    [
        # One destination: IREE places it by itself.
        (f"{HEAD}c = concat 0 u x\nreturn c", "", ""),
        # Equal results of a sum, or of a mere copy of it, become one, which cannot be stored twice.
        (
            "main x:4x6 y:6x6\ne = empty 4x6\nz = fill zero e\nu = matmul x y z\nc = concat 0 u x\n"
            "d = concat 0 x u\nreturn c d",
            *("", ""),
        ),
        (f"{TWO}return c d", r"linalg\.yield %\d+", "linalg.yield %in"),
        (f"{TWO}return c d", r"mulf %in, %in_0", "mulf %in, %out"),
        (
            "main x:4x6 y:4x6\nu = each mulf x y\nv = each addf u x\nw = concat 0 v y\nz = insert u w 0,0\nreturn z v",
            *("", ""),
        ),
        (
            "main x:4x6 y:4x6 k:8x4\nu = each mulf x y\ne = empty 8x6\nz = fill zero e\nm = matmul k u z\n"
            "d = insert u m 0,0\nreturn d",
            *("", ""),
        ),
    ],
)
def test_other_code_is_left_alone(lines: str, old: str, new: str) -> None:
    text = re.sub(old, new, flow_of(lines)) if old else flow_of(lines)
    assert (text != flow_of(lines)) == bool(old)
    assert_left_alone(text, replicate_stores)


small_block = partial(dense_block, height=6, width=10, channels=8, growth=4)


def test_only_what_comes_from_outside_a_dense_block_is_copied() -> None:
    """13 copies in a block: its input goes to four concatenations, x1 to four, x2 to three, x3 to two; x4 to one."""
    matched, stock, replicated = at_flow(small_block(blocks=2), replicate_stores)
    assert matched == [4 + 3]  # x1, x2, x3, and the block's result where another block follows
    assert (stock, replicated) == ((20, 26, 10), (20, 4, 10))


# Two padded convolutions with ReLU, one after the other; the first one's result may be used otherwise as well.
CHAIN = "\n".join(
    [
        "main v0:1x8x6x10 filter:8x8x3x3 bias:8",
        *(
            f"p{n} = pad v{n} zero 0,0,1,1 0,0,1,1\nc{n} = conv p{n} filter\ns{n} = each addf c{n} bias:c\n"
            f"v{n + 1} = each maximumf s{n} zero"
            for n in (0, 1)
        ),
    ]
)
CONCATENATED = program(f"{CHAIN}\nboth = concat 1 v1 v2\nreturn both")


def captured(text: str) -> list[str]:
    """The types of what dispatches hold on to in order to change a part of it."""
    host = text[text.index("util.func") :]
    return re.findall(r"flow\.dispatch [^\n]*, (tensor<[0-9xf]+32>)\) -> \(?%", host)


def test_what_is_padded_and_used_otherwise_is_fused_too() -> None:
    """One dispatch less than IREE has; the fills stay; one that writes into a padded tensor gets no more results."""
    assert at_flow(CONCATENATED, fuse_padding, replicate_stores) == ([1, 0], (4, 1, 2), (3, 1, 2))
    flow = flow_text(CONCATENATED)
    for text in (flow, rewritten(flow, fuse_padding)[0]):  # contiguous insertions stay updates; no dispatch holds on
        assert text.count("= flow.tensor.update") == 2
        assert captured(text) == ["tensor<8x8x12xf32>"] * 2


def test_other_paddings_are_left_alone() -> None:
    """Into what is no fill, as others may write other parts of it at the same time; and of other results."""
    flow = flow_text(CONCATENATED)
    value, type_ = re.findall(r"(%\w+) = flow\.tensor\.splat [^\n]*: (tensor<8x8x12xf32>)", flow)[0]
    filled = re.sub(rf"{value} = flow\.tensor\.splat [^\n]*", f"{value} = flow.tensor.empty : {type_}", flow)
    of_a_product = re.sub(r"linalg\.yield %\d+", "linalg.yield %in", flow)
    of_several, _ = rewritten(flow, replicate_stores)
    for text in (filled, of_a_product, of_several):
        assert_left_alone(text, fuse_padding)
