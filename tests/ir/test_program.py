"""The work of programs: single operations, calls and loops, and sizes that follow from the inputs."""

import pytest

from harness.ir.sizes import Unknown
from tests.ir.conftest import work
from tests.programs import program


@pytest.mark.parametrize(
    ("lines", "operations", "elements"),
    [
        # Zeros are written in place of the sums that a product begins with: they are not read.
        ("main a:8x16 b:16x4\ne = empty 8x4\nz = fill zero e\ny = matmul a b z",
         2 * 8 * 16 * 4, 8 * 16 + 16 * 4 + 8 * 4),
        # A convolution reads what its window reaches, and a pooling has a window of no values.
        ("main a:1x3x9x9 b:5x3x3x3\ny = conv a b strides=2,2", 2 * 5 * 4 * 4 * 3 * 3 * 3, 3 * 9 * 9 + 5 * 27 + 5 * 16),
        ("main a:1x2x8x8\nw = empty 2x2\ny = conv a w named=pooling_nchw_max strides=2,2",
         2 * 4 * 4 * 4, 2 * 8 * 8 + 2 * 4 * 4),
    ],
    ids=["matrix product", "convolution", "pooling"],
)  # fmt: skip
def test_contractions(lines: str, operations: int, elements: int) -> None:
    found = work(program(f"{lines}\nreturn y"))
    assert (found.operations, found.integer, found.transcendental, found.uncounted) == (operations, 0, 0, {})
    assert found.footprint_bytes == found.compulsory_bytes == 4 * elements


@pytest.mark.parametrize(
    ("operation", "element", "counted"),
    [
        ("mulf a a", "f32", (10, 0, 0)),
        ("math.fma a a a", "f32", (20, 0, 0)),
        ("math.tanh a", "f32", (10, 0, 10)),
        ("addi a a", "i8", (10, 10, 0)),
        ("maximumf a a", "f16", (10, 0, 0)),
        ("andi a a", "i32", (0, 0, 0)),
    ],
)
def test_the_arithmetic_of_a_body(operation: str, element: str, counted: tuple[int, int, int]) -> None:
    found = work(program(f"main a:10\ny = each {operation}\nreturn y", element))
    assert (found.operations, found.integer, found.transcendental) == counted
    assert found.uncounted == {}


def test_an_operation_that_is_not_known_is_listed_and_not_taken_for_nothing() -> None:
    unknown = '"other.smooth"(%a) : (tensor<10xf32>) -> tensor<10xf32>'
    found = work(program(f"main a:10\nb:10 = | {unknown}\nc = each math.absf b\nreturn c"))
    assert found.uncounted == {"other.smooth": 1}
    assert found.operations == 10
    assert found.footprint_bytes == 4 * 4 * 10


def test_a_softmax_is_spelt_out() -> None:
    kind = "tensor<4x8xf32>"
    softmax = f"linalg.softmax dimension(1) ins(%a : {kind}) outs(%e : {kind}) -> {kind}"
    found = work(program(f"main a:4x8\ne = empty 4x8\nb:4x8 = | {softmax}\nreturn b"))
    assert (found.operations, found.transcendental) == (5 * 32, 32)


def test_an_attention_is_spelt_out() -> None:
    text = program("""
    main q:2x4x16 k:2x8x16 v:2x8x3
    c = constant 0.25
    e = empty 2x4x3
    b:2x4x3 = | "iree_linalg_ext.attention"(%q, %k, %v, %c, %e) <{indexing_maps = [
    | affine_map<(b, m, n, d, k) -> (b, m, d)>, affine_map<(b, m, n, d, k) -> (b, k, d)>,
    | affine_map<(b, m, n, d, k) -> (b, k, n)>, affine_map<(b, m, n, d, k) -> ()>,
    | affine_map<(b, m, n, d, k) -> (b, m, n)>], operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 1>}> ({
    | ^bb0(%score: f32):
    | iree_linalg_ext.yield %score : f32
    | }) : (tensor<2x4x16xf32>, tensor<2x8x16xf32>, tensor<2x8x3xf32>, f32, tensor<2x4x3xf32>) -> tensor<2x4x3xf32>
    return b
    """)
    scores = 2 * 4 * 8  # heads, queries, keys; queries have 16 elements and values 3
    found = work(text)
    assert (found.operations, found.transcendental) == (2 * scores * (16 + 3) + 6 * scores, scores)


