"""Models that packages have in ONNX, made static: only their graph and weights are read."""

from __future__ import annotations

from collections.abc import Sequence

from harness.errors import CaseError
from harness.models.builder import BuiltOnnx
from harness.models.model import Input
from harness.models.onnx_graph import OPSET
from harness.models.onnx_static import with_static_inputs
from harness.weights import WeightFile


def read_static(file: WeightFile, inputs: tuple[Input, ...], *, outputs: Sequence[str] = ()) -> BuiltOnnx:
    """A package's model for inputs of these shapes, of an opset that IREE imports without an upgrade.

    Args:
        outputs: Values of the graph to give instead of its own results, in this order; (): its own.

    Raises:
        CaseError: The model cannot be had, or does not take such inputs (stage `model`).
    """
    import onnx
    from onnx import helper, version_converter

    path = file.locate()
    model = onnx.load(str(path))
    if next(one.version for one in model.opset_import if not one.domain) < OPSET:
        model = version_converter.convert_version(model, OPSET)
    if outputs:
        values = {name for node in model.graph.node for name in node.output}
        if missing := [name for name in outputs if name not in values]:
            raise CaseError(
                "model", f"{path} has no values {', '.join(missing)}; it is another file than was published"
            )
        del model.graph.output[:]
        model.graph.output.extend(
            helper.make_tensor_value_info(name, onnx.TensorProto.UNDEFINED, None) for name in outputs
        )
    static = with_static_inputs(model, [one.shape for one in inputs], str(path))
    return BuiltOnnx(onnx=static.SerializeToString(deterministic=True), inputs=inputs)
