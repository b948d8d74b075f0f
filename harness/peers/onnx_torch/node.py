"""One node of an ONNX graph as the functions that say it in PyTorch are given it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor

# Takes a node's operands, those left out as None, and gives its result or results.
Run = Callable[..., Any]


@dataclass(frozen=True, kw_only=True)
class Node:
    """A node, and what is known of its operands when it is read.

    Attributes:
        attributes: By their names; tensors as PyTorch's, strings as str.
        operands: Values of the example that the graph is read with, None where one is left out; only their shapes
            and types count, but for those in `known`.
        known: Which operands are the same at every call.
        results: How many of its results have names.
        opset: Of the graph.
    """

    kind: str
    attributes: Mapping[str, Any]
    operands: Sequence[Tensor | None]
    known: Sequence[bool]
    results: int
    opset: int

    def has(self, position: int) -> bool:
        """Whether there is such an operand."""
        return position < len(self.operands) and self.operands[position] is not None

    def operand(self, position: int) -> Tensor:
        """An operand of the example.

        Raises:
            ValueError: It is left out.
        """
        value = self.operands[position] if position < len(self.operands) else None
        if value is None:
            raise ValueError(f"{self.kind} lacks operand {position}")
        return value

    def constant(self, position: int) -> Any:
        """The value of an operand as Python's numbers: one, or a list; None where it is left out.

        Raises:
            ValueError: It is not the same at every call.
        """
        if not self.has(position):
            return None
        if not self.known[position]:
            raise ValueError(f"operand {position} of {self.kind} is no constant")
        return self.operand(position).tolist()

    def setting(self, name: str, position: int, otherwise: Any = None) -> Any:
        """What older opsets have as an attribute and newer ones as an operand."""
        if name in self.attributes:
            return self.attributes[name]
        value = self.constant(position)
        return otherwise if value is None else value

    def choice(self, name: str, otherwise: Any, *allowed: Any) -> Any:
        """An attribute of which the reader knows some values only.

        Raises:
            ValueError: It has another.
        """
        value = self.attributes.get(name, otherwise)
        if value not in allowed:
            raise ValueError(f"{self.kind} with {name} {value!r} is not known to the reader")
        return value
