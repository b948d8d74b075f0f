"""ONNX files: what they say of themselves, their graph made static, and their run as a reference.

Exporters compute sizes inside the graph (Shape, Gather, Concat, Reshape), which costs compilers dearly or makes them
fail. A static graph has their values in their place. Larger values stay: a weight that is dequantised stays so.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harness.errors import CaseError, SuiteError, ToolchainError
from harness.models.builder import BuiltOnnx
from harness.models.model import Input
from harness.models.weights import WeightFile

# torch-mlir's ONNX lowerings are written for opset 17 and later; older files import but often fail to compile.
LEAST_OPSET = 17
DTYPES = {
    "FLOAT": "f32",
    "FLOAT16": "f16",
    "BFLOAT16": "bf16",
    "DOUBLE": "f64",
    "BOOL": "i1",
    "INT8": "i8",
    "INT16": "i16",
    "INT32": "i32",
    "INT64": "i64",
}
# Sizes, indices and masks have fewer elements than this; weights have more.
_MOST_ELEMENTS = 4096
_FATAL = 4  # of ONNX Runtime's log
_UNFOLDABLE = frozenset(
    {"Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"}
)
Sizes = tuple[int | None, ...]


@dataclass(frozen=True, kw_only=True)
class OnnxFacts:
    """What an ONNX file says of itself."""

    function: str  # The graph's name, which iree-import-onnx gives to the entry function, whatever characters it has
    opset: int  # Version of the default operator domain; 0 when the file imports none
    inputs: tuple[Input, ...]  # The graph's inputs without initialisers, random, the seed being the position
    unknown_inputs: str  # Why `inputs` is empty although the graph has some, and what to do; else ""
    external_files: tuple[str, ...]  # Files beside it that hold weights, relative to its folder


def read_onnx(path: Path, where: str) -> OnnxFacts:
    """Read an ONNX file's graph, without weights that lie in files beside it."""
    try:
        import onnx
        from onnx.external_data_helper import ExternalDataInfo, uses_external_data
    except ImportError:
        raise ToolchainError(
            f"{where} onnx: the onnx package is missing; run pip install 'iree-base-compiler[onnx]'"
        ) from None
    try:
        proto = onnx.load(str(path), load_external_data=False)
    except Exception as error:
        raise CaseError(
            "model", f"{where} onnx: {path} is no whole ONNX file ({_one_line(error)}); write or download it again"
        ) from None
    if not proto.HasField("graph") or not proto.graph.output:
        raise CaseError("model", f"{where} onnx: {path} holds no ONNX graph; write or download it again")
    inputs = [_described(onnx, value, position) for position, value in enumerate(graph_inputs(proto.graph))]
    unknown = next((value for value in inputs if isinstance(value, str)), "")
    outside = [weight for weight in proto.graph.initializer if uses_external_data(weight)]
    return OnnxFacts(
        function=proto.graph.name,
        opset=next((entry.version for entry in proto.opset_import if entry.domain in ("", "ai.onnx")), 0),
        inputs=() if unknown else tuple(value for value in inputs if isinstance(value, Input)),
        unknown_inputs=unknown,
        external_files=tuple(sorted({ExternalDataInfo(weight).location for weight in outside})),
    )


def graph_inputs(graph: Any) -> list[Any]:
    """A graph's inputs without weights, which old exporters list too; iree-import-onnx drops these."""
    weights = {value.name for value in graph.initializer}
    return [value for value in graph.input if value.name not in weights]


def _described(onnx: Any, value: Any, position: int) -> Input | str:
    """An input as a suite would say it; or why it cannot be told."""
    if value.type.WhichOneof("value") != "tensor_type":
        return f"input {value.name} is not a tensor; export the model with tensors only"
    shape = _sizes(value)
    if shape is None:
        return f"input {value.name} has no shape; give static inputs"
    static = tuple(size for size in shape if size is not None)
    if len(static) < len(shape):
        return f"input {value.name} has the dynamic shape {_text(shape)}; give static inputs"
    element = onnx.TensorProto.DataType.Name(value.type.tensor_type.elem_type)
    if element not in DTYPES:
        advice = f"export the model with one of {', '.join(DTYPES.values())}"
        return f"input {value.name} has the element type {element.lower()}; {advice}"
    return Input(shape=static, dtype=DTYPES[element], seed=position)


def _sizes(value: Any) -> Sizes | None:
    """A tensor's sizes, None for one that is not known; None where even their number is not."""
    tensor = value.type.tensor_type
    if not tensor.HasField("shape"):
        return None
    return tuple(
        dim.dim_value if dim.HasField("dim_value") and dim.dim_value >= 0 else None for dim in tensor.shape.dim
    )


def _text(sizes: Sequence[int | None]) -> str:
    return "x".join("?" if size is None else str(size) for size in sizes) or "a scalar"


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split()).rstrip(".")


