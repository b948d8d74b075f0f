"""Writing a function on ranked tensors as MLIR text, its weights as dense_resource blobs."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from harness.models.inputs import bf16_bits

# Constants of up to this size IREE moves into the dispatches that read them, and there IREE 3.13 fails on a
# dense_resource of bf16 (it gives the operation another type, and not the value).
_INLINE_BYTES = 256


class Tensor(NamedTuple):
    """An SSA value of a ranked tensor type."""

    name: str
    shape: tuple[int, ...]
    dtype: str

    @property
    def type(self) -> str:
        """As MLIR writes it."""
        return tensor_type(self.shape, self.dtype)


def tensor_type(shape: Sequence[int | str], dtype: str) -> str:
    """A ranked tensor type: `tensor<4x8xbf16>`, or `tensor<?x8xbf16>` where a size is "?"."""
    return f"tensor<{'x'.join(map(str, [*shape, dtype]))}>"


def constant(name: str, elements: NDArray[Any], dtype: str, inline_bytes: int = _INLINE_BYTES) -> tuple[str, str]:
    """A constant tensor."""
    type_ = tensor_type(elements.shape, dtype)
    if elements.nbytes <= inline_bytes:
        return f'arith.constant dense<"0x{elements.tobytes().hex()}"> : {type_}', ""
    # The blob's first four bytes are its alignment.
    blob = elements.itemsize.to_bytes(4, "little") + elements.tobytes()
    return f"arith.constant dense_resource<{name}> : {type_}", f'      {name}: "0x{blob.hex()}"'


def resources_text(resources: Sequence[str]) -> str:
    """What follows a module whose constants have these lines; "" where there are none."""
    return (
        "{-#\n  dialect_resources: {\n    builtin: {\n" + ",\n".join(resources) + "\n    }\n  }\n#-}\n"
        if resources
        else ""
    )


@dataclass
class Body:
    """A function's body while it is written: one entry of `lines` an operation, weights by resource name."""

    dtype: str  # f32 or bf16, the element type of all its tensors
    inline_bytes: int = _INLINE_BYTES  # Constants of at most this size are written in place
    lines: list[str] = field(default_factory=list)
    resources: list[str] = field(default_factory=list)

    def add(self, operation: str, shape: Sequence[int]) -> Tensor:
        """Append one operation that gives a tensor; its result."""
        result = Tensor(f"%{len(self.lines)}", tuple(shape), self.dtype)
        self.lines.append(f"    {result.name} = {operation}")
        return result

    def weight(self, name: str, values: NDArray[np.float32]) -> Tensor:
        """A constant tensor, its values rounded to the element type; small ones are written in place."""
        elements = bf16_bits(values) if self.dtype == "bf16" else values.astype("<f4")
        operation, resource = constant(name, elements, self.dtype, self.inline_bytes)
        self.resources += [resource] if resource else []
        return self.add(operation, values.shape)

    def empty(self, shape: Sequence[int]) -> Tensor:
        """A tensor of no particular values."""
        return self.add(f"tensor.empty() : {tensor_type(shape, self.dtype)}", shape)

    def zeros(self, shape: Sequence[int]) -> Tensor:
        """A tensor of the scalar %zero."""
        empty = self.empty(shape)
        return self.add(
            f"linalg.fill ins(%zero : {self.dtype}) outs({empty.name} : {empty.type}) -> {empty.type}", shape
        )

    def matmul(self, left: Tensor, right: Tensor, init: Tensor) -> Tensor:
        """A matrix product that is added to `init`."""
        return self.add(
            f"linalg.matmul ins({left.name}, {right.name} : {left.type}, {right.type}) "
            f"outs({init.name} : {init.type}) -> {init.type}",
            init.shape,
        )

    def generic(
        self, maps: Sequence[str], loops: Sequence[str], inputs: Sequence[Tensor], out: Tensor, body: str
    ) -> Tensor:
        """A linalg.generic."""
        kinds = ", ".join(f'"{kind}"' for kind in loops)
        names, types = ", ".join(value.name for value in inputs), ", ".join(value.type for value in inputs)
        ins = f"ins({names} : {types}) " if inputs else ""
        return self.add(
            f"linalg.generic {{indexing_maps = [{', '.join(maps)}], iterator_types = [{kinds}]}} "
            f"{ins}outs({out.name} : {out.type}) {{\n{body}\n    }} -> {out.type}",
            out.shape,
        )

    def module(self, preamble: str, argument: Tensor, scalars: Sequence[str], result: Tensor) -> str:
        """The whole text: a module with a function `main` of one argument and one result."""
        return "".join(
            [
                preamble,
                "module {\n",
                f"  func.func @main({argument.name}: {argument.type}) -> {result.type} {{\n",
                *(f"    {scalar}\n" for scalar in scalars),
                "\n".join(self.lines),
                f"\n    return {result.name} : {result.type}\n  }}\n}}\n",
                resources_text(self.resources),
            ]
        )
