"""Random graphs: the count is what numpy counts while it computes them."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tests.roofline.programs import elementwise, function, work, zeros


@dataclass
class Graph:
    """A chain of operations on one matrix: as MLIR, and computed by numpy one product at a time.

    Attributes:
        value: What numpy has so far.
        moved: Elements that each operation reads and writes.
    """

    value: NDArray[np.float64]
    lines: list[str] = field(default_factory=list)
    arguments: list[str] = field(default_factory=list)
    name: str = "%a"
    operations: int = 0
    moved: int = 0
    touched: int = 0

    @property
    def kind(self) -> str:
        """Of the tensor so far."""
        return f"tensor<{self.value.shape[0]}x{self.value.shape[1]}xf32>"

    def then(self, name: str, value: NDArray[np.float64], read: int) -> None:
        """Go on with what an operation gave, which read so many elements."""
        self.moved += read + value.size
        self.name, self.value = name, value

    def multiply(self, columns: int) -> None:
        """By a matrix that is an argument of its own."""
        number = len(self.lines)
        factor = np.ones((self.value.shape[1], columns))
        out = np.zeros((self.value.shape[0], columns))
        for row in range(out.shape[0]):
            for column in range(columns):
                for one in range(factor.shape[0]):
                    out[row, column] += self.value[row, one] * factor[one, column]
                    self.operations += 2
        argument, kind = f"%f{number}", f"tensor<{factor.shape[0]}x{columns}xf32>"
        result = f"tensor<{out.shape[0]}x{columns}xf32>"
        self.arguments.append(f"{argument}: {kind}")
        self.touched += factor.size
        self.lines += zeros(f"z{number}", result)
        self.lines.append(
            f"%m{number} = linalg.matmul ins({self.name}, {argument} : {self.kind}, {kind}) "
            f"outs(%z{number} : {result}) -> {result}"
        )
        self.then(f"%m{number}", out, self.value.size + factor.size)

    def square(self) -> None:
        """Each element."""
        number = len(self.lines)
        self.lines.append(elementwise(f"s{number}", "arith.mulf %x, %x", self.name, self.kind, loops=2))
        self.operations += self.value.size
        self.then(f"%s{number}", self.value**2, self.value.size)

    def transpose(self) -> None:
        """A move without arithmetic."""
        number = len(self.lines)
        turned = f"tensor<{self.value.shape[1]}x{self.value.shape[0]}xf32>"
        self.lines.append(f"%e{number} = tensor.empty() : {turned}")
        self.lines.append(
            f"%t{number} = linalg.transpose ins({self.name} : {self.kind}) outs(%e{number} : {turned}) "
            "permutation = [1, 0]"
        )
        self.then(f"%t{number}", self.value.T, self.value.size)


SIZES = st.integers(1, 4)
STEPS = st.lists(st.one_of(SIZES.map(lambda n: ("multiply", n)), st.sampled_from([("square", 0), ("transpose", 0)])))


@settings(max_examples=40)
@given(rows=SIZES, columns=SIZES, steps=STEPS)
def test_counts_are_those_of_numpy(rows: int, columns: int, steps: list[tuple[str, int]]) -> None:
    graph = Graph(value=np.ones((rows, columns)), arguments=[f"%a: tensor<{rows}x{columns}xf32>"])
    for step, size in steps:
        if step == "multiply":
            graph.multiply(size)
        elif step == "square":
            graph.square()
        else:
            graph.transpose()
    graph.touched += rows * columns + graph.value.size
    found = work(
        function(", ".join(graph.arguments), graph.kind, *graph.lines, f"util.return {graph.name} : {graph.kind}")
    )
    assert found.operations == graph.operations
    assert found.moved_bytes == 4 * graph.moved
    assert found.compulsory_bytes == 4 * graph.touched
    assert not found.unknown
