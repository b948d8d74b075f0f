"""Models that builders give in ONNX: written node by node, or taken from a package and made static."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harness.models.builder import BuiltOnnx
from harness.models.model import Input
from harness.models.onnx_file import DTYPES, LEAST_OPSET, with_static_inputs
from harness.models.weights import WeightFile

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

    def finish(self, *outputs: str) -> bytes:
        """The model, serialised; equal graphs give equal bytes."""
        import onnx
        from onnx import checker, helper, shape_inference

        results = [helper.make_tensor_value_info(name, onnx.TensorProto.UNDEFINED, None) for name in outputs]
        graph = helper.make_graph(self._nodes, self.name, self._graph_inputs(), results, self._weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION)
        inferred = shape_inference.infer_shapes(model, strict_mode=True, data_prop=True)
        for output in inferred.graph.output:
            tensor = output.type.tensor_type
            if not (tensor.HasField("shape") and all(size.HasField("dim_value") for size in tensor.shape.dim)):
                raise ValueError(f"the shape of {output.name} in graph {self.name} is not static")
        del model.graph.output[:]
        model.graph.output.extend(inferred.graph.output)
        checker.check_model(model)
        return bytes(model.SerializeToString(deterministic=True))

    def _graph_inputs(self) -> list[Any]:
        from onnx import TensorProto, helper

        return [
            helper.make_tensor_value_info(
                f"input{position}", getattr(TensorProto, _ELEMENT_TYPES[value.dtype]), value.shape
            )
            for position, value in enumerate(self.inputs)
        ]


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
