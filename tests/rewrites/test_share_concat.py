"""Concatenations that share a buffer with its padding; dispatches that write their result to several places."""

import re
from functools import cache, partial

import pytest

from harness.rewrites.channels_last import channels_last
from harness.rewrites.dispatches import fuse_padding, replicate_stores
from harness.rewrites.share_concat import share_concat
from tests.programs import in_util, program
from tests.rewrites.tools import (
    Program,
    Together,
    assert_left_alone,
    assert_rewritten,
    at_flow,
    dense_block,
    lowered,
    random,
    rewritten,
)

SHARED = program("""
  main p:2x3 q:1x3
  e = empty 6x3
  s = insert p e 0,0
  t = insert q s 2,0
  a = extract t 0,0 3x3
  r = mulf a a
  u = insert r t 3,0
  return u
""")
# The first concatenation is a part of the second, and r is computed from it.
CHAINS = program("""
  main p:2x3 q:1x3
  e = empty 3x3
  s = insert p e 0,0
  a = insert q s 2,0
  r = mulf a a
  f = empty 6x3
  t = insert p f 0,0
  u = insert q t 2,0
  b = insert r u 3,0
  return b
""")
FLAT = program("""
  main p:2x3 q:1x3
  a = concat 0 p q
  r = mulf a a
  b = concat 0 p q r
  return b
""")
NESTED = FLAT.replace("%p, %q, %r : (tensor<2x3xf32>, tensor<1x3xf32>,", "%a, %r : (tensor<3x3xf32>,")


@pytest.mark.parametrize(
    ("before", "after"),
    [(CHAINS, SHARED), (FLAT, SHARED), (NESTED, SHARED), (in_util(CHAINS), in_util(SHARED))],
    ids=["chains of insertions", "tensor.concat", "one inside another", "in util.func"],
)
def test_every_part_is_inserted_once_and_the_smaller_is_a_slice(before: str, after: str) -> None:
    assert_rewritten(before, after, share_concat)
    assert_left_alone(after, share_concat)


def shared(lines: str, concatenations: int = 1) -> str:
    """A program after the rewrite, in which so many concatenations share a larger one's buffer."""
    after, matched = rewritten(program(lines), share_concat)
    assert matched == [concatenations]
    return after


def test_the_one_of_most_parts_takes_all_that_it_can() -> None:
    """Value a is a run of both of the larger ones, and goes to the larger; c has nothing left to share with."""
    text = shared("main p:1 q:1 r:1\na = concat 0 q r\nb = concat 0 p q r p\nc = concat 0 q r q\nreturn a b c")
    assert "tensor.extract_slice %inserted_slice_2[1] [2] [1] : tensor<4xf32> to tensor<2xf32>" in text
    assert "tensor.concat dim(0) %arg1, %arg2, %arg1" in text


def test_a_buffer_does_not_open_long_before_it_is_read() -> None:
    """P is there from the beginning; inserted then, it would keep the buffer alive for all of the time."""
    steps = "\n".join(f"v{n} = mulf v{n - 1} v{n - 1}" for n in range(1, 100))
    text = shared(f"main p:1 v0:1\n{steps}\na = concat 0 p v99\nb = concat 0 p v99 p\nreturn a b")
    assert 50 < text[: text.index("tensor.empty")].count("arith.mulf") < 99


@pytest.mark.parametrize(
    ("reader", "holder"),
    [
        ("| scf.if %k { util.optimization_barrier %a : tensor<2xf32> }\nreturn b", "scf.if"),
        ("| cf.br ^later\n| ^later:\nreturn a b", "cf.br"),
    ],
    ids=["inside a region", "in a later block"],
)
def test_a_reader_elsewhere_gets_its_slice_before_that(reader: str, holder: str) -> None:
    text = shared(f"main p:1 q:1 k:i1\na = concat 0 p q\nb = concat 0 p q p\n{reader}")
    assert text.index("tensor.extract_slice") < text.index(holder)


def test_repeated_doubling_is_not_taken_apart_without_end() -> None:
    """Twelve doublings would be 4,096 parts of one operand."""
    doublings = "\n".join(f"v{n + 1} = concat 0 v{n} v{n}" for n in range(12))
    after, matched = rewritten(program(f"main v0:1\n{doublings}\nreturn v12"), share_concat)
    assert 0 < matched[0] <= 12
    assert len(after.splitlines()) < 1_000


