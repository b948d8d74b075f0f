"""Which operations of ONNX the reader for PyTorch knows, and by what it says them. Nothing heavy is imported here."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

# PyTorch's own functions of the same operands, which broadcast as ONNX does.
PLAIN = {
    "Abs": "abs",
    "Add": "add",
    "And": "logical_and",
    "Ceil": "ceil",
    "Cos": "cos",
    "Equal": "eq",
    "Erf": "erf",
    "Exp": "exp",
    "Floor": "floor",
    "Greater": "gt",
    "GreaterOrEqual": "ge",
    "Less": "lt",
    "LessOrEqual": "le",
    "Log": "log",
    "MatMul": "matmul",
    "Mul": "mul",
    "Neg": "neg",
    "Not": "logical_not",
    "Or": "logical_or",
    "Reciprocal": "reciprocal",
    "Relu": "relu",
    "Sigmoid": "sigmoid",
    "Sin": "sin",
    "Sqrt": "sqrt",
    "Sub": "sub",
    "Tanh": "tanh",
    "Where": "where",
}

# Functions of the modules beside this one that read attributes: `module:function`.
MADE = {
    "AveragePool": "windows:average_pool",
    "BatchNormalization": "windows:batch_normalization",
    "Cast": "shapes:cast",
    "Clip": "pointwise:clip",
    "Concat": "shapes:concatenate",
    "Constant": "shapes:constant",
    "ConstantOfShape": "shapes:constant_of_shape",
    "Conv": "windows:convolution",
    "ConvTranspose": "windows:transposed_convolution",
    "DepthToSpace": "shapes:depth_to_space",
    "Div": "pointwise:divide",
    "Dropout": "shapes:identity",
    "Elu": "pointwise:elu",
    "Expand": "shapes:expand",
    "Flatten": "shapes:flatten",
    "Gather": "shapes:gather",
    "Gelu": "pointwise:gelu",
    "Gemm": "pointwise:gemm",
    "GlobalAveragePool": "windows:global_average_pool",
    "GlobalMaxPool": "windows:global_max_pool",
    "HardSigmoid": "pointwise:hard_sigmoid",
    "HardSwish": "pointwise:hard_swish",
    "Identity": "shapes:identity",
    "LayerNormalization": "pointwise:layer_normalization",
    "LeakyRelu": "pointwise:leaky_relu",
    "Max": "pointwise:maximum",
    "MaxPool": "windows:max_pool",
    "Min": "pointwise:minimum",
    "PRelu": "pointwise:prelu",
    "Pad": "shapes:pad",
    "Pow": "pointwise:power",
    "Range": "shapes:count_up",
    "ReduceMax": "pointwise:reduce_max",
    "ReduceMean": "pointwise:reduce_mean",
    "ReduceMin": "pointwise:reduce_min",
    "ReduceSum": "pointwise:reduce_sum",
    "Reshape": "shapes:reshape",
    "Resize": "resize:resize",
    "Shape": "shapes:shape_of",
    "Slice": "shapes:take_slice",
    "Softmax": "pointwise:softmax",
    "Split": "shapes:split",
    "Squeeze": "shapes:squeeze",
    "Tile": "shapes:tile",
    "Transpose": "shapes:transpose",
    "Unsqueeze": "shapes:unsqueeze",
}


def unknown_ops(nodes: Iterable[Any]) -> Iterator[str]:
    """The operations of a graph's nodes that the reader does not know."""
    for node in nodes:
        standard = node.domain in ("", "ai.onnx")
        if not standard or (node.op_type not in PLAIN and node.op_type not in MADE):
            yield node.op_type if standard else f"{node.domain}.{node.op_type}"
