"""ONNX files: what they say of themselves, their graph made static, their import, and their run as a reference.

Exporters compute sizes inside the graph, from the sizes of its inputs (Shape, Gather, Concat, Reshape). Once the sizes
are known such nodes give constants. Leaving the nodes in costs compilers dearly or makes them fail, so a static graph
has their values in their place, which onnx's own shape inference and reference evaluator give. Larger values stay as
they are: a weight that is dequantised in the graph stays so, since that is what is measured.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harness.errors import CaseError, SuiteError, ToolchainError
from harness.models.model import Input

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
    inputs, unknown = _described_inputs(onnx, proto.graph)
    return OnnxFacts(
        function=proto.graph.name,
        opset=next((entry.version for entry in proto.opset_import if entry.domain in ("", "ai.onnx")), 0),
        inputs=inputs,
        unknown_inputs=unknown,
        external_files=_external_files(onnx, proto.graph),
    )


def graph_inputs(graph: Any) -> list[Any]:
    """A graph's inputs without weights, which old exporters list too; iree-import-onnx drops these."""
    weights = {value.name for value in graph.initializer}
    return [value for value in graph.input if value.name not in weights]


def _described_inputs(onnx: Any, graph: Any) -> tuple[tuple[Input, ...], str]:
    """The inputs as a suite would say them; or none, and why."""
    inputs: list[Input] = []
    for value in graph_inputs(graph):
        if value.type.WhichOneof("value") != "tensor_type":
            return (), f"input {value.name} is not a tensor; export the model with tensors only"
        tensor = value.type.tensor_type
        if not tensor.HasField("shape"):
            return (), f"input {value.name} has no shape; give static inputs"
        sizes = [dim.dim_value if dim.WhichOneof("value") == "dim_value" else None for dim in tensor.shape.dim]
        if any(size is None or size < 0 for size in sizes):
            shape = "x".join("?" if size is None or size < 0 else str(size) for size in sizes)
            return (), f"input {value.name} has the dynamic shape {shape}; give static inputs"
        element = onnx.TensorProto.DataType.Name(tensor.elem_type)
        if element not in DTYPES:
            advice = f"export the model with one of {', '.join(DTYPES.values())}"
            return (), f"input {value.name} has the element type {element.lower()}; {advice}"
        static = tuple(size for size in sizes if size is not None)
        inputs.append(Input(shape=static, dtype=DTYPES[element], seed=len(inputs)))
    return tuple(inputs), ""


def _external_files(onnx: Any, graph: Any) -> tuple[str, ...]:
    files = {
        entry.value
        for weight in graph.initializer
        if weight.data_location == onnx.TensorProto.EXTERNAL
        for entry in weight.external_data
        if entry.key == "location"
    }
    return tuple(sorted(files))


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
        output.CopyFrom(found if found.type.tensor_type.HasField("shape") else stated)
    return static


def _write_shapes(graph: Any, shapes: Sequence[Sequence[int]], where: str) -> None:
    inputs = graph_inputs(graph)
    if len(inputs) != len(shapes):
        names = ", ".join(value.name for value in inputs)
        raise SuiteError(f"{where} takes {len(inputs)} inputs ({names}), not {len(shapes)}; correct inputs")
    for value, shape in zip(inputs, shapes, strict=True):
        tensor = value.type.tensor_type
        fixed = [dim.dim_value if dim.dim_value > 0 else None for dim in tensor.shape.dim]
        fits = len(fixed) == len(shape) and all(a in (None, b) for a, b in zip(fixed, shape, strict=True))
        if tensor.HasField("shape") and not fits:
            wanted = "x".join("?" if size is None else str(size) for size in fixed) or "a scalar"
            text = "x".join(map(str, shape)) or "a scalar"
            raise SuiteError(f"{where}: its input {value.name} is {wanted}, which {text} does not fit; correct inputs")
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
    """Replace nodes whose results are known by constants; whether there were any."""
    from onnx import TensorProto, helper, numpy_helper

    shapes = _static_shapes(inferred.graph)
    opsets = {entry.domain: entry.version for entry in model.opset_import}
    constants = {
        weight.name: numpy_helper.to_array(weight)
        for weight in model.graph.initializer
        if np.prod(weight.dims) <= _MOST_ELEMENTS and weight.data_location != TensorProto.EXTERNAL
    }
    nodes, has_folded = [], False
    for node in model.graph.node:
        values = _evaluate(node, constants, shapes, opsets)
        if values is not None:
            constants.update(zip(node.output, values, strict=True))
        if values is None or node.op_type == "Constant":
            nodes.append(node)
            continue
        has_folded = True
        for name, value in zip(node.output, values, strict=True):
            nodes.append(helper.make_node("Constant", [], [name], value=numpy_helper.from_array(value, name)))
    if has_folded:
        del model.graph.node[:]
        model.graph.node.extend(nodes)
    return has_folded


def _evaluate(
    node: Any,
    constants: Mapping[str, NDArray[Any]],
    shapes: Mapping[str, tuple[int, ...]],
    opsets: Mapping[str, int],
) -> list[NDArray[Any]] | None:
    """A node's results, if they are known and small."""
    from onnx.reference import ReferenceEvaluator

    if (
        node.domain not in ("", "ai.onnx")
        or node.op_type in _UNFOLDABLE
        or any(attribute.HasField("g") for attribute in node.attribute)
    ):
        return None
    if any(np.prod(shapes.get(name, (_MOST_ELEMENTS + 1,))) > _MOST_ELEMENTS for name in node.output):
        return None
    operands: dict[str, NDArray[Any]] = {}
    for name in node.input:
        if name in constants:
            operands[name] = constants[name]
        elif node.op_type in ("Shape", "Size") and name in shapes:
            operands[name] = np.broadcast_to(np.float32(0), shapes[name])  # only its shape is looked at
        elif name:
            return None
    return [np.asarray(value) for value in ReferenceEvaluator(node, opsets=dict(opsets)).run(None, operands)]


def _static_shapes(graph: Any) -> dict[str, tuple[int, ...]]:
    shapes = {weight.name: tuple(weight.dims) for weight in graph.initializer}
    for value in (*graph.input, *graph.value_info, *graph.output):
        tensor = value.type.tensor_type
        if tensor.HasField("shape") and all(dim.HasField("dim_value") for dim in tensor.shape.dim):
            shapes[value.name] = tuple(dim.dim_value for dim in tensor.shape.dim)
    return shapes


def _drop_unused(graph: Any) -> None:
    """Remove nodes and weights that no output needs any more; inputs stay."""
    needed = {value.name for value in graph.output}
    kept = []
    for node in reversed(graph.node):
        if needed.intersection(node.output):
            needed.update(_read_by(node))
            kept.append(node)
    del graph.node[:]
    graph.node.extend(reversed(kept))
    weights = [value for value in graph.initializer if value.name in needed]
    del graph.initializer[:]
    graph.initializer.extend(weights)


def _read_by(node: Any) -> Iterator[str]:
    """Names of all values that a node reads, those of its inner graphs too."""
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
            raise CaseError(
                "verify",
                f"{path}: the graph takes {len(names)} inputs ({', '.join(names)}), not {len(arrays)}; correct inputs",
            )
        outputs = session.run(None, dict(zip(names, arrays, strict=True)))
    except CaseError:
        raise
    except Exception as error:  # its exceptions have no common base but this
        version, message = onnxruntime.__version__, _one_line(error)
        raise CaseError(
            "verify", f"{path}: ONNX Runtime {version} cannot run it ({message}); check file and inputs"
        ) from error
    return [np.asarray(value) for value in outputs]
