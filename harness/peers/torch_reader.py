"""A reader of ONNX for PyTorch, which has none: a graph of static shapes -> a torch.nn.Module of its operations.

Everything that does not depend on the arguments' values, shapes above all, is computed once while it is read.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from harness.models.onnx_file import graph_inputs
from harness.peers import torch_images, torch_ops
from harness.peers.onnx_kinds import MADE, PLAIN
from harness.peers.peer import Array
from harness.peers.torch_ops import Node, Run


@dataclass(frozen=True, kw_only=True)
class _Step:
    """One operation of every call; values go by their places in a list."""

    run: Run
    operands: tuple[int | None, ...]
    results: tuple[int, ...]


class OnnxModule(torch.nn.Module):  # type: ignore[misc]
    """The operations of a graph, its weights as buffers."""

    def __init__(self) -> None:
        super().__init__()
        self.steps: list[_Step] = []
        self.inputs: list[int] = []
        self.outputs: list[int] = []
        self.weights: list[tuple[int, str]] = []
        self.places = 0

    def forward(self, *arguments: Tensor) -> tuple[Tensor, ...]:
        """The graph's outputs, in order."""
        values: list[Any] = [None] * self.places
        for place, argument in zip(self.inputs, arguments, strict=True):
            values[place] = argument
        for place, name in self.weights:
            values[place] = getattr(self, name)
        for step in self.steps:
            result = step.run(*(None if place is None else values[place] for place in step.operands))
            several = (result,) if isinstance(result, Tensor) else result
            for place, value in zip(step.results, several, strict=True):
                values[place] = value
        return tuple(values[place] for place in self.outputs)


def read_module(path: Path, arguments: Sequence[Array]) -> OnnxModule:
    """Read a graph for arguments of these shapes and types."""
    import onnx

    model = onnx.load(str(path))
    opset = next((entry.version for entry in model.opset_import if entry.domain in ("", "ai.onnx")), 0)
    with torch.no_grad():
        return _Reader(model.graph, opset).read(arguments)


class _Reader:
    """A graph while it is read: what its values are for one example of the arguments, and which do not vary."""

    def __init__(self, graph: Any, opset: int) -> None:
        self.graph, self.opset = graph, opset
        self.module = OnnxModule()
        self.example: dict[str, Tensor] = {}
        self.constants: set[str] = set()
        self.place: dict[str, int] = {}

    def read(self, arguments: Sequence[Array]) -> OnnxModule:
        """The module."""
        for weight in self.graph.initializer:
            self._keep(weight.name, _tensor(weight))
        for entry, argument in zip(graph_inputs(self.graph), arguments, strict=True):
            self.example[entry.name] = torch.from_numpy(np.array(argument))
            self.module.inputs.append(self._new_place(entry.name))
        for node in self.graph.node:
            self._read_node(node)
        self.module.outputs = [self._place_of(entry.name) for entry in self.graph.output]
        self.module.places = len(self.place)
        self.module.eval()
        return self.module

    def _keep(self, name: str, value: Tensor) -> None:
        self.example[name] = value
        self.constants.add(name)

    def _new_place(self, name: str) -> int:
        return self.place.setdefault(name, len(self.place))

    def _place_of(self, name: str) -> int:
        """The place of a value; a constant becomes a weight with its first use."""
        if name in self.constants and name not in self.place:
            buffer = f"weight{len(self.module.weights)}"
            self.module.register_buffer(buffer, self.example[name].contiguous())
            self.module.weights.append((self._new_place(name), buffer))
        return self.place[name]

    def _read_node(self, proto: Any) -> None:
        names = [name or None for name in proto.input]
        outputs = list(proto.output)
        while outputs and not outputs[-1]:
            outputs.pop()
        is_constant = [name is None or name in self.constants for name in names]
        node = Node(
            kind=proto.op_type,
            attributes={entry.name: _attribute(entry) for entry in proto.attribute},
            operands=[None if name is None else self.example[name] for name in names],
            is_constant=is_constant,
            results=len(outputs),
            opset=self.opset,
        )
        run = _function(node)
        result = run(*node.operands)
        several = (result,) if isinstance(result, Tensor) else tuple(result)
        for name, value in zip(outputs, several, strict=True):
            if all(is_constant) or node.kind == "Shape":
                self._keep(name, value)
            else:
                self.example[name] = value
        if not all(is_constant) and node.kind != "Shape":
            operands = tuple(None if name is None else self._place_of(name) for name in names)
            results = tuple(self._new_place(name) for name in outputs)
            self.module.steps.append(_Step(run=run, operands=operands, results=results))


def _function(node: Node) -> Run:
    run: Run
    if node.kind in PLAIN:
        run = attrgetter(PLAIN[node.kind])(torch)
    elif node.kind in MADE:
        name = "make_" + re.sub(r"(?<!^)(?=[A-Z])", "_", node.kind).lower()
        run = getattr(torch_ops if hasattr(torch_ops, name) else torch_images, name)(node)
    else:
        raise ValueError(f"{node.kind} is not known to the reader")
    return run


def _tensor(proto: Any) -> Tensor:
    from onnx import numpy_helper

    return torch.from_numpy(np.array(numpy_helper.to_array(proto)))


def _attribute(proto: Any) -> Any:
    """A number, a string, a list of them, or a tensor."""
    from onnx import AttributeProto, helper

    value = helper.get_attribute_value(proto)
    if proto.type == AttributeProto.TENSOR:
        return _tensor(value)
    if proto.type == AttributeProto.STRING:
        return value.decode()
    if proto.type in (AttributeProto.INTS, AttributeProto.FLOATS):
        return list(value)
    return value
