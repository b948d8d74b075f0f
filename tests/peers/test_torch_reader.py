"""The reader of ONNX for PyTorch, operation by operation, against ONNX Runtime."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from onnx import helper

from harness.models.onnx_file import run_onnx
from harness.models.onnx_graph import OPSET
from harness.peers.onnx_kinds import MADE, PLAIN, unknown_ops
from harness.peers.peer import Array
from tests.peers.onnx_models import random, write_model

torch = pytest.importorskip("torch")
pytest.importorskip("onnxruntime")

IMAGE = random(2, 4, 5, 6)
WIDE = random(1, 4, 7, 8, seed=3)
MATRIX = random(3, 4, seed=1)
POSITIVE = np.abs(random(3, 4, seed=2)) + np.float32(0.1)
WHOLE = np.array([[7, -7, 3, -9], [2, 5, -4, 8]], np.int64)


def i64(*values: int) -> Array:
    return np.array(values, np.int64)


def f32(*values: float) -> Array:
    return np.array(values, np.float32)


def node_model(
    folder: Path, kind: str, operands: Sequence[Array | None], attributes: dict[str, Any], results: int, opset: int
) -> tuple[Path, list[Array]]:
    """One node in a file: its first operand is given at each call, the others are weights; and the arguments."""
    names = [f"w{place}" if operand is not None else "" for place, operand in enumerate(operands)]
    names[:1] = ["x"] if operands else []
    outputs = [f"y{place}" for place in range(results)]
    arguments = {"x": x} if operands and (x := operands[0]) is not None else {"x": f32(0)}
    weights = {name: value for name, value in zip(names[1:], operands[1:], strict=True) if value is not None}
    node = helper.make_node(kind, names, outputs, **attributes)
    model = write_model(folder, [node], arguments, weights, outputs, opset=opset)
    assert model.onnx is not None
    return model.onnx, list(arguments.values())


def check(
    folder: Path,
    kind: str,
    operands: Sequence[Array | None],
    attributes: dict[str, Any],
    *,
    results: int = 1,
    opset: int = OPSET,
) -> None:
    """PyTorch gives what ONNX Runtime gives."""
    from harness.peers.torch_reader import read_module

    path, arguments = node_model(folder, kind, operands, attributes, results, opset)
    module = read_module(path, [np.zeros_like(argument) for argument in arguments])
    found = module(*(torch.from_numpy(argument) for argument in arguments))
    for output, right in zip(found, run_onnx(path, arguments), strict=True):
        assert (tuple(output.shape), output.numpy().dtype) == (right.shape, right.dtype)
        np.testing.assert_allclose(output.numpy(), right, rtol=1e-4, atol=1e-5)


UNARY = ["Abs", "Ceil", "Cos", "Erf", "Exp", "Floor", "Neg", "Reciprocal", "Relu", "Sigmoid", "Sin", "Tanh"]
BINARY = ["Add", "Sub", "Mul", "Div", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Equal", "Max", "Min"]


@pytest.mark.parametrize("kind", [*UNARY, "HardSwish", "Identity", "Dropout", "Sqrt", "Log"])
def test_of_one_operand(kind: str, tmp_path: Path) -> None:
    check(tmp_path, kind, [POSITIVE if kind in ("Sqrt", "Log") else IMAGE], {})


@pytest.mark.parametrize("kind", BINARY)
@pytest.mark.parametrize("shape", [(4, 1, 6), (), (2, 4, 5, 6)], ids=str)
def test_two_operands_broadcast(kind: str, shape: tuple[int, ...], tmp_path: Path) -> None:
    check(tmp_path, kind, [IMAGE, np.asarray(random(*shape, seed=7))], {})


@pytest.mark.parametrize("kind", ["Add", "Sub", "Mul", "Div", "Max", "Less"])
def test_whole_numbers_stay_whole_and_are_cut_as_in_c(kind: str, tmp_path: Path) -> None:
    check(tmp_path, kind, [WHOLE, i64(2)], {})


TRUE = np.array([[True, False, True, False], [True, True, False, False]])

POINTWISE: list[tuple[str, list[Array | None], dict[str, Any]]] = [
    ("And", [TRUE, TRUE[:1]], {}),
    ("Or", [TRUE, TRUE[:1]], {}),
    ("Not", [TRUE], {}),
    ("Where", [TRUE, MATRIX[:2], MATRIX[2]], {}),
    ("Pow", [MATRIX, f32(2)], {}),
    ("Pow", [POSITIVE, POSITIVE[0]], {}),
    ("Clip", [MATRIX, np.float32(-0.5), np.float32(0.25)], {}),
    ("Clip", [MATRIX, None, np.float32(0.25)], {}),
    ("Clip", [MATRIX], {}),
    ("Elu", [MATRIX], {"alpha": 0.7}),
    ("LeakyRelu", [MATRIX], {"alpha": 0.2}),
    ("LeakyRelu", [MATRIX], {}),
    ("PRelu", [IMAGE, random(4, 1, 1)], {}),
    ("PRelu", [random(2, 4, 4, 4), random(4, 1, 1)], {}),
    ("PRelu", [random(2, 4, 4, 4), random(4)], {}),
    ("PRelu", [MATRIX, f32(0.3)], {}),
    ("HardSigmoid", [MATRIX], {}),
    ("HardSigmoid", [MATRIX], {"alpha": 1 / 6, "beta": 0.5}),
    ("Softmax", [IMAGE], {}),
    ("Softmax", [IMAGE], {"axis": 1}),
    ("LayerNormalization", [IMAGE, random(6), random(6, seed=1)], {}),
    ("LayerNormalization", [IMAGE, random(5, 6)], {"axis": 2, "epsilon": 1e-3}),
    ("MatMul", [IMAGE, random(6, 3)], {}),
    ("Gemm", [MATRIX, random(4, 2), random(2)], {}),
    ("Gemm", [MATRIX, random(5, 3)], {"transA": 1, "transB": 1, "alpha": 0.5}),
    ("Gemm", [MATRIX, random(2, 4), random(3, 1)], {"transB": 1, "alpha": 2.0, "beta": 0.5}),
    ("ReduceMean", [IMAGE], {"axes": [2, -1]}),
    ("ReduceMean", [IMAGE], {"axes": [1], "keepdims": 0}),
    ("ReduceL2", [IMAGE], {"axes": [1]}),
    ("ReduceMax", [IMAGE], {}),
    ("ReduceMin", [IMAGE], {"axes": [0], "keepdims": 0}),
    ("ReduceSum", [IMAGE, i64(1, 3)], {}),
    ("ReduceSum", [WHOLE, i64(1)], {"keepdims": 0}),
    ("ReduceSum", [MATRIX], {"noop_with_empty_axes": 1}),
    ("ReduceSum", [MATRIX], {}),
]

SHAPES: list[tuple[str, list[Array | None], dict[str, Any]]] = [
    ("Cast", [MATRIX * 5], {"to": 7}),
    ("Cast", [WHOLE], {"to": 1}),
    ("Cast", [WHOLE], {"to": 9}),
    ("Concat", [IMAGE, random(2, 3, 5, 6), random(2, 1, 5, 6)], {"axis": 1}),
    ("Concat", [MATRIX, MATRIX], {"axis": -1}),
    ("DepthToSpace", [random(2, 12, 3, 4)], {"blocksize": 2}),
    ("DepthToSpace", [random(2, 12, 3, 4)], {"blocksize": 2, "mode": "CRD"}),
    ("Expand", [random(3, 1), i64(2, 1, 4)], {}),
    ("Flatten", [IMAGE], {}),
    ("Flatten", [IMAGE], {"axis": 0}),
    ("Flatten", [IMAGE], {"axis": -1}),
    ("Gather", [MATRIX, np.array([[0, -1], [2, 1]])], {}),
    ("Gather", [MATRIX, np.array(1)], {"axis": 1}),
    ("Gather", [IMAGE, i64(3, 0)], {"axis": -3}),
    ("Pad", [IMAGE, i64(0, 0, 1, 2, 0, 0, 3, 0), np.float32(0.5)], {}),
    ("Pad", [IMAGE, i64(1, 0, 0, 0, 0, 2, 0, -1)], {}),
    ("Pad", [IMAGE, i64(0, 0, 1, 2, 0, 0, 3, 0)], {"mode": "reflect"}),
    ("Pad", [IMAGE, i64(0, 0, 0, 2, 0, 0, 0, 1)], {"mode": "edge"}),
    ("Pad", [random(2, 3, 9), i64(0, 0, 4, 0, 0, 3)], {"mode": "reflect"}),
    ("Reshape", [IMAGE, i64(0, -1, 3)], {}),
    ("Reshape", [IMAGE, i64(2, 2, 2, 5, 6)], {}),
    ("Slice", [IMAGE, i64(1), i64(3), i64(1)], {}),
    ("Slice", [IMAGE, i64(0, -3), i64(2**62, -1), i64(2, -1), i64(2, 1)], {}),
    ("Slice", [MATRIX, i64(-1), i64(-(2**62)), i64(1), i64(-2)], {}),
    ("Slice", [MATRIX, i64(1, 0), i64(2, 4)], {}),
    ("Slice", [MATRIX, i64(3), i64(1), i64(1)], {}),
    ("Squeeze", [random(1, 3, 1, 2), i64(-2)], {}),
    ("Squeeze", [random(1, 3, 1, 2)], {}),
    ("Tile", [MATRIX, i64(2, 3)], {}),
    ("Transpose", [IMAGE], {"perm": [0, 2, 3, 1]}),
    ("Transpose", [IMAGE], {}),
    ("Unsqueeze", [MATRIX, i64(0, -1)], {}),
    ("Unsqueeze", [MATRIX, i64(3, 1)], {}),
]

WINDOWS: list[tuple[str, list[Array | None], dict[str, Any]]] = [
    ("Conv", [IMAGE, random(3, 4, 3, 3), random(3)], {"pads": [1, 1, 1, 1]}),
    ("Conv", [IMAGE, random(8, 1, 3, 2)], {"group": 4, "strides": [2, 1], "dilations": [1, 2]}),
    ("Conv", [IMAGE, random(3, 4, 2, 3)], {"pads": [0, 1, 1, 2]}),
    ("Conv", [WIDE, random(3, 4, 3, 3)], {"auto_pad": "SAME_UPPER", "strides": [2, 2]}),
    ("Conv", [WIDE, random(3, 4, 2, 2)], {"auto_pad": "SAME_LOWER"}),
    ("Conv", [WIDE, random(3, 4, 2, 2)], {"auto_pad": "VALID"}),
    ("Conv", [random(1, 2, 9), random(3, 2, 4), random(3)], {"strides": [2]}),
    ("ConvTranspose", [IMAGE, random(4, 3, 2, 2), random(3)], {"strides": [2, 2]}),
    ("ConvTranspose", [IMAGE, random(4, 3, 3, 3)], {"strides": [2, 2], "pads": [1] * 4, "output_padding": [1, 1]}),
    ("ConvTranspose", [IMAGE, random(4, 1, 3, 3)], {"strides": [2, 3], "pads": [0, 1, 1, 2], "group": 2}),
    ("MaxPool", [IMAGE], {"kernel_shape": [2, 2], "strides": [2, 2]}),
    ("MaxPool", [IMAGE], {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1], "ceil_mode": 1}),
    ("MaxPool", [IMAGE], {"kernel_shape": [2, 3], "pads": [0, 1, 1, 2]}),
    ("MaxPool", [WIDE], {"kernel_shape": [2, 2], "auto_pad": "SAME_UPPER", "strides": [2, 2]}),
    ("AveragePool", [IMAGE], {"kernel_shape": [2, 2]}),
    ("AveragePool", [IMAGE], {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}),
    ("AveragePool", [IMAGE], {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "count_include_pad": 1}),
    ("AveragePool", [IMAGE], {"kernel_shape": [3, 2], "pads": [0, 1, 1, 0]}),
    ("AveragePool", [IMAGE], {"kernel_shape": [3, 2], "pads": [0, 1, 1, 0], "count_include_pad": 1}),
    ("GlobalAveragePool", [IMAGE], {}),
    ("GlobalMaxPool", [IMAGE], {}),
    ("BatchNormalization", [IMAGE, random(4), random(4, seed=1), random(4, seed=2), np.abs(random(4))], {}),
    (
        "Resize",
        [IMAGE, None, f32(1, 1, 2, 3)],
        {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"},
    ),
    ("Resize", [IMAGE, None, f32(1, 1, 2, 2)], {}),
    ("Resize", [IMAGE, None, None, i64(2, 4, 10, 18)], {}),
    ("Resize", [IMAGE, None, f32(1, 1, 2, 1.5)], {"mode": "linear"}),
    ("Resize", [IMAGE, None, None, i64(2, 4, 3, 4)], {"mode": "linear"}),
    (
        "Resize",
        [IMAGE, None, None, i64(2, 4, 9, 11)],
        {"mode": "linear", "coordinate_transformation_mode": "align_corners"},
    ),
]


@pytest.mark.parametrize(("kind", "operands", "attributes"), [*POINTWISE, *SHAPES, *WINDOWS])
def test_an_operation(kind: str, operands: list[Array | None], attributes: dict[str, Any], tmp_path: Path) -> None:
    check(tmp_path, kind, [None if value is None else np.asarray(value) for value in operands], attributes)


def test_splits(tmp_path: Path) -> None:
    check(tmp_path, "Split", [IMAGE, i64(1, 3)], {"axis": 1}, results=2)
    check(tmp_path, "Split", [IMAGE], {"axis": -1}, results=3)


@pytest.mark.parametrize(
    ("kind", "operands", "attributes", "opset"),
    [
        ("Squeeze", [random(1, 3, 1)], {"axes": [0]}, 11),
        ("Unsqueeze", [MATRIX], {"axes": [1]}, 11),
        ("ReduceSum", [IMAGE], {"axes": [1]}, 11),
        ("ReduceMean", [IMAGE, i64(2, 3)], {}, 18),
        ("Softmax", [IMAGE], {}, 11),
        ("Gelu", [MATRIX], {}, 20),
        ("Gelu", [MATRIX], {"approximate": "tanh"}, 20),
    ],
)
def test_other_opsets_say_it_in_other_ways(
    kind: str, operands: list[Array | None], attributes: dict[str, Any], opset: int, tmp_path: Path
) -> None:
    check(tmp_path, kind, operands, attributes, opset=opset)


def test_shapes_are_computed_while_reading(tmp_path: Path) -> None:
    """Only one operation of these needs the argument's values; the others follow from its shape."""
    from harness.peers.torch_reader import read_module

    text = """<ir_version: 8, opset_import: ["": 17]>
    graph (float[3, 2, 4, 2] x) => (float[] y, int64[] counted, float[] zeros) {
        shape = Shape(x)
        two = Constant<value_ints=[2]>()
        three = Constant<value_ints=[3]>()
        start = Constant<value=int64 {0}>()
        step = Constant<value_int=1>()
        batch = Gather(shape, start)
        height = Slice(shape, two, three)
        half = Div(height, two)
        rest = Constant<value_ints=[-1]>()
        wanted = Concat<axis=0>(half, rest)
        y = Reshape(x, wanted)
        counted = Range(start, batch, step)
        zeros = ConstantOfShape(half)
    }"""
    x, path = random(3, 2, 4, 2), tmp_path / "model.onnx"
    onnx.save(onnx.parser.parse_model(text), str(path))
    module = read_module(path, [x])
    found = module(torch.from_numpy(x))
    for output, right in zip(found, run_onnx(path, [x]), strict=True):
        np.testing.assert_array_equal(output.numpy(), right)
    assert len(module.steps) == 1, "the Reshape"