INSIDE = "| scf.if %k {\na = concat 0 p q\n| util.optimization_barrier %a : tensor<4x2xf32>\n| }"
TAIL = ": tensor<2x2xf32> into tensor<4x2xf32>"
OTHER = "b = concat 0 p q p\n"
ALONE = {
    "alone": "a = concat 0 p q",
    "not along the same dimension": "a = concat 0 p q\nb = concat 1 p q p",
    "in a branch": f"{OTHER}{INSIDE}",
    "not all of it is overwritten": f"{OTHER}a = insert p w 0,0\nc = insert q a 2,0",
    "parts that overlap": f"{OTHER}e = empty 4x2\nx = insert q e 2,0\ny = insert t x 0,0\nz = insert p y 0,0",
    "parts that overlap and leave as much out": (
        f"{OTHER}e = empty 6x2\nx = insert p e 0,0\ny = insert q x 1,0\nz = insert p y 4,0"
    ),
    **{
        what: f"{OTHER}e = empty 4x2\n| %a = tensor.insert_slice %p into %e[0, 0] [2, 2] {strides} {TAIL}\n"
        f"| %b2 = tensor.insert_slice %q into %a[{offset}, 0] [2, 2] {strides} {TAIL}"
        for what, offset, strides in (("an offset that is not known", "%i", "[1, 1]"), ("gaps", "1", "[2, 1]"))
    },
}


@pytest.mark.parametrize("what", ALONE)
def test_what_cannot_share_is_left_alone(what: str) -> None:
    assert_left_alone(program(f"main p:2x2 q:2x2 t:3x2 w:5x2 i:index k:i1\n{ALONE[what]}\nreturn"), share_concat)


JOINS = "main p:2x1 q:2x1\n| %x = arith.addf %one, %one : f32\ntwo = concat 1 p q\nthree = concat 1 p q p\n"
BY_ROWS = "1,0 1,0"


def padding(value: str = "zero", sizes: str = BY_ROWS, value_of_three: str = "") -> str:
    """Both concatenations, padded."""
    return f"a = pad two {value} {sizes}\nb = pad three {value_of_three or value} {sizes}\n"


def test_padding_in_a_block_before_the_buffer_stays() -> None:
    """The part p is padded where there is no buffer yet."""
    head, joins = JOINS.split("\n", 1)
    early = f"early = pad p zero {BY_ROWS}\n| cf.br ^later\n| ^later:"
    text = shared(f"{head}\n{early}\n{joins}{padding()}return early a b")
    assert (text.count("tensor.pad"), text.count("linalg.fill")) == (1, 1)


READERS = {
    "only half of the readers add it": f"a = pad two zero {BY_ROWS}\nreturn a three",
    "half of them add another value": padding(value_of_three="one") + "return a b",
    "it is no constant": padding("x") + "return a b",
    "a padded tensor of its own is wanted": padding(sizes=f"{BY_ROWS} nofold") + "return a b",
    "it is along the axis": padding(sizes="0,1 0,1") + "return a b",
}


@pytest.mark.parametrize("why", READERS)
def test_without_a_majority_for_one_constant_padding_the_buffer_has_none(why: str) -> None:
    text = shared(JOINS + READERS[why])
    assert (text.count("tensor.pad"), text.count("linalg.fill")) == (READERS[why].count("= pad"), 0)


def block(n: int, column: str, value: str = "zero") -> str:
    """A family with padding, and a column next<n> that is computed from it."""
    return f"""
      two{n} = concat 1 {column} q
      a{n} = pad two{n} {value} {BY_ROWS}
      three{n} = concat 1 {column} q {column}
      b{n} = pad three{n} {value} {BY_ROWS}
      c{n} = extract a{n} 1,1 2x1
      d{n} = extract b{n} 1,1 2x1
      next{n} = addf c{n} d{n}""".lstrip("\n")


FOLLOWING = {
    "overwrites it before it reads": block(2, "next1"),
    "blocks side by side": block(2, "q"),
    "another padding": block(2, "next1", "one"),
}


@pytest.mark.parametrize(
    ("second", "results", "buffers"),
    [
        *((second, "", 1 if second == block(2, "next1") else 2) for second in FOLLOWING.values()),
        (block(2, "next1"), "b1 three1", 2),
    ],
    ids=[*FOLLOWING, "the buffer is still read"],
)
def test_a_block_that_follows_goes_on_with_the_buffer_if_it_can(second: str, results: str, buffers: int) -> None:
    text = shared(f"main p:2x1 q:2x1\n{block(1, 'p')}\n{second}\nreturn next1 next2 {results}", 2)
    assert text.count("linalg.fill") == buffers
    insertions = re.findall(r"(%\w+) = tensor\.insert_slice %\w+ into (%\w+)", text)
    # The second block's first insertion goes into the state after the first block's three, or into a new buffer.
    assert (insertions[3][1] == insertions[2][0]) == (buffers == 1)