def with_static_inputs(model: Any, shapes: Sequence[Sequence[int]], where: str) -> Any:
    """The same model for inputs of these shapes."""
    static = type(model)()
    static.CopyFrom(model)
    graph = static.graph
    _write_shapes(graph, shapes, where)
    del graph.value_info[:]
    for output in graph.output:
        output.type.tensor_type.ClearField("shape")
    inferred = _inferred(static, where)
    while _fold(static, inferred):
        inferred = _inferred(static, where)
    _drop_unused(graph)
    for output, found, stated in zip(graph.output, inferred.graph.output, model.graph.output, strict=True):
        output.CopyFrom(stated if _sizes(found) is None else found)
    return static


def _write_shapes(graph: Any, shapes: Sequence[Sequence[int]], where: str) -> None:
    inputs = graph_inputs(graph)
    if len(inputs) != len(shapes):
        names = ", ".join(value.name for value in inputs)
        raise SuiteError(f"{where} takes {len(inputs)} inputs ({names}), not {len(shapes)}; correct inputs")
    for value, shape in zip(inputs, shapes, strict=True):
        known = _sizes(value)
        known = None if known is None else tuple(size or None for size in known)
        if known is not None and (
            len(known) != len(shape) or any(a not in (None, b) for a, b in zip(known, shape, strict=True))
        ):
            raise SuiteError(
                f"{where}: its input {value.name} is {_text(known)}, which {_text(shape)} does not fit; correct inputs"
            )
        tensor = value.type.tensor_type
        tensor.shape.Clear()
        tensor.shape.SetInParent()
        for size in shape:
            tensor.shape.dim.add().dim_value = size


def _inferred(model: Any, where: str) -> Any:
    """The model with the types of all values that onnx can tell."""
    from onnx import shape_inference

    try:
        return shape_inference.infer_shapes(model, strict_mode=True, data_prop=True)
    except Exception as error:  # its base is RuntimeError in some releases and Exception in others
        raise CaseError(
            "model", f"{where} does not work on inputs of these shapes ({_one_line(error)}); correct inputs"
        ) from None


def _fold(model: Any, inferred: Any) -> bool:
    from onnx import helper, numpy_helper
    from onnx.external_data_helper import uses_external_data
    from onnx.reference import ReferenceEvaluator

    graph, opsets = model.graph, {entry.domain: entry.version for entry in model.opset_import}
    shapes = {weight.name: tuple(weight.dims) for weight in graph.initializer}
    for value in (*inferred.graph.input, *inferred.graph.value_info, *inferred.graph.output):
        sizes = _sizes(value)
        if sizes is not None and None not in sizes:
            shapes[value.name] = sizes
    small = {name for name, shape in shapes.items() if np.prod(shape) <= _MOST_ELEMENTS}
    known = {
        weight.name: numpy_helper.to_array(weight)
        for weight in graph.initializer
        if weight.name in small and not uses_external_data(weight)
    }
    nodes, has_folded = [], False
    for node in graph.node:
        operands = dict(known)
        if node.op_type in ("Shape", "Size"):  # only its operand's shape is looked at
            operands |= {name: np.broadcast_to(np.float32(0), shapes[name]) for name in node.input if name in shapes}
        if not _can_fold(node) or not small.issuperset(node.output) or not {*node.input, ""} <= {*operands, ""}:
            nodes.append(node)
            continue
        given = {name: operands[name] for name in node.input if name}
        values = [np.asarray(value) for value in ReferenceEvaluator(node, opsets=opsets).run(None, given)]
        known.update(zip(node.output, values, strict=True))
        has_folded |= node.op_type != "Constant"
        for name, array in zip(node.output, values, strict=True):
            nodes.append(helper.make_node("Constant", [], [name], value=numpy_helper.from_array(array, name)))
    if has_folded:
        del graph.node[:]
        graph.node.extend(nodes)
    return has_folded


def _can_fold(node: Any) -> bool:
    has_inner_graph = any(attribute.HasField("g") for attribute in node.attribute)
    return node.domain in ("", "ai.onnx") and node.op_type not in _UNFOLDABLE and not has_inner_graph


def _drop_unused(graph: Any) -> None:
    """Remove nodes and weights that no output needs any more; inputs stay."""
    needed = {value.name for value in graph.output}
    kept = []
    for node in reversed(graph.node):
        if needed.intersection(node.output):
            needed.update(_read_by(node))
            kept.append(node)
    weights = [value for value in graph.initializer if value.name in needed]
    for values, left in ((graph.node, kept[::-1]), (graph.initializer, weights)):
        del values[:]
        values.extend(left)


def _read_by(node: Any) -> Iterator[str]:
    yield from node.input
    for attribute in node.attribute:
        for inner in (attribute.g, *attribute.graphs):
            yield from (value.name for value in inner.output)
            for inner_node in inner.node:
                yield from _read_by(inner_node)