def test_moves_cost_bytes_and_no_arithmetic() -> None:
    found = work(program("main a:4x4\np = pad a zero 1,1 1,1\nc = concat 1 p p\nreturn c"))
    assert (found.operations, found.uncounted) == (0, {})
    assert found.footprint_bytes == 4 * (16 + 36 + 2 * 36 + 72)


def test_a_table_is_read_where_it_is_looked_up() -> None:
    text = program("""
    main table:1000x8 rows:tensor<5xi32>
    e = empty 5x8
    b:5x8 = | linalg.generic {indexing_maps = [affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i, j)>],
    | iterator_types = ["parallel", "parallel"]} ins(%rows : tensor<5xi32>) outs(%e : tensor<5x8xf32>) {
    | ^bb0(%row: i32, %out: f32):
    | %at = arith.index_cast %row : i32 to index
    | %column = linalg.index 1 : index
    | %value = tensor.extract %table[%at, %column] : tensor<1000x8xf32>
    | linalg.yield %value : f32
    | } -> tensor<5x8xf32>
    return b
    """)
    found = work(text)
    assert found.compulsory_bytes == found.footprint_bytes == 4 * (5 * 8 + 5 + 5 * 8)


TENSOR = "tensor<10xf32>"


@pytest.mark.parametrize(
    ("lines", "operations", "tensors"),
    [
        # What depends on constants only is the compiler's work: the argument, the weights, the result.
        ("w = random 10\nb = each math.exp w\nc = addf a b\nreturn c", 10, 3),
        # One value everywhere takes no memory.
        (f"b:10 = | arith.constant dense<2.0> : {TENSOR}\nc = mulf a b\nreturn c", 10, 2),
        # What nobody uses is not done.
        ("b = each math.exp a\nc = each math.sin b\nreturn a", 0, 2),
    ],
)
def test_what_a_call_has_to_do(lines: str, operations: int, tensors: int) -> None:
    found = work(program(f"main a:10\n{lines}"))
    assert (found.operations, found.transcendental, found.compulsory_bytes) == (operations, 0, tensors * 40)
    assert found.footprint_bytes == (tensors * 40 if operations else 0)


@pytest.mark.parametrize(
    ("bound", "operations", "unknown"),
    [
        ("| %bound = arith.constant 7 : index", 70, {}),
        ("| %bound = tensor.dim %free, %from : tensor<?xf32>", 30, {}),
        # Unknown: counted once, and named.
        (f"| %value = tensor.extract %a[%from] : {TENSOR}\n| %whole = arith.fptosi %value : f32 to i32\n"
         "| %bound = arith.index_cast %whole : i32 to index", 10, {"scf.for of unknown length": 1}),
    ],
    ids=["known", "follows from a shape", "unknown"],
)  # fmt: skip
def test_the_length_of_a_loop_multiplies(bound: str, operations: int, unknown: dict[str, int]) -> None:
    text = program(f"""
    main a:10 free:tensor<?xf32>
    | %from = arith.constant 0 : index
    | %step = arith.constant 1 : index
    {bound}
    b:10 = | scf.for %i = %from to %bound step %step iter_args(%c = %a) -> ({TENSOR}) {{
    | %d = arith.addf %c, %a : {TENSOR}
    | scf.yield %d : {TENSOR}
    | }}
    return b
    """)
    found = work(text, [10], [3])
    assert (found.operations, found.uncounted) == (operations, unknown)