# What is read too early, or of memory that nobody wrote, would show in the numbers.
COMPUTED = [
    *(CHAINS, FLAT, NESTED),
    *(program(JOINS + readers) for readers in READERS.values()),
    *(program(f"main p:2x1 q:2x1\n{block(1, 'p')}\n{second}\nreturn next1 next2 b1") for second in FOLLOWING.values()),
    # Parts come late, stand twice in what is joined, and are joined along another dimension themselves.
    program("""
    main p:2x3 q:1x3 s:1x6
    r = mulf p p
    a = concat 0 q p
    b = addf a a
    c = concat 0 q p b r
    d = concat 0 b r
    f = concat 1 p r
    g = concat 0 f s
    h = concat 0 f s f
    return a b c d g h
    """),
    # Of two parts that are inserted at one place the last one counts.
    program("""
    main p:2x3 q:1x3 r:1x3
    e = empty 3x3
    a = insert p e 0,0
    b = insert r a 2,0
    c = insert q b 2,0
    d = concat 0 p r p
    f = concat 0 p r p q
    return c d f
    """),
    # Along the last of four dimensions, padded before them.
    program("""
    main p:1x2x3x2 q:1x2x3x1
    a = concat 3 p q
    c = pad a zero 0,1,0,0 0,0,2,0
    d = extract c 0,1,0,0 1x2x3x3
    b = concat 3 p q d
    e = pad b zero 0,1,0,0 0,0,2,0
    return c e
    """),
]


@pytest.mark.parametrize("padding", [True, False])
def test_the_results_are_the_same_and_nothing_is_left_to_share(padding: bool) -> None:
    share = partial(share_concat, padding=padding)
    together = Together(COMPUTED, share)
    for text in COMPUTED:
        assert together.agree(text) > [0]
        assert_left_alone(rewritten(text, share)[0], share)


built_block = partial(dense_block, height=10, width=6, channels=8, growth=4)


@pytest.mark.slow
def test_copies_go_memory_goes_down_and_numbers_stay() -> None:
    """Of the harness's own model as it is, with the padding around the shared buffers, and without that."""
    texts = {blocks: lowered(built_block(blocks=blocks), "input") for blocks in (1, 2)}
    texts[0] = rewritten(texts[1], channels_last)[0]  # a part then lies in the buffer with gaps
    counts = {
        1: ((10, 13, 5), (10, 0, 1), (10, 1, 5)),  # dispatches, copies and fills
        2: ((20, 26, 10), (20, 0, 1), (20, 2, 10)),
        0: ((26, 0, 5), (12, 0, 1), (17, 0, 5)),
    }
    for blocks, text in texts.items():
        rewrites = [rewritten(text, partial(share_concat, padding=padding)) for padding in (True, False)]
        assert [matched for _, matched in rewrites] == [[3 * (blocks or 1)]] * 2
        modules = [Program(one) for one in (text, *(after for after, _ in rewrites))]
        assert tuple(module.counts for module in modules) == counts[blocks]
        stock, padded, plain = (module.statistics.transient_bytes or 0 for module in modules)
        assert 0 < padded <= plain < stock
        assert padded <= 0.51 * stock
        before, *after = (module(*random([(1, 8, 10, 6)]))[0].tobytes() for module in modules)
        assert after == [before, before] and any(before)


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
        (f"{TWO}return c d", 2, (4, 2)),
        (f"{HEAD}c = concat 0 u x\nreturn c u", 2, (2, 1)),
        # That tensor does not exist yet when the dispatch runs, so another result would only be another copy.
        (f"{HEAD}c = concat 0 u x\nd = insert u c 2,0\ne = concat 0 y u\nreturn c d e u", 3, (6, 4)),
    ],
    ids=["each update has its own", "all else shares the last", "a tensor made of the result keeps its copy"],
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


SUM = "e = empty {0}\nz = fill zero e\nm = matmul {1} z\n"
OTHERS = {
    "one destination, which IREE places by itself": f"{HEAD}c = concat 0 u x\nreturn c",
    # Equal results of a sum become one, which cannot be stored twice.
    "a sum": f"main x:4x6 y:6x6\n{SUM.format('4x6', 'x y')}c = concat 0 m x\nd = concat 0 x m\nreturn c d",
    "a dispatch of two results": f"{HEAD}v = each addf u x\nw = concat 0 v y\nz = insert u w 0,0\nreturn z v",
    "a target that another dispatch makes of the result": (
        f"{HEAD.replace('y:4x6', 'y:4x6 k:8x4')}{SUM.format('8x6', 'k u')}d = insert u m 0,0\nreturn d"
    ),
}


@pytest.mark.parametrize("what", OTHERS)
def test_other_code_is_left_alone(what: str) -> None:
    assert_left_alone(flow_of(OTHERS[what]), replicate_stores)


@pytest.mark.parametrize(
    ("old", "new"),
    [(r"linalg\.yield %\d+", "linalg.yield %in"), (r"mulf %in, %in_0", "mulf %in, %out")],
    ids=["a mere copy", "reads its init"],
)
def test_code_that_cannot_be_repeated_is_left_alone(old: str, new: str) -> None:
    text, changes = re.subn(old, new, flow_of(f"{TWO}return c d"))
    assert changes
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