def onnxruntime_version() -> str | None:
    """The installed ONNX Runtime's version; None where there is none."""
    try:
        import onnxruntime
    except ImportError:
        return None
    return str(onnxruntime.__version__)


def session_options(threads: int) -> Any:
    """Options of an onnxruntime.InferenceSession of so many threads, which logs nothing: what goes wrong is raised."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = _FATAL
    return options


def run_onnx(path: Path, arrays: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
    """Run an ONNX file once, on one thread of the CPU."""
    try:
        import onnxruntime
    except ImportError:
        raise CaseError(
            "verify", f"{path}: the reference needs ONNX Runtime, which is not installed; run pip install onnxruntime"
        ) from None
    options = session_options(threads=1)
    # The graph as it is written: what its rewriting changes is for the engine that is timed to answer for.
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    try:
        session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        names = [value.name for value in session.get_inputs()]
        if len(names) != len(arrays):
            raise ValueError(f"it takes {len(names)} inputs ({', '.join(names)}), not {len(arrays)}")
        return [np.asarray(value) for value in session.run(None, dict(zip(names, arrays, strict=True)))]
    except Exception as error:  # its exceptions have no common base but this
        version, message = onnxruntime.__version__, _one_line(error)
        raise CaseError(
            "verify", f"{path}: ONNX Runtime {version} cannot run it ({message}); check file and inputs"
        ) from error


# What ONNX Runtime 1.17 and iree-import-onnx both read without an upgrade.
OPSET, IR_VERSION = LEAST_OPSET, 8
ONNX_FLOAT = 1  # f32, as ONNX numbers element types
_ELEMENT_TYPES = {dtype: element for element, dtype in DTYPES.items()}


@dataclass(kw_only=True)
class OnnxGraph:
    """An ONNX graph while it is written; values go by their names."""

    name: str  # Of the graph, and of the entry function that iree-import-onnx makes of it
    inputs: tuple[Input, ...]  # Of the graph, in order; the first is the value `input0`
    _nodes: list[Any] = field(default_factory=list)
    _weights: list[Any] = field(default_factory=list)

    def node(self, kind: str, *inputs: str, **attributes: Any) -> str:
        """Add a node of one result, whose name is given back; "" stands for an optional input that is left out."""
        from onnx import helper

        result = f"v{len(self._nodes)}"
        self._nodes.append(helper.make_node(kind, list(inputs), [result], **attributes))
        return result

    def weight(self, values: NDArray[Any] | Sequence[int] | float) -> str:
        """Add a constant: an array as it is, a number as f32, a sequence of whole numbers as i64."""
        from onnx import numpy_helper

        if not isinstance(values, np.ndarray):
            values = np.asarray(values, dtype=np.float32 if isinstance(values, float) else np.int64)
        name = f"w{len(self._weights)}"
        self._weights.append(numpy_helper.from_array(np.ascontiguousarray(values).reshape(values.shape), name))
        return name

    def gelu(self, x: str) -> str:
        """Add the exact form, by the error function; opset 17 has no node of its own for it."""
        erf = self.node("Erf", self.node("Div", x, self.weight(math.sqrt(2.0))))
        return self.node("Mul", self.node("Mul", x, self.node("Add", erf, self.weight(1.0))), self.weight(0.5))

    def finish(self, *outputs: str) -> bytes:
        """The model, serialised; equal graphs give equal bytes."""
        import onnx
        from onnx import checker, helper, shape_inference

        inputs = [
            helper.make_tensor_value_info(
                f"input{position}", getattr(onnx.TensorProto, _ELEMENT_TYPES[value.dtype]), value.shape
            )
            for position, value in enumerate(self.inputs)
        ]
        results = [helper.make_tensor_value_info(name, onnx.TensorProto.UNDEFINED, None) for name in outputs]
        graph = helper.make_graph(self._nodes, self.name, inputs, results, self._weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION)
        inferred = shape_inference.infer_shapes(model, strict_mode=True, data_prop=True)
        del model.graph.output[:]
        model.graph.output.extend(inferred.graph.output)
        checker.check_model(model)
        return bytes(model.SerializeToString(deterministic=True))


def read_static(file: WeightFile, inputs: tuple[Input, ...], *, outputs: Sequence[str] = ()) -> BuiltOnnx:
    """A package's model for inputs of these shapes, of an opset that IREE imports without an upgrade."""
    import onnx
    from onnx import helper, version_converter

    path = file.locate()
    model = onnx.load(str(path))
    if next(entry.version for entry in model.opset_import if not entry.domain) < OPSET:
        model = version_converter.convert_version(model, OPSET)
    if outputs:
        del model.graph.output[:]
        model.graph.output.extend(
            helper.make_tensor_value_info(name, onnx.TensorProto.UNDEFINED, None) for name in outputs
        )
    static = with_static_inputs(model, [entry.shape for entry in inputs], str(path))
    return BuiltOnnx(onnx=static.SerializeToString(deterministic=True), inputs=inputs)