@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(start=st.integers(-9, 9), end=st.integers(-9, 9), step=st.sampled_from([-3, -2, -1, 1, 2, 3]))
def test_slices_begin_and_end_anywhere(start: int, end: int, step: int, tmp_path: Path) -> None:
    check(tmp_path, "Slice", [random(7, 2), i64(start), i64(end), i64(0), i64(step)], {})


@pytest.mark.parametrize(
    ("kind", "operands", "attributes", "reason"),
    [
        ("Resize", [IMAGE, None, f32(1, 1, 2, 2)], {"mode": "cubic"}, "Resize with mode 'cubic' is not known"),
        ("Resize", [IMAGE, None, f32(1, 2, 1, 1)], {}, "Resize of other dimensions"),
        ("Resize", [IMAGE, None, f32(1, 1, 1.5, 1)], {}, "nearest Resize with half_pixel and round_prefer_floor"),
        ("Cast", [MATRIX], {"to": 8}, "Cast to element type 8"),
        ("Pad", [IMAGE, i64(*[1] * 8)], {"mode": "wrap"}, "Pad with mode 'wrap'"),
    ],
)
def test_forms_that_the_reader_does_not_know(
    kind: str, operands: list[Array | None], attributes: dict[str, Any], reason: str, tmp_path: Path
) -> None:
    from harness.peers.torch_reader import read_module

    opset = 19 if kind == "Pad" else OPSET
    path, arguments = node_model(tmp_path, kind, operands, attributes, 1, opset)
    with pytest.raises(ValueError, match=reason):
        read_module(path, arguments)


def test_every_operation_is_tested_and_the_others_are_named() -> None:
    tested = {kind for kind, _, _ in [*POINTWISE, *SHAPES, *WINDOWS]} | {*UNARY, *BINARY}
    tested |= {"HardSwish", "Identity", "Dropout", "Sqrt", "Log", "Split", "Gelu"}
    tested |= {"Shape", "Constant", "Range", "ConstantOfShape"}
    assert tested == {*PLAIN, *MADE}
    nodes = [helper.make_node(kind, [], []) for kind in ("Relu", "NonZero")]
    assert list(unknown_ops(nodes)) == ["NonZero"]
