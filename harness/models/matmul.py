"""One matrix product, of any sizes, element type and dynamic dimensions: what data tiling is for.

    result[m, n] = sum over k of left[m, k] * right[k, n]

f32, f16 and bf16 are summed in f32, i8 in i32, so that all but f32's own rounding is exact, whatever the compiler does.
Whether `right` is a constant matters: IREE's older data-tiling path packs constants while it compiles.
"""

from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from harness.models.builder import Builder, BuiltModel, Seed, Size, render
from harness.models.inputs import HELD_AS
from harness.models.model import Input
from harness.models.onnx_file import ONNX_FLOAT, OnnxGraph

Dtype = Literal["f32", "f16", "bf16", "i8"]

_SUMS = {"f32": "f32", "f16": "f32", "bf16": "f32", "i8": "i32"}


@dataclass(frozen=True, kw_only=True)
class Parameters:
    """Sizes, types and what of them the compiler knows."""

    m: Size = 256  # Rows of the left matrix and of the result; 1 makes a product of a vector and a matrix
    n: Size = 256  # Columns of the right matrix and of the result; 1 makes a product of a matrix and a vector
    k: Size = 256  # What is summed over
    dtype: Dtype = "f32"  # Of both matrices
    # Which of the letters m, n and k the program leaves open, such as "m" or "mnk"; the inputs have the sizes above all
    # the same
    dynamic: Annotated[str, Field(pattern=r"^m?n?k?$")] = ""
    right: Literal["argument", "constant"] = "argument"  # The right matrix is an argument, or a constant
    seed: Seed = 0  # Of the left matrix; the right one has the next

    def __post_init__(self) -> None:
        if self.right == "constant" and set(self.dynamic) - {"m"}:
            raise ValueError(f"dynamic is {self.dynamic!r}, but of a constant n and k are known; write 'm' or ''")

    @property
    def inputs(self) -> tuple[Input, ...]:
        """All arguments: the left matrix, and the right one where it is no constant."""
        left = Input(shape=(self.m, self.k), dtype=self.dtype, seed=self.seed)
        right = Input(shape=(self.k, self.n), dtype=self.dtype, seed=self.seed + 1)
        return (left, right) if self.right == "argument" else (left,)


def right_constant(params: Parameters) -> NDArray[Any]:
    """The right matrix where it is a constant, [k, n]: small whole numbers for i8, else standard normal."""
    rng = np.random.default_rng(params.seed + 1)
    shape = (params.k, params.n)
    if params.dtype == "i8":
        return np.asarray(rng.integers(-8, 8, size=shape, dtype=np.int8))
    return rng.standard_normal(shape, dtype=np.float32)


def build(params: Parameters) -> BuiltModel:
    """Write the product."""
    sizes = {letter: "?" if letter in params.dynamic else getattr(params, letter) for letter in "mnk"}
    constant = right_constant(params) if params.right == "constant" else None
    text = render("matmul.mlir", **sizes, dtype=params.dtype, sums=_SUMS[params.dtype], constant_right=constant)
    return BuiltModel(text=text, function="main", inputs=params.inputs)


def write_onnx(params: Parameters) -> bytes | None:
    """The same product as an ONNX graph of static sizes; None for bf16, which ONNX Runtime has no product of."""
    if params.dtype == "bf16":
        return None
    graph = OnnxGraph(name="main", inputs=params.inputs)
    names = ["input0", "input1"]
    if params.right == "constant":
        names[1] = graph.weight(right_constant(params).astype(HELD_AS[params.dtype]))
    if params.dtype == "f16":
        names = [graph.node("Cast", name, to=ONNX_FLOAT) for name in names]
    return graph.finish(graph.node("MatMulInteger" if params.dtype == "i8" else "MatMul", *names))


BUILDER = Builder(
    name="matmul",
    description="One matrix product: f32, f16, bf16 or i8, of static or dynamic sizes, by an argument or a constant.",
    parameters=Parameters,
    build=build,
    onnx=write_onnx,
)