def test_calls_are_followed_with_their_shapes() -> None:
    text = """
    util.func private @twice(%a: tensor<?xf32>) -> tensor<?xf32> {
      %b = arith.addf %a, %a : tensor<?xf32>
      util.return %b : tensor<?xf32>
    }
    util.func public @main(%a: tensor<?xf32>) -> tensor<?xf32> {
      %b = util.call @twice(%a) : (tensor<?xf32>) -> tensor<?xf32>
      %c = util.call @twice(%b) : (tensor<?xf32>) -> tensor<?xf32>
      util.return %c : tensor<?xf32>
    }
    """
    found = work(text, [6])
    assert (found.operations, found.compulsory_bytes) == (12, 48)


def test_what_cannot_be_known_is_an_error_that_names_it() -> None:
    with pytest.raises(Unknown, match=r"the shape of an argument of type tensor<\?xf32> does not follow"):
        work(program("main a:tensor<?xf32>\nreturn"))
    with pytest.raises(Unknown, match="no function 'other'"):
        work("module {}", entry="other")


DYNAMIC = "tensor<?x?xf32>"
# Of an argument of 4 x 6: how each size %s, or each tensor %b, follows from it.
SIZES = {
    "%s = arith.addi %d0, %d1 : index": 10,
    "%s = arith.ceildivsi %d1, %d0 : index": 2,
    "%s = affine.apply affine_map<(d0)[s0] -> (d0 * 2 + s0 floordiv 4)>(%d0)[%d1]": 9,
    "%less = arith.cmpi slt, %d0, %d1 : index\n%s = arith.select %less, %d0, %d1 : index": 4,
}
TENSORS = {
    f"%b = tensor.cast %a : {DYNAMIC} to {DYNAMIC}": 24,
    f"%b = tensor.extract_slice %a[0, 1] [%d0, 2] [1, 1] : {DYNAMIC} to tensor<?x2xf32>": 8,
    "%p = arith.constant 0.5 : f32\n"
    "%b = tensor.pad %a low[1, 0] high[%d0, 0] { ^bb0(%i: index, %j: index): tensor.yield %p : f32 } "
    f": {DYNAMIC} to {DYNAMIC}": 54,
    f"%b = tensor.concat dim(0) %a, %a : ({DYNAMIC}, {DYNAMIC}) -> {DYNAMIC}": 48,
    f"%f = tensor.collapse_shape %a [[0, 1]] : {DYNAMIC} into tensor<?xf32>\n"
    "%two = arith.constant 2 : index\n%all = arith.muli %d0, %d1 : index\n%s = arith.divui %all, %two : index\n"
    "%b = tensor.expand_shape %f [[0, 1]] output_shape [%s, 2] : tensor<?xf32> into tensor<?x2xf32>": 24,
    **{f"{size}\n%b = tensor.empty(%s, %d1) : {DYNAMIC}": 6 * elements for size, elements in SIZES.items()},
}


@pytest.mark.parametrize("lines", TENSORS)
def test_shapes_follow_from_the_arguments(lines: str) -> None:
    kind = lines.rpartition(" ")[2]
    dims = "\n".join(f"%c{n} = arith.constant {n} : index\n%d{n} = tensor.dim %a, %c{n} : {DYNAMIC}" for n in (0, 1))
    text = f"""func.func @main(%a: {DYNAMIC}) -> {kind} {{
      {dims}
      {lines}
      %c = util.optimization_barrier %b : {kind}
      %d = arith.addf %c, %c : {kind}
      return %d : {kind}
    }}"""
    assert work(text, [4, 6]).operations == TENSORS[lines]


def test_buffer_views_have_the_shapes_of_the_arguments() -> None:
    text = """
    util.func public @main(%view: !hal.buffer_view) -> !hal.buffer_view {
      %d = hal.buffer_view.dim<%view : !hal.buffer_view>[0] : index
      %a = hal.tensor.import %view "input" : !hal.buffer_view -> tensor<?x3xf32>{%d}
      %b = arith.addf %a, %a : tensor<?x3xf32>
      %result = hal.tensor.export %b "output" : tensor<?x3xf32>{%d} -> !hal.buffer_view
      util.return %result : !hal.buffer_view
    }
    """
    found = work(text, [5, 3])
    assert (found.operations, found.compulsory_bytes) == (15, 2 * 60)
