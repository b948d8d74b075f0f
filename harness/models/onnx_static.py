"""An ONNX model whose inputs have dynamic sizes, made static: the sizes are written in, and what follows is worked out.

Exporters compute sizes inside the graph, from the sizes of its inputs (Shape, Gather, Concat, Reshape). Once those are
known such nodes give constants, and leaving them in costs compilers dearly or makes them fail, so they are replaced by
their values, which onnx's own shape inference and reference evaluator give. Larger values are left as they are: a
weight that is dequantised in the graph stays so, since that is what is measured.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harness.errors import CaseError, SuiteError

# Sizes, indices and masks have fewer elements than this; weights have more.
_MOST_ELEMENTS = 4096
_UNFOLDABLE = frozenset(
    {"Bernoulli", "Constant", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"}
)


def with_static_inputs(model: Any, shapes: Sequence[Sequence[int]], where: str) -> Any:
    """The same model for inputs of these shapes.

    Args:
        model: An onnx.ModelProto, which is left as it is. Weights in files beside it stay there.
        shapes: Of the graph's inputs in order, those that are weights not counted.
        where: What names the model, for error messages: `[models.net] onnx: net.onnx`.

    Returns:
        An onnx.ModelProto of the same opset whose inputs have these shapes, and its outputs too where onnx can tell.

    Raises:
        SuiteError: There are more or fewer shapes than inputs, or one contradicts a size that the model fixes.
        CaseError: The model's operations do not take inputs of these shapes (stage `model`).
    """
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
    for output, known, given in zip(graph.output, inferred.graph.output, model.graph.output, strict=True):
        output.CopyFrom(known if known.type.tensor_type.HasField("shape") else given)
    return static


def _write_shapes(graph: Any, shapes: Sequence[Sequence[int]], where: str) -> None:
    weights = {one.name for one in graph.initializer}
    inputs = [one for one in graph.input if one.name not in weights]
    if len(inputs) != len(shapes):
        names = ", ".join(one.name for one in inputs)
        raise SuiteError(f"{where} takes {len(inputs)} inputs ({names}), not {len(shapes)}; correct inputs")
    for one, shape in zip(inputs, shapes, strict=True):
        tensor = one.type.tensor_type
        fixed = [dim.dim_value if dim.dim_value > 0 else None for dim in tensor.shape.dim]
        fits = len(fixed) == len(shape) and all(a in (None, b) for a, b in zip(fixed, shape, strict=True))
        if tensor.HasField("shape") and not fits:
            wanted = "x".join("?" if size is None else str(size) for size in fixed) or "a scalar"
            given = "x".join(map(str, shape)) or "a scalar"
            raise SuiteError(f"{where}: its input {one.name} is {wanted}, which {given} does not fit; correct inputs")
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
        message = " ".join(str(error).split()).rstrip(".")
        raise CaseError(
            "model", f"{where} does not work on inputs of these shapes ({message}); correct inputs"
        ) from None


def _fold(model: Any, inferred: Any) -> bool:
    """Replace nodes whose results are known by constants; whether there were any."""
    from onnx import helper, numpy_helper

    shapes = _static_shapes(inferred.graph)
    opsets = {one.domain: one.version for one in model.opset_import}
    known = dict(_constants(model.graph))
    nodes, found = [], False
    for node in model.graph.node:
        values = _evaluate(node, known, shapes, opsets)
        if values is None:
            nodes.append(node)
            continue
        found = True
        for name, value in zip(node.output, values, strict=True):
            known[name] = value
            nodes.append(helper.make_node("Constant", [], [name], value=numpy_helper.from_array(value, name)))
    if found:
        del model.graph.node[:]
        model.graph.node.extend(nodes)
    return found


def _evaluate(
    node: Any,
    known: Mapping[str, NDArray[Any]],
    shapes: Mapping[str, tuple[int, ...]],
    opsets: Mapping[str, int],
) -> list[NDArray[Any]] | None:
    """A node's results, if they are known and small."""
    from onnx.reference import ReferenceEvaluator

    if (
        node.domain not in ("", "ai.onnx")
        or node.op_type in _UNFOLDABLE
        or any(a.HasField("g") for a in node.attribute)
    ):
        return None
    if any(np.prod(shapes.get(name, (_MOST_ELEMENTS + 1,))) > _MOST_ELEMENTS for name in node.output):
        return None
    given: dict[str, NDArray[Any]] = {}
    for name in node.input:
        if name in known:
            given[name] = known[name]
        elif node.op_type in ("Shape", "Size") and name in shapes:
            given[name] = np.broadcast_to(np.float32(0), shapes[name])  # only its shape is looked at
        elif name:
            return None
    return [np.asarray(value) for value in ReferenceEvaluator(node, opsets=dict(opsets)).run(None, given)]


def _static_shapes(graph: Any) -> dict[str, tuple[int, ...]]:
    shapes = {one.name: tuple(one.dims) for one in graph.initializer}
    for value in (*graph.input, *graph.value_info, *graph.output):
        tensor = value.type.tensor_type
        if tensor.HasField("shape") and all(dim.HasField("dim_value") for dim in tensor.shape.dim):
            shapes[value.name] = tuple(dim.dim_value for dim in tensor.shape.dim)
    return shapes


def _constants(graph: Any) -> Iterator[tuple[str, NDArray[Any]]]:
    """The small constants of a graph; weights in files beside it are not read."""
    from onnx import TensorProto, numpy_helper
    from onnx.reference import ReferenceEvaluator

    for weight in graph.initializer:
        if np.prod(weight.dims) <= _MOST_ELEMENTS and weight.data_location != TensorProto.EXTERNAL:
            yield weight.name, numpy_helper.to_array(weight)
    for node in graph.node:
        if node.op_type == "Constant" and node.attribute[0].t.data_location != TensorProto.EXTERNAL:
            (value,) = ReferenceEvaluator(node, opsets={"": 17}).run(None, {})
            if np.size(value) <= _MOST_ELEMENTS:
                yield node.output[0], np.asarray(value)


def _drop_unused(graph: Any) -> None:
    """Remove nodes and weights that no output needs any more; inputs stay."""
    needed = {one.name for one in graph.output}
    kept = []
    for node in reversed(graph.node):
        if needed.intersection(node.output):
            needed.update(_read_by(node))
            kept.append(node)
    del graph.node[:]
    graph.node.extend(reversed(kept))
    weights = [one for one in graph.initializer if one.name in needed]
    del graph.initializer[:]
    graph.initializer.extend(weights)


def _read_by(node: Any) -> Iterator[str]:
    """Names of all values that a node reads, those of its inner graphs too."""
    yield from node.input
    for attribute in node.attribute:
        for inner in (attribute.g, *attribute.graphs):
            yield from (one.name for one in inner.output)
            for one in inner.node:
                yield from _read_by(one)
