"""The evaluator on short programs whose results are known by hand, one for each group of operations."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from iree.compiler import ir

from harness.models.inputs import make_array
from harness.models.language import AttentionParameters, build_attention
from harness.verify.difference import Right, unjudged
from harness.verify.evaluate import evaluate, tolerances
from harness.verify.interpreter import Exported, TooLongError
from harness.verify.rounding import UnsupportedError
from harness.verify.sampled import operand_axes, places
from tests.programs import WEIGHTED, program

MINUTE = 60.0


def outputs_of(text: str, *inputs: Any, files: dict[str, str] | None = None) -> list[Exported]:
    """The outputs of @main, as ensembles."""
    return list(evaluate(text, "main", [np.asarray(value) for value in inputs], files or {}, MINUTE)[0])


def exact(text: str, *inputs: Any) -> list[Any]:
    """The exact values of its outputs, as lists."""
    return [output.values[0].tolist() for output in outputs_of(text, *inputs)]


def floats(*values: float) -> Any:
    return np.array(values, dtype=np.float32)


def generic(body: str, given: str, made: str, init: str, maps: str, iterators: str) -> str:
    """A program of one linalg.generic of %a, whose body makes %r of %x and of %out, what there was."""
    element, result = (shape.split("x")[-1] for shape in (given, made))
    affine = ", ".join(f"affine_map<{map_}>" for map_ in maps.split("; "))
    kinds = ", ".join(f'"{kind}"' for kind in iterators.split())
    return f"""
    func.func @main(%a: tensor<{given}>) -> tensor<{made}> {{
      %e = {init} : tensor<{made}>
      %0 = linalg.generic {{indexing_maps = [{affine}], iterator_types = [{kinds}]}}
          ins(%a : tensor<{given}>) outs(%e : tensor<{made}>) {{
      ^bb0(%x: {element}, %out: {result}):
        {body}
        linalg.yield %r : {result}
      }} -> tensor<{made}>
      return %0 : tensor<{made}>
    }}"""


def elementwise(body: str, kinds: tuple[str, str] = ("f32", "f32"), size: int = 4) -> str:
    given, made = (f"{size}x{kind}" for kind in kinds)
    return generic(body, given, made, "tensor.empty()", "(i) -> (i); (i) -> (i)", "parallel")


def of_two(operation: str, kind: str = "i32") -> str:
    """A region in which two values of i32 give one of this kind."""
    return f"""{{
      ^bb0(%x: i32, %y: i32):
        %r = {operation} %x, %y : i32
        iree_linalg_ext.yield %r : {kind}
      }}"""


def matmul(m: int, k: int, n: int) -> str:
    return program(f"main a:{m}x{k} b:{k}x{n}\ne = empty {m}x{n}\nz = fill zero e\nc = matmul a b z\nreturn c")


# ------------------------------------------------------------------------------------------------------ the interpreter


def test_functions_globals_and_the_interface() -> None:
    text = """
    util.global private mutable @count = dense<[1, 2]> : tensor<2xi32>
    util.func private @twice(%x: tensor<2xi32>) -> tensor<2xi32> {
      %0 = util.global.load @count : tensor<2xi32>
      %y = flow.tensor.transfer %x : tensor<2xi32> to #hal.device.promise<@dev_b>
      util.global.store %y, @count : tensor<2xi32>
      %1 = util.global.load @count : tensor<2xi32>
      util.return %0 : tensor<2xi32>
    }
    util.func public @main(%a: !hal.buffer_view) -> (!hal.buffer_view, !hal.buffer_view) {
      %n = hal.buffer_view.dim<%a : !hal.buffer_view>[1] : index
      %i = arith.index_cast %n : index to i32
      %0 = hal.tensor.import %a : !hal.buffer_view -> tensor<2xi32>
      %1 = util.call @twice(%0) : (tensor<2xi32>) -> tensor<2xi32>
      %2 = util.call @twice(%1) : (tensor<2xi32>) -> tensor<2xi32>
      %3 = tensor.from_elements %i, %i : tensor<2xi32>
      %4 = hal.tensor.export %2 : tensor<2xi32> -> !hal.buffer_view
      %5 = hal.tensor.export %3 : tensor<2xi32> -> !hal.buffer_view
      util.return %4, %5 : !hal.buffer_view, !hal.buffer_view
    }"""
    assert exact(text, np.array([[7, 8]], np.int32)) == [[7, 8], [2, 2]]
    assert evaluate(text, "main", [np.array([[7, 8]], np.int32)], {}, MINUTE).keeps_state
    double = elementwise("%r = arith.addf %x, %x : f32")
    assert not evaluate(double, "main", [floats(1, 2, 3, 4)], {}, MINUTE).keeps_state


def test_parameters_come_from_files(tmp_path: Path) -> None:
    from iree import runtime

    index = runtime.ParameterIndex()
    index.add_buffer("w", floats(1.5, -2.0, 0.0, 7.0).tobytes())
    index.create_archive_file(str(tmp_path / "w.irpa"))
    ones = np.ones(4, np.float32)
    (output,) = outputs_of(WEIGHTED, ones, files={"model": str(tmp_path / "w.irpa")})
    assert output.values[0].tolist() == [2.5, -1.0, 1.0, 8.0]
    with pytest.raises(UnsupportedError, match="scope 'model'"):
        outputs_of(WEIGHTED, ones)


def test_loops_and_branches() -> None:
    text = """
    func.func @main(%n: tensor<i64>) -> (tensor<i64>, tensor<i64>, tensor<i64>) {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %one = arith.constant 1 : i64
      %two = arith.constant 2 : i64
      %x = tensor.extract %n[] : tensor<i64>
      %end = arith.index_cast %x : i64 to index
      %fact = scf.for %i = %c0 to %end step %c1 iter_args(%f = %one) -> (i64) {
        %j = arith.index_cast %i : index to i64
        %k = arith.addi %j, %one : i64
        %m = arith.muli %f, %k : i64
        scf.yield %m : i64
      }
      %power = scf.while (%p = %one) : (i64) -> i64 {
        %less = arith.cmpi slt, %p, %fact : i64
        scf.condition(%less) %p : i64
      } do {
      ^bb0(%p: i64):
        %q = arith.muli %p, %two : i64
        scf.yield %q : i64
      }
      %odd = arith.andi %x, %one : i64
      %is = arith.cmpi eq, %odd, %one : i64
      %if = scf.if %is -> (i64) { scf.yield %one : i64 } else { scf.yield %two : i64 }
      cf.cond_br %is, ^a(%if : i64), ^b
    ^a(%r: i64):
      %0 = tensor.from_elements %fact : tensor<i64>
      %1 = tensor.from_elements %power : tensor<i64>
      %2 = tensor.from_elements %r : tensor<i64>
      return %0, %1, %2 : tensor<i64>, tensor<i64>, tensor<i64>
    ^b:
      cf.br ^a(%two : i64)
    }"""
    assert exact(text, np.int64(5)) == [120, 128, 1]
    assert exact(text, np.int64(4)) == [24, 32, 2]


def test_what_is_not_known_is_named_and_what_takes_too_long_is_refused() -> None:
    never = '%r = arith.addf %x, %x : f32\n%c = arith.constant 0 : i1\ncf.assert %c, "never"'
    for body, reason in (('%r = "some.op"(%x) : (f32) -> f32', "some.op"), (never, "asserts.*never")):
        with pytest.raises(UnsupportedError, match=reason):
            outputs_of(elementwise(body), floats(1.0, 1.0, 1.0, 1.0))
    ones = np.ones((8, 8), np.float32)
    with pytest.raises(TooLongError):
        evaluate(matmul(8, 8, 8), "main", [ones, ones], {}, 0.0)


def test_of_what_takes_too_long_some_places_are_evaluated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.verify.generic_ops.PRODUCT_S", 2e-4)  # so that all of it takes half a minute
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(shape, dtype=np.float32) for shape in ((1024, 8), (8, 8)))
    found = evaluate(matmul(1024, 8, 8), "main", [a, b], {}, 20.0)
    right, allowed = tolerances(found.outputs[0])
    assert found.axes == (0,)
    assert (np.abs(a[places(1024)] @ b - right) <= allowed).all()


def test_what_is_read_where_two_loops_say_is_needed_as_a_whole() -> None:
    maps = "(i, j) -> ((i + j) floordiv 2); (i, j) -> (i, j)"
    text = generic("%r = math.absf %x : f32", "40xf32", "40x40xf32", "tensor.empty()", maps, "parallel parallel")
    with ir.Context():
        module = ir.Module.parse(text)
        _, reader, _ = module.body.operations[0].regions[0].blocks[0].operations
        assert operand_axes(ir, reader.operation, 0) is None


# --- tensors ---


def test_slices_inserts_pads_and_shapes() -> None:
    text = """
    main a:2x3
    c9 = constant 9
    | %c1 = arith.constant 1 : index
    part = extract a 0,0 2x2 1,2
    z:3x3 = | tensor.splat %c9 : tensor<3x3xi32>
    inserted:3x3 = | tensor.insert_slice %part into %z[%c1, 0] [2, 2] [1, 1] : tensor<2x2xi32> into tensor<3x3xi32>
    padded = pad a c9 1,0 0,2
    flat:6 = | tensor.collapse_shape %a [[0, 1]] : tensor<2x3xi32> into tensor<6xi32>
    changed:6 = | tensor.insert %c9 into %flat[%c1] : tensor<6xi32>
    wide:3x2 = | tensor.expand_shape %changed [[0, 1]] output_shape [3, 2] : tensor<6xi32> into tensor<3x2xi32>
    return part inserted padded wide"""
    assert exact(program(text, "i32"), np.arange(6, dtype=np.int32).reshape(2, 3)) == [
        [[0, 2], [3, 5]],
        [[9, 9, 9], [0, 2, 9], [3, 5, 9]],
        [[9] * 5, [0, 1, 2, 9, 9], [3, 4, 5, 9, 9]],
        [[0, 9], [2, 3], [4, 5]],
    ]


# ------------------------------------------------------------------------------------------------ linalg and linalg_ext


def test_bodies_see_where_they_are_and_outputs_may_have_a_fixed_place() -> None:
    body = """
        %j = linalg.index 1 : index
        %k = arith.index_cast %j : index to i32
        %p = arith.muli %x, %k : i32
        %r = arith.addi %out, %p : i32"""
    maps = "(i, j) -> (i, j); (i, j) -> (i, 0)"
    text = generic(body, "2x3xi32", "2x1xi32", "arith.constant dense<0>", maps, "parallel reduction")
    assert exact(text, np.array([[1, 2, 3], [4, 5, 6]], np.int32)) == [[[8], [17]]]


def test_a_maximum_of_rounded_values_that_starts_from_minus_infinity() -> None:
    """As a softmax in separate operations has it; the start is no edge that both sides of are right."""
    body, maps = "%e1 = math.exp %x : f32\n%r = arith.maximumf %e1, %out : f32", "(i, j) -> (i, j); (i, j) -> (i)"
    text = generic(body, "2x3xf32", "2xf32", "arith.constant dense<0xFF800000>", maps, "parallel reduction")
    values = np.array([[0.1, 0.7, -0.3], [-1.0, -2.0, -3.0]], np.float32)
    right, allowed = tolerances(outputs_of(text, values)[0])
    assert np.allclose(right, np.exp(values.astype(float)).max(axis=1), rtol=1e-7)
    assert (allowed < 1e-4).all()


@pytest.mark.parametrize("masked", [False, True])
def test_attention_is_a_softmax_between_two_products(masked: bool) -> None:
    shapes, dims = ["2x4x8xf32", "2x6x8xf32", "2x6x3xf32"], ["b, m, k", "b, l, k", "b, l, n", ""]
    if masked:
        shapes, dims = [*shapes, "4x6xi1"], [*dims, "m, l"]
    maps = ", ".join(f"affine_map<(b, m, n, k, l) -> ({to})>" for to in [*dims, "b, m, n"])
    kinds = [f"tensor<{shape}>" for shape in shapes]
    text = f"""
    func.func @main({", ".join(f"%a{at}: {kind}" for at, kind in enumerate(kinds))}) -> tensor<2x4x3xf32> {{
      %s = arith.constant 0.5 : f32
      %e = tensor.empty() : tensor<2x4x3xf32>
      %0 = iree_linalg_ext.attention <indexing_maps = [{maps}]>
          ins(%a0, %a1, %a2, %s{", %a3" if masked else ""} : {", ".join([*kinds[:3], "f32", *kinds[3:]])})
          outs(%e : tensor<2x4x3xf32>) {{
      ^bb0(%x: f32):
        iree_linalg_ext.yield %x : f32
      }} -> tensor<2x4x3xf32>
      return %0 : tensor<2x4x3xf32>
    }}"""
    rng = np.random.default_rng(0)
    q, k, v = (rng.standard_normal(shape).astype(np.float32) for shape in ((2, 4, 8), (2, 6, 8), (2, 6, 3)))
    seen = rng.random((4, 6)) > 0.4 if masked else np.ones((4, 6), bool)
    powers = seen * np.exp(0.5 * np.einsum("bmk,blk->bml", q.astype(float), k))
    right, allowed = tolerances(outputs_of(text, q, k, v, *([seen] if masked else []))[0])
    assert np.allclose(right, np.einsum("bml,bln->bmn", powers / powers.sum(axis=-1, keepdims=True), v), rtol=1e-12)
    assert ((allowed > 0) & (allowed < 1e-4)).all()


def test_an_attention_of_wide_heads_is_known_to_be_quick() -> None:
    params = AttentionParameters(heads=4, queries=128, keys=128, depth=256)
    model = build_attention(params)
    assert evaluate(str(model.text), "main", [make_array(value) for value in model.inputs], {}, MINUTE).samples == 9


def test_scatter_arg_compare_sort_and_scan() -> None:
    text = f"""
    func.func @main(%a: tensor<4xi32>, %at: tensor<2x1xi32>, %u: tensor<2xi32>)
        -> (tensor<4xi32>, tensor<i32>, tensor<i64>, tensor<4xi32>, tensor<4xi32>) {{
      %0 = iree_linalg_ext.scatter dimension_map = [0] unique_indices(false)
          ins(%u, %at : tensor<2xi32>, tensor<2x1xi32>) outs(%a : tensor<4xi32>)
          {of_two("arith.addi")} -> tensor<4xi32>
      %ev = tensor.empty() : tensor<i32>
      %ei = tensor.empty() : tensor<i64>
      %1:2 = iree_linalg_ext.arg_compare dimension(0) ins(%a : tensor<4xi32>)
          outs(%ev, %ei : tensor<i32>, tensor<i64>) {of_two("arith.cmpi sgt,", "i1")} -> tensor<i32>, tensor<i64>
      %2 = iree_linalg_ext.sort dimension(0) outs(%a : tensor<4xi32>)
          {of_two("arith.cmpi sle,", "i1")} -> tensor<4xi32>
      %c = arith.constant dense<0> : tensor<i32>
      %ec = tensor.empty() : tensor<4xi32>
      %3:2 = iree_linalg_ext.scan dimension(0) inclusive(true) ins(%a : tensor<4xi32>)
          outs(%ec, %c : tensor<4xi32>, tensor<i32>) {of_two("arith.addi")} -> tensor<4xi32>, tensor<i32>
      return %0, %1#0, %1#1, %2, %3#0 : tensor<4xi32>, tensor<i32>, tensor<i64>, tensor<4xi32>, tensor<4xi32>
    }}"""
    found = exact(text, *(np.array(values, np.int32) for values in ([3, 9, 1, 3], [[2], [2]], [10, 20])))
    assert found == [[3, 9, 31, 3], 9, 1, [1, 3, 3, 9], [3, 12, 13, 16]]


@pytest.mark.parametrize("orders_ties", [False, True])
def test_what_a_sort_takes_for_equal_may_come_in_any_order_unless_the_program_says_so(orders_ties: bool) -> None:
    text = """
    func.func @main(%keys: tensor<5xi32>, %at: tensor<5xi32>) -> (tensor<5xi32>, tensor<5xi32>) {
      %0:2 = iree_linalg_ext.sort dimension(0) outs(%keys, %at : tensor<5xi32>, tensor<5xi32>) {
      ^bb0(%x: i32, %y: i32, %i: i32, %j: i32):
        %g = arith.cmpi slt, %x, %y : i32
        iree_linalg_ext.yield %g : i1
      } -> tensor<5xi32>, tensor<5xi32>
      return %0#0, %0#1 : tensor<5xi32>, tensor<5xi32>
    }"""
    inputs = [np.array(values, np.int32) for values in ([2, 1, 2, 0, 2], [0, 10, 20, 30, 40])]
    outputs = evaluate(text, "main", inputs, {}, MINUTE, orders_ties=orders_ties).outputs
    (keys, keys_allowed), (places, places_allowed) = (tolerances(output) for output in outputs)
    assert (keys.tolist(), places.tolist()) == ([0, 1, 2, 2, 2], [30, 10, 0, 20, 40])
    assert not keys_allowed.any()
    assert (places_allowed > 20).tolist() == [False, False, *[not orders_ties] * 3]


def test_a_pack_fills_whole_tiles_and_an_unpack_leaves_the_filling_out() -> None:
    text = """
    func.func @main(%a: tensor<5x7xf32>) -> (tensor<2x3x4x2xf32>, tensor<5x7xf32>) {
      %one = arith.constant 1.0 : f32
      %e = tensor.empty() : tensor<2x3x4x2xf32>
      %f = tensor.empty() : tensor<5x7xf32>
      %0 = linalg.pack %a padding_value(%one : f32) outer_dims_perm = [1, 0] inner_dims_pos = [1, 0]
          inner_tiles = [4, 2] into %e : tensor<5x7xf32> -> tensor<2x3x4x2xf32>
      %1 = linalg.unpack %0 outer_dims_perm = [1, 0] inner_dims_pos = [1, 0]
          inner_tiles = [4, 2] into %f : tensor<2x3x4x2xf32> -> tensor<5x7xf32>
      return %0, %1 : tensor<2x3x4x2xf32>, tensor<5x7xf32>
    }"""
    a = np.arange(35.0, dtype=np.float32).reshape(5, 7)
    whole = np.pad(a, ((0, 1), (0, 1)), constant_values=1.0)
    assert exact(text, a) == [whole.reshape(3, 2, 2, 4).transpose(2, 0, 3, 1).tolist(), a.tolist()]


# ---------------------------------------------------------------------------------------------------------- tolerances


def test_one_wrong_element_is_seen_and_a_product_in_another_order_is_right() -> None:
    rng = np.random.default_rng(1)
    a, b = (rng.standard_normal(shape).astype(np.float32) for shape in ((32, 256), (256, 32)))
    right, allowed = tolerances(outputs_of(matmul(32, 256, 32), a, b)[0])
    turned = (a[:, ::-1] @ b[::-1]).astype(np.float64)
    assert (np.abs(turned - right) <= allowed).all()
    turned[3, 5] -= float(a[3, 7]) * float(b[7, 5])
    assert np.argwhere(np.abs(turned - right) > allowed).tolist() == [[3, 5]]
    a, b = np.rint(a), np.rint(b)
    right, allowed = tolerances(outputs_of(matmul(32, 256, 32), a, b)[0])
    assert (right == a @ b).all() and not allowed.any(), "integer-valued programs have no tolerance"


def test_cancellation_gives_more_and_floor_a_step_at_its_edges_only() -> None:
    third = "%c = arith.constant 3.0 : f32\n%d = arith.divf %x, %c : f32\n"
    values = floats(1.0, 2.0, 4.0, 5.0)
    plain = tolerances(outputs_of(elementwise(third + "%r = arith.addf %d, %x : f32"), values)[0])[1]
    one = "%one = arith.constant 333333.34 : f32\n%big = arith.addf %d, %one : f32\n"
    cancelled = tolerances(outputs_of(elementwise(third + one + "%r = arith.subf %big, %one : f32"), values)[0])[1]
    assert (cancelled > 1000 * plain).all()
    floor = third + "%t = arith.mulf %d, %c : f32\n%r = math.floor %t : f32"
    right, allowed = tolerances(outputs_of(elementwise(floor), floats(1.0, 2.5, 3.0, 5.0))[0])
    assert right.tolist() == [1.0, 2.0, 3.0, 5.0]
    assert (allowed >= [1.0, 0.0, 0.0, 1.0]).all()
    assert allowed[1] == 0.0


def test_small_elements_beside_large_ones_keep_a_tolerance_of_their_own_and_the_smallest_may_be_zero() -> None:
    values = floats(1e-6, 2e-6, 1.0, 10.0, 20.0, 40.0, 60.0, 80.0)
    right, allowed = tolerances(outputs_of(elementwise("%r = math.sinh %x : f32", size=8), values)[0])
    assert (allowed < 1e-5 * right).all()
    tiny = floats(1e-40, 2e-40, 1.0, 4.0)
    allowed = tolerances(outputs_of(elementwise("%r = math.sqrt %x : f32"), tiny)[0])[1]
    assert (allowed >= [1e-20, 1.4e-20, 0.0, 0.0]).all()
    assert (allowed[2:] < 1e-5).all()
    assert np.isinf(tolerances(outputs_of(elementwise("%r = math.log %x : f32"), tiny)[0])[1][:2]).all()


def test_numbers_that_an_integer_cannot_hold() -> None:
    for kind, beyond in (("i32", 3e9), ("i8", 300.0)):
        text = elementwise(f"%r = arith.fptosi %x : f32 to {kind}", ("f32", kind))
        right, allowed = tolerances(outputs_of(text, floats(1.0, -128.0, beyond, 127.5))[0])
        assert (allowed > 0).tolist() == [False, False, True, False]
        said = unjudged(Right(source="", outputs=[right], allowed=[allowed]))
        assert said.startswith("not judged: 1 of 4 values of output 0, for which the program allows anything")


@pytest.mark.parametrize(("kind", "point"), [("f32", ".0"), ("i32", "")])
def test_what_is_read_beyond_a_tensor_is_anything(kind: str, point: str) -> None:
    own = f"""
        %own = arith.constant dense<[5{point}, 6{point}]> : tensor<2x{kind}>
        %i = arith.index_cast %x : i64 to index
        %r = tensor.extract %own[%i] : tensor<2x{kind}>"""
    right, allowed = tolerances(outputs_of(elementwise(own, ("i64", kind), size=3), np.array([1, 7, 0]))[0])
    assert (right[0], right[2]) == (6, 5)
    assert (allowed[0], allowed[2]) == (0, 0)
    assert "1 of 3 values" in unjudged(Right(source="", outputs=[right], allowed=[allowed]))
