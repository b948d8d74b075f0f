"""Which operations of ONNX the reader for PyTorch knows; said here, since a refusal needs no PyTorch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

# By name PyTorch's own functions of the same operands, which broadcast as
# ONNX does; of the others torch_ops.py and torch_images.py make functions.
PLAIN = {
    **{kind: kind.lower() for kind in ("Abs", "Add", "Ceil", "Cos", "Erf", "Exp", "Floor", "Log", "MatMul", "Mul")},
    **{kind: kind.lower() for kind in ("Neg", "Reciprocal", "Relu", "Sigmoid", "Sin", "Sqrt", "Sub", "Tanh", "Where")},
    **{kind: f"logical_{kind.lower()}" for kind in ("And", "Not", "Or")},
    "HardSwish": "nn.functional.hardswish",
    "Equal": "eq",
    "Greater": "gt",
    "GreaterOrEqual": "ge",
    "Less": "lt",
    "LessOrEqual": "le",
}
_MADE = (
    "AveragePool BatchNormalization Cast Clip Concat Constant ConstantOfShape Conv ConvTranspose DepthToSpace Div "
    "Dropout Elu Expand Flatten Gather Gelu Gemm GlobalAveragePool GlobalMaxPool HardSigmoid Identity "
    "LayerNormalization LeakyRelu Max MaxPool Min PRelu Pad Pow Range ReduceL2 ReduceMax ReduceMean ReduceMin "
    "ReduceSum Reshape Resize Shape Slice Softmax Split Squeeze Tile Transpose Unsqueeze"
)
MADE = frozenset(_MADE.split())


def unknown_ops(nodes: Iterable[Any]) -> Iterator[str]:
    """The operations of a graph's nodes that the reader does not know."""
    for node in nodes:
        is_standard = node.domain in ("", "ai.onnx")
        if not is_standard or (node.op_type not in PLAIN and node.op_type not in MADE):
            yield node.op_type if is_standard else f"{node.domain}.{node.op_type}"
